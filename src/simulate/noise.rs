//! What differs between the arms, and what the machine does to both.

/// What head's config costs more than base's; zero: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effects {
    /// Relative: 0.1 = +10 % CPU per request, and as much less closed-loop throughput.
    pub cpu: f64,
    /// Relative shift of every latency.
    pub p50: f64,
    /// Relative shift of the slowest twentieth of the latencies.
    pub tail: f64,
    /// Share of requests that are delayed by `slow_ms`.
    pub slow_share: f64,
    pub slow_ms: f64,
    /// Relative.
    pub memory: f64,
    pub startup: f64,
    /// Share of requests that end in an error of a new kind.
    pub errors: f64,
    /// Retries per request.
    pub retries: f64,
}

/// Components of a block's variance, as standard deviations of logarithms unless said otherwise. The figures of
/// `steady` are those of METHODOLOGY.md: per round 7.4 % (CPU) and 4.4 % (P50), of which 1.3 % and 0.7 % between
/// processes, autocorrelation .47 between neighbouring slices, stalls of 3-6 ms in a twentieth of the slices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Between two processes of the same config.
    pub process_cpu: f64,
    pub process_latency: f64,
    /// Of a slice.
    pub slice_cpu: f64,
    pub slice_latency: f64,
    /// Of a slice's tail.
    pub slice_tail: f64,
    /// Between neighbouring slices.
    pub autocorrelation: f64,
    /// Share of slices in which something else takes the worker's CPU for 3-6 ms.
    pub stalls: f64,
    /// Change of the machine's speed from the first to the last slice.
    pub drift: f64,
    /// Size of sudden changes of the machine's speed, one about every 100 slices.
    pub steps: f64,
    /// Share of blocks in which one arm's process is unlucky, and by how much.
    pub outliers: f64,
    pub outlier_size: f64,
    /// By how much slot B is costlier than slot A: an asymmetry of the harness.
    pub slot: f64,
}

impl Noise {
    /// A shared two-core machine.
    pub fn steady() -> Self {
        Self {
            process_cpu: 0.013,
            process_latency: 0.007,
            slice_cpu: 0.0707,
            slice_latency: 0.042,
            slice_tail: 0.1,
            autocorrelation: 0.47,
            stalls: 0.05,
            drift: 0.0,
            steps: 0.0,
            outliers: 0.0,
            outlier_size: 0.0,
            slot: 0.0,
        }
    }

    /// The same machine slowing down by half and jumping about, with unequal slots.
    pub fn drifting() -> Self {
        Self { drift: 0.5, steps: 0.2, slot: 0.02, ..Self::steady() }
    }

    /// The same machine with an unlucky process in every sixth block.
    pub fn heavy_tailed() -> Self {
        Self { outliers: 0.16, outlier_size: 0.25, stalls: 0.12, slice_tail: 0.25, ..Self::steady() }
    }
}
