//! What a run could have detected: MDE95 = (1 + t0) exp(k s) - 1, with k from a table made by simulating the test.

use super::normal::Normal;
use super::walsh::Walsh;

/// Numbers of blocks of the table's rows.
pub const BLOCKS: [usize; 10] = [8, 10, 12, 14, 16, 20, 24, 28, 32, 40];

/// The table's columns: levels .01 / divisor.
pub const DIVISORS: [f64; 8] = [1.0, 2.0, 4.0, 6.0, 10.0, 16.0, 24.0, 40.0];

/// k by blocks and level: the shift, in standard deviations of a block's value, that the exact one-sided signed-rank
/// test calls with probability .95 when values are normal. Zero: the level cannot be reached. From `simulated_factors`
/// with 400 000 samples a row; `cargo bench --bench errors` recomputes it.
pub const FACTORS: [[f64; 8]; 10] = [
    [1.977, 2.488, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000],
    [1.548, 1.739, 2.077, 2.568, 2.568, 0.000, 0.000, 0.000],
    [1.390, 1.504, 1.654, 1.832, 1.999, 2.153, 2.633, 2.633],
    [1.246, 1.357, 1.492, 1.545, 1.663, 1.740, 1.908, 2.067],
    [1.130, 1.229, 1.343, 1.412, 1.488, 1.576, 1.625, 1.737],
    [0.981, 1.062, 1.138, 1.187, 1.240, 1.299, 1.364, 1.411],
    [0.883, 0.953, 1.018, 1.059, 1.112, 1.146, 1.195, 1.234],
    [0.809, 0.870, 0.927, 0.961, 1.004, 1.041, 1.073, 1.115],
    [0.752, 0.805, 0.861, 0.890, 0.926, 0.958, 0.991, 1.026],
    [0.664, 0.712, 0.757, 0.783, 0.813, 0.841, 0.866, 0.895],
];

/// k for `n` blocks at level `alpha`, interpolated in the level's logarithm and in 1 / sqrt(n). Beyond the table k
/// falls like 1 / sqrt(n); levels outside of it are moved to its edge. `None` below 8 blocks, or where the level
/// cannot be reached.
pub fn factor(n: usize, alpha: f64) -> Option<f64> {
    if !(alpha > 0.0 && alpha < 1.0) || n < BLOCKS[0] {
        return None;
    }
    let last = BLOCKS[BLOCKS.len() - 1];
    if n > last {
        return Some(at_level(BLOCKS.len() - 1, alpha)? * (last as f64 / n as f64).sqrt());
    }
    let above = BLOCKS.iter().position(|&b| b >= n)?;
    if BLOCKS[above] == n {
        return at_level(above, alpha);
    }
    let position = |n: usize| 1.0 / (n as f64).sqrt();
    let (from, to) = (position(BLOCKS[above - 1]), position(BLOCKS[above]));
    let share = (position(n) - from) / (to - from);
    Some(at_level(above - 1, alpha)? * (1.0 - share) + at_level(above, alpha)? * share)
}

fn at_level(row: usize, alpha: f64) -> Option<f64> {
    let divisor = (0.01 / alpha).clamp(DIVISORS[0], DIVISORS[DIVISORS.len() - 1]);
    let right = DIVISORS.iter().position(|&d| d >= divisor)?;
    let left = right.saturating_sub(1);
    let (low, high) = (FACTORS[row][left], FACTORS[row][right]);
    if high == 0.0 || low == 0.0 {
        return None;
    }
    if left == right {
        return Some(high);
    }
    let share = (divisor / DIVISORS[left]).ln() / (DIVISORS[right] / DIVISORS[left]).ln();
    Some(low * (1.0 - share) + high * share)
}

/// One row of the table, by simulating the test: k is the .95 quantile of minus the lower bound over samples of `n`
/// standard normal values. Zero where a level cannot be reached.
pub fn simulated_factors(n: usize, samples: usize, seed: u64) -> [f64; 8] {
    let mut normal = Normal::new(seed, n as u64);
    let mut bounds = vec![Vec::with_capacity(samples); DIVISORS.len()];
    for _ in 0..samples {
        let values: Vec<f64> = (0..n).map(|_| normal.draw()).collect();
        let Some(walsh) = Walsh::of(&values) else { break };
        for (column, divisor) in bounds.iter_mut().zip(DIVISORS) {
            column.extend(walsh.lower(0.01 / divisor).map(|l| -l));
        }
    }
    let mut row = [0.0; 8];
    for (k, mut column) in row.iter_mut().zip(bounds) {
        column.sort_unstable_by(f64::total_cmp);
        *k = column.get((0.95 * column.len() as f64) as usize).copied().unwrap_or(0.0);
    }
    row
}
