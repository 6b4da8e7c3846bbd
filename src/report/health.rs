//! How well the harness itself did, from the record's slices: figures a reader needs to believe the others.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::record::{Arm, Slice, TargetRecord};

/// One row for an arm in a scenario. Shares are medians over slices of time on CPU per time passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    pub scenario: String,
    pub arm: Arm,
    pub slices: usize,
    pub requests: u64,
    pub errors: u64,
    /// Latency counted from the actual send, median over slices: what a generator blind to its own delay would say.
    pub uncorrected_p99_ns: f64,
    /// Median over slices of their own P99, from the intended send.
    pub latency_p99_ns: f64,
    /// Median over slices of the 99th percentile of actual minus intended send.
    pub lateness_p99_ns: f64,
    pub generator_share: f64,
    pub backend_share: f64,
    /// The busiest worker; `None` on the direct arm.
    pub worker_share: Option<f64>,
}

/// Every scenario and arm that has slices, in the order of the scenarios; voided blocks left out.
pub fn health(target: &TargetRecord) -> Vec<Health> {
    let mut groups: BTreeMap<(u32, Arm), Vec<&Slice>> = BTreeMap::new();
    for slice in target.blocks.iter().filter(|b| b.void.is_none()).flat_map(|b| &b.slices) {
        groups.entry((slice.scenario, slice.arm)).or_default().push(slice);
    }
    groups.into_iter().map(|((scenario, arm), slices)| row(target, scenario, arm, &slices)).collect()
}

fn row(target: &TargetRecord, scenario: u32, arm: Arm, slices: &[&Slice]) -> Health {
    let over = |f: &dyn Fn(&Slice) -> f64| median(slices.iter().map(|s| f(s)).collect());
    let share = |part: u64, s: &Slice| part as f64 / s.elapsed_ns.max(1) as f64;
    let busiest = |s: &Slice| s.proxy.as_ref().and_then(|p| p.worker_cpu_ns.iter().max().copied());
    let worker: Vec<f64> = slices.iter().filter_map(|s| busiest(s).map(|ns| share(ns, s))).collect();
    Health {
        scenario: target.scenarios.get(scenario as usize).map(|s| s.name.clone()).unwrap_or_default(),
        arm,
        slices: slices.len(),
        requests: slices.iter().fold(0, |n, s| n.saturating_add(s.completed)),
        errors: slices.iter().flat_map(|s| s.errors.values()).fold(0, |n, e| n.saturating_add(*e)),
        uncorrected_p99_ns: over(&|s| s.uncorrected_p99_ns as f64),
        latency_p99_ns: over(&|s| Histogram::quantile(&s.latency, 0.99).unwrap_or(0) as f64),
        lateness_p99_ns: over(&|s| s.lateness_p99_ns as f64),
        generator_share: over(&|s| share(s.generator_cpu_ns, s)),
        backend_share: over(&|s| share(s.backend_cpu_ns, s)),
        worker_share: (!worker.is_empty()).then(|| median(worker)),
    }
}

/// Errors by kind, arm by arm.
pub fn errors(target: &TargetRecord) -> BTreeMap<(Arm, String), u64> {
    let mut kinds = BTreeMap::new();
    for slice in target.blocks.iter().flat_map(|b| &b.slices) {
        for (kind, count) in &slice.errors {
            let sum: &mut u64 = kinds.entry((slice.arm, kind.clone())).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    kinds
}

/// 0 when there is nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
