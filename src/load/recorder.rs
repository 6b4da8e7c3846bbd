//! The histograms a slice is recorded into, kept from slice to slice.

use hdrhistogram::Histogram as Hdr;

use crate::histogram::Histogram;

/// Longest time told apart; what is longer is counted here.
const LONGEST_NS: u64 = 60_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

pub(super) struct Recorder {
    pub latency: Times,
    pub uncorrected: Times,
    pub lateness: Times,
}

impl Recorder {
    pub fn new() -> Self {
        Self { latency: Times::new(), uncorrected: Times::new(), lateness: Times::new() }
    }
}

/// One HDR histogram of nanoseconds, 1 ns to 60 s, 3 significant digits.
pub(super) struct Times(Hdr<u32>);

impl Times {
    fn new() -> Self {
        Self(Hdr::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS).expect("the bounds are constant and valid"))
    }

    /// Values out of range are counted at its ends.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// Hands over what was recorded and starts anew.
    pub fn take(&mut self) -> Histogram {
        let taken = Histogram::from_hdr(&self.0);
        self.0.reset();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_and_extremes_are_counted() {
        let mut times = Times::new();
        for ns in [0, 41_234, 59_000_000_000, u64::MAX] {
            times.record(ns);
        }
        let taken = times.take();
        assert_eq!(taken.len(), 4);
        assert!(taken.quantile(0.5).unwrap().abs_diff(41_234) <= 41);
        assert!(taken.max().unwrap() >= 59_900_000_000);
        assert!(times.take().is_empty(), "taking starts anew");
    }
}
