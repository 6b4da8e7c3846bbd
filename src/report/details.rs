//! The folded half of `report.md`: every figure, how it was measured, and how well the harness did.

use super::clean::{cell_code, cell_sentence, code, sentence};
use super::health::{errors, health};
use super::{markdown, metric_label, phrase, record_of};
use crate::record::{End, Load, Record, Scenario, Source, TargetRecord};
use crate::verdict::{Finding, TargetVerdict, Verdict};

/// Rows of changes and requests shown; the record holds all.
const SHOWN: usize = 50;

/// All folds of one target.
pub fn details(record: &Record, verdict: &Verdict, target: &TargetVerdict, findings: &[&Finding]) -> String {
    folds(record, verdict, target, findings).concat()
}

/// The same one by one, the most wanted first.
pub fn folds(record: &Record, verdict: &Verdict, target: &TargetVerdict, findings: &[&Finding]) -> Vec<String> {
    let mut out = Vec::new();
    if !findings.is_empty() {
        out.push(fold("All metrics", &format!("{}{}", markdown::table(findings), certainty(findings))));
    }
    let Some(of_target) = record_of(record, target) else { return out };
    out.push(fold("How it was measured", &measured(record, verdict, target, of_target)));
    out.push(fold("How the configs were changed to run here", &rehosted(of_target)));
    out.push(fold("How well the harness did", &harness(of_target)));
    out
}

/// `summary` is ours, not foreign text.
fn fold(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{body}</details>\n\n")
}

/// The statistics behind each verdict.
fn certainty(findings: &[&Finding]) -> String {
    let mut out =
        String::from("| metric | scenario | added | notice | rule out | detectable | blocks | against | why |\n");
    out.push_str("|---|---|--:|--:|--:|--:|--:|---|---|\n");
    for f in findings {
        let margin = |v: Option<f64>| v.map_or_else(|| phrase::NONE.to_owned(), |v| phrase::margin(v, f.metric));
        let scenario = if f.scenario.is_empty() { String::new() } else { cell_code(&f.scenario) };
        let cells = [
            cell_code(&metric_label(f)),
            scenario,
            phrase::added(f),
            margin(f.notice),
            margin(f.rule_out),
            margin(f.mde),
            f.n.to_string(),
            cell_sentence(&f.against),
            cell_sentence(&f.reason),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
    out
}

fn measured(record: &Record, verdict: &Verdict, target: &TargetVerdict, t: &TargetRecord) -> String {
    let host = &record.host;
    let mut facts = vec![
        ("tool", code(&record.tool)),
        ("started", code(&record.started_at)),
        ("seed", record.seed.to_string()),
        ("host", code(&format!("{} {} {}", host.os, host.kernel, host.architecture))),
        ("processor", format!("{}, {} CPUs for us", code(&host.cpu_model), host.cpus)),
        ("memory", phrase::bytes(host.memory_bytes as f64)),
        ("CPU quota", host.cpu_quota.as_deref().map_or_else(|| "none".to_owned(), code)),
        ("proxy workers on CPUs", numbers(&t.cpus.workers)),
        ("everything else on CPUs", numbers(&t.cpus.rest)),
        ("profile, limits", format!("{}, {}", verdict.profile.name(), verdict.limits.name())),
        ("concurrency", t.concurrency.to_string()),
        ("blocks", format!("{} (looks at {})", target.blocks, numbers(&t.looks))),
        ("end", end(&t.end)),
        ("tests in the family, level of each", format!("{}, {}", target.family_size, target.alpha)),
        ("sum of flip rates", format!("{:.4}", target.flip_rate)),
        ("bound on false regressions", format!("{} %", verdict.family_bound * 100.0)),
        ("head", source(&t.head)),
    ];
    if let Some(base) = &t.base {
        facts.push(("base", source(base)));
    }
    let mut out: String = facts.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect();
    for scenario in &t.scenarios {
        out.push_str(&format!("- scenario {}\n", describe(scenario)));
    }
    for block in t.blocks.iter().filter(|b| b.void.is_some()) {
        let why = block.void.as_deref().unwrap_or_default();
        out.push_str(&format!("- block {} does not count: {}\n", block.index, sentence(why)));
    }
    out.push('\n');
    out.push_str(&requests(t));
    out
}

fn source(source: &Source) -> String {
    let proxy = format!("{} {}", source.proxy.kind, source.proxy.version);
    let (config, binary) = (short(&source.sha256), short(&source.proxy.sha256));
    format!("{} (sha256 {}), {} (sha256 {})", code(&source.file), code(&config), code(&proxy), code(&binary))
}

fn short(hash: &str) -> String {
    hash.chars().take(12).collect()
}

fn end(end: &End) -> String {
    match end {
        End::Complete => "all blocks ran".to_owned(),
        End::Early => "early: every gated metric had surely passed".to_owned(),
        End::Interrupted { by } => format!("interrupted by {}: the record is partial", code(by)),
        End::Failed { arm, message } => {
            format!("failed on {}: {}", arm.map_or("the harness", |a| a.name()), sentence(message))
        }
    }
}

fn describe(s: &Scenario) -> String {
    let load = match s.load {
        Load::Closed => "closed loop".to_owned(),
        Load::Open { rate_rps } => format!("open loop at {}", phrase::quantity(rate_rps, "1/s")),
    };
    let capacity = s.capacity_rps.map(|c| format!(", capacity {}", phrase::quantity(c, "1/s"))).unwrap_or_default();
    format!(
        "{}: path {}, {}, {} connections, {load}{capacity}, {} answers, {} rounds of {} a block",
        code(&s.name),
        code(&s.path),
        code(&s.protocol),
        s.connections,
        phrase::bytes(s.response_bytes as f64),
        s.rounds,
        phrase::ns(s.slice_ns as f64)
    )
}

fn requests(t: &TargetRecord) -> String {
    let mut out = String::from("| request | route |\n|---|---|\n");
    for r in t.workload.iter().take(SHOWN) {
        let request = format!("{} {}{}", r.method, r.authority, r.path);
        out.push_str(&format!("| {} | {} |\n", cell_code(&request), cell_code(&r.route)));
    }
    out.push('\n');
    out.push_str(&more(t.workload.len(), "requests"));
    out
}

fn rehosted(t: &TargetRecord) -> String {
    let mut out = String::new();
    for (arm, source) in [("base", t.base.as_ref()), ("head", Some(&t.head))] {
        let Some(source) = source else { continue };
        out.push_str(&format!("{arm}, {}:\n\n", code(&source.file)));
        for change in source.changes.iter().take(SHOWN) {
            let place = match change.span {
                Some(span) => format!("line {}", span.line),
                None => code(&change.pointer),
            };
            out.push_str(&format!("- {place}: {}\n", code(&change.what)));
        }
        out.push_str(if source.changes.is_empty() { "- nothing\n\n" } else { "\n" });
        out.push_str(&more(source.changes.len(), "changes"));
    }
    out
}

fn harness(t: &TargetRecord) -> String {
    let mut out = String::from(
        "Medians over slices. Latency counts from the intended send, the uncorrected figure from the actual one; shares \
         are time on CPU.\n\n\
         | scenario | arm | slices | requests | errors | P99 | P99 uncorrected | sent late (P99) | generator | backend \
         | busiest worker |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for h in health(t) {
        let share = |v: f64| format!("{:.0} %", v * 100.0);
        let cells = [
            cell_code(&h.scenario),
            h.arm.name().to_owned(),
            h.slices.to_string(),
            h.requests.to_string(),
            h.errors.to_string(),
            phrase::ns(h.latency_p99_ns),
            phrase::ns(h.uncorrected_p99_ns),
            phrase::ns(h.lateness_p99_ns),
            share(h.generator_share),
            share(h.backend_share),
            h.worker_share.map_or_else(|| phrase::NONE.to_owned(), share),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
    for ((arm, kind), count) in errors(t).iter().take(SHOWN) {
        out.push_str(&format!("- {}: {count} errors of kind {}\n", arm.name(), code(kind)));
    }
    if t.blocks.iter().any(|b| b.slices.iter().any(|s| !s.errors.is_empty())) {
        out.push('\n');
    }
    out
}

fn more(count: usize, what: &str) -> String {
    if count <= SHOWN {
        String::new()
    } else {
        format!("… and {} more {what}, see `record.json`.\n\n", count - SHOWN)
    }
}

fn numbers(list: &[u32]) -> String {
    if list.is_empty() {
        return "none".to_owned();
    }
    list.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
