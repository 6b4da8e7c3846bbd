//! Results for people and programs: pure functions from a record and its verdict to text. Nothing here prints.

use crate::record::{Record, TargetRecord};
use crate::verdict::{Call, Finding, TargetVerdict, Verdict};

mod accept;
mod baseline;
mod clean;
mod counted;
mod details;
pub mod explain;
mod health;
mod json;
mod markdown;
pub mod phrase;
mod text;
mod windows;

pub use json::json;
pub use markdown::markdown;
pub use text::text;

/// The record of one judged target; `None` if the record does not hold it.
fn record_of<'r>(record: &'r Record, target: &TargetVerdict) -> Option<&'r TargetRecord> {
    record.targets.iter().find(|t| t.name == target.target)
}

/// Whether nothing was to be timed.
fn only_counted(target: &TargetRecord) -> bool {
    target.cost.is_some() && target.looks.is_empty() && target.blocks.is_empty()
}

/// What was found on one target, but for what was found against the stored baseline.
fn findings_of<'v>(verdict: &'v Verdict, target: &TargetVerdict) -> impl Iterator<Item = &'v Finding> {
    let name = target.target.clone();
    verdict.findings.iter().filter(move |f| f.target == name && f.against != "baseline")
}

/// What was found on one target against the stored baseline.
fn anchored_of<'v>(verdict: &'v Verdict, target: &TargetVerdict) -> Vec<&'v Finding> {
    verdict.findings.iter().filter(|f| f.target == target.target && f.against == "baseline").collect()
}

/// What is advised on regressions and costlier metrics, each advice once with the first finding it is for; what the next
/// steps say already is left out.
fn advice_of<'f>(target: &TargetVerdict, findings: &[&'f Finding]) -> Vec<&'f Finding> {
    let mut advised: Vec<&Finding> = Vec::new();
    for &finding in findings.iter().filter(|f| matches!(f.verdict, Call::Regression | Call::Costlier)) {
        let said = |a: &str| target.next_steps.iter().any(|s| s == a) || advised.iter().any(|f| f.advice == a);
        if !finding.advice.is_empty() && !said(&finding.advice) {
            advised.push(finding);
        }
    }
    advised
}

/// Whether a reason tells this already.
fn is_told(target: &TargetVerdict, text: &str) -> bool {
    target.reasons.iter().any(|r| r.contains(text))
}

/// A finding's metric as people read it: the contract name, with the threshold where there are several.
fn metric_label(finding: &Finding) -> String {
    match finding.threshold_ms {
        Some(ms) => format!("{} > {ms} ms", finding.metric.name()),
        None => finding.metric.name().to_owned(),
    }
}
