//! From an effect to a finding: what is said of one metric in one scenario.

use jiff::civil::Date;

use super::accepted::{Standing, standing};
use super::advice::advice;
use super::family::{Family, slow_margins};
use super::rule::{Bar, Interval, Levels, Ruling, blocks_to_settle, off_scale, on_scale, rule};
use super::wording;
use crate::analysis::{Analysis, Effect};
use crate::metric::{Metric, Scale};
use crate::policy::Margins;
use crate::record::TargetRecord;
use crate::stats::detectable;
use crate::stats::location::sd;
use crate::stats::max_t::adjusted_p;
use crate::stats::signed_rank::p_greater;
use crate::verdict::{Call, Finding};

/// The factor by which heavy tails raise what few blocks can detect.
const HEAVY_TAIL: f64 = 1.15;

/// Everything the findings of one target depend on.
pub struct Case<'a> {
    pub target: &'a TargetRecord,
    pub analysis: &'a Analysis,
    pub family: Family,
    /// The day as of which acceptances hold.
    pub day: Option<Date>,
}

impl Case<'_> {
    pub fn levels(&self, n: usize) -> Levels {
        Levels {
            alpha: self.family.alpha,
            pass: pass_level(self.target),
            enough_blocks: n >= self.family.blocks_needed,
        }
    }

    pub fn scenario_name(&self, index: Option<u32>) -> &str {
        index
            .and_then(|i| self.target.scenarios.get(usize::try_from(i).unwrap_or(usize::MAX)))
            .map_or("", |s| s.name.as_str())
    }
}

/// Level of the bound that calls passes: the run may look several times.
pub fn pass_level(target: &TargetRecord) -> f64 {
    super::family::FALSE_PASS / target.looks.len().max(1) as f64
}

/// The margins that an effect is held to.
pub fn margins_of(target: &TargetRecord, effect: &Effect) -> Option<Margins> {
    match effect.threshold_ms {
        Some(ms) => {
            let (limit, rule_out) = slow_margins(&target.policy, ms)?;
            Some(Margins { notice: limit, limit, rule_out, floor: 0.0 })
        }
        None => target.policy.margins(effect.metric),
    }
}

/// Head against base, or head's value alone where there is nothing to compare it with.
pub fn finding(case: &Case<'_>, effect: &Effect) -> Finding {
    let mut finding = shown(case, effect);
    let levels = case.levels(effect.differences.len());
    let Some(mut interval) = Interval::of(&effect.differences, levels) else { return finding };
    let margins = margins_of(case.target, effect);
    let bar = margins.map(|m| Bar::new(effect.metric, m, effect.base));
    if let Some(bar) = &bar {
        interval.unless_confirmed(bar.limit, || confirmed(case, effect, bar.limit));
    }
    let difference = effect.metric.scale() == Scale::Difference;
    let (low, high) = (interval.low.map(|l| read(effect.metric, l)), interval.high.map(|h| read(effect.metric, h)));
    let turned = effect.metric.higher_is_better();
    (finding.low, finding.high) = if turned { (high, low) } else { (low, high) };
    let estimate = read(effect.metric, interval.estimate);
    if difference {
        finding.added = Some(estimate);
    } else {
        finding.ratio = Some(estimate);
        finding.added = effect.head.zip(effect.base).map(|(h, b)| h - b);
    }
    finding.n = u32::try_from(interval.n).unwrap_or(u32::MAX);
    finding.reason = said(&finding);
    let Some((margins, bar)) = margins.zip(bar) else { return finding };
    finding.notice = Some(margins.notice);
    finding.limit = Some(margins.limit);
    finding.rule_out = Some(margins.rule_out);
    if let Some(few) = effect.too_few {
        finding.reason +=
            &format!("; too few samples to count ({:.0} of {:.0} beyond the quantile)", few.beyond.floor(), few.needed);
    } else if effect.gated {
        finding.gated = true;
        finding.mde = detectable(case, effect, &margins);
        decide(case, effect, &interval, &bar, &mut finding);
    }
    finding
}

/// The finding of an effect before any comparison.
fn shown(case: &Case<'_>, effect: &Effect) -> Finding {
    let label = wording::label(effect.metric, effect.threshold_ms);
    let scenario = case.scenario_name(effect.scenario);
    let reason = effect.head.map_or_else(String::new, |head| {
        format!("{}{label} {}", prefix(scenario), wording::value(effect.metric.unit(), head))
    });
    Finding {
        threshold_ms: effect.threshold_ms,
        direct: effect.direct,
        base: effect.base,
        head: effect.head,
        n: u32::try_from(effect.head_blocks.len()).unwrap_or(u32::MAX),
        reason,
        ..unjudged(&case.target.name, &case.target.head.file, scenario, effect.metric, "base")
    }
}

/// A finding that only shows: what all of them begin as.
pub fn unjudged(target: &str, file: &str, scenario: &str, metric: Metric, against: &str) -> Finding {
    Finding {
        target: target.to_owned(),
        scenario: scenario.to_owned(),
        metric,
        threshold_ms: None,
        unit: metric.unit().to_owned(),
        gated: false,
        verdict: Call::Report,
        direct: None,
        base: None,
        head: None,
        added: None,
        ratio: None,
        low: None,
        high: None,
        notice: None,
        limit: None,
        rule_out: None,
        mde: None,
        n: 0,
        against: against.to_owned(),
        reason: String::new(),
        advice: advice(metric).to_owned(),
        file: Some(file.to_owned()),
        line: None,
    }
}

fn decide(case: &Case<'_>, effect: &Effect, interval: &Interval, bar: &Bar, finding: &mut Finding) {
    let ruling = rule(interval, bar);
    let limit = wording::margin(effect.metric, finding.limit.unwrap_or_default());
    let rule_out = wording::margin(effect.metric, finding.rule_out.unwrap_or_default());
    let (call, more) = match ruling {
        Ruling::Regression => (Call::Regression, format!(", limit {limit}")),
        Ruling::Pass => (Call::Pass, format!(", more than {rule_out} is ruled out")),
        Ruling::Improved => (Call::Improved, ", surely better".to_owned()),
        Ruling::Costlier => (Call::Costlier, format!(", surely costlier, not surely beyond the limit of {limit}")),
        Ruling::Inconclusive => (Call::Inconclusive, undecided(case, interval, bar, &rule_out)),
    };
    finding.verdict = call;
    finding.reason += &more;
    if call == Call::Regression {
        weigh_acceptance(case, effect, interval, finding);
    }
}

/// The exact test with ties against the limit; for slow shares the joint one over all thresholds.
fn confirmed(case: &Case<'_>, effect: &Effect, limit: f64) -> bool {
    let shifted = |e: &Effect, by: f64| e.differences.iter().map(|d| d - by).collect::<Vec<f64>>();
    if effect.metric != Metric::SlowShare {
        return p_greater(&shifted(effect, limit)).is_some_and(|p| p <= case.family.alpha);
    }
    let thresholds: Vec<&Effect> = case
        .analysis
        .effects
        .iter()
        .filter(|e| e.metric == Metric::SlowShare && e.scenario == effect.scenario)
        .collect();
    let columns: Vec<Vec<f64>> =
        thresholds.iter().filter_map(|e| Some(shifted(e, margins_of(case.target, e)?.limit))).collect();
    let own = thresholds.iter().position(|e| e.threshold_ms == effect.threshold_ms);
    let p = adjusted_p(&columns).zip(own).and_then(|(p, own)| p.get(own).copied());
    p.is_some_and(|p| p <= case.family.alpha)
}

fn undecided(case: &Case<'_>, interval: &Interval, bar: &Bar, rule_out: &str) -> String {
    if interval.high.is_none() {
        return format!("; {} blocks are too few to decide", interval.n);
    }
    let mut text = format!("; a change of {rule_out} cannot be ruled out");
    if interval.low.is_none() {
        text += &format!(", and at least {} blocks are needed to call a regression", case.family.blocks_needed);
    }
    if let Some(blocks) = blocks_to_settle(interval, bar) {
        let seconds = (blocks - interval.n as f64) * case.analysis.quality.block_seconds;
        if seconds > 0.0 {
            text += &format!("; {} more would settle it", wording::duration(seconds));
        }
    }
    text
}

fn weigh_acceptance(case: &Case<'_>, effect: &Effect, interval: &Interval, finding: &mut Finding) {
    let surely_beyond = |margin: f64| interval.low.is_some_and(|low| low > on_scale(effect.metric, margin));
    let up_to = |m: f64| wording::margin(effect.metric, m);
    match standing(&case.target.policy, &case.target.name, effect.metric, case.day, surely_beyond) {
        Standing::None => {}
        Standing::Within(entry) => {
            finding.verdict = Call::Accepted;
            finding.reason +=
                &format!("; accepted up to {} until {}: {}", up_to(entry.up_to), entry.until, entry.reason);
        }
        Standing::Exceeded(entry) => {
            finding.reason += &format!("; beyond the {} accepted until {}", up_to(entry.up_to), entry.until);
        }
        Standing::Expired(entry) => {
            finding.reason += &format!("; its acceptance ended on {}", entry.until);
        }
    }
}

/// MDE95: the smallest true change that this test would have called with probability .95, on the scale of `limit`.
fn detectable(case: &Case<'_>, effect: &Effect, margins: &Margins) -> Option<f64> {
    let n = effect.differences.len();
    if n < case.family.blocks_needed {
        return None;
    }
    // Over several thresholds the joint test costs level; k is taken at the level that Bonferroni would leave.
    let joint = case.family.alpha / 5.0;
    let k = match effect.metric {
        Metric::SlowShare => detectable::factor(n, joint).or_else(|| detectable::factor(n, case.family.alpha)),
        _ => detectable::factor(n, case.family.alpha),
    }?;
    let tail =
        matches!(effect.metric, Metric::LatencyP99Ns | Metric::LatencyP999Ns | Metric::SlowShare | Metric::StartupMs);
    let k = if tail && n <= 14 { k * HEAVY_TAIL } else { k };
    let spread = k * sd(&effect.differences)?;
    Some(off_scale(effect.metric, on_scale(effect.metric, margins.limit) + spread))
}

/// From the scale of the test to what is reported: head / base, or head - base.
fn read(metric: Metric, change: f64) -> f64 {
    match metric.scale() {
        Scale::Ratio if metric.higher_is_better() => (-change).exp(),
        Scale::Ratio => change.exp(),
        Scale::Difference => change,
    }
}

/// `open: CPU per request +11.3 % (+9.4 … +13.1 %)`.
pub fn said(finding: &Finding) -> String {
    let offset = if finding.ratio.is_some() { 1.0 } else { 0.0 };
    let Some(estimate) = finding.ratio.or(finding.added) else { return finding.reason.clone() };
    format!(
        "{}{} {}",
        prefix(&finding.scenario),
        wording::label(finding.metric, finding.threshold_ms),
        wording::interval(
            finding.metric,
            estimate - offset,
            finding.low.map(|l| l - offset),
            finding.high.map(|h| h - offset)
        )
    )
}

pub fn prefix(scenario: &str) -> String {
    if scenario.is_empty() { String::new() } else { format!("{scenario}: ") }
}

/// A finding of the same shape against an absolute limit.
pub fn absolute(case: &Case<'_>, effect: &Effect, max: f64, added: bool) -> Option<Finding> {
    let values = if added { &effect.added_blocks } else { &effect.head_blocks };
    let relative = values.iter().all(|&v| v > 0.0) && max > 0.0;
    let on_test: Vec<f64> = values.iter().map(|v| if relative { (v / max).ln() } else { v - max }).collect();
    let levels = Levels { alpha: super::family::BOUND, pass: pass_level(case.target), enough_blocks: true };
    let interval = Interval::of(&on_test, levels)?;
    let back = |x: f64| if relative { max * x.exp() } else { max + x };
    let mut finding = shown(case, effect);
    let unit = effect.metric.unit();
    finding.gated = effect.too_few.is_none();
    finding.against = "absolute".to_owned();
    finding.base = None;
    finding.added = effect.head.zip(effect.direct).map(|(h, d)| h - d);
    (finding.low, finding.high) = (interval.low.map(back), interval.high.map(back));
    (finding.limit, finding.rule_out) = (Some(max), Some(max));
    finding.n = u32::try_from(interval.n).unwrap_or(u32::MAX);
    finding.verdict = match (interval.low, interval.high) {
        _ if effect.too_few.is_some() => Call::Report,
        (Some(low), _) if low > 0.0 => Call::Regression,
        (_, Some(high)) if high <= 0.0 => Call::Pass,
        _ => Call::Inconclusive,
    };
    finding.reason = format!(
        "{}{}{} is {}, absolute limit {}",
        prefix(&finding.scenario),
        if added { "what the sidecar adds to " } else { "" },
        wording::label(effect.metric, effect.threshold_ms),
        wording::value(unit, back(interval.estimate)),
        wording::value(unit, max)
    );
    if finding.verdict == Call::Inconclusive {
        finding.reason += "; too close to tell";
    }
    Some(finding)
}
