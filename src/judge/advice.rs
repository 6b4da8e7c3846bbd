//! What usually causes a change of a metric when a proxy's config changes, and what to look at.

use crate::metric::Metric;

pub fn advice(metric: Metric) -> &'static str {
    match metric {
        Metric::InstructionsPerRequest | Metric::CpuNsPerRequest => {
            "look at added HTTP filters (Lua, Wasm, ext_authz, JWT), access logs, tracing and long route tables with \
             regular expressions: each runs on every request"
        }
        Metric::CpuNsPerRequestSum => {
            "if only this figure grew, the cost sits in few moments: look at health checks, DNS refresh, stats flushing, \
             access-log flushing and new connections to upstreams"
        }
        Metric::LatencyP50Ns | Metric::LatencyP90Ns => {
            "look at filters that wait for another service (ext_authz, rate limit, external processing), at buffering \
             filters, and at connection reuse to upstreams"
        }
        Metric::LatencyP99Ns | Metric::LatencyP999Ns => {
            "look at connection pool limits (max_connections, max_pending_requests), retries with back-off, upstream \
             connections that are closed early, and filters that block the worker thread"
        }
        Metric::SlowShare => {
            "a few requests wait: look at circuit breakers and pending queues, retries, idle timeouts that close \
             connections, and flushes to slow sinks"
        }
        Metric::ThroughputRps => {
            "the worker thread saturates earlier: what costs CPU per request costs throughput; look at filters, access \
             logs and buffer limits"
        }
        Metric::AllocatedBytes | Metric::RssAnonBytes | Metric::RssBytes | Metric::RssPeakBytes => {
            "look at the number of clusters, listeners and routes, statistics tags, buffer limits \
             (per_connection_buffer_limit_bytes) and caches"
        }
        Metric::StartupMs => {
            "look at the number of clusters and routes, DNS clusters that must resolve first, and Wasm modules compiled \
             at start"
        }
        Metric::ErrorsPerRequest => {
            "requests fail that did not before: look at route matches, cluster names, TLS contexts, circuit breakers, \
             timeouts and authorisation filters"
        }
        Metric::UpstreamConnectionsPerRequest => {
            "connections are no longer reused: look at max_requests_per_connection, idle_timeout, connection pool per \
             downstream connection, and protocol options"
        }
        Metric::UpstreamRequestsPerRequest => {
            "requests reach the upstream more often: look at retry policies, mirroring (request_mirror_policies), hedging, \
             and calls beside the request (ext_authz, Lua httpCall, trace exporters)"
        }
        Metric::SyscallsPerRequest => {
            "look at access logs that are flushed often, buffers that split what was one read or write, mirroring, and \
             calls to other services: each costs calls of the kernel"
        }
        Metric::HeapBytesPerRequest => {
            "memory stays behind with every request: look at statistics that grow with request data, caches and filters \
             that keep state"
        }
        Metric::HeapBytesPerConnection => {
            "look at buffer limits, HTTP/2 windows and filters that allocate for each connection"
        }
        Metric::RetriesPerRequest => "look at retry_on conditions, per-try timeouts and outlier detection",
        Metric::TimeoutsPerRequest => "look at route timeouts, per-try timeouts and stream idle timeouts",
        Metric::OverflowPerRequest => {
            "circuit breakers reject requests: look at max_connections, max_pending_requests and max_requests"
        }
        Metric::ContextSwitchesPerRequest => {
            "threads hand over more often: look at access-log flushing, file and DNS work outside of the worker, and \
             the number of workers"
        }
    }
}
