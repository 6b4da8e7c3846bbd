//! Several histograms read as one: merged, never averaged.

use crate::histogram::Histogram;

/// (value, count) pairs of all of them in ascending order; values may repeat.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Merged {
    pairs: Vec<(u64, u64)>,
    len: f64,
}

impl Merged {
    pub fn of<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Self {
        let mut pairs = Vec::new();
        let mut parts = 0;
        for histogram in histograms {
            pairs.extend_from_slice(histogram.buckets());
            parts += 1;
        }
        if parts > 1 {
            // The stable sort finds the runs that are sorted already and only merges them.
            pairs.sort_by_key(|p| p.0);
        }
        let len = pairs.iter().map(|p| p.1 as f64).sum();
        Self { pairs, len }
    }

    /// Number of samples.
    pub fn len(&self) -> f64 {
        self.len
    }

    /// The smallest value with at least `q` of the samples at or below it, in ns; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = (q * self.len).ceil().max(1.0);
        let mut seen = 0.0;
        for &(value, count) in &self.pairs {
            seen += count as f64;
            if seen >= wanted {
                return Some(value as f64);
            }
        }
        self.pairs.last().map(|p| p.0 as f64)
    }
}
