//! `sidegate.yaml`: what is under the gate, by which limits, and which costs are accepted. As-typed text becomes checked
//! values here; every fault of the file is found in one reading.

use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::Date;
use serde_json::Value;

use crate::policy::{Accept, LimitSet, OnInconclusive, Policy, Profile};
use crate::problem::{Problem, Span};

mod accept;
mod limits;
mod nearest;
mod reader;
mod target;
mod top;
pub mod typed;
mod value;

pub use limits::Limits;
pub use nearest::nearest;
pub use typed::schema;

/// Names of the scenarios there are.
pub const SCENARIOS: [&str; 2] = ["open", "closed"];

/// The whole file, checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    pub defaults: Defaults,
    pub targets: Vec<Target>,
    /// Which of the built-in scenarios run; empty: all.
    pub scenarios: Vec<String>,
    pub accept: Vec<Accept>,
    pub comment: Comment,
}

/// What holds where neither the command line nor the target says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    pub profile: Profile,
    pub limits: LimitSet,
    /// Version or path of Envoy.
    pub envoy: Option<String>,
    pub budget: Option<Duration>,
}

/// One config under the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub name: String,
    /// Relative to the directory of `sidegate.yaml`.
    pub config: PathBuf,
    pub envoy: Option<String>,
    /// Worker threads of the proxy.
    pub concurrency: Option<u32>,
    pub limits: Limits,
}

/// When a pull request gets a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, schemars::JsonSchema, clap::ValueEnum)]
#[schemars(rename_all = "snake_case")]
pub enum Comment {
    #[default]
    Changes,
    Always,
    Failures,
    Never,
}

/// What the command line says over the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    pub profile: Option<Profile>,
    pub limits: Option<LimitSet>,
    pub on_inconclusive: OnInconclusive,
}

impl Spec {
    /// Checks a parsed file. `span` finds the place of a JSON pointer in it; `today` dates acceptances. On failure all
    /// faults are returned, in the order of their lines.
    pub fn read(
        value: &Value,
        span: &dyn Fn(&str) -> Option<Span>,
        file: &str,
        today: Date,
    ) -> Result<Self, Vec<Problem>> {
        let mut reader = reader::Reader::new(file, span);
        let spec = top::read(&mut reader, value, today);
        let problems = reader.into_problems();
        if problems.is_empty() { Ok(spec) } else { Err(problems) }
    }

    pub fn target(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|t| t.name == name)
    }

    /// What decides about target `name`, whether the file lists it or not: the command line over the target over the
    /// defaults, and the acceptances that name it (dates are for the judge to check).
    pub fn policy_for(&self, name: &str, overrides: Overrides) -> Policy {
        let own = self.target(name).map(|t| t.limits.clone()).unwrap_or_default();
        Policy {
            profile: overrides.profile.unwrap_or(self.defaults.profile),
            limits: overrides.limits.unwrap_or(self.defaults.limits),
            on_inconclusive: overrides.on_inconclusive,
            overrides: own.margins,
            max: own.max,
            added_max: own.added_max,
            accept: self.accepts(name),
        }
    }

    /// The acceptances that name this target.
    pub fn accepts(&self, name: &str) -> Vec<Accept> {
        self.accept.iter().filter(|a| a.target == name).cloned().collect()
    }
}
