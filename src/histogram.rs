//! A finished latency histogram: what the recorder hands on, what records store, what analysis reads.
//!
//! Recording uses `hdrhistogram` (3 significant digits). Once a slice is over only its occupied buckets matter; this
//! type keeps those, so that a run of a thousand slices stays small in memory and in `record.json`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Occupied buckets in ascending order of value: (nanoseconds, count). Counts are positive, values distinct.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// From any order of (value in ns, count) pairs; equal values are added up, zero counts dropped.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut buckets: Vec<(u64, u64)> = pairs.into_iter().filter(|&(_, n)| n > 0).collect();
        buckets.sort_unstable();
        buckets.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(later.1);
            }
            same
        });
        Self { buckets }
    }

    /// The occupied buckets of an HDR histogram, each by the middle of its equivalent range.
    pub fn from_hdr(hdr: &hdrhistogram::Histogram<u32>) -> Self {
        Self {
            buckets: hdr
                .iter_recorded()
                .map(|v| (hdr.median_equivalent(v.value_iterated_to()), v.count_at_value().into()))
                .collect(),
        }
    }

    pub fn buckets(&self) -> &[(u64, u64)] {
        &self.buckets
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, b| sum.saturating_add(b.1))
    }

    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Adds `other`'s samples: histograms are merged, never averaged.
    pub fn merge(&mut self, other: &Histogram) {
        if other.buckets.is_empty() {
            return;
        }
        let own = std::mem::take(&mut self.buckets);
        *self = Self::from_pairs(own.into_iter().chain(other.buckets.iter().copied()));
    }

    /// The smallest recorded value with at least `q` of the samples at or below it, in ns; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let total = self.len();
        let wanted = ((q * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0_u64;
        for &(value, count) in &self.buckets {
            seen = seen.saturating_add(count);
            if seen >= wanted {
                return Some(value);
            }
        }
        None
    }

    /// Samples strictly above `value` ns.
    pub fn count_above(&self, value: u64) -> u64 {
        let from = self.buckets.partition_point(|b| b.0 <= value);
        self.buckets[from..].iter().fold(0, |sum, b| sum.saturating_add(b.1))
    }

    pub fn max(&self) -> Option<u64> {
        self.buckets.last().map(|b| b.0)
    }
}

/// Stored as one string, `step:count` with the step from the bucket before, `:1` left out: sparse and diffable.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use std::fmt::Write as _;
        let mut text = String::new();
        let mut before = 0;
        for &(value, count) in &self.buckets {
            if !text.is_empty() {
                text.push(' ');
            }
            let _ = write!(text, "{}", value - before);
            if count != 1 {
                let _ = write!(text, ":{count}");
            }
            before = value;
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| serde::de::Error::custom("a histogram is `step:count` pairs separated by spaces"))
    }
}

fn parse(text: &str) -> Option<Histogram> {
    let mut value = 0_u64;
    let mut buckets = Vec::new();
    for item in text.split_ascii_whitespace() {
        let (step, count) = item.split_once(':').unwrap_or((item, "1"));
        let (step, count) = (step.parse::<u64>().ok()?, count.parse::<u64>().ok()?);
        if count == 0 || (step == 0 && !buckets.is_empty()) {
            return None;
        }
        value = value.checked_add(step)?;
        buckets.push((value, count));
    }
    Some(Histogram { buckets })
}
