//! What is doubtful about a measurement: rate achieved, lateness, saturation, interference, slots, errors.

use std::collections::BTreeMap;

use super::block::{ScenarioBlock, arm_block};
use super::effect::Effect;
use crate::metric::Metric;
use crate::record::{Arm, Block, Load, Scenario, Slice, Slot, TargetRecord};
use crate::stats::location::{mean, median};
use crate::stats::signed_rank;
use crate::stats::walsh::hodges_lehmann;

/// On CPU for more than this share of a slice: saturated.
const SATURATED: f64 = 0.9;

/// Waiting for a CPU this long within a slice: a foreign thread or the hypervisor had it.
const DISTURBED_NS: f64 = 3e6;

/// Time between blocks that no slice accounts for: warm-up, scraping, stopping; for estimates only.
const BLOCK_OVERHEAD_S: f64 = 0.8;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Quality {
    /// In the order of the target's scenarios.
    pub scenarios: Vec<ScenarioQuality>,
    /// About how long a block takes, for estimates of how much longer a run would be.
    pub block_seconds: f64,
}

/// What is known of one scenario's measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioQuality {
    pub scenario: u32,
    /// Requests answered as expected, by arm that ran.
    pub answered: BTreeMap<Arm, f64>,
    /// Open loop: share of the intended rate that an arm answered in its typical slice.
    pub achieved: BTreeMap<Arm, f64>,
    /// Median over the proxied slices of the generator's own lateness at its 99th percentile, in ns.
    pub lateness_p99_ns: Option<f64>,
    /// Who was on CPU for more than 90 % of slices, and in how many of them.
    pub saturated: Vec<Saturated>,
    /// Share of an arm's slices in which workers waited 3 ms or more for a CPU; empty where workers outnumber the CPUs
    /// of their set, because then they wait for each other.
    pub disturbed: BTreeMap<Arm, f64>,
    /// Whether head's workers waited longer than base's.
    pub interference: Option<Interference>,
    pub slot_effect: Option<SlotEffect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Generator,
    Backend,
    /// The proxy's worker thread of this number.
    Worker(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturated {
    pub who: Who,
    pub arm: Arm,
    /// Share of the arm's slices.
    pub share: f64,
}

/// Waiting for a CPU, head - base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interference {
    pub ms_a_slice: f64,
    /// One-sided p-value of "head waits longer".
    pub p: f64,
}

/// CPU per request, slot A against slot B: what the harness's own asymmetry amounts to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotEffect {
    /// ln(A / B).
    pub estimate: f64,
    /// Two-sided.
    pub p: f64,
}

/// One kind of error and where it was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorKind {
    pub scenario: u32,
    pub kind: String,
    pub direct: u64,
    pub base: u64,
    pub head: u64,
    /// Requests of the head arm, to say a share.
    pub head_requests: f64,
}

pub fn of_scenario(
    target: &TargetRecord,
    index: u32,
    scenario: &Scenario,
    blocks: &[ScenarioBlock<'_>],
    effects: &[Effect],
) -> ScenarioQuality {
    let workers_have_cpus = target.cpus.workers.len() >= usize::try_from(target.concurrency).unwrap_or(usize::MAX);
    let lateness: Vec<f64> =
        [Arm::Base, Arm::Head].iter().flat_map(|&a| slices(blocks, a)).map(|s| s.lateness_p99_ns as f64).collect();
    ScenarioQuality {
        scenario: index,
        answered: answered(blocks),
        achieved: achieved(scenario, blocks),
        lateness_p99_ns: median(&lateness),
        saturated: saturated(blocks),
        disturbed: if workers_have_cpus { disturbed(blocks) } else { BTreeMap::new() },
        interference: if workers_have_cpus { interference(blocks) } else { None },
        slot_effect: slot_effect(index, effects),
    }
}

/// Kinds of errors of one scenario, by arm.
pub fn errors(index: u32, blocks: &[ScenarioBlock<'_>]) -> Vec<ErrorKind> {
    let mut kinds: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for (at, arm) in [Arm::Direct, Arm::Base, Arm::Head].into_iter().enumerate() {
        for (kind, &count) in slices(blocks, arm).flat_map(|s| &s.errors) {
            let seen = &mut kinds.entry(kind).or_default()[at];
            *seen = seen.saturating_add(count);
        }
    }
    let head_requests = slices(blocks, Arm::Head).map(super::block::requests).sum();
    kinds
        .into_iter()
        .filter(|(_, counts)| counts.iter().any(|&c| c > 0))
        .map(|(kind, [direct, base, head])| ErrorKind {
            scenario: index,
            kind: kind.to_owned(),
            direct,
            base,
            head,
            head_requests,
        })
        .collect()
}

/// Seconds a block takes: its slices, its proxies' starts, and what lies between.
pub fn block_seconds(blocks: &[&Block]) -> f64 {
    let seconds: Vec<f64> = blocks
        .iter()
        .map(|b| {
            let load: f64 = b.slices.iter().map(|s| s.elapsed_ns as f64).sum();
            let start = [Arm::Base, Arm::Head].iter().filter_map(|&a| arm_block(b, a)).map(|a| a.startup_ns as f64);
            (load + start.fold(0.0, f64::max)) / 1e9 + BLOCK_OVERHEAD_S
        })
        .collect();
    median(&seconds).unwrap_or(0.0)
}

fn slices<'a>(blocks: &'a [ScenarioBlock<'a>], arm: Arm) -> impl Iterator<Item = &'a Slice> {
    blocks.iter().flat_map(move |b| b.slices(arm))
}

fn answered(blocks: &[ScenarioBlock<'_>]) -> BTreeMap<Arm, f64> {
    [Arm::Direct, Arm::Base, Arm::Head]
        .into_iter()
        .filter(|&arm| slices(blocks, arm).next().is_some())
        .map(|arm| (arm, slices(blocks, arm).map(|s| s.completed as f64).sum()))
        .collect()
}

/// Answered / (rate x time), in the typical slice: a proxy that cannot keep up falls short in all of them, while a
/// stall of the machine lengthens a few, which the slow shares count already. The last answer's own latency is no time
/// in which anything more was due: a slice counts as long as it was meant to be, or until the typical answer to its
/// last request.
fn achieved(scenario: &Scenario, blocks: &[ScenarioBlock<'_>]) -> BTreeMap<Arm, f64> {
    let Load::Open { rate_rps } = scenario.load else { return BTreeMap::new() };
    let of = |slice: &Slice| {
        let drain = slice.latency.quantile(0.5).unwrap_or(0) as f64;
        let time = (slice.elapsed_ns as f64 - drain).max(scenario.slice_ns as f64);
        let due = rate_rps * time / 1e9;
        (due > 0.0 && due.is_finite()).then(|| slice.completed as f64 / due)
    };
    let typical = |arm| median(&slices(blocks, arm).filter_map(of).collect::<Vec<f64>>());
    [Arm::Direct, Arm::Base, Arm::Head].into_iter().filter_map(|arm| Some((arm, typical(arm)?))).collect()
}

fn saturated(blocks: &[ScenarioBlock<'_>]) -> Vec<Saturated> {
    let mut found = Vec::new();
    for arm in [Arm::Direct, Arm::Base, Arm::Head] {
        let mut counts: BTreeMap<Who, f64> = BTreeMap::new();
        let mut all = 0.0;
        for slice in slices(blocks, arm) {
            all += 1.0;
            let workers =
                slice.proxy.iter().flat_map(|p| (0_u32..).map(Who::Worker).zip(p.worker_cpu_ns.iter().copied()));
            let threads = [(Who::Generator, slice.generator_cpu_ns), (Who::Backend, slice.backend_cpu_ns)];
            for (who, cpu_ns) in threads.into_iter().chain(workers) {
                if cpu_ns as f64 > SATURATED * slice.elapsed_ns as f64 {
                    *counts.entry(who).or_default() += 1.0;
                }
            }
        }
        found.extend(counts.into_iter().map(|(who, n)| Saturated { who, arm, share: n / all }));
    }
    found
}

fn waited_ns(slice: &Slice) -> Option<f64> {
    slice.proxy.as_ref().map(|p| p.worker_wait_ns as f64)
}

fn disturbed(blocks: &[ScenarioBlock<'_>]) -> BTreeMap<Arm, f64> {
    let mut shares = BTreeMap::new();
    for arm in [Arm::Base, Arm::Head] {
        let flags: Vec<f64> =
            slices(blocks, arm).filter_map(waited_ns).map(|w| if w >= DISTURBED_NS { 1.0 } else { 0.0 }).collect();
        shares.extend(mean(&flags).map(|share| (arm, share)));
    }
    shares
}

fn interference(blocks: &[ScenarioBlock<'_>]) -> Option<Interference> {
    let differences: Vec<f64> = blocks
        .iter()
        .filter_map(|b| {
            let waits = |arm| mean(&b.slices(arm).filter_map(waited_ns).map(|w| w / 1e6).collect::<Vec<f64>>());
            Some(waits(Arm::Head)? - waits(Arm::Base)?)
        })
        .collect();
    Some(Interference { ms_a_slice: hodges_lehmann(&differences)?, p: signed_rank::p_greater(&differences)? })
}

fn slot_effect(index: u32, effects: &[Effect]) -> Option<SlotEffect> {
    let cpu = effects.iter().find(|e| e.scenario == Some(index) && e.metric == Metric::CpuNsPerRequest)?;
    let turned: Vec<f64> =
        cpu.differences.iter().zip(&cpu.base_slots).map(|(d, slot)| if *slot == Slot::A { -d } else { *d }).collect();
    Some(SlotEffect { estimate: hodges_lehmann(&turned)?, p: signed_rank::p_two_sided(&turned)? })
}
