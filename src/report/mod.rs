//! Results for people and programs: pure functions from a record and its verdict to text. Nothing here prints.

use crate::policy::Accept;
use crate::record::{Record, TargetRecord};
use crate::verdict::{Call, Finding, TargetVerdict, Verdict};

mod accept;
mod clean;
mod details;
mod health;
mod json;
mod markdown;
pub mod phrase;
mod text;

pub use json::json;
pub use markdown::markdown;
pub use text::text;

/// The record of one judged target; `None` if the record does not hold it.
fn record_of<'r>(record: &'r Record, target: &TargetVerdict) -> Option<&'r TargetRecord> {
    record.targets.iter().find(|t| t.name == target.target)
}

/// What was found on one target.
fn findings_of<'v>(verdict: &'v Verdict, target: &TargetVerdict) -> impl Iterator<Item = &'v Finding> {
    let name = target.target.clone();
    verdict.findings.iter().filter(move |f| f.target == name)
}

/// The acceptance that lets a finding pass, if one does.
fn accept_of<'v>(target: &'v TargetVerdict, finding: &Finding) -> Option<&'v Accept> {
    target.accepted.iter().find(|a| finding.verdict == Call::Accepted && a.metric == finding.metric)
}

/// A finding's metric as people read it: the contract name, with the threshold where there are several.
fn metric_label(finding: &Finding) -> String {
    match finding.threshold_ms {
        Some(ms) => format!("{} > {ms} ms", finding.metric.name()),
        None => finding.metric.name().to_owned(),
    }
}
