//! Figures as people read them.

use crate::metric::{Metric, Scale};

/// What a metric is called in a sentence.
pub fn label(metric: Metric, threshold_ms: Option<u64>) -> String {
    match (metric, threshold_ms) {
        (Metric::SlowShare, Some(ms)) => format!("requests slower than {ms} ms"),
        (metric, _) => plain_label(metric).to_owned(),
    }
}

fn plain_label(metric: Metric) -> &'static str {
    match metric {
        Metric::InstructionsPerRequest => "instructions per request",
        Metric::SyscallsPerRequest => "system calls per request",
        Metric::HeapBytesPerRequest => "heap left behind per request",
        Metric::HeapBytesPerConnection => "heap per connection",
        Metric::CpuNsPerRequest => "CPU per request",
        Metric::CpuNsPerRequestSum => "CPU per request over the whole run",
        Metric::LatencyP50Ns => "latency P50",
        Metric::LatencyP90Ns => "latency P90",
        Metric::LatencyP99Ns => "latency P99",
        Metric::LatencyP999Ns => "latency P99.9",
        Metric::SlowShare => "slow requests",
        Metric::ThroughputRps => "throughput",
        Metric::AllocatedBytes => "allocated memory",
        Metric::RssAnonBytes => "anonymous resident memory",
        Metric::RssBytes => "resident memory",
        Metric::RssPeakBytes => "peak resident memory",
        Metric::StartupMs => "start-up time",
        Metric::ErrorsPerRequest => "errors per request",
        Metric::UpstreamConnectionsPerRequest => "upstream connections per request",
        Metric::UpstreamRequestsPerRequest => "upstream requests per request",
        Metric::RetriesPerRequest => "retries per request",
        Metric::TimeoutsPerRequest => "timeouts per request",
        Metric::OverflowPerRequest => "overflows per request",
        Metric::ContextSwitchesPerRequest => "context switches per request",
    }
}

/// A change in its own terms, signed, always with the same number of decimals: `+11.3 %`, `+0.120 points`, `+0.310`.
/// `change` is relative for ratios.
pub fn change(metric: Metric, change: f64) -> String {
    match (metric, metric.scale()) {
        (Metric::SlowShare, _) => format!("{} points", signed(100.0 * change, 3)),
        (Metric::HeapBytesPerRequest, _) => format!("{} bytes", signed(change, 1)),
        (_, Scale::Ratio) => format!("{} %", signed(100.0 * change, 1)),
        (_, Scale::Difference) => signed(change, 3),
    }
}

/// A margin without a sign: `5 %`, `0.02 points`, `0.05`.
pub fn margin(metric: Metric, margin: f64) -> String {
    match (metric, metric.scale()) {
        (Metric::SlowShare, _) => format!("{} points", short(100.0 * margin, 3)),
        (Metric::HeapBytesPerRequest, _) => value("bytes", margin),
        (_, Scale::Ratio) => format!("{} %", short(100.0 * margin, 1)),
        (_, Scale::Difference) => short(margin, 3),
    }
}

/// `estimate (low … high)`; an unknown bound is left open.
pub fn interval(metric: Metric, estimate: f64, low: Option<f64>, high: Option<f64>) -> String {
    let bound = |b: Option<f64>, open: &str| b.map_or_else(|| open.to_owned(), |b| change(metric, b));
    let text = format!("{} ({} … {})", change(metric, estimate), bound(low, "?"), bound(high, "?"));
    // The unit once is enough inside of the brackets.
    text.replacen(" % … ", " … ", 1).replacen(" points … ", " … ", 1)
}

/// A value with its unit, three significant digits: `30.1 µs`, `41.2 MiB`, `0.31`.
pub fn value(unit: &str, value: f64) -> String {
    match unit {
        "ns" => scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
        "ms" => scaled(value, &[(1e3, "s"), (1.0, "ms")]),
        "bytes" => scaled(value, &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "bytes")]),
        "share" => format!("{} %", short(100.0 * value, 3)),
        "1/s" => format!("{value:.0}/s"),
        // Four digits, for a change of a percent to show.
        "instructions" if value.abs() >= 1e6 => format!("{:.3} M", value / 1e6),
        "instructions" if value.abs() >= 1e3 => format!("{:.1} k", value / 1e3),
        "instructions" => format!("{value:.0}"),
        _ => short(value, 3),
    }
}

/// `40 s`, `3 min`, `more than an hour`.
pub fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("about {} s", (seconds / 10.0).ceil().max(1.0) * 10.0)
    } else if seconds <= 3600.0 {
        format!("about {:.0} min", (seconds / 60.0).ceil())
    } else {
        "more than an hour".to_owned()
    }
}

/// What rounds to nothing is shown without a minus.
fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    let nothing = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
    if nothing { text.replacen('-', "+", 1) } else { text }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let (size, name) = units.iter().find(|u| value.abs() >= u.0).or(units.last()).copied().unwrap_or((1.0, ""));
    let value = value / size;
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{} {name}", short(value, digits))
}

/// At most `digits` decimals, trailing zeros dropped only where nothing is lost by it: `5`, `11.3`, `0.02`.
fn short(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
