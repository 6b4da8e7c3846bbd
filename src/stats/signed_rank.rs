//! Wilcoxon's signed-rank test, exact.
//!
//! The null distribution is the one of the signs given the absolute values, by dynamic programming on doubled midranks
//! (doubled, so that they are whole numbers): ties are exact, not approximated. Zeros by Pratt: they take part in the
//! ranking and are then left out, so that a zero is evidence for neither side and yet keeps the others' ranks honest.

use super::acceptable;

/// Slack for comparing sums of powers of two that were rounded on the way.
const EPSILON: f64 = 1e-12;

/// One-sided p-value of `values` against "symmetric about at most zero": the probability, over fair signs, of a sum of
/// positive ranks at least as large as this one.
pub fn p_greater(values: &[f64]) -> Option<f64> {
    let ranks = doubled_ranks(values)?;
    let observed: usize = ranks.iter().zip(values).filter(|&(_, v)| *v > 0.0).map(|(r, _)| r).sum();
    let null = null_of(&ranks);
    Some(null[observed..].iter().sum::<f64>().min(1.0))
}

/// Two-sided p-value: twice the smaller one-sided one, at most 1.
pub fn p_two_sided(values: &[f64]) -> Option<f64> {
    let turned: Vec<f64> = values.iter().map(|v| -v).collect();
    Some((2.0 * p_greater(values)?.min(p_greater(&turned)?)).min(1.0))
}

/// The smallest p-value that `n` values can reach: all signs positive, 2^-n.
pub fn smallest_p(n: usize) -> f64 {
    0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX))
}

/// How many of the n (n + 1) / 2 Walsh averages may lie at or below a value that the test at `alpha` still rejects, in
/// the absence of ties. `None` if no outcome of `n` values reaches `alpha`: n is too small for its level.
pub fn critical(n: usize, alpha: f64) -> Option<usize> {
    if n == 0 || n > super::MAX_LEN || !(alpha > 0.0 && alpha < 0.5) || smallest_p(n) > alpha + EPSILON {
        return None;
    }
    let ranks: Vec<usize> = (1..=n).collect();
    let mut tail = 0.0;
    let mut allowed = 0;
    for (sum, p) in null_of(&ranks).into_iter().enumerate() {
        tail += p;
        if tail > alpha + EPSILON {
            break;
        }
        allowed = sum;
    }
    Some(allowed)
}

/// Twice the midranks of the absolute values; zero for zeros.
pub(crate) fn doubled_ranks(values: &[f64]) -> Option<Vec<usize>> {
    if !acceptable(values) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&i, &j| values[i].abs().total_cmp(&values[j].abs()));
    let mut ranks = vec![0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let size = values[order[start]].abs();
        let end = order[start..].iter().position(|&i| values[i].abs() != size).map_or(order.len(), |n| start + n);
        for &i in &order[start..end] {
            // The mean of ranks start + 1 ..= end, doubled.
            ranks[i] = if size == 0.0 { 0 } else { start + 1 + end };
        }
        start = end;
    }
    Some(ranks)
}

/// Probability of each sum of a subset of `ranks`, each taken or left by a fair coin.
fn null_of(ranks: &[usize]) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut null = vec![0.0; total + 1];
    null[0] = 1.0;
    let mut reach = 0;
    for &rank in ranks.iter().filter(|r| **r > 0) {
        reach += rank;
        for sum in (0..=reach).rev() {
            let with = if sum >= rank { null[sum - rank] } else { 0.0 };
            null[sum] = 0.5 * (null[sum] + with);
        }
    }
    null
}
