//! What the generator and the backend can do on this machine: capacity, CPU per request, lateness.
//!
//! `cargo bench --bench load [-- PART_OF_A_LABEL]`. Figures are of the machine they are taken on; nothing is judged.
#![allow(clippy::print_stdout, reason = "a bench prints")]

use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use sidegate::backend::{Backend, BackendSpec, ListenerSpec};
use sidegate::load::{Generator, Pool, Request, SliceLoad, SliceOutcome};
use sidegate::record::Load;
use sidegate::units::show_ns;

const SECOND: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let cpus = allowed_cpus();
    let first = cpus.first().copied().into_iter().collect::<Vec<u32>>();
    let last = cpus.last().copied().into_iter().collect::<Vec<u32>>();
    println!("both on CPU {first:?}, 1 KiB answers");
    both_models(&first, &first)?;
    if first != last {
        println!("generator on CPU {first:?}, backend on CPU {last:?}, 1 KiB answers");
        both_models(&first, &last)?;
    }
    Ok(())
}

fn both_models(generator_cpus: &[u32], backend_cpus: &[u32]) -> Result<(), Box<dyn Error>> {
    let spec = BackendSpec {
        listeners: vec![ListenerSpec::loopback(0)],
        body_bytes: 1024,
        cpus: backend_cpus.to_vec(),
        names: Default::default(),
    };
    let backend = Backend::start(spec)?;
    let generator = Generator::start(generator_cpus)?;
    let at = backend.addr(0);
    let requests: Arc<[Request]> = Arc::from([Request::new("GET", &at.to_string(), "/")?.expect(200, Some(1024))]);
    println!(
        "  {:<16}{:>9}{:>10}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}{:>10}",
        "load", "req/s", "gen/req", "back/req", "p50", "p99", "unc p50", "unc p99", "late p50", "late p99"
    );
    for connections in [1, 32] {
        let pool = generator.connect(at, connections, SECOND)?;
        measure(&format!("closed c={connections}"), &generator, &backend, &pool, &requests, Load::Closed)?;
        generator.close(pool);
    }
    let pool = generator.connect(at, 32, SECOND)?;
    for rate_rps in [1_000.0, 5_000.0, 10_000.0, 20_000.0] {
        let label = format!("open {rate_rps}/s");
        measure(&label, &generator, &backend, &pool, &requests, Load::Open { rate_rps })?;
    }
    for connections in ["1", "32"] {
        wrk(connections, generator_cpus, &format!("http://{at}/"));
    }
    Ok(())
}

fn measure(
    label: &str,
    generator: &Generator,
    backend: &Backend,
    pool: &Pool,
    requests: &Arc<[Request]>,
    load: Load,
) -> Result<(), Box<dyn Error>> {
    if !wanted(label) {
        return Ok(());
    }
    let slice = SliceLoad::new(Arc::clone(requests), load, 2 * SECOND);
    let before = thread_cpu_ns(backend.thread_id());
    let outcome = generator.run(pool, &slice)?;
    let backend_ns = thread_cpu_ns(backend.thread_id()).saturating_sub(before);
    print_line(label, &outcome, backend_ns);
    Ok(())
}

fn print_line(label: &str, o: &SliceOutcome, backend_ns: u64) {
    let per_request = |ns: u64| show_ns(ns as f64 / o.completed.max(1) as f64);
    let at = |h: &sidegate::histogram::Histogram, q| h.quantile(q).map_or("-".to_owned(), |ns| show_ns(ns as f64));
    println!(
        "  {label:<16}{:>9.0}{:>10}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}{:>10}{}",
        o.rate_rps(),
        per_request(o.cpu_ns),
        per_request(backend_ns),
        at(&o.latency, 0.5),
        at(&o.latency, 0.99),
        at(&o.uncorrected, 0.5),
        at(&o.uncorrected, 0.99),
        at(&o.lateness, 0.5),
        at(&o.lateness, 0.99),
        if o.errors.is_empty() { String::new() } else { format!("  errors {:?}", o.errors) },
    );
}

/// The same closed loop by `wrk`, where it is installed.
fn wrk(connections: &str, cpus: &[u32], url: &str) {
    if !wanted("wrk") {
        return;
    }
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let ran =
        Command::new("taskset").args(["-c", &list, "wrk", "-t1", "-c", connections, "-d2s", "--latency", url]).output();
    let Ok(output) = ran else { return };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let find = |key: &str| text.lines().find(|l| l.trim_start().starts_with(key)).map(str::trim).unwrap_or("-");
    println!("  wrk closed c={connections}: {}, {}, {}", find("Requests/sec"), find("50%"), find("99%"));
}

/// Whether the first argument that is no flag is part of `label`, if there is one.
fn wanted(label: &str) -> bool {
    std::env::args().skip(1).find(|a| !a.starts_with('-')).is_none_or(|part| label.contains(&part))
}

/// First field of the thread's `schedstat`: nanoseconds on a CPU.
fn thread_cpu_ns(thread_id: i32) -> u64 {
    std::fs::read_to_string(format!("/proc/self/task/{thread_id}/schedstat"))
        .ok()
        .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn allowed_cpus() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap_or("0").trim().to_owned();
    list.split(',')
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.parse::<u32>().ok()?..=high.parse::<u32>().ok()?)
        })
        .flatten()
        .collect()
}
