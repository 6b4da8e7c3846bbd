//! What `sidegate load` prints.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::cmd::load::Args;
use crate::histogram::Histogram;
use crate::load::SliceOutcome;
use crate::units::{show_bytes, show_ns, show_percent};

/// On a CPU for more than this share of the time, the generator is what bounds the result.
const SATURATED: f64 = 0.9;
/// An open loop that reaches this share of its rate has reached it.
const REACHED: f64 = 0.99;

/// Figures of one run, in the order of the JSON output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadReport {
    pub url: String,
    pub connections: u32,
    /// `closed` or `open`.
    pub load: &'static str,
    /// The rate that was asked for.
    pub target_rps: Option<f64>,
    pub interrupted: bool,
    /// Requests answered as expected.
    pub requests: u64,
    pub errors: u64,
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Requests answered as expected per second.
    pub rate_rps: f64,
    /// What kept the rate from being higher, or from being reached: `generator` or `target`.
    pub bounded_by: Option<&'static str>,
    pub elapsed_ns: u64,
    pub bytes: u64,
    /// Connections that had to be opened again.
    pub reconnects: u64,
    /// Open loop: requests that were due while their connection was busy.
    pub queued: u64,
    /// From when a request was due (closed loop: sent) to the last byte of its answer.
    pub latency_ns: Percentiles,
    /// From when it was sent.
    pub uncorrected_ns: Percentiles,
    /// Open loop: sent minus due, where the connection was free.
    pub lateness_ns: Option<Percentiles>,
    /// CPU time of the generator per elapsed time; 1 is a whole CPU.
    pub generator_cpu_share: f64,
}

/// `None` where there were no samples. Three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Percentiles {
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
    pub mean: Option<u64>,
}

impl LoadReport {
    pub fn new(args: &Args, outcome: &SliceOutcome) -> Self {
        let share = outcome.generator_share();
        let reached = args.rate.is_some_and(|rate| {
            let due = (rate * args.duration.as_secs_f64()).floor();
            outcome.completed as f64 >= REACHED * due && drained_in_time(args, outcome)
        });
        let bounded_by = match (reached || outcome.interrupted, share > SATURATED) {
            (true, _) => None,
            (false, true) => Some("generator"),
            (false, false) => Some("target"),
        };
        Self {
            url: args.url.clone(),
            connections: args.connections,
            load: if args.rate.is_some() { "open" } else { "closed" },
            target_rps: args.rate,
            interrupted: outcome.interrupted,
            requests: outcome.completed,
            errors: outcome.error_count(),
            errors_by_kind: outcome.errors.clone(),
            rate_rps: outcome.rate_rps(),
            bounded_by,
            elapsed_ns: u64::try_from(outcome.elapsed.as_nanos()).unwrap_or(u64::MAX),
            bytes: outcome.bytes,
            reconnects: outcome.connects,
            queued: outcome.queued,
            latency_ns: Percentiles::of(&outcome.latency),
            uncorrected_ns: Percentiles::of(&outcome.uncorrected),
            lateness_ns: args.rate.is_some().then(|| Percentiles::of(&outcome.lateness)),
            generator_cpu_share: share,
        }
    }
}

/// Whether the backlog at the end was small: within a hundredth of the run, or 50 ms.
fn drained_in_time(args: &Args, outcome: &SliceOutcome) -> bool {
    let slack = (args.duration / 100).max(std::time::Duration::from_millis(50));
    outcome.elapsed <= args.duration + slack
}

impl Percentiles {
    fn of(histogram: &Histogram) -> Self {
        let sum: u128 = histogram.buckets().iter().map(|&(ns, n)| u128::from(ns) * u128::from(n)).sum();
        Self {
            p50: histogram.quantile(0.5),
            p90: histogram.quantile(0.9),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            max: histogram.max(),
            mean: sum.checked_div(histogram.len().into()).and_then(|ns| u64::try_from(ns).ok()),
        }
    }

    fn columns(&self) -> String {
        [self.p50, self.p90, self.p99, self.p999, self.max, self.mean]
            .map(|ns| format!("{:>10}", ns.map_or("-".to_owned(), |ns| show_ns(ns as f64))))
            .concat()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed_ns as f64 / 1e9;
        if self.interrupted {
            writeln!(f, "interrupted: figures so far")?;
        }
        writeln!(
            f,
            "{} requests in {seconds:.2} s over {} connections, {} of bodies",
            self.requests,
            self.connections,
            show_bytes(self.bytes as f64)
        )?;
        match self.target_rps {
            Some(rate) => write!(f, "{:.1} requests/s of {rate} asked for", self.rate_rps)?,
            None => write!(f, "{:.1} requests/s, closed loop", self.rate_rps)?,
        }
        match self.bounded_by {
            Some("generator") => writeln!(f, ", bounded by this generator's CPU")?,
            Some(_) => writeln!(f, ", bounded by the target")?,
            None => writeln!(f)?,
        }
        writeln!(f, "{:<12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}", "", "p50", "p90", "p99", "p999", "max", "mean")?;
        writeln!(f, "{:<12}{}", "latency", self.latency_ns.columns())?;
        if let Some(lateness) = &self.lateness_ns {
            writeln!(f, "{:<12}{}", "uncorrected", self.uncorrected_ns.columns())?;
            writeln!(f, "{:<12}{}", "lateness", lateness.columns())?;
            writeln!(f, "{} requests waited for a busy connection", self.queued)?;
        }
        write!(f, "errors: {}", self.errors)?;
        for (kind, count) in &self.errors_by_kind {
            write!(f, ", {kind}: {count}")?;
        }
        writeln!(f, "; connections opened again: {}", self.reconnects)?;
        writeln!(f, "generator on CPU {} of the time", show_percent(self.generator_cpu_share))
    }
}
