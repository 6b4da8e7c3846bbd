//! The file: what it holds, how it is sealed, and everything that can be wrong with one.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::redact::Redaction;
use crate::analysis::Analysis;
use crate::files;
use crate::histogram::Histogram;
use crate::metric::Metric;
use crate::policy::Profile;
use crate::problem::{Problem, Span};
use crate::record::{Arm, Cost, CpuLayout, Host, ProxyId, Record, RequestLine, Scenario, TargetRecord};

/// What the field `kind` says: nothing else is a baseline of ours.
pub const KIND: &str = "sidegate baseline";

/// Version of the file's shape. A reader refuses other versions by name.
pub const SCHEMA: u32 = 1;

/// Larger files are not ours.
pub const MAX_BYTES: usize = 4 << 20;

/// The field that seals all others.
const SEAL: &str = "content_sha256";

/// What was measured of one accepted config, alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    pub kind: String,
    pub schema: u32,
    /// `sidegate 0.1.0`.
    pub tool: String,
    /// SHA-256 of all other fields in canonical form: compact JSON, names in order.
    pub content_sha256: String,
    pub target: String,
    /// RFC 3339, UTC.
    pub recorded_at: String,
    pub host: Host,
    pub proxy: ProxyId,
    pub config: StoredConfig,
    pub profile: Profile,
    pub concurrency: u32,
    pub cpus: CpuLayout,
    /// Blocks that counted.
    pub blocks: u32,
    pub workload: Vec<RequestLine>,
    pub scenarios: Vec<Scenario>,
    pub figures: Vec<StoredFigures>,
    pub histograms: Vec<StoredHistogram>,
    /// Counts under valgrind, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The config that was measured, without its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredConfig {
    /// File as the user named it.
    pub file: String,
    /// What was replaced before it was measured and written.
    pub redacted: Vec<Redaction>,
    pub document: Value,
}

/// One metric in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredFigures {
    /// Empty for memory and start-up.
    pub scenario: String,
    pub metric: Metric,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_ms: Option<u64>,
    pub unit: String,
    /// Over the run, as the report shows it.
    pub typical: f64,
    /// One value a block.
    pub blocks: Vec<f64>,
}

/// Latencies of the whole run, merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredHistogram {
    pub scenario: String,
    /// `head`: the config; `direct`: the path without a proxy.
    pub arm: Arm,
    pub latency: Histogram,
}

impl Baseline {
    /// From a run that measured the config alone.
    pub fn of(record: &Record, target: &TargetRecord, analysis: &Analysis, config: StoredConfig) -> Self {
        let name = |index: u32| target.scenarios.get(index as usize).map(|s| s.name.clone()).unwrap_or_default();
        let figures = analysis.effects.iter().filter_map(|e| {
            Some(StoredFigures {
                scenario: e.scenario.map(name).unwrap_or_default(),
                metric: e.metric,
                threshold_ms: e.threshold_ms,
                unit: e.metric.unit().to_owned(),
                typical: rounded(e.head?),
                blocks: e.head_blocks.iter().copied().map(rounded).collect(),
            })
        });
        Self {
            kind: KIND.to_owned(),
            schema: SCHEMA,
            tool: record.tool.clone(),
            content_sha256: String::new(),
            target: target.name.clone(),
            recorded_at: record.started_at.clone(),
            host: record.host.clone(),
            proxy: target.head.proxy.clone(),
            config,
            profile: target.policy.profile,
            concurrency: target.concurrency,
            cpus: target.cpus.clone(),
            blocks: analysis.blocks,
            workload: target.workload.clone(),
            scenarios: target.scenarios.clone(),
            figures: figures.collect(),
            histograms: histograms(target),
            cost: target.cost.clone(),
        }
    }

    /// The sealed text of the file. Error: the config is nested too deeply to be read back.
    pub fn to_text(&self) -> Result<String, Problem> {
        let unfit = |e: &serde_json::Error| Problem::new(&self.config.file, format!("cannot be stored as JSON: {e}"));
        let unsealed = serde_json::to_string(self).map_err(|e| unfit(&e))?;
        // What is sealed is what a reader will see.
        let mut value: Value = serde_json::from_str(&unsealed).map_err(|e| unfit(&e))?;
        let seal = seal(&value);
        if let Some(fields) = value.as_object_mut() {
            fields.insert(SEAL.to_owned(), Value::String(seal));
        }
        Ok(format!("{value:#}\n"))
    }

    /// Reads `text` of `file`, or says by field what is wrong with it. `tool` is the version that reads, `0.1.0`.
    pub fn read(file: &str, text: &str, tool: &str) -> Result<Self, Problem> {
        let fault = |message: String| Problem::new(file, message);
        if text.len() > MAX_BYTES {
            let most = MAX_BYTES >> 20;
            return Err(fault(format!("larger than the {most} MiB a baseline may have")).help(AGAIN));
        }
        let value: Value = serde_json::from_str(text).map_err(|e| not_json(file, text, &e))?;
        let Value::Object(fields) = &value else {
            return Err(fault("not a baseline of sidegate: it is no JSON object".to_owned()).help(RECORD));
        };
        check_kind(file, fields)?;
        check_versions(file, fields, tool)?;
        let baseline = Self::from_fields(file, &value)?;
        let sealed = seal(&value);
        if baseline.content_sha256 != sealed {
            let message = "`content_sha256` does not fit the rest: the file was changed after it was written";
            return Err(fault(message.to_owned()).help(AGAIN));
        }
        baseline.check(file)?;
        Ok(baseline)
    }

    /// Field by field, so that a fault is told with its field.
    fn from_fields(file: &str, value: &Value) -> Result<Self, Problem> {
        let fields = Fields { file, value };
        Ok(Self {
            kind: fields.get("kind")?,
            schema: fields.get("schema")?,
            tool: fields.get("tool")?,
            content_sha256: fields.get(SEAL)?,
            target: fields.get("target")?,
            recorded_at: fields.get("recorded_at")?,
            host: fields.get("host")?,
            proxy: fields.get("proxy")?,
            config: fields.get("config")?,
            profile: fields.get("profile")?,
            concurrency: fields.get("concurrency")?,
            cpus: fields.get("cpus")?,
            blocks: fields.get("blocks")?,
            workload: fields.get("workload")?,
            scenarios: fields.get("scenarios")?,
            figures: fields.get("figures")?,
            histograms: fields.get("histograms")?,
            cost: fields.value.get("cost").map_or(Ok(None), |_| fields.get("cost"))?,
        })
    }

    /// What only a file that we did not write can lack.
    fn check(&self, file: &str) -> Result<(), Problem> {
        let why = if !self.config.document.is_object() {
            "`config.document` is no config"
        } else if self.workload.is_empty() {
            "`workload` is empty"
        } else if self.figures.is_empty() && self.cost.as_ref().is_none_or(|cost| cost.arms.is_empty()) {
            "`figures` is empty, and `cost` has no counts"
        } else if self.scenarios.is_empty() && !self.figures.is_empty() {
            "`scenarios` is empty"
        } else {
            return Ok(());
        };
        Err(Problem::new(file, format!("{why}: nothing was measured")).help(AGAIN))
    }
}

const AGAIN: &str =
    "take the file from the repository's history, or record the baseline again: sidegate baseline record";
const RECORD: &str = "baselines are written by `sidegate baseline record --config FILE --target NAME`";

struct Fields<'a> {
    file: &'a str,
    value: &'a Value,
}

impl Fields<'_> {
    fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, Problem> {
        let Some(value) = self.value.get(name) else {
            return Err(Problem::new(self.file, format!("the field `{name}` is missing")).help(AGAIN));
        };
        T::deserialize(value).map_err(|e| Problem::new(self.file, format!("the field `{name}`: {e}")).help(AGAIN))
    }
}

fn not_json(file: &str, text: &str, error: &serde_json::Error) -> Problem {
    let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let at = Span { line: clamp(error.line()), column: clamp(error.column()) };
    let full = error.to_string();
    let what = full.split(" at line ").next().unwrap_or(&full);
    let message = if text.trim().is_empty() {
        "not a baseline: the file is empty".to_owned()
    } else if error.is_eof() {
        "not a whole baseline: the file ends in the middle".to_owned()
    } else if text.contains("<<<<<<<") && text.contains(">>>>>>>") {
        "not a baseline: it holds the marks of a merge conflict".to_owned()
    } else {
        format!("not a baseline: {what}")
    };
    Problem::new(file, message).at(Some(at)).help(AGAIN)
}

fn check_kind(file: &str, fields: &Map<String, Value>) -> Result<(), Problem> {
    let message = match fields.get("kind") {
        Some(Value::String(kind)) if kind == KIND => return Ok(()),
        Some(Value::String(kind)) => format!("`kind` is `{kind}`, not `{KIND}`: another tool's file"),
        Some(_) => "`kind` is no text: another tool's file".to_owned(),
        None => format!("no `kind` (`{KIND}`): another tool's file"),
    };
    Err(Problem::new(file, message).help(RECORD))
}

/// A file of a later version is not read: half of it would be understood.
fn check_versions(file: &str, fields: &Map<String, Value>, tool: &str) -> Result<(), Problem> {
    let update = "use the version of sidegate that wrote it, or record the baseline again with this one";
    let newer = |what: String| Err(Problem::new(file, what).help(update));
    match fields.get("schema").map(Value::as_u64) {
        Some(Some(schema)) if schema == u64::from(SCHEMA) => {}
        Some(Some(schema)) => return newer(format!("`schema` is {schema}; this sidegate reads {SCHEMA}")),
        Some(None) => return Err(Problem::new(file, "`schema` is no whole number").help(AGAIN)),
        None => return Err(Problem::new(file, "the field `schema` is missing").help(AGAIN)),
    }
    let Some(by) = fields.get("tool").and_then(Value::as_str) else {
        return Err(Problem::new(file, "the field `tool` is missing or no text").help(AGAIN));
    };
    let Some(version) = by.strip_prefix("sidegate ").and_then(numbers) else {
        return Err(Problem::new(file, format!("`tool` is `{by}`, not a version of sidegate")).help(RECORD));
    };
    match numbers(tool).is_some_and(|ours| version > ours) {
        true => newer(format!("`tool` is `{by}`, later than this sidegate {tool}")),
        false => Ok(()),
    }
}

/// `0.1.0` or `0.1.0-rc1`.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut parts = version.split(['-', '+']).next()?.splitn(3, '.');
    let mut next = || parts.next()?.parse().ok();
    Some([next()?, next()?, next()?])
}

/// SHA-256 over everything but the seal.
fn seal(value: &Value) -> String {
    let mut rest = value.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.remove(SEAL);
    }
    files::sha256(&sorted(&rest).to_string())
}

/// Recursion is bounded by serde's own depth limit.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut names: Vec<&String> = entries.keys().collect();
            names.sort();
            Value::Object(names.into_iter().map(|name| (name.clone(), sorted(&entries[name]))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Six significant digits: more are noise, and the file is read by people.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn histograms(target: &TargetRecord) -> Vec<StoredHistogram> {
    let mut found = Vec::new();
    for (index, scenario) in (0_u32..).zip(&target.scenarios) {
        for arm in [Arm::Head, Arm::Direct] {
            let valid = target.blocks.iter().filter(|b| b.void.is_none()).flat_map(|b| &b.slices);
            let own = valid.filter(|s| s.scenario == index && s.arm == arm);
            let latency = Histogram::from_pairs(own.flat_map(|s| s.latency.buckets().iter().copied()));
            found.push(StoredHistogram { scenario: scenario.name.clone(), arm, latency });
        }
    }
    found.retain(|h| !h.latency.is_empty());
    found
}
