//! Bounds on a probability from counts.

use statrs::distribution::{Beta, ContinuousCDF};

/// Clopper and Pearson's exact upper bound, at one-sided confidence `1 - alpha`, on the probability of an event seen
/// `hits` times in `trials`.
pub fn upper(hits: u64, trials: u64, alpha: f64) -> Option<f64> {
    if trials == 0 || hits > trials || !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    if hits == trials {
        return Some(1.0);
    }
    quantile(hits as f64 + 1.0, (trials - hits) as f64, 1.0 - alpha)
}

/// The lower bound to `upper`.
pub fn lower(hits: u64, trials: u64, alpha: f64) -> Option<f64> {
    if hits > trials {
        return None;
    }
    upper(trials - hits, trials, alpha).map(|u| 1.0 - u)
}

/// The beta quantile by bisection on its distribution function, which is accurate where an iteration may not converge.
fn quantile(a: f64, b: f64, p: f64) -> Option<f64> {
    let beta = Beta::new(a, b).ok()?;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if beta.cdf(middle) < p { low = middle } else { high = middle }
    }
    Some(f64::midpoint(low, high))
}
