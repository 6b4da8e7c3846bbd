//! What was counted of one class of request on one arm, and the rule that compares two arms: ranges of windows, no
//! probabilities. Counts of the same work repeat within some hundredths of a percent on any machine, however busy.

use super::rule::{Bar, Interval, Ruling, rule};
use crate::metric::{Metric, Scale};
use crate::policy::Margins;
use crate::record::{ClassCost, Window};
use crate::stats::location;

/// Largest range of an arm's windows, relative to the lowest, that decides anything: identical configs stay below it
/// (METHODOLOGY.md, *Deterministic cost*).
pub const MAX_RANGE: f64 = 0.004;

/// Windows of both arms that are needed to call a change beyond their own scatter, and how many times their range it must
/// exceed. Independent windows of the same config do so less than once in ten thousand times, however they scatter.
const WINDOWS_OF_BOTH: usize = 8;
const TIMES_RANGE: f64 = 2.0;

/// Windows that decide: all, or the tightest where the range of all is too wide.
pub const WINDOWS: usize = 3;

/// System calls are few and whole: a flush that falls into one window more is a share of nothing. Range in calls a
/// request that is as good as none.
const FEW_CALLS: f64 = 0.1;

/// One arm's windows of one figure, per request; of the windows that decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    pub low: f64,
    /// See [`location::typical`].
    pub typical: f64,
    pub high: f64,
    pub n: usize,
    /// Whether there are enough windows and their range is narrow enough to decide.
    pub steady: bool,
}

impl Counted {
    /// `None` where nothing was counted.
    pub fn of(cost: &ClassCost, metric: Metric) -> Option<Self> {
        let per_request = |w: &Window| match metric {
            // A window without instructions was not counted, whatever it says.
            Metric::InstructionsPerRequest => (w.instructions > 0).then(|| w.instructions as f64 / w.requests as f64),
            _ => Some(w.syscalls as f64 / w.requests as f64),
        };
        let mut values: Vec<f64> = cost.windows.iter().filter(|w| w.requests > 0).filter_map(per_request).collect();
        values.sort_by(f64::total_cmp);
        let slack = if metric == Metric::SyscallsPerRequest { FEW_CALLS } else { 0.0 };
        let narrow = |v: &[f64]| v.first().zip(v.last()).is_some_and(|(l, h)| h - l <= (MAX_RANGE * l).max(slack));
        let all = values.as_slice();
        let tightest = all.windows(WINDOWS).min_by(|a, b| width(a).total_cmp(&width(b)));
        // Windows that scatter all the same are all kept: none is chosen to make them look better.
        let used = tightest.filter(|t| !narrow(all) && narrow(t)).unwrap_or(all);
        Some(Self {
            low: *used.first()?,
            typical: location::typical(used)?,
            high: *used.last()?,
            n: used.len(),
            steady: used.len() >= WINDOWS && narrow(used),
        })
    }

    /// Range over lowest value.
    pub fn range(&self) -> f64 {
        if self.low > 0.0 { self.high / self.low - 1.0 } else { 0.0 }
    }
}

fn width(sorted: &[f64]) -> f64 {
    sorted.first().zip(sorted.last()).map_or(f64::INFINITY, |(l, h)| h - l)
}

/// Head against base: estimate, and the two ends that all windows of both arms leave open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub base: Counted,
    pub head: Counted,
}

impl Change {
    /// head / base: (ratio of what is typical, min(head) / max(base), max(head) / min(base)). `None` where base is 0.
    pub fn ratio(&self) -> Option<(f64, f64, f64)> {
        let (base, head) = (&self.base, &self.head);
        (base.low > 0.0).then(|| (head.typical / base.typical, head.low / base.high, head.high / base.low))
    }

    /// Windows of the arm that has fewer.
    pub fn n(&self) -> usize {
        self.base.n.min(self.head.n)
    }

    pub fn steady(&self) -> bool {
        self.base.steady && self.head.steady
    }

    /// The wider range of the two arms.
    pub fn range(&self) -> f64 {
        self.base.range().max(self.head.range())
    }

    /// Whether all of head's windows lie beyond all of base's by more than `margin`, relative to base, and, where windows
    /// scatter, by more than twice their range on top.
    pub fn surely_beyond(&self, margin: f64) -> bool {
        self.head.low > (1.0 + margin) * (1.0 + self.allowance()) * self.base.high
    }

    fn allowance(&self) -> f64 {
        if self.steady() { 0.0 } else { TIMES_RANGE * self.range() }
    }

    /// Whether windows that scatter differ by far more than that.
    fn beyond_scatter(&self, margins: &Margins) -> bool {
        let enough = self.n() >= WINDOWS && self.base.n + self.head.n >= WINDOWS_OF_BOTH && self.base.low > 0.0;
        enough && self.surely_beyond(margins.limit) && self.head.typical - self.base.typical > margins.floor
    }

    /// Smallest change that windows as wide as these would surely call, relative to base.
    pub fn detectable(&self, margins: &Margins) -> f64 {
        let ranges = (1.0 + self.base.range()) * (1.0 + self.head.range());
        let relative = (1.0 + margins.limit) * (1.0 + self.allowance()) * ranges - 1.0;
        if self.base.typical > 0.0 { relative.max(margins.floor / self.base.typical) } else { relative }
    }

    /// Whether windows that scatter all the same leave no room for a change that must be ruled out.
    fn ruled_out(&self, margins: &Margins) -> bool {
        let between = |(_, low, high): (f64, f64, f64)| low <= 1.0 + margins.limit && high < 1.0 + margins.rule_out;
        self.n() >= WINDOWS && self.ratio().is_some_and(between)
    }

    /// The rule: one value, so never two of them. A change within the floor never fails; windows that scatter call a
    /// regression only far beyond their scatter, and pass only where all of it lies below what must be ruled out.
    pub fn rule(&self, margins: &Margins) -> Ruling {
        if !self.steady() {
            return match () {
                () if self.beyond_scatter(margins) => Ruling::Regression,
                () if self.ruled_out(margins) && self.surely_beyond(margins.notice) => Ruling::Costlier,
                () if self.ruled_out(margins) => Ruling::Pass,
                () => Ruling::Inconclusive,
            };
        }
        let (scale, (estimate, low, high)) = match self.ratio() {
            Some((ratio, low, high)) => (Scale::Ratio, (ratio.ln(), low.ln(), high.ln())),
            None => (Scale::Difference, self.difference()),
        };
        let interval = Interval { n: self.n(), estimate, low: Some(low), high: Some(high) };
        // Where base is 0, whatever exceeds the floor is beyond any share of it.
        let on = |margin: f64| if scale == Scale::Ratio { margin.ln_1p() } else { margins.floor };
        let bar = Bar {
            notice: on(margins.notice),
            limit: on(margins.limit),
            rule_out: on(margins.rule_out),
            floor: margins.floor,
            base: Some(self.base.typical),
            scale,
        };
        rule(&interval, &bar)
    }

    fn difference(&self) -> (f64, f64, f64) {
        let (base, head) = (&self.base, &self.head);
        (head.typical - base.typical, head.low - base.high, head.high - base.low)
    }
}
