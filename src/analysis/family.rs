//! Which metrics gate where. The family of the error bound is kept small on purpose: every further gated wall-clock
//! metric costs the others level, and metrics that say the same twice buy nothing.
//!
//! - Open loop: CPU per request, its ratio of sums, P50, P90, P99, slow shares (one test); in `deep` also P999.
//! - Closed loop: throughput, CPU per request, P999. A saturated worker's latency is its throughput read backwards, so
//!   P50 to P99 are shown there and do not gate.
//! - Once a target: start-up time, and (deterministic enough to stay outside of the family) allocated and anonymous
//!   memory.
//! - Counts per request in every scenario, outside of the family: they do not vary with the machine.
//!
//! With one open-loop and one closed-loop scenario the family has 10 members, 11 in `deep`.

use crate::metric::Metric;
use crate::policy::{Policy, Profile};
use crate::record::Load;

/// Whether `metric` gates in a scenario of this load (`None`: it belongs to the target as a whole). A limit that the
/// target sets itself makes any metric gate wherever it is measured.
pub fn is_gated(policy: &Policy, load: Option<Load>, metric: Metric) -> bool {
    let own = policy.overrides.get(&metric).is_some_and(|o| o.limit.is_some());
    policy.margins(metric).is_some() && (own || by_default(policy.profile, load, metric))
}

/// Whether a metric's value depends on how fast the machine happens to be: those share the error bound.
pub fn is_wall_clock(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::CpuNsPerRequest
            | Metric::CpuNsPerRequestSum
            | Metric::LatencyP50Ns
            | Metric::LatencyP90Ns
            | Metric::LatencyP99Ns
            | Metric::LatencyP999Ns
            | Metric::SlowShare
            | Metric::ThroughputRps
            | Metric::StartupMs
            | Metric::ContextSwitchesPerRequest
    )
}

fn by_default(profile: Profile, load: Option<Load>, metric: Metric) -> bool {
    let open = matches!(load, Some(Load::Open { .. }));
    match metric {
        Metric::CpuNsPerRequestSum
        | Metric::LatencyP50Ns
        | Metric::LatencyP90Ns
        | Metric::LatencyP99Ns
        | Metric::SlowShare => open,
        Metric::LatencyP999Ns => !open || profile == Profile::Deep,
        Metric::ThroughputRps => !open,
        _ => true,
    }
}
