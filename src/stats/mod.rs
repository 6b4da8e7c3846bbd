//! Arithmetic on slices of numbers: locations, exact tests, intervals, error rates. Every function is total: input that
//! is empty, not finite or out of range gives `None`, never a panic. Methods and their sources are in METHODOLOGY.md.

pub mod binomial;
pub mod detectable;
pub mod flips;
pub mod location;
pub mod max_t;
pub mod normal;
pub mod signed_rank;
pub mod walsh;

/// Longest input of the exact methods; their cost grows with its cube. Runs have at most a few dozen blocks.
pub const MAX_LEN: usize = 512;

/// Whether the exact methods accept `values`.
pub(crate) fn acceptable(values: &[f64]) -> bool {
    !values.is_empty() && values.len() <= MAX_LEN && values.iter().all(|v| v.is_finite())
}
