//! One test over several thresholds: the largest of their signed-rank statistics under joint sign flips.

use super::flips;
use super::signed_rank::doubled_ranks;

/// Adjusted one-sided p-values (Westfall and Young's single step), one a column. A column holds a value a block,
/// already shifted by its margin. The statistic is the sum of signed ranks divided by the root of the sum of their
/// squares, which flips leave alone; a flip turns the same block in every column, so that the dependence between
/// thresholds is kept. Exact up to `flips::ENUMERATED` blocks, from seeded flips beyond.
pub fn adjusted_p(columns: &[Vec<f64>]) -> Option<Vec<f64>> {
    let n = columns.first()?.len();
    if columns.iter().any(|c| c.len() != n) {
        return None;
    }
    let scores = columns.iter().map(|c| signed_scores(c)).collect::<Option<Vec<Vec<f64>>>>()?;
    let observed: Vec<f64> = scores.iter().map(|s| s.iter().sum()).collect();
    let mut reached = vec![0_usize; columns.len()];
    let mut all = 0_usize;
    flips::each(n, |negative| {
        all += 1;
        let sum = |s: &Vec<f64>| s.iter().zip(negative).map(|(v, &flip)| if flip { -v } else { *v }).sum::<f64>();
        let largest = scores.iter().map(sum).fold(f64::NEG_INFINITY, f64::max);
        for (count, &own) in reached.iter_mut().zip(&observed) {
            *count += usize::from(largest >= own - 1e-9);
        }
    });
    // Drawn flips are joined by the observed pattern, without which a p-value of 0 would be possible.
    let extra = usize::from(n > flips::ENUMERATED);
    Some(reached.iter().map(|&r| (r + extra) as f64 / (all + extra) as f64).collect())
}

fn signed_scores(column: &[f64]) -> Option<Vec<f64>> {
    let ranks = doubled_ranks(column)?;
    let norm = ranks.iter().map(|&r| (r as f64).powi(2)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    Some(ranks.iter().zip(column).map(|(&r, v)| v.signum() * r as f64 / norm).collect())
}
