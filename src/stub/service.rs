//! Which services are known, and how each answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How a method answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// The first message is answered with this one.
    Once(&'static [u8]),
    /// A stream of messages that is answered with an empty one at its end.
    Sink,
    /// A stream of messages without any answer.
    Silent,
    /// `ExternalProcessor/Process`.
    Process,
    /// A method that no stub has: `UNIMPLEMENTED`.
    Unknown,
}

/// A message without fields, which every type can be read from.
const EMPTY: &[u8] = &[];

/// The methods by their paths. What the answers are is told by the `.proto` files of the same names.
const METHODS: [(&str, Method); 14] = [
    // CheckResponse {status (1): google.rpc.Status {}}: code 0 is OK.
    ("/envoy.service.auth.v3.Authorization/Check", Method::Once(&[0x0a, 0x00])),
    // RateLimitResponse {overall_code (1): OK (1)}.
    ("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", Method::Once(&[0x08, 0x01])),
    ("/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas", Method::Silent),
    ("/envoy.service.ext_proc.v3.ExternalProcessor/Process", Method::Process),
    ("/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs", Method::Sink),
    ("/envoy.service.metrics.v3.MetricsService/StreamMetrics", Method::Sink),
    ("/envoy.service.trace.v3.TraceService/StreamTraces", Method::Sink),
    ("/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats", Method::Silent),
    ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", Method::Once(EMPTY)),
    ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", Method::Once(EMPTY)),
    ("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", Method::Once(EMPTY)),
    ("/skywalking.v3.TraceSegmentReportService/collect", Method::Sink),
    ("/envoy.service.tap.v3.TapSinkService/StreamTaps", Method::Sink),
    // HealthCheckResponse {status (1): SERVING (1)}.
    ("/grpc.health.v1.Health/Check", Method::Once(&[0x08, 0x01])),
];

/// Packages whose every method is either above or unknown. What belongs to none of them is a service of the user's,
/// behind a route, and gets an empty message.
const PACKAGES: [&str; 4] = ["/envoy.", "/opentelemetry.", "/skywalking.", "/grpc."];

/// The method at a path, and the name it is counted under.
pub(super) fn find(path: &str) -> (&'static str, Method) {
    match METHODS.iter().find(|(known, _)| *known == path) {
        Some((known, method)) => (known.trim_start_matches('/'), *method),
        None if PACKAGES.iter().any(|package| path.starts_with(package)) => (Calls::UNKNOWN, Method::Unknown),
        None => (Calls::OTHER, Method::Once(EMPTY)),
    }
}

/// Calls begun, by method.
#[derive(Debug, Default)]
pub struct Calls(Mutex<BTreeMap<&'static str, u64>>);

impl Calls {
    /// Calls of methods that no stub has.
    pub const UNKNOWN: &'static str = "unknown method";
    /// Calls of services that are none of the proxy's own.
    pub const OTHER: &'static str = "another service";

    /// Calls so far, by `package.Service/Method`.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn count(&self, name: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_found_by_their_whole_path() {
        assert_eq!(find("/envoy.service.ext_proc.v3.ExternalProcessor/Process").1, Method::Process);
        assert_eq!(find("/envoy.service.ext_proc.v3.ExternalProcessor/Other"), (Calls::UNKNOWN, Method::Unknown));
        assert_eq!(find("/shop.Orders/List"), (Calls::OTHER, Method::Once(EMPTY)));
        assert_eq!(find("").0, Calls::OTHER);
    }
}
