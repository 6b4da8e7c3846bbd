//! The vocabulary of metrics: name, unit, direction, and the margins that decide about them.

use serde::{Deserialize, Serialize};

/// Everything a verdict can be about. Serialised by its contract name (`cpu_ns_per_request`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Instructions of the worker thread, counted under valgrind.
    InstructionsPerRequest,
    /// System calls of the worker thread, counted likewise.
    SyscallsPerRequest,
    /// Live heap gained per request that was answered: what does not come back.
    HeapBytesPerRequest,
    /// Live heap held by an idle downstream connection.
    HeapBytesPerConnection,
    /// Trimmed mean over rounds of the slices' log ratios.
    CpuNsPerRequest,
    /// Ratio of sums over the whole block: sees cost that sits in few slices.
    CpuNsPerRequestSum,
    LatencyP50Ns,
    LatencyP90Ns,
    LatencyP99Ns,
    LatencyP999Ns,
    /// Share of requests slower than a fixed threshold: the rare tail.
    SlowShare,
    ThroughputRps,
    AllocatedBytes,
    RssAnonBytes,
    RssBytes,
    RssPeakBytes,
    StartupMs,
    ErrorsPerRequest,
    UpstreamConnectionsPerRequest,
    UpstreamRequestsPerRequest,
    RetriesPerRequest,
    TimeoutsPerRequest,
    OverflowPerRequest,
    ContextSwitchesPerRequest,
}

/// How two arms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// ln(head / base); margins are relative (0.05 = 5 %).
    Ratio,
    /// head - base; margins are in the metric's own unit.
    Difference,
}

impl Metric {
    pub const ALL: [Metric; 24] = [
        Metric::InstructionsPerRequest,
        Metric::SyscallsPerRequest,
        Metric::HeapBytesPerRequest,
        Metric::HeapBytesPerConnection,
        Metric::CpuNsPerRequest,
        Metric::CpuNsPerRequestSum,
        Metric::LatencyP50Ns,
        Metric::LatencyP90Ns,
        Metric::LatencyP99Ns,
        Metric::LatencyP999Ns,
        Metric::SlowShare,
        Metric::ThroughputRps,
        Metric::AllocatedBytes,
        Metric::RssAnonBytes,
        Metric::RssBytes,
        Metric::RssPeakBytes,
        Metric::StartupMs,
        Metric::ErrorsPerRequest,
        Metric::UpstreamConnectionsPerRequest,
        Metric::UpstreamRequestsPerRequest,
        Metric::RetriesPerRequest,
        Metric::TimeoutsPerRequest,
        Metric::OverflowPerRequest,
        Metric::ContextSwitchesPerRequest,
    ];

    /// The contract name, as in `verdict.json` and `sidegate.yaml`.
    pub fn name(self) -> &'static str {
        match self {
            Metric::InstructionsPerRequest => "instructions_per_request",
            Metric::SyscallsPerRequest => "syscalls_per_request",
            Metric::HeapBytesPerRequest => "heap_bytes_per_request",
            Metric::HeapBytesPerConnection => "heap_bytes_per_connection",
            Metric::CpuNsPerRequest => "cpu_ns_per_request",
            Metric::CpuNsPerRequestSum => "cpu_ns_per_request_sum",
            Metric::LatencyP50Ns => "latency_p50_ns",
            Metric::LatencyP90Ns => "latency_p90_ns",
            Metric::LatencyP99Ns => "latency_p99_ns",
            Metric::LatencyP999Ns => "latency_p999_ns",
            Metric::SlowShare => "slow_share",
            Metric::ThroughputRps => "throughput_rps",
            Metric::AllocatedBytes => "allocated_bytes",
            Metric::RssAnonBytes => "rss_anon_bytes",
            Metric::RssBytes => "rss_bytes",
            Metric::RssPeakBytes => "rss_peak_bytes",
            Metric::StartupMs => "startup_ms",
            Metric::ErrorsPerRequest => "errors_per_request",
            Metric::UpstreamConnectionsPerRequest => "upstream_connections_per_request",
            Metric::UpstreamRequestsPerRequest => "upstream_requests_per_request",
            Metric::RetriesPerRequest => "retries_per_request",
            Metric::TimeoutsPerRequest => "timeouts_per_request",
            Metric::OverflowPerRequest => "overflow_per_request",
            Metric::ContextSwitchesPerRequest => "context_switches_per_request",
        }
    }

    /// Unit of `base` and `head` in a finding: `instructions`, `calls`, `ns`, `share`, `1/s`, `bytes`, `ms`,
    /// `1/request`.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::InstructionsPerRequest => "instructions",
            Metric::SyscallsPerRequest => "calls",
            Metric::HeapBytesPerRequest | Metric::HeapBytesPerConnection => "bytes",
            Metric::CpuNsPerRequest
            | Metric::CpuNsPerRequestSum
            | Metric::LatencyP50Ns
            | Metric::LatencyP90Ns
            | Metric::LatencyP99Ns
            | Metric::LatencyP999Ns => "ns",
            Metric::SlowShare => "share",
            Metric::ThroughputRps => "1/s",
            Metric::AllocatedBytes | Metric::RssAnonBytes | Metric::RssBytes | Metric::RssPeakBytes => "bytes",
            Metric::StartupMs => "ms",
            Metric::ErrorsPerRequest
            | Metric::UpstreamConnectionsPerRequest
            | Metric::UpstreamRequestsPerRequest
            | Metric::RetriesPerRequest
            | Metric::TimeoutsPerRequest
            | Metric::OverflowPerRequest
            | Metric::ContextSwitchesPerRequest => "1/request",
        }
    }

    pub fn scale(self) -> Scale {
        match self {
            Metric::SlowShare
            | Metric::HeapBytesPerRequest
            | Metric::ErrorsPerRequest
            | Metric::UpstreamConnectionsPerRequest
            | Metric::UpstreamRequestsPerRequest
            | Metric::RetriesPerRequest
            | Metric::TimeoutsPerRequest
            | Metric::OverflowPerRequest => Scale::Difference,
            _ => Scale::Ratio,
        }
    }

    /// Whether a larger value is better (throughput). For those the sign is turned before testing.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Metric::ThroughputRps)
    }
}
