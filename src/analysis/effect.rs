//! One value a block and metric: the estimators of METHODOLOGY.md.

use super::block::{ScenarioBlock, arm_block, failed, requests, slot_of};
use super::family;
use super::merged::Merged;
use crate::metric::{Metric, Scale};
use crate::policy::{SLOW_CAP_PER_SLICE, SLOW_THRESHOLDS};
use crate::record::{Arm, ArmBlock, Block, Counters, Load, Memory, Scenario, Slice, Slot, TargetRecord};
use crate::stats::location::{ln_ratio, mean, median, trimmed_mean};

/// Samples beyond a quantile that each merged slice must hold.
const BEYOND_PER_SLICE: f64 = 1.5;

/// Samples beyond a quantile that each arm must hold over the run for the quantile to gate.
const BEYOND_PER_RUN: f64 = 100.0;

/// Share trimmed from either end of the rounds' CPU ratios.
const TRIM: f64 = 0.2;

/// What a record says about one metric in one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Index into the target's scenarios; `None` for memory and start-up.
    pub scenario: Option<u32>,
    pub metric: Metric,
    /// Of `slow_share`.
    pub threshold_ms: Option<u64>,
    /// Whether it decides, by the family and the policy.
    pub gated: bool,
    /// Head against base, one value a block: ln(head / base), or head - base in the metric's unit; turned so that
    /// positive is worse.
    pub differences: Vec<f64>,
    /// Where base sat, for each of `differences`.
    pub base_slots: Vec<Slot>,
    /// Head's own value, one a block, in the metric's unit.
    pub head_blocks: Vec<f64>,
    /// What the sidecar adds: head - direct, one value a block, for latencies.
    pub added_blocks: Vec<f64>,
    /// Typical values (median over blocks; for slow shares pooled over the run), in the metric's unit.
    pub direct: Option<f64>,
    pub base: Option<f64>,
    pub head: Option<f64>,
    /// Set where a quantile has too few samples to count for or against.
    pub too_few: Option<TooFew>,
}

/// How many samples lie beyond a quantile in the arm that has the fewest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TooFew {
    pub beyond: f64,
    pub needed: f64,
}

/// The figures of one block: (direct, base, head, difference).
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    direct: Option<f64>,
    base: Option<f64>,
    head: Option<f64>,
    /// Where it is not simply that of base and head.
    difference: Option<f64>,
}

pub fn of_scenario(
    target: &TargetRecord,
    index: u32,
    scenario: &Scenario,
    blocks: &[ScenarioBlock<'_>],
    against: Arm,
) -> Vec<Effect> {
    let collect = |metric: Metric, figures: &dyn Fn(&ScenarioBlock<'_>) -> Figures| {
        let gated = family::is_gated(&target.policy, Some(scenario.load), metric);
        collect(metric, Some(index), gated, blocks.iter().map(|b| (b.base_slot, figures(b))))
    };
    let mut effects = vec![
        collect(Metric::CpuNsPerRequest, &|b| cpu(b, true)),
        collect(Metric::CpuNsPerRequestSum, &|b| cpu(b, false)),
    ];
    let quantiles = [
        (Metric::LatencyP50Ns, 0.5),
        (Metric::LatencyP90Ns, 0.9),
        (Metric::LatencyP99Ns, 0.99),
        (Metric::LatencyP999Ns, 0.999),
    ];
    for (metric, q) in quantiles {
        let mut effect = collect(metric, &|b| latency(b, metric, q));
        effect.too_few = too_few(blocks, q, target.has(against));
        effects.push(effect);
    }
    match scenario.load {
        Load::Open { .. } => {
            for (ms, _, _) in SLOW_THRESHOLDS {
                let mut effect = collect(Metric::SlowShare, &|b| slow_share(b, ms));
                effect.threshold_ms = Some(ms);
                pool(&mut effect, blocks, ms);
                effects.push(effect);
            }
        }
        Load::Closed => effects.push(collect(Metric::ThroughputRps, &throughput)),
    }
    effects.push(collect(Metric::ErrorsPerRequest, &|b| per_request(b, |s| Some(failed(s)))));
    effects.push(collect(Metric::UpstreamConnectionsPerRequest, &|b| {
        per_request(b, |s| Some(s.upstream_connections as f64))
    }));
    effects
        .push(collect(Metric::UpstreamRequestsPerRequest, &|b| per_request(b, |s| Some(s.upstream_requests as f64))));
    effects.push(collect(Metric::RetriesPerRequest, &|b| counted(b, |c| c.retries)));
    effects.push(collect(Metric::TimeoutsPerRequest, &|b| counted(b, |c| c.timeouts)));
    effects.push(collect(Metric::OverflowPerRequest, &|b| counted(b, |c| c.overflow)));
    effects.push(collect(Metric::ContextSwitchesPerRequest, &|b| {
        per_request(b, |s| s.proxy.as_ref().map(|p| p.context_switches as f64))
    }));
    effects.retain(|e| !e.head_blocks.is_empty());
    effects
}

/// Memory and start-up: once a target. Memory is compared after equal work: after the rounds, or, with an arm that runs
/// in a third of them only, after the warm-up.
pub fn of_target(target: &TargetRecord, blocks: &[&Block], against: Arm) -> Vec<Effect> {
    type Read = fn(&Memory) -> Option<f64>;
    let equal_work = against != Arm::Baseline || target.base.is_none();
    let memory: [(Metric, Option<Read>); 5] = [
        (Metric::AllocatedBytes, Some(|m| m.allocated_bytes.map(|b| b as f64))),
        (Metric::RssAnonBytes, Some(|m| resident(m.rss_anon_bytes))),
        (Metric::RssBytes, Some(|m| resident(m.rss_bytes))),
        (Metric::RssPeakBytes, Some(|m| resident(m.rss_peak_bytes))),
        (Metric::StartupMs, None),
    ];
    let mut effects = Vec::new();
    for (metric, read) in memory {
        let gated = family::is_gated(&target.policy, None, metric);
        let figures = blocks.iter().map(|b| {
            let of_process = |a: &ArmBlock| match read {
                Some(read) => read(if equal_work { &a.loaded } else { &a.idle }),
                None => Some(a.startup_ns as f64 / 1e6),
            };
            let of = |arm| arm_block(b, arm).and_then(of_process);
            (slot_of(b, against), Figures { base: of(against), head: of(Arm::Head), ..Figures::default() })
        });
        effects.push(collect(metric, None, gated, figures));
    }
    effects.retain(|e| !e.head_blocks.is_empty());
    effects
}

/// Zero means that nothing was read: a process has memory.
fn resident(bytes: u64) -> Option<f64> {
    Some(bytes).filter(|&b| b > 0).map(|b| b as f64)
}

fn collect(
    metric: Metric,
    scenario: Option<u32>,
    gated: bool,
    blocks: impl Iterator<Item = (Slot, Figures)>,
) -> Effect {
    let mut effect = Effect {
        scenario,
        metric,
        threshold_ms: None,
        gated,
        differences: Vec::new(),
        base_slots: Vec::new(),
        head_blocks: Vec::new(),
        added_blocks: Vec::new(),
        direct: None,
        base: None,
        head: None,
        too_few: None,
    };
    let (mut direct, mut base) = (Vec::new(), Vec::new());
    for (slot, figures) in blocks {
        direct.extend(figures.direct);
        base.extend(figures.base);
        effect.head_blocks.extend(figures.head);
        effect.added_blocks.extend(figures.head.zip(figures.direct).map(|(h, d)| h - d));
        if let Some(difference) = figures.difference.or_else(|| plain_difference(metric, figures)) {
            effect.differences.push(if metric.higher_is_better() { -difference } else { difference });
            effect.base_slots.push(slot);
        }
    }
    effect.direct = median(&direct);
    effect.base = median(&base);
    effect.head = median(&effect.head_blocks);
    effect
}

fn plain_difference(metric: Metric, figures: Figures) -> Option<f64> {
    let (head, base) = figures.head.zip(figures.base)?;
    match metric.scale() {
        Scale::Ratio => ln_ratio(head, base),
        Scale::Difference => Some(head - base),
    }
}

fn quotient(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    above.zip(below).map(|(a, b)| a / b).filter(|r| r.is_finite())
}

/// Nanoseconds on CPU of the proxy's threads over exactly the slices, by the requests completed in them.
fn cpu(block: &ScenarioBlock<'_>, trimmed: bool) -> Figures {
    let of_slice = |s: &Slice| quotient(s.proxy.as_ref().map(|p| p.cpu_ns as f64), Some(s.completed as f64));
    let of_block = |arm| {
        quotient(
            block.sum(arm, |s| s.proxy.as_ref().map(|p| p.cpu_ns as f64)),
            block.sum(arm, |s| Some(s.completed as f64)),
        )
    };
    let rounds = || -> Vec<f64> {
        block.pairs().filter_map(|(base, head)| ln_ratio(of_slice(head)?, of_slice(base)?)).collect()
    };
    Figures {
        direct: None,
        base: of_block(Arm::Base),
        head: of_block(Arm::Head),
        difference: if trimmed { trimmed_mean(&rounds(), TRIM) } else { None },
    }
}

/// Requests completed a second; over rounds like CPU per request, so that one stall does not decide a block.
fn throughput(block: &ScenarioBlock<'_>) -> Figures {
    let of_slice = |s: &Slice| quotient(Some(s.completed as f64 * 1e9), Some(s.elapsed_ns as f64));
    let of_block = |arm| {
        quotient(block.sum(arm, |s| Some(s.completed as f64 * 1e9)), block.sum(arm, |s| Some(s.elapsed_ns as f64)))
    };
    let rounds: Vec<f64> =
        block.pairs().filter_map(|(base, head)| ln_ratio(of_slice(head)?, of_slice(base)?)).collect();
    Figures {
        direct: of_block(Arm::Direct),
        base: of_block(Arm::Base),
        head: of_block(Arm::Head),
        difference: trimmed_mean(&rounds, TRIM),
    }
}

/// Up to P99 the median over (merged) rounds; P999 over the whole block.
fn latency(block: &ScenarioBlock<'_>, metric: Metric, q: f64) -> Figures {
    let of = |arm| block.merged(arm).quantile(q);
    let difference = if metric == Metric::LatencyP999Ns { None } else { median(&round_ratios(block, q)) };
    Figures { direct: of(Arm::Direct), base: of(Arm::Base), head: of(Arm::Head), difference }
}

/// ln(q_head / q_base) over groups of consecutive rounds, each as long as it takes for both arms to hold enough samples
/// beyond the quantile; what is left over at the end joins the last group.
fn round_ratios(block: &ScenarioBlock<'_>, q: f64) -> Vec<f64> {
    let pairs: Vec<(&Slice, &Slice)> = block.pairs().collect();
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    let (mut start, mut in_base, mut in_head) = (0, 0.0, 0.0);
    for (i, (base, head)) in pairs.iter().enumerate() {
        in_base += base.latency.len() as f64;
        in_head += head.latency.len() as f64;
        if in_base.min(in_head) * (1.0 - q) >= BEYOND_PER_SLICE {
            groups.push(start..i + 1);
            (start, in_base, in_head) = (i + 1, 0.0, 0.0);
        }
    }
    match groups.last_mut() {
        Some(last) => last.end = pairs.len(),
        None => groups.push(0..pairs.len()),
    }
    groups.into_iter().filter_map(|group| group_ratio(&pairs[group], q)).collect()
}

fn group_ratio(pairs: &[(&Slice, &Slice)], q: f64) -> Option<f64> {
    if let [(base, head)] = pairs {
        return ln_ratio(head.latency.quantile(q)? as f64, base.latency.quantile(q)? as f64);
    }
    let base = Merged::of(pairs.iter().map(|p| &p.0.latency)).quantile(q)?;
    let head = Merged::of(pairs.iter().map(|p| &p.1.latency)).quantile(q)?;
    ln_ratio(head, base)
}

fn too_few(blocks: &[ScenarioBlock<'_>], q: f64, with_base: bool) -> Option<TooFew> {
    let beyond = |arm: Arm| blocks.iter().map(|b| b.merged(arm).len()).sum::<f64>() * (1.0 - q);
    let fewest = if with_base { beyond(Arm::Base).min(beyond(Arm::Head)) } else { beyond(Arm::Head) };
    // Rounding must not refuse exactly a hundred.
    (fewest < BEYOND_PER_RUN - 1e-6).then_some(TooFew { beyond: fewest, needed: BEYOND_PER_RUN })
}

/// Share of requests slower than `ms` milliseconds, at most `SLOW_CAP_PER_SLICE` counted a slice.
fn slow_share(block: &ScenarioBlock<'_>, ms: u64) -> Figures {
    let of = |arm| quotient(block.sum(arm, |s| Some(slow(s, ms))), block.sum(arm, |s| Some(s.latency.len() as f64)));
    Figures { direct: of(Arm::Direct), base: of(Arm::Base), head: of(Arm::Head), difference: None }
}

fn slow(slice: &Slice, ms: u64) -> f64 {
    slice.latency.count_above(ms.saturating_mul(1_000_000)).min(SLOW_CAP_PER_SLICE) as f64
}

/// A share that is rare is zero in most blocks: what is typical of it is the share over the whole run.
fn pool(effect: &mut Effect, blocks: &[ScenarioBlock<'_>], ms: u64) {
    let over = |arm| {
        let sum = |figure: &dyn Fn(&Slice) -> f64| -> Option<f64> {
            let per_block: Vec<f64> = blocks.iter().filter_map(|b| b.sum(arm, |s| Some(figure(s)))).collect();
            mean(&per_block)
        };
        quotient(sum(&|s| slow(s, ms)), sum(&|s| s.latency.len() as f64))
    };
    (effect.direct, effect.base, effect.head) = (over(Arm::Direct), over(Arm::Base), over(Arm::Head));
}

/// Something counted over slices, a request.
fn per_request(block: &ScenarioBlock<'_>, count: impl Fn(&Slice) -> Option<f64>) -> Figures {
    let of = |arm| quotient(block.sum(arm, &count), block.sum(arm, |s| Some(requests(s))));
    Figures { direct: None, base: of(Arm::Base), head: of(Arm::Head), difference: None }
}

/// One of the proxy's own counters, a request.
fn counted(block: &ScenarioBlock<'_>, count: fn(&Counters) -> Option<u64>) -> Figures {
    let of = |arm| {
        let counted = block.counted(arm)?;
        quotient(count(&counted.counters).map(|c| c as f64), Some(counted.requests))
    };
    Figures { direct: None, base: of(Arm::Base), head: of(Arm::Head), difference: None }
}
