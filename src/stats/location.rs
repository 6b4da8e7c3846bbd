//! Where values lie: mean, median, trimmed mean, spread.

/// Arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    finite(values)?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Middle value, or the mean of the two middle values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    let upper = sorted.len() / 2;
    let lower = (sorted.len() - 1) / 2;
    Some(f64::midpoint(sorted[lower], sorted[upper]))
}

/// Mean without the smallest and the largest `share` of the values, each rounded down (Tukey; SciPy's `trim_mean`).
pub fn trimmed_mean(values: &[f64], share: f64) -> Option<f64> {
    if !(0.0..0.5).contains(&share) {
        return None;
    }
    let sorted = sorted(values)?;
    let cut = (share * sorted.len() as f64).floor() as usize;
    mean(&sorted[cut..sorted.len() - cut])
}

/// What is typical of a few repeats: their mean; of five or more, without a fifth at either end. Rare work that falls into
/// some of them is in it, an accident is not.
pub fn typical(values: &[f64]) -> Option<f64> {
    trimmed_mean(values, 0.2)
}

/// Sample standard deviation (divisor n - 1); `None` for fewer than two values.
pub fn sd(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    if values.len() < 2 {
        return None;
    }
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// ln(above / below); `None` unless both are positive and finite.
pub fn ln_ratio(above: f64, below: f64) -> Option<f64> {
    let ratio = (above / below).ln();
    (above > 0.0 && below > 0.0 && ratio.is_finite()).then_some(ratio)
}

fn finite(values: &[f64]) -> Option<()> {
    (!values.is_empty() && values.iter().all(|v| v.is_finite())).then_some(())
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    finite(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}
