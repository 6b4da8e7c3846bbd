//! Head against the stored baseline: many small steps, each within its limit, must not add up unseen.

use super::cost::{Comparison, compare};
use super::family::Family;
use super::finding::{Case, finding};
use super::rule::{Bar, Interval, Levels, may_stop};
use crate::analysis::{Analysis, analyze_against};
use crate::metric::{Metric, Scale};
use crate::policy::{LimitOverride, LimitSet, Policy};
use crate::record::{Arm, Replay, StoredBaseline, TargetRecord};
use crate::verdict::{Call, Finding};

/// The anchor's own limit on CPU per request.
const CPU_LIMIT: f64 = 0.08;

/// Counts are exact: the anchor's limit on them is below that of a single change, and a few steps reach it.
const INSTRUCTION_LIMIT: f64 = 0.04;

/// What the anchor's other relative limits allow beyond those of a single change.
const WIDER: f64 = 0.05;

/// Figures beyond their limits that are named in one note at most.
const MOST_NAMED: usize = 3;

/// Everything needed to hold head against the stored baseline.
pub struct Anchor {
    /// The target with the baseline in base's place and the anchor's limits; without blocks.
    view: TargetRecord,
    analysis: Analysis,
}

impl Anchor {
    /// `None` where no baseline ran.
    pub fn of(target: &TargetRecord) -> Option<Self> {
        let Replay::Live { source } = &target.baseline.as_ref()?.replay else { return None };
        let view = TargetRecord {
            base: Some(source.clone()),
            no_base: None,
            policy: anchored(&target.policy),
            workload: Vec::new(),
            cost: None,
            blocks: Vec::new(),
            ..copy_without_blocks(target)
        };
        Some(Self { view, analysis: analyze_against(target, Arm::Baseline) })
    }

    /// What the family of the error bound needs.
    pub fn tests(&self) -> (&Policy, &Analysis) {
        (&self.view.policy, &self.analysis)
    }

    /// The findings, `against` the baseline. A baseline that did not answer as it should decides nothing.
    pub fn findings(&self, of_base: &Case<'_>) -> Vec<Finding> {
        let case = self.case(of_base.family, of_base.day);
        let mut findings: Vec<Finding> = self.analysis.effects.iter().map(|e| finding(&case, e)).collect();
        let unfit = super::doubt::base_is_unfit(&case);
        for f in &mut findings {
            if unfit {
                (f.gated, f.verdict) = (false, Call::Report);
            }
            told_of_baseline(f);
        }
        findings
    }

    /// Why the baseline decides nothing although it ran.
    pub fn unfit(&self, of_base: &Case<'_>) -> Option<String> {
        let case = self.case(of_base.family, of_base.day);
        if !super::doubt::base_is_unfit(&case) {
            return None;
        }
        let errors: Vec<String> =
            self.analysis.errors.iter().filter(|e| e.base > 0).map(|e| format!("`{}` ({})", e.kind, e.base)).collect();
        Some(match errors.first() {
            Some(_) => format!("some of its answers were errors: {}", errors.join(", ")),
            None => "it did not reach the intended rate".to_owned(),
        })
    }

    /// Whether the baseline lets the run end at an early look. Where it probably is beyond a limit, only the last look
    /// may say so.
    pub fn lets_stop(&self) -> bool {
        let levels = Levels { alpha: 0.5, pass: super::finding::pass_level(&self.view), enough_blocks: false };
        super::family::deciding(&self.analysis).all(|effect| {
            let interval = Interval::of(&effect.differences, levels);
            let margins = super::finding::margins_of(&self.view, effect);
            interval.zip(margins).is_none_or(|(i, m)| {
                let bar = Bar::new(effect.metric, m, effect.base);
                may_stop(&i, &bar) || i.estimate <= bar.limit
            })
        })
    }

    fn case(&self, family: Family, day: Option<jiff::civil::Date>) -> Case<'_> {
        Case { target: &self.view, analysis: &self.analysis, family, day }
    }
}

const ADVICE: &str = "many changes together: each passed, but their sum since the stored baseline is beyond its limit; \
                      find what can go, or, if all of it is wanted, record a new baseline from head (`sidegate baseline \
                      record`) in a pull request of its own";

/// Counts of head against the stored baseline's: those of the file or of its replay, or, where the baseline is the base,
/// base's.
pub fn counted(target: &TargetRecord, day: Option<jiff::civil::Date>) -> Vec<Finding> {
    let (Some(cost), Some(stored)) = (&target.cost, &target.baseline) else { return Vec::new() };
    let of = match stored.replay {
        Replay::Live { .. } | Replay::Left { .. } => Arm::Baseline,
        Replay::IsBase => Arm::Base,
    };
    let arm = |wanted: Arm| cost.arms.iter().find(|a| a.arm == wanted);
    let (Some(head), Some(base)) = (arm(Arm::Head), arm(of)) else { return Vec::new() };
    let policy = anchored(&target.policy);
    let comparison = Comparison {
        target: &target.name,
        file: &target.head.file,
        classes: &cost.classes,
        base: Some(base),
        head,
        against: "baseline",
        policy: &policy,
        day,
        margins: &|metric| policy.margins(metric),
    };
    let mut findings = compare(&comparison);
    // Failures and answers of another kind are judged against base; here they only keep a class from being compared.
    findings.retain(|f| f.metric != Metric::ErrorsPerRequest && f.verdict != Call::Invalid);
    findings.iter_mut().for_each(told_of_baseline);
    findings
}

fn told_of_baseline(finding: &mut Finding) {
    finding.against = "baseline".to_owned();
    finding.advice = ADVICE.to_owned();
    if matches!(finding.verdict, Call::Regression | Call::Accepted) {
        finding.reason = format!("against the stored baseline, {}", finding.reason);
    }
}

/// Only what is surely worse than the baseline counts: it runs in a third of the rounds and sees less, and what it
/// leaves open, a later run will see.
pub fn counts(finding: &Finding) -> bool {
    finding.against != "baseline" || matches!(finding.verdict, Call::Regression | Call::Accepted | Call::Invalid)
}

/// Whether a finding against the baseline says what one against base says already: the change alone is too much.
pub fn is_echo(finding: &Finding, findings: &[Finding]) -> bool {
    let same = |f: &Finding| (f.metric, f.threshold_ms) == (finding.metric, finding.threshold_ms);
    let twin = |f: &&Finding| f.against == "base" && f.scenario == finding.scenario && same(f);
    finding.against == "baseline" && findings.iter().find(twin).is_some_and(|f| f.verdict == finding.verdict)
}

/// Sentences about the baseline for the notes of a target.
pub fn notes(target: &TargetRecord, anchor: Option<&Anchor>, case: &Case<'_>, findings: &[Finding]) -> Vec<String> {
    let Some(stored) = &target.baseline else { return Vec::new() };
    let of = format!("the stored baseline of {} ({})", day(stored), stored.file);
    match (&stored.replay, anchor) {
        // Said by the reports where everything is told that raises no doubt.
        (Replay::IsBase, _) => Vec::new(),
        (Replay::Left { why }, _) => vec![format!("head was not held against {of}: {why}")],
        (Replay::Live { .. }, Some(anchor)) => {
            if let Some(why) = anchor.unfit(case) {
                let then = "where base has routes that it has not, record it anew";
                return vec![format!("head was not held against {of}: {why}; {then}")];
            }
            open(findings).map(|open| format!("against {of}, {open}")).into_iter().collect()
        }
        (Replay::Live { .. }, None) => Vec::new(),
    }
}

/// What could not be decided against the baseline.
fn open(findings: &[Finding]) -> Option<String> {
    let undecided: Vec<&Finding> =
        findings.iter().filter(|f| f.against == "baseline" && f.verdict == Call::Inconclusive).collect();
    let first = undecided.first()?;
    let named: Vec<&str> = undecided.iter().take(MOST_NAMED).map(|f| f.metric.name()).collect();
    let more = undecided.len() - named.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let few = if first.n < 7 { " (too few blocks)" } else { "" };
    Some(format!("{}{rest} stayed open{few}: that decides nothing", named.join(", ")))
}

/// The day of an RFC 3339 time.
fn day(stored: &StoredBaseline) -> &str {
    stored.recorded_at.get(..10).unwrap_or(&stored.recorded_at)
}

/// The anchor's limits: 4 % instructions, 8 % CPU per request, 5 points more than for a single change elsewhere, and twice the slow shares,
/// which have margins in hundredths of a point. What a pass must exclude moves as far as the limit.
fn anchored(policy: &Policy) -> Policy {
    let mut wider = Policy { limits: LimitSet::Lenient, ..policy.clone() };
    for metric in Metric::ALL {
        let Some(margins) = policy.margins(metric) else { continue };
        let by = match (metric, metric.scale()) {
            // A target that allows more for one change allows as much for many.
            (Metric::InstructionsPerRequest, _) if margins.limit > INSTRUCTION_LIMIT + 0.0101 => 0.0,
            (Metric::InstructionsPerRequest, _) => INSTRUCTION_LIMIT - margins.limit,
            (Metric::CpuNsPerRequest, _) => (CPU_LIMIT - margins.limit).max(0.0),
            // The lenient set doubles them, unless the target sets its own.
            (Metric::SlowShare, _) if policy.limits == LimitSet::Lenient || policy.overrides.contains_key(&metric) => {
                margins.limit
            }
            (Metric::SlowShare, _) => continue,
            (_, Scale::Ratio | Scale::Difference) => WIDER,
        };
        let widened = LimitOverride {
            notice: Some(margins.notice),
            limit: Some(margins.limit + by),
            rule_out: Some(margins.rule_out + by),
        };
        wider.overrides.insert(metric, widened);
    }
    wider
}

/// Blocks are the bulk of a target and are not needed here.
fn copy_without_blocks(target: &TargetRecord) -> TargetRecord {
    TargetRecord {
        name: target.name.clone(),
        base: None,
        no_base: None,
        head: target.head.clone(),
        policy: Policy::default(),
        concurrency: target.concurrency,
        cpus: target.cpus.clone(),
        workload: Vec::new(),
        scenarios: target.scenarios.clone(),
        looks: target.looks.clone(),
        cost: None,
        baseline: None,
        blocks: Vec::new(),
        end: target.end.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_anchor_has_limits_of_its_own() {
        let limits = |policy: &Policy, metric| {
            let margins = anchored(policy).margins(metric).unwrap();
            ((1e4 * margins.limit).round() / 1e4, (1e4 * margins.rule_out).round() / 1e4)
        };
        let policy = Policy::default();
        assert_eq!(limits(&policy, Metric::CpuNsPerRequest), (0.08, 0.13));
        assert_eq!(limits(&policy, Metric::InstructionsPerRequest), (0.04, 0.05));
        assert_eq!(limits(&policy, Metric::LatencyP99Ns), (0.15, 0.3));
        assert_eq!(limits(&policy, Metric::RetriesPerRequest), (0.1, 0.25));
        // A target that allows more for one change allows no less for many.
        let own = LimitOverride { limit: Some(0.12), ..LimitOverride::default() };
        let wide = Policy { overrides: [(Metric::CpuNsPerRequest, own)].into(), ..Policy::default() };
        assert_eq!(limits(&wide, Metric::CpuNsPerRequest).0, 0.12);
        let slow = |policy: &Policy| super::super::family::slow_margins(&anchored(policy), 10).unwrap();
        assert_eq!(slow(&policy), (0.0004, 0.002));
        let lenient = Policy { limits: LimitSet::Lenient, ..Policy::default() };
        assert!(slow(&lenient).0 >= 0.0004);
        assert_eq!(anchored(&policy).margins(Metric::RssBytes), None);
    }
}
