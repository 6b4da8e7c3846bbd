//! One target's verdict from its findings, its errors, and how its run ended.

use std::cmp::Ordering;

use jiff::civil::Date;

use super::baseline::{self, Anchor};
use super::family::{Family, deciding};
use super::finding::{Case, absolute, finding, margins_of, pass_level};
use super::rule::{Bar, Interval, Levels, may_stop};
use super::{cost, doubt, tally};
use crate::analysis::{Analysis, is_wall_clock};
use crate::metric::{Metric, Scale};
use crate::policy::Accept;
use crate::record::{Arm, End, TargetRecord};
use crate::verdict::{Call, Finding, Outcome, TargetVerdict};

/// Pieces of advice that a regression gets at most: more is not read.
const MOST_ADVICE: usize = 3;

pub fn judge(target: &TargetRecord, analysis: &Analysis, day: Option<Date>) -> (TargetVerdict, Vec<Finding>) {
    let anchor = Anchor::of(target);
    let comparisons: Vec<_> =
        [(&target.policy, analysis)].into_iter().chain(anchor.as_ref().map(Anchor::tests)).collect();
    let case = Case { target, analysis, family: Family::of(&comparisons), day };
    let mut findings: Vec<Finding> = analysis.effects.iter().map(|e| finding(&case, e)).collect();
    findings.extend(absolutes(&case));
    findings.extend(anchor.iter().flat_map(|anchor| anchor.findings(&case)));
    let new_errors = call_errors(&case, &mut findings);
    let noisy = is_noisy(target, analysis);
    if noisy {
        withdraw(&mut findings, Call::Inconclusive, "too many blocks were disturbed", |f| is_wall_clock(f.metric));
    }
    let counts = cost::findings(target, day);
    let found_worse = counts.iter().any(|f| f.gated && f.verdict == Call::Regression);
    let (ended, end_reason) = ending(target, found_worse);
    if ended.is_some() {
        withdraw(&mut findings, Call::Invalid, "the run did not end as planned", |_| true);
    }
    let invalid = doubt::invalid(&case);
    if doubt::base_is_unfit(&case) {
        let of_base = |f: &Finding| is_wall_clock(f.metric) && f.against != "baseline";
        withdraw(&mut findings, Call::Invalid, "base did not do what it was asked", of_base);
    }
    let compared = findings.iter().any(|f| f.gated && f.against != "baseline");
    let deciding = findings.iter().filter(|f| f.gated && baseline::counts(f));
    let mut outcomes: Vec<Outcome> = deciding.map(|f| outcome(f.verdict)).collect();
    outcomes.extend(ended);
    // Errors of a run that broke off may come from its breaking off.
    outcomes.extend((!new_errors.is_empty() && ended.is_none()).then_some(Outcome::Regression));
    outcomes.extend((!invalid.is_empty()).then_some(Outcome::Invalid));
    let nothing = tally::is_timed(target) && target.base.is_some() && !compared;
    outcomes.extend((noisy || nothing).then_some(Outcome::Inconclusive));
    outcomes.extend(tally::outcomes(target, &counts));
    let undecided = tally::undecided(target, &counts);
    let mut notes = tally::notes(target, &counts);
    notes.extend(doubt::notes(&case));
    notes.extend(baseline::notes(target, anchor.as_ref(), &case, &findings));
    let anchored = baseline::counted(target, day);
    outcomes.extend(anchored.iter().filter(|f| f.gated && baseline::counts(f)).map(|f| outcome(f.verdict)));
    let summary = tally::summary(&counts);
    // What is counted is the firmest: it stands first everywhere.
    let findings: Vec<Finding> = counts.into_iter().chain(findings).chain(anchored).collect();
    let verdict = outcomes.into_iter().max().unwrap_or(Outcome::Pass);
    let told = Told { end: end_reason, new_errors, invalid, noisy, nothing, undecided, summary };
    let report = TargetVerdict {
        target: target.name.clone(),
        verdict,
        base: target.base.as_ref().map(|b| b.file.clone()),
        head: target.head.file.clone(),
        reasons: reasons(&case, &findings, &told, verdict),
        notes,
        next_steps: next_steps(target, &findings, verdict),
        family_size: case.family.size,
        alpha: case.family.alpha,
        flip_rate: case.family.flip_rate,
        blocks: analysis.blocks,
        accepted: accepted(target, &findings),
    };
    (report, findings)
}

/// Whether every deciding metric lets the run stop at this look.
pub fn all_surely_pass(target: &TargetRecord, analysis: &Analysis) -> bool {
    if is_noisy(target, analysis) {
        return false;
    }
    let levels = Levels { alpha: 0.5, pass: pass_level(target), enough_blocks: false };
    let mut any = false;
    let relative = deciding(analysis).all(|effect| {
        any = true;
        let interval = Interval::of(&effect.differences, levels);
        let margins = margins_of(target, effect);
        interval.zip(margins).is_some_and(|(i, m)| may_stop(&i, &Bar::new(effect.metric, m, effect.base)))
    });
    let family = Family { size: 0, flip_rate: 0.0, alpha: super::BOUND, blocks_needed: 0 };
    let case = Case { target, analysis, family, day: None };
    let anchor = Anchor::of(target);
    any && relative
        && anchor.is_none_or(|anchor| anchor.lets_stop())
        && absolutes(&case).iter().all(|f| f.verdict == Call::Pass || !f.gated)
}

/// More than a quarter of the blocks were voided.
fn is_noisy(target: &TargetRecord, analysis: &Analysis) -> bool {
    u64::from(analysis.voided) * 4 > target.blocks.len() as u64
}

fn absolutes(case: &Case<'_>) -> Vec<Finding> {
    let policy = &case.target.policy;
    let mut findings = Vec::new();
    for effect in &case.analysis.effects {
        if let Some(&max) = policy.max.get(&effect.metric).filter(|_| !effect.metric.higher_is_better()) {
            findings.extend(absolute(case, effect, max, false));
        }
        if let Some(&max) = policy.added_max.get(&effect.metric) {
            findings.extend(absolute(case, effect, max, true));
        }
    }
    findings
}

/// Any new kind of error is a regression, whatever the latency. Returns the sentences.
fn call_errors(case: &Case<'_>, findings: &mut [Finding]) -> Vec<String> {
    let mut sentences = Vec::new();
    for (error, sentence) in doubt::new_errors(case) {
        let name = case.scenario_name(Some(error.scenario));
        let found = findings
            .iter_mut()
            .find(|f| f.metric == Metric::ErrorsPerRequest && f.scenario == name && f.against == "base");
        if let Some(finding) = found {
            let share = error.head as f64 / error.head_requests.max(1.0);
            let policy = &case.target.policy;
            let beyond = |up_to: f64| share > up_to;
            match super::accepted::standing(policy, &case.target.name, finding.metric, case.day, beyond) {
                super::accepted::Standing::Within(entry) => {
                    finding.verdict = Call::Accepted;
                    finding.reason = format!("{sentence}; accepted until {}: {}", entry.until, entry.reason);
                    continue;
                }
                _ => {
                    finding.gated = true;
                    finding.verdict = Call::Regression;
                    finding.reason = format!("{sentence}; any new kind of error is a regression");
                }
            }
        }
        sentences.push(sentence);
    }
    sentences
}

/// Takes back what was called of gated findings.
fn withdraw(findings: &mut [Finding], call: Call, why: &str, of: impl Fn(&Finding) -> bool) {
    for finding in findings.iter_mut().filter(|f| f.gated && of(f)) {
        finding.verdict = call;
        finding.reason += &format!("; not decided: {why}");
    }
}

/// What the end of the run alone decides, and in which words.
fn ending(target: &TargetRecord, found_worse: bool) -> (Option<Outcome>, Option<String>) {
    // What was counted before stays certain.
    let what = if found_worse { "nothing else" } else { "nothing" };
    match &target.end {
        End::Complete | End::Early => (None, None),
        End::Interrupted { by } => (
            Some(Outcome::Invalid),
            Some(format!("the run was interrupted by {by} after {} blocks: {what} is decided", target.blocks.len())),
        ),
        // Without a base nobody knows whether the change did it or the workload never fitted.
        End::Failed { arm: Some(Arm::Head), message } if target.base.is_some() => {
            (Some(Outcome::Regression), Some(format!("head failed: {message}")))
        }
        End::Failed { arm: Some(arm), message } => {
            (Some(Outcome::Invalid), Some(format!("{} failed: {message}", arm.name())))
        }
        End::Failed { arm: None, message } => (Some(Outcome::Invalid), Some(message.clone())),
    }
}

pub fn outcome(call: Call) -> Outcome {
    match call {
        Call::Pass | Call::Costlier | Call::Accepted | Call::Report => Outcome::Pass,
        Call::Regression => Outcome::Regression,
        Call::Improved => Outcome::Improved,
        Call::Inconclusive => Outcome::Inconclusive,
        Call::Invalid => Outcome::Invalid,
    }
}

/// What is said beside the findings.
struct Told {
    end: Option<String>,
    new_errors: Vec<String>,
    invalid: Vec<String>,
    noisy: bool,
    /// Nothing that was timed could be compared.
    nothing: bool,
    /// Why counts alone decide nothing.
    undecided: Option<String>,
    /// How far the counts moved.
    summary: Option<String>,
}

/// The weightiest first: how the run ended, errors, regressions by how far they are beyond their limit, and so on.
fn reasons(case: &Case<'_>, findings: &[Finding], told: &Told, verdict: Outcome) -> Vec<String> {
    let counted = |f: &Finding| tally::is_counted(f);
    let mut reasons = by_weight(findings, Call::Regression, counted);
    reasons.extend(told.end.iter().chain(&told.new_errors).chain(&told.undecided).cloned());
    let errors_told = |f: &Finding| f.metric == Metric::ErrorsPerRequest && !told.new_errors.is_empty();
    reasons.extend(by_weight(findings, Call::Regression, |f| !counted(f) && !errors_told(f)));
    reasons.extend(told.invalid.iter().cloned());
    reasons.extend(by_weight(findings, Call::Invalid, |f| counted(f) && tally::decides(case.target, f)));
    if told.noisy {
        reasons.push(format!(
            "noisy machine: {} of {} blocks were disturbed, more than a quarter",
            case.analysis.voided,
            case.target.blocks.len()
        ));
    } else {
        let decides = |f: &Finding| !counted(f) || tally::decides(case.target, f);
        reasons.extend(by_weight(findings, Call::Inconclusive, decides));
    }
    for call in [Call::Accepted, Call::Improved, Call::Costlier] {
        reasons.extend(by_weight(findings, call, |_| true));
    }
    match (&case.target.base, &case.target.no_base) {
        (None, Some(why)) => reasons.push(format!("no base: {why}; head is shown by itself")),
        (None, None) => reasons.push("no base; head is shown by itself".to_owned()),
        (Some(_), _) if told.nothing && told.end.is_none() => {
            reasons.push("nothing could be compared: no block counts".to_owned());
        }
        (Some(_), _) if verdict == Outcome::Pass => {
            let of_base = |f: &&Finding| f.gated && !counted(f) && f.against != "baseline";
            let gated = findings.iter().filter(of_base).count();
            let timed = format!(
                "larger changes are ruled out for each of {gated} figures, over {} blocks",
                case.analysis.blocks
            );
            let parts = [told.summary.clone(), tally::is_timed(case.target).then_some(timed)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            reasons.push(format!("no metric got worse beyond its limit: {}", parts.join("; ")));
        }
        _ => {}
    }
    reasons
}

fn by_weight(findings: &[Finding], call: Call, keep: impl Fn(&Finding) -> bool) -> Vec<String> {
    let mut found: Vec<&Finding> = findings.iter().filter(|f| f.gated && f.verdict == call && keep(f)).collect();
    found.retain(|f| baseline::counts(f) && !baseline::is_echo(f, findings));
    found.sort_by(|a, b| cause_first(a, b).then_with(|| weight(b).total_cmp(&weight(a))));
    found.into_iter().map(|f| f.reason.clone()).collect()
}

/// What was counted per request comes first, errors before instructions before the rest; then the counters (connections, retries, errors),
/// which name the cause of what is timed, and are exact.
fn cause_first(a: &Finding, b: &Finding) -> Ordering {
    let counter = |f: &Finding| f.metric.scale() == Scale::Difference && !is_wall_clock(f.metric);
    let rank = |f: &Finding| (tally::is_counted(f), counter(f), f.metric == Metric::InstructionsPerRequest);
    rank(b).cmp(&rank(a))
}

/// How many times its limit a change is.
fn weight(finding: &Finding) -> f64 {
    let change = match (finding.ratio, finding.added) {
        (Some(ratio), _) => ratio.ln().abs(),
        (None, added) => added.unwrap_or(0.0).abs(),
    };
    change / finding.limit.filter(|l| *l > 0.0).unwrap_or(1.0)
}

fn next_steps(target: &TargetRecord, findings: &[Finding], verdict: Outcome) -> Vec<String> {
    let mut steps = Vec::new();
    match verdict {
        Outcome::Regression => {
            if matches!(target.end, End::Failed { .. }) {
                steps.push(
                    "make head's proxy start, stay up and answer with this config; what it did instead is above"
                        .to_owned(),
                );
            }
            let mut found: Vec<&Finding> =
                findings.iter().filter(|f| f.gated && f.verdict == Call::Regression).collect();
            found.retain(|f| !baseline::is_echo(f, findings));
            // What names its line says more than what any cost may come from.
            found.sort_by(|a, b| cause_first(a, b).then(b.line.is_some().cmp(&a.line.is_some())));
            for finding in found {
                if !steps.contains(&finding.advice) && steps.len() < MOST_ADVICE {
                    steps.push(finding.advice.clone());
                }
            }
        }
        Outcome::Invalid if !tally::is_timed(target) && tally::missing(target).is_some() => {
            steps.extend(tally::missing(target).map(|m| m.help.clone()));
        }
        Outcome::Inconclusive if !tally::is_timed(target) => steps.push(
            "count again; if repeats scatter again, the proxy works beside the requests: lengthen its timers, or let \
             timing decide (without `--cost-only`)"
                .to_owned(),
        ),
        Outcome::Invalid => {
            steps.push("nothing was decided: remove the cause named above and run the gate again".to_owned());
        }
        Outcome::Inconclusive => steps.push(
            "run the gate again with more blocks (`--profile standard` or `--profile deep`), or on a quieter machine"
                .to_owned(),
        ),
        Outcome::Skipped | Outcome::Pass | Outcome::Improved => {}
    }
    steps
}

/// The acceptances that were used.
fn accepted(target: &TargetRecord, findings: &[Finding]) -> Vec<Accept> {
    let used = |a: &&Accept| {
        findings.iter().any(|f| {
            f.verdict == Call::Accepted
                && (f.metric == a.metric
                    || (f.metric == Metric::CpuNsPerRequestSum && a.metric == Metric::CpuNsPerRequest))
        })
    };
    target.policy.accept.iter().filter(|a| a.target == target.name).filter(used).cloned().collect()
}
