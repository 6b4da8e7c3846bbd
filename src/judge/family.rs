//! A target's tests together: which belong to the family, and the level they are tested at.

use super::rule::on_scale;
use crate::analysis::{Analysis, Effect, is_wall_clock};
use crate::metric::Metric;
use crate::policy::{LimitSet, Policy, SLOW_THRESHOLDS};
use crate::stats::flips::share_beyond;

/// Bound on the probability that a target whose configs do the same is called a regression; also each metric's level at
/// its own limit, while the margins alone keep the bound.
pub const BOUND: f64 = 0.01;

/// Probability over all looks of passing a change of `rule_out`.
pub const FALSE_PASS: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Family {
    /// Gated wall-clock tests.
    pub size: u32,
    /// Sum over gated tests of the share of sign flips of the unshifted values that would be called a regression.
    pub flip_rate: f64,
    /// The level of each test.
    pub alpha: f64,
    /// Blocks below which nothing is called a regression at this level.
    pub blocks_needed: usize,
}

/// The effects that decide, without those that have too few samples to count.
pub fn deciding(analysis: &Analysis) -> impl Iterator<Item = &Effect> {
    analysis.effects.iter().filter(|e| e.gated && e.too_few.is_none() && !e.differences.is_empty())
}

/// Limit and rule-out of a slow-share threshold, by the policy.
pub fn slow_margins(policy: &Policy, threshold_ms: u64) -> Option<(f64, f64)> {
    let (_, limit, rule_out) = SLOW_THRESHOLDS.into_iter().find(|t| t.0 == threshold_ms)?;
    let times = if policy.limits == LimitSet::Lenient { 2.0 } else { 1.0 };
    let own = policy.overrides.get(&Metric::SlowShare).copied().unwrap_or_default();
    let limit = own.limit.unwrap_or(times * limit);
    let widened = if own.limit.is_some() { (times * rule_out).max(1.5 * limit) } else { times * rule_out };
    Some((limit, own.rule_out.unwrap_or(widened)))
}

impl Family {
    /// Of all comparisons of a target: head against base, and against the stored baseline, each with its limits.
    pub fn of(comparisons: &[(&Policy, &Analysis)]) -> Self {
        let (mut size, mut flip_rate) = (0, 0.0);
        for (policy, analysis) in comparisons {
            let tests = tests(analysis);
            size += tests.iter().filter(|t| is_wall_clock(t[0].metric)).count();
            flip_rate += tests.iter().filter_map(|t| flip_share(policy, t)).sum::<f64>();
        }
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        if flip_rate <= BOUND {
            return Self { size, flip_rate, alpha: BOUND, blocks_needed: blocks_needed(1) };
        }
        let alpha = BOUND / f64::from(size.max(1));
        Self { size, flip_rate, alpha, blocks_needed: blocks_needed(size) }
    }
}

/// Effects by test: the thresholds of a scenario's slow share are one.
fn tests(analysis: &Analysis) -> Vec<Vec<&Effect>> {
    let mut tests: Vec<Vec<&Effect>> = Vec::new();
    for effect in deciding(analysis) {
        match tests.last_mut() {
            Some(last) if effect.metric == Metric::SlowShare && same_test(last[0], effect) => last.push(effect),
            _ => tests.push(vec![effect]),
        }
    }
    tests
}

fn same_test(a: &Effect, b: &Effect) -> bool {
    a.metric == b.metric && a.scenario == b.scenario
}

fn flip_share(policy: &Policy, test: &[&Effect]) -> Option<f64> {
    let columns: Vec<&[f64]> = test.iter().map(|e| e.differences.as_slice()).collect();
    let limits = test.iter().map(|e| limit(policy, e)).collect::<Option<Vec<f64>>>()?;
    share_beyond(&columns, &limits, BOUND)
}

fn limit(policy: &Policy, effect: &Effect) -> Option<f64> {
    match effect.threshold_ms {
        Some(ms) => slow_margins(policy, ms).map(|m| m.0),
        None => policy.margins(effect.metric).map(|m| on_scale(effect.metric, m.limit)),
    }
}

/// Below this many blocks the test has next to no outcomes that reach .01 / size. At .01 alone 2^-7 suffices.
fn blocks_needed(size: u32) -> usize {
    match size {
        0 | 1 => 7,
        2..=10 => 12,
        11..=20 => 14,
        21..=40 => 16,
        more => 16 + (f64::from(more) / 40.0).log2().ceil() as usize,
    }
}
