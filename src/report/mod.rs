//! Results for people and programs: pure functions from a record and its verdict to text. Nothing here prints.

use crate::record::{Record, TargetRecord};
use crate::verdict::{Call, Finding, TargetVerdict, Verdict};

mod accept;
mod clean;
mod comment;
mod details;
mod health;
mod json;
mod markdown;
pub mod phrase;
mod text;

pub use comment::{Comment, Links, comment};
pub use json::json;
pub use markdown::{code_block, markdown};
pub use text::text;

/// The record of one judged target; `None` if the record does not hold it.
fn record_of<'r>(record: &'r Record, target: &TargetVerdict) -> Option<&'r TargetRecord> {
    record.targets.iter().find(|t| t.name == target.target)
}

/// Whether a target is one that the run left out on purpose, and says why.
fn is_unmeasured(record: &Record, target: &TargetVerdict) -> bool {
    record.scope.unmeasured.iter().any(|u| u.target == target.target)
}

/// What was found on one target.
fn findings_of<'v>(verdict: &'v Verdict, target: &TargetVerdict) -> impl Iterator<Item = &'v Finding> {
    let name = target.target.clone();
    verdict.findings.iter().filter(move |f| f.target == name)
}

/// What is advised on regressions and costlier metrics, each advice once with the first finding it is for; what the next
/// steps say already is left out.
fn advice_of<'f>(target: &TargetVerdict, findings: &[&'f Finding]) -> Vec<&'f Finding> {
    let mut advised: Vec<&Finding> = Vec::new();
    for &finding in findings.iter().filter(|f| matches!(f.verdict, Call::Regression | Call::Costlier)) {
        let said = |a: &str| target.next_steps.iter().any(|s| s == a) || advised.iter().any(|f| f.advice == a);
        if !finding.advice.is_empty() && (!said(&finding.advice) || finding.line.is_some()) {
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
