//! The decision rule for one metric, on the scale of the test: ln(head / base), or head - base; positive is worse.

use crate::metric::{Metric, Scale};
use crate::policy::Margins;
use crate::stats::walsh::Walsh;

/// Confidence of the two one-sided bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Of the lower bound, which calls regressions.
    pub alpha: f64,
    /// Of the upper bound, which calls passes: .05 / looks.
    pub pass: f64,
    /// Whether the blocks suffice for `alpha`; otherwise nothing is called a regression.
    pub enough_blocks: bool,
}

/// Estimate and bounds; a bound is `None` where the blocks do not suffice for its level, that is, infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub n: usize,
    pub estimate: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Interval {
    pub fn of(values: &[f64], levels: Levels) -> Option<Self> {
        let walsh = Walsh::of(values)?;
        let low = if levels.enough_blocks { walsh.lower(levels.alpha) } else { None };
        Some(Self { n: walsh.n(), estimate: walsh.estimate(), low, high: walsh.upper(levels.pass) })
    }

    /// Takes the lower bound back to `limit` where it lies beyond and a stricter test (with ties, or jointly over several
    /// thresholds) does not confirm that.
    pub fn unless_confirmed(&mut self, limit: f64, confirmed: impl FnOnce() -> bool) {
        if self.low.is_some_and(|low| low > limit) && !confirmed() {
            self.low = Some(limit);
        }
    }
}

/// Margins on the scale of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    pub notice: f64,
    pub limit: f64,
    pub rule_out: f64,
    /// Least absolute change that counts, and what base is worth, both in the metric's unit.
    pub floor: f64,
    pub base: Option<f64>,
    pub scale: Scale,
}

impl Bar {
    pub fn new(metric: Metric, margins: Margins, base: Option<f64>) -> Self {
        let scale = metric.scale();
        let on = |m| on_scale(metric, m);
        Self {
            notice: on(margins.notice),
            limit: on(margins.limit),
            rule_out: on(margins.rule_out),
            floor: margins.floor,
            base,
            scale,
        }
    }

    /// Whether a change is beyond the floor; where base is not known, the floor does not protect it.
    fn counts(&self, change: f64) -> bool {
        self.floor <= 0.0 || self.absolute(change).is_none_or(|a| a.abs() > self.floor)
    }

    /// Whether everything up to `change` is below the floor.
    fn is_nothing(&self, change: f64) -> bool {
        self.floor > 0.0 && self.absolute(change).is_some_and(|a| a <= self.floor)
    }

    fn absolute(&self, change: f64) -> Option<f64> {
        match self.scale {
            Scale::Ratio => self.base.map(|b| b * change.exp_m1()),
            Scale::Difference => Some(change),
        }
    }
}

/// A margin on the scale of the test, where more is worse. A margin on what is better when higher is a fall: 60 % of
/// throughput lost is a factor of 2.5.
pub fn on_scale(metric: Metric, margin: f64) -> f64 {
    match metric.scale() {
        Scale::Ratio if metric.higher_is_better() => -(-margin.min(LARGEST_FALL)).ln_1p(),
        Scale::Ratio => margin.ln_1p(),
        Scale::Difference => margin,
    }
}

/// The way back.
pub fn off_scale(metric: Metric, change: f64) -> f64 {
    match metric.scale() {
        Scale::Ratio if metric.higher_is_better() => -(-change).exp_m1(),
        Scale::Ratio => change.exp_m1(),
        Scale::Difference => change,
    }
}

/// Nothing falls by all of itself and can still be compared.
const LARGEST_FALL: f64 = 0.9999;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Regression,
    Improved,
    Costlier,
    Pass,
    Inconclusive,
}

/// Rules in the fixed order REGRESSION, PASS (or IMPROVED), INCONCLUSIVE; being one value, it is never two of them.
pub fn rule(interval: &Interval, bar: &Bar) -> Ruling {
    let surely_beyond = |margin: f64| interval.low.is_some_and(|low| low > margin);
    if surely_beyond(bar.limit) && bar.counts(interval.estimate) {
        return Ruling::Regression;
    }
    let Some(high) = interval.high else { return Ruling::Inconclusive };
    if high >= bar.rule_out && !bar.is_nothing(high) {
        return Ruling::Inconclusive;
    }
    if high < -bar.limit && bar.counts(interval.estimate) {
        return Ruling::Improved;
    }
    if surely_beyond(bar.notice) && bar.counts(interval.estimate) {
        return Ruling::Costlier;
    }
    Ruling::Pass
}

/// Whether this metric lets a run stop at an early look: surely below `rule_out`, and probably below the limit. Without
/// the second condition a change between the two would pass early.
pub fn may_stop(interval: &Interval, bar: &Bar) -> bool {
    interval.high.is_some_and(|high| bar.is_nothing(high) || (high < bar.rule_out && interval.estimate <= bar.limit))
}

/// About how many blocks in all would settle an inconclusive metric, if the estimate holds: the distance from estimate
/// to bound shrinks like 1 / sqrt(n). `None` where more blocks would not settle it.
pub fn blocks_to_settle(interval: &Interval, bar: &Bar) -> Option<f64> {
    let n = interval.n as f64;
    let needed = |reach: f64, room: f64| (room > 0.0 && reach >= 0.0).then(|| n * (reach / room).powi(2));
    let pass = interval.high.and_then(|high| needed(high - interval.estimate, bar.rule_out - interval.estimate));
    let fail = interval.low.and_then(|low| needed(interval.estimate - low, interval.estimate - bar.limit));
    [pass, fail].into_iter().flatten().filter(|b| b.is_finite()).min_by(f64::total_cmp).map(|b| b.max(n + 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_margin_on_throughput_is_a_fall() {
        assert!((on_scale(Metric::ThroughputRps, 0.5) - 2.0_f64.ln()).abs() < 1e-12);
        assert!((on_scale(Metric::LatencyP50Ns, 1.0) - 2.0_f64.ln()).abs() < 1e-12);
        assert!(on_scale(Metric::ThroughputRps, 3.0).is_finite());
        for metric in [Metric::ThroughputRps, Metric::LatencyP50Ns, Metric::SlowShare] {
            assert!((off_scale(metric, on_scale(metric, 0.08)) - 0.08).abs() < 1e-12);
        }
    }

    proptest! {
        /// A ruling is one value; what it says agrees with the bounds, and what stops a run early is no regression.
        #[test]
        fn regression_and_pass_never_both_hold(
            values in prop::collection::vec(-0.3..0.5_f64, 7..20),
            limit in 0.0..0.2_f64,
            wider in 0.0..0.3_f64,
            floor in 0.0..50.0_f64,
            base in prop::option::of(1.0..2000.0_f64),
            confirm in any::<bool>(),
        ) {
            let levels = Levels { alpha: 0.01, pass: 0.05 / 2.0, enough_blocks: true };
            let mut interval = Interval::of(&values, levels).unwrap();
            let lowest = interval.low.unwrap();
            interval.unless_confirmed(limit, || confirm);
            let bar = Bar { notice: limit, limit, rule_out: limit + wider, floor, base, scale: Scale::Ratio };
            let ruling = rule(&interval, &bar);
            let beyond = lowest > limit && bar.counts(interval.estimate) && confirm;
            prop_assert_eq!(ruling == Ruling::Regression, beyond);
            if may_stop(&interval, &bar) {
                prop_assert!(matches!(ruling, Ruling::Pass | Ruling::Improved | Ruling::Costlier), "{:?}", ruling);
            }
            if matches!(ruling, Ruling::Pass | Ruling::Improved | Ruling::Costlier) {
                prop_assert!(interval.high.unwrap() < bar.rule_out || bar.is_nothing(interval.high.unwrap()));
            }
        }
    }

    #[test]
    fn more_blocks_settle_what_is_near_and_not_what_sits_on_a_margin() {
        let bar = Bar { notice: 0.0, limit: 0.05, rule_out: 0.1, floor: 0.0, base: None, scale: Scale::Ratio };
        let at = |estimate: f64| Interval { n: 10, estimate, low: Some(estimate - 0.2), high: Some(estimate + 0.2) };
        assert!((blocks_to_settle(&at(0.0), &bar).unwrap() - 40.0).abs() < 1e-9);
        assert!(blocks_to_settle(&at(0.25), &bar).unwrap() < 11.5);
        assert!(blocks_to_settle(&at(0.075), &bar).unwrap() > 500.0);
    }
}
