//! `sidegate.yaml` as it is typed: the source of the published JSON schema. A test holds its keys equal to the reader's.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, json_schema};
use serde_json::Value;

use super::{Comment, limits};
use crate::metric::Metric;
use crate::policy::{LimitSet, Profile};

/// The JSON schema of `sidegate.yaml`, as published in `schema/sidegate.schema.json`.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(SpecFile).to_value();
    if let Value::Object(map) = &mut schema {
        map.insert("title".to_owned(), "sidegate.yaml".into());
    }
    schema
}

/// What is under sidegate's gate, by which limits, and which costs are accepted.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SpecFile {
    /// Version of this file's format.
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub defaults: Option<DefaultsFile>,
    /// The configs under the gate.
    pub targets: Option<Vec<TargetFile>>,
    /// Which of the built-in scenarios run; all, if this is left out.
    pub scenarios: Option<Vec<ScenarioFile>>,
    /// Costs that are intended and may pass.
    pub accept: Option<Vec<AcceptFile>>,
    /// When a pull request gets a comment.
    pub comment: Option<Comment>,
}

/// What holds where neither the command line nor a target says otherwise.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DefaultsFile {
    /// How long is measured.
    pub profile: Option<Profile>,
    /// Which set of margins decides.
    pub limits: Option<LimitSet>,
    /// Version or path of Envoy, such as 1.40.0.
    pub envoy: Option<String>,
    /// Longest time a run may take, such as 10m.
    #[schemars(with = "Option<Duration>")]
    pub budget: Option<String>,
}

/// One proxy config under the gate.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TargetFile {
    /// Results and baselines are kept under this name.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$"))]
    pub name: String,
    /// The proxy config's file, relative to this one.
    pub config: String,
    /// Version or path of Envoy, such as 1.40.0.
    pub envoy: Option<String>,
    /// Worker threads of the proxy.
    #[schemars(range(min = 1, max = 256))]
    pub concurrency: Option<u32>,
    /// How a request travels.
    #[schemars(extend("enum" = ["one"]))]
    pub path: Option<String>,
    /// Where the requests come from.
    #[schemars(extend("enum" = ["derived"]))]
    pub workload: Option<String>,
    /// Margins and absolute limits by metric.
    #[schemars(extend("propertyNames" = { "enum": limits::names() }))]
    pub limits: Option<BTreeMap<String, LimitFile>>,
}

/// Limits of one metric; what is left out comes from the limit set.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LimitFile {
    /// A change surely beyond it is reported.
    #[schemars(with = "Option<Margin>")]
    pub notice: Option<String>,
    /// A change surely beyond it fails.
    #[schemars(with = "Option<Margin>")]
    pub limit: Option<String>,
    /// A pass must exclude it.
    #[schemars(with = "Option<Margin>")]
    pub rule_out: Option<String>,
    /// What the metric itself may be at most: 500us, 80MiB.
    #[schemars(with = "Option<Margin>")]
    pub max: Option<String>,
}

/// One of the built-in scenarios.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ScenarioFile {
    #[schemars(extend("enum" = super::SCENARIOS))]
    pub name: String,
}

/// A cost that is intended and may pass.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AcceptFile {
    pub target: String,
    pub metric: Metric,
    /// How much is accepted: 12%, or a number for events a request.
    #[schemars(with = "Margin")]
    pub up_to: String,
    /// Last day on which it holds, at most 180 days ahead.
    #[schemars(extend("format" = "date"))]
    pub until: String,
    /// Why the cost is worth it, and where that was decided.
    #[schemars(length(max = 200))]
    pub reason: String,
}

/// `8%`, `500us`, `80MiB`, or a plain number for events a request.
struct Margin;

impl JsonSchema for Margin {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`8%`, `500us`, `80MiB`, or a plain number for events a request.",
            "type": ["string", "number"],
            "pattern": r"^[0-9]+(\.[0-9]+)?\s*(%|ns|us|µs|ms|s|m|min|h|B|kB|KB|MB|GB|KiB|MiB|GiB)$",
            "minimum": 0
        })
    }
}

struct Duration;

impl JsonSchema for Duration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^[0-9]+(\.[0-9]+)?\s*(ns|us|µs|ms|s|m|min|h)$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{accept, target, top};

    #[test]
    fn the_schema_knows_exactly_the_keys_that_the_reader_knows() {
        let schema = schema();
        let keys = |pointer: &str| -> Vec<String> {
            let mut keys: Vec<String> = schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        let sorted = |known: &[&str]| -> Vec<String> {
            let mut known: Vec<String> = known.iter().map(|k| (*k).to_owned()).collect();
            known.sort();
            known
        };
        assert_eq!(keys("/properties"), sorted(&top::KEYS));
        assert_eq!(keys("/$defs/DefaultsFile/properties"), sorted(&top::DEFAULT_KEYS));
        assert_eq!(keys("/$defs/TargetFile/properties"), sorted(&target::KEYS));
        assert_eq!(keys("/$defs/LimitFile/properties"), sorted(&limits::KEYS));
        assert_eq!(keys("/$defs/ScenarioFile/properties"), sorted(&top::SCENARIO_KEYS));
        assert_eq!(keys("/$defs/AcceptFile/properties"), sorted(&accept::KEYS));
    }
}
