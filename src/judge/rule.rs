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
        let on = |m| on_scale(scale, m);
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

/// A margin on the scale of the test.
pub fn on_scale(scale: Scale, margin: f64) -> f64 {
    match scale {
        Scale::Ratio => margin.ln_1p(),
        Scale::Difference => margin,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Regression,
    Improved,
    Costlier,
    Pass,
    Inconclusive,
}

/// Rules in the fixed order REGRESSION, PASS (or IMPROVED), INCONCLUSIVE; being one value, it is never two of them.
/// `confirmed` is the exact test, ties included, of the values against the limit; it is asked only where the lower bound
/// has passed it.
pub fn rule(interval: &Interval, bar: &Bar, confirmed: impl FnOnce() -> bool) -> Ruling {
    let surely_beyond = |margin: f64| interval.low.is_some_and(|low| low > margin);
    if surely_beyond(bar.limit) && bar.counts(interval.estimate) && confirmed() {
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
