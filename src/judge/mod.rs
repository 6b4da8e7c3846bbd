//! From a record to a verdict. Pure and total: the same record gives the same verdict anywhere, at any time.
//!
//! The rule, in this order, at the run's last look (METHODOLOGY.md): REGRESSION if the lower bound exceeds the limit and
//! the change its floor; PASS if the upper bound excludes `rule_out`; INCONCLUSIVE otherwise.

mod accepted;
mod advice;
mod apart;
mod baseline;
mod cost;
mod count;
mod doubt;
mod family;
mod finding;
mod rule;
mod status;
mod tally;
mod target;
mod wording;

pub use apart::judge_apart;
pub use cost::{Comparison, compare, cost_regressed};
pub use family::BOUND;

use crate::analysis::analyze;
use crate::policy::{LimitSet, OnInconclusive, Profile};
use crate::record::{Arm, Record, TargetRecord};
use crate::verdict::{Outcome, SCHEMA, Verdict};

/// Judges every target of a record.
pub fn judge(record: &Record) -> Verdict {
    let day = accepted::day_of(&record.started_at);
    let mut targets = Vec::new();
    let mut findings = Vec::new();
    for target in &record.targets {
        let (verdict, found) = target::judge(target, &analyze(target), day);
        targets.push(verdict);
        findings.extend(found);
    }
    let verdict = targets.iter().map(|t| t.verdict).max().unwrap_or(Outcome::Skipped);
    let first = record.targets.first().map(|t| &t.policy);
    let held = |t: &TargetRecord| t.has(Arm::Base) || t.has(Arm::Baseline);
    let compared = record.targets.iter().any(|t| held(t) && tally::is_timed(t));
    Verdict {
        schema: SCHEMA,
        verdict,
        exit_code: verdict.exit_code(on_inconclusive(record, &targets)),
        profile: first.map_or_else(Profile::default, |p| p.profile),
        limits: first.map_or_else(LimitSet::default, |p| p.limits),
        family_bound: if compared { BOUND } else { 0.0 },
        targets,
        findings,
    }
}

/// Whether a run may stop after the blocks it has: at one of its looks, before the last, every gated metric surely stays
/// below `rule_out` and probably below its limit. No metric's pass is carried over from an earlier look.
pub fn may_stop(target: &TargetRecord) -> bool {
    let ran = u32::try_from(target.blocks.len()).unwrap_or(u32::MAX);
    let early = target.looks.split_last().is_some_and(|(_, early)| early.contains(&ran));
    early && target.base.is_some() && target::all_surely_pass(target, &analyze(target))
}

/// An inconclusive target that does not tolerate it decides for the run.
fn on_inconclusive(record: &Record, verdicts: &[crate::verdict::TargetVerdict]) -> OnInconclusive {
    let strict = record
        .targets
        .iter()
        .zip(verdicts)
        .any(|(t, v)| v.verdict == Outcome::Inconclusive && t.policy.on_inconclusive == OnInconclusive::Fail);
    if strict { OnInconclusive::Fail } else { OnInconclusive::Pass }
}
