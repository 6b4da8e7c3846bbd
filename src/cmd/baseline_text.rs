//! What `sidegate baseline` prints.

use std::fmt::Write as _;

use crate::baseline::{self, StoredFigures};
use crate::cmd::gate::replay::Stored;
use crate::metric::Metric;
use crate::problem::{on_one_line, printable};
use crate::record::Host;
use crate::report::phrase;

/// Replaced secrets that are listed one by one.
const MOST_LISTED: usize = 20;

/// Figures that people ask for first.
const SHOWN: [Metric; 8] = [
    Metric::CpuNsPerRequest,
    Metric::LatencyP50Ns,
    Metric::LatencyP90Ns,
    Metric::LatencyP99Ns,
    Metric::ThroughputRps,
    Metric::AllocatedBytes,
    Metric::RssAnonBytes,
    Metric::StartupMs,
];

/// What a baseline holds, in words.
pub fn show(stored: &Stored) -> String {
    let own = &stored.baseline;
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<12} {}", on_one_line(&text));
    };
    line("target", own.target.clone());
    line("recorded", format!("{} by {} (file version {})", own.recorded_at, own.tool, own.schema));
    line("config", format!("{}, {} bytes as JSON", own.config.file, own.config.document.to_string().len()));
    let sha = own.proxy.sha256.get(..12).unwrap_or(&own.proxy.sha256);
    line("proxy", format!("{} {} ({sha}…), concurrency {}", own.proxy.kind, own.proxy.version, own.concurrency));
    line("machine", machine(&own.host));
    line("measured", format!("profile {}, {} blocks", own.profile.name(), own.blocks));
    for s in &own.scenarios {
        let rate = s.capacity_rps.map(|c| format!(", capacity {c:.0}/s")).unwrap_or_default();
        line("scenario", format!("{}: {} connections, {}{rate}", s.name, s.connections, s.protocol));
    }
    line("requests", requests(stored));
    for figures in own.figures.iter().filter(|f| SHOWN.contains(&f.metric)) {
        line("figure", figure(figures));
    }
    line(
        "counts",
        own.cost.as_ref().map_or("none under valgrind".to_owned(), |c| format!("{} classes", c.classes.len())),
    );
    match own.config.redacted.len() {
        0 => line("secrets", "none found; look at config.document yourself before you commit it".to_owned()),
        n => line("secrets", format!("{n} replaced by fillers of the same size:")),
    }
    for place in own.config.redacted.iter().take(MOST_LISTED) {
        line("", format!("{} ({}, {} bytes)", place.pointer, place.what, place.bytes));
    }
    out
}

fn machine(host: &Host) -> String {
    let model = if host.cpu_model.is_empty() { "unknown CPU" } else { &host.cpu_model };
    format!("{model}, {} CPUs, {}, {}", host.cpus, host.architecture, host.os)
}

fn requests(stored: &Stored) -> String {
    let all: Vec<String> =
        stored.baseline.workload.iter().map(|r| format!("{} {}{}", r.method, r.authority, r.path)).collect();
    all.join(", ")
}

fn figure(figures: &StoredFigures) -> String {
    let scenario = if figures.scenario.is_empty() { String::new() } else { format!("{} ", figures.scenario) };
    let value = phrase::quantity(figures.typical, &figures.unit);
    format!("{scenario}{}: {value} over {} blocks", figures.metric.name(), figures.blocks.len())
}

/// One baseline that is whole: who made it, and what it is worth here.
pub fn checked(stored: &Stored, here: &Host, today: &str) -> String {
    let own = &stored.baseline;
    let differences = baseline::differences(&own.host, here);
    let times = match differences.is_empty() {
        true => "its times can be shown beside those of this machine".to_owned(),
        false => format!("its times are of another machine and not compared ({})", differences.join("; ")),
    };
    let name = on_one_line(&stored.file);
    let made = format!("recorded {} by {} on {}", own.recorded_at, own.tool, machine(&own.host));
    let lines = [format!("target {}", own.target), made, times, today.to_owned()];
    let lines: Vec<String> = lines.iter().map(|l| format!("  {}", on_one_line(&printable(l)))).collect();
    format!("{name}: whole\n{}\n", lines.join("\n"))
}
