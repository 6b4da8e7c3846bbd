//! What the analysis of a record says: the shape of `verdict.json`. `judge` fills it, renderers read it.

use serde::{Deserialize, Serialize};

use crate::exit;
use crate::metric::Metric;
use crate::policy::{Accept, LimitSet, OnInconclusive, Profile};

pub const SCHEMA: u32 = 1;

/// One word for a target or a whole run. Ordered: the greatest of several is theirs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Skipped,
    Pass,
    Improved,
    Inconclusive,
    Invalid,
    Regression,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Skipped => "skipped",
            Outcome::Pass => "pass",
            Outcome::Improved => "improved",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Invalid => "invalid",
            Outcome::Regression => "regression",
        }
    }

    pub fn exit_code(self, on_inconclusive: OnInconclusive) -> u8 {
        match (self, on_inconclusive) {
            (Outcome::Skipped | Outcome::Pass | Outcome::Improved, _) => exit::PASS,
            (Outcome::Inconclusive, OnInconclusive::Pass) => exit::PASS,
            (Outcome::Inconclusive, OnInconclusive::Fail) => exit::INCONCLUSIVE,
            (Outcome::Invalid, _) => exit::INVALID,
            (Outcome::Regression, _) => exit::REGRESSION,
        }
    }
}

/// What is said of one metric in one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    Pass,
    /// Surely beyond `notice`, not surely beyond `limit`.
    Costlier,
    Regression,
    Improved,
    Inconclusive,
    Invalid,
    /// A regression that an `accept` entry covers.
    Accepted,
    /// Not gated: shown only.
    Report,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub schema: u32,
    pub verdict: Outcome,
    pub exit_code: u8,
    pub profile: Profile,
    pub limits: LimitSet,
    /// Bound on the probability that a target whose configs do the same is called a regression.
    pub family_bound: f64,
    pub targets: Vec<TargetVerdict>,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetVerdict {
    pub target: String,
    pub verdict: Outcome,
    /// Commit or file; `null` without a base.
    pub base: Option<String>,
    pub head: String,
    /// Why this verdict, in plain words, the weightiest first.
    pub reasons: Vec<String>,
    /// Doubts about the measurement: saturation, lateness, interference, voided blocks. Plain sentences.
    pub notes: Vec<String>,
    /// What to do next. Plain sentences.
    pub next_steps: Vec<String>,
    /// Gated wall-clock tests of this target.
    pub family_size: u32,
    /// The level each of them was tested at: .01, or .01/family_size.
    pub alpha: f64,
    /// Sum of the shares of sign flips that would have called an unchanged config a regression.
    pub flip_rate: f64,
    pub blocks: u32,
    pub accepted: Vec<Accept>,
}

/// What a finding is against where two runs are compared that were not measured side by side.
pub const ANOTHER_RUN: &str = "another run";

/// What findings on counted requests are filed under: `count: GET /v1/orders`.
pub const COUNTED: &str = "count: ";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub target: String,
    /// Empty for what belongs to no scenario (memory, start-up); `count: NAME` for a class of request that was counted.
    pub scenario: String,
    pub metric: Metric,
    /// Milliseconds, for `slow_share` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_ms: Option<u64>,
    pub unit: String,
    pub gated: bool,
    pub verdict: Call,
    /// Typical value on the direct path, for latencies and throughput.
    pub direct: Option<f64>,
    pub base: Option<f64>,
    pub head: Option<f64>,
    /// What the change adds: head - base. Against an absolute limit: what the sidecar adds, head - direct.
    pub added: Option<f64>,
    /// head / base as estimated from pairs (not the quotient of the two columns); `null` where base is 0, without a
    /// base, and for metrics compared by difference.
    pub ratio: Option<f64>,
    /// The one-sided bounds that decide: of `ratio`, or of `added` for metrics compared by difference; `low` at the level
    /// that calls regressions, `high` at the level that calls passes (for throughput the other way round). Against an
    /// absolute limit: of head's value, or of what the sidecar adds. `null` is an open end: too few blocks for the level.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub notice: Option<f64>,
    pub limit: Option<f64>,
    pub rule_out: Option<f64>,
    /// Smallest true change this run would have called a regression with probability .95; same scale as `limit`.
    pub mde: Option<f64>,
    /// Blocks compared; windows, for what was counted.
    pub n: u32,
    /// `base`, `baseline`, `absolute`, or `another run`.
    pub against: String,
    pub reason: String,
    pub advice: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Finding {
    /// The class of request it was counted on; `None` for what was timed.
    pub fn request_class(&self) -> Option<&str> {
        self.scenario.strip_prefix(COUNTED)
    }
}
