//! Walsh averages: the estimate and the interval that belong to the signed-rank test.

use super::acceptable;
use super::signed_rank::critical;

/// The sorted averages (v_i + v_j) / 2, i <= j, of some values (Hodges and Lehmann 1963).
#[derive(Debug, Clone, PartialEq)]
pub struct Walsh {
    n: usize,
    averages: Vec<f64>,
}

impl Walsh {
    pub fn of(values: &[f64]) -> Option<Self> {
        if !acceptable(values) {
            return None;
        }
        let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
        for (i, &v) in values.iter().enumerate() {
            averages.extend(values[i..].iter().map(|&w| f64::midpoint(v, w)));
        }
        averages.sort_unstable_by(f64::total_cmp);
        Some(Self { n: values.len(), averages })
    }

    /// Number of values.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Hodges-Lehmann estimate: the median of the averages.
    pub fn estimate(&self) -> f64 {
        let count = self.averages.len();
        f64::midpoint(self.averages[(count - 1) / 2], self.averages[count / 2])
    }

    /// The largest value that the one-sided test at `alpha` rejects everything below of; `None` if n is too small for
    /// the level, that is, minus infinity.
    pub fn lower(&self, alpha: f64) -> Option<f64> {
        critical(self.n, alpha).map(|allowed| self.averages[allowed])
    }

    /// The mirror image of `lower`; `None` is plus infinity.
    pub fn upper(&self, alpha: f64) -> Option<f64> {
        critical(self.n, alpha).map(|allowed| self.averages[self.averages.len() - 1 - allowed])
    }
}

/// Hodges-Lehmann estimate of the centre of `values`.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    Walsh::of(values).map(|w| w.estimate())
}
