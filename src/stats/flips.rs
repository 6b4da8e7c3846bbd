//! Sign flips: what a fair coin could have made of the same absolute values.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::acceptable;
use super::signed_rank::critical;

/// Up to this many values all flips are enumerated, beyond it they are drawn.
pub const ENUMERATED: usize = 14;

/// Flips drawn where there are too many to enumerate.
pub const DRAWN: usize = 20_000;

/// Draws are the same in every analysis of a record: its verdict must not depend on when it is computed.
const SEED: u64 = 0x5349_4445_4741_5445;

/// The share of joint sign flips of the unshifted `columns` (equally long, a value a block) in which for any of them
/// the lower bound at `alpha` exceeds its margin: how often a change that does nothing would be called a regression.
/// For several columns it is an upper bound on what `max_t` would reject. Zero where the level cannot be reached.
pub fn share_beyond(columns: &[&[f64]], margins: &[f64], alpha: f64) -> Option<f64> {
    let n = columns.first()?.len();
    if columns.len() != margins.len() || columns.iter().any(|c| c.len() != n || !acceptable(c)) {
        return None;
    }
    let Some(allowed) = critical(n, alpha) else { return Some(0.0) };
    let mut room = Vec::with_capacity(n);
    // The bound grows with every value: where even all-positive signs do not reach the margin, no flip does.
    let able: Vec<Sorted> = columns
        .iter()
        .zip(margins)
        .map(|(c, &m)| Sorted::new(c, m))
        .filter(|s| s.beyond(&vec![false; n], allowed, &mut room))
        .collect();
    if able.is_empty() {
        return Some(0.0);
    }
    let (mut hits, mut all) = (0_usize, 0_usize);
    each(n, |negative| {
        all += 1;
        hits += usize::from(able.iter().any(|s| s.beyond(negative, allowed, &mut room)));
    });
    Some(hits as f64 / all as f64)
}

/// Calls `visit` with every pattern of signs (`true`: flipped) of `n` values, or with `DRAWN` seeded ones.
pub(crate) fn each(n: usize, mut visit: impl FnMut(&[bool])) {
    let mut negative = vec![false; n];
    if n <= ENUMERATED {
        for pattern in 0_u32..1 << n {
            for (bit, flipped) in negative.iter_mut().enumerate() {
                *flipped = pattern >> bit & 1 == 1;
            }
            visit(&negative);
        }
        return;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    for _ in 0..DRAWN {
        for chunk in negative.chunks_mut(64) {
            let mut bits = rng.next_u64();
            for flipped in chunk {
                *flipped = bits & 1 == 1;
                bits >>= 1;
            }
        }
        visit(&negative);
    }
}

/// Absolute values in ascending order, with the block each belongs to.
struct Sorted {
    sizes: Vec<(f64, usize)>,
    margin: f64,
}

impl Sorted {
    fn new(column: &[f64], margin: f64) -> Self {
        let mut sizes: Vec<(f64, usize)> = column.iter().map(|v| v.abs()).zip(0..).collect();
        sizes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Self { sizes, margin }
    }

    /// Whether at most `allowed` Walsh averages of the signed values lie at or below the margin. Linear, because the
    /// signed values come out sorted: negative ones from the largest size down, then positive ones up.
    fn beyond(&self, negative: &[bool], allowed: usize, signed: &mut Vec<f64>) -> bool {
        signed.clear();
        signed.extend(self.sizes.iter().rev().filter(|s| negative[s.1]).map(|s| -s.0));
        signed.extend(self.sizes.iter().filter(|s| !negative[s.1]).map(|s| s.0));
        let mut partners = signed.len();
        let mut below = 0;
        for (i, &v) in signed.iter().enumerate() {
            while partners > i && f64::midpoint(v, signed[partners - 1]) > self.margin {
                partners -= 1;
            }
            if partners <= i {
                break;
            }
            below += partners - i;
            if below > allowed {
                return false;
            }
        }
        true
    }
}
