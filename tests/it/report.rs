//! Results as they are shown: snapshots of whole reports, and laws that hold whatever a config calls its parts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use sidegate::histogram::Histogram;
use sidegate::judge::judge;
use sidegate::metric::{Metric, Scale};
use sidegate::policy::{Accept, LimitSet, Policy, Profile};
use sidegate::problem::Span;
use sidegate::record::*;
use sidegate::report::{json, markdown, text};
use sidegate::verdict::{Call, Finding, Outcome, SCHEMA, TargetVerdict, Verdict};

/// A finding whose change is `percent` with an interval of two points around it.
fn finding(metric: Metric, base: f64, percent: f64, verdict: Call) -> Finding {
    let by_ratio = metric.scale() == Scale::Ratio;
    let ratio = 1.0 + percent / 100.0;
    let head = base * ratio;
    let added = head - base;
    Finding {
        target: "checkout".to_owned(),
        scenario: "open".to_owned(),
        metric,
        threshold_ms: None,
        unit: metric.unit().to_owned(),
        gated: verdict != Call::Report,
        verdict,
        direct: metric.name().starts_with("latency").then_some(base / 3.0),
        base: Some(base),
        head: Some(head),
        added: Some(added),
        ratio: by_ratio.then_some(ratio),
        low: Some(if by_ratio { ratio - 0.019 } else { added - 0.0001 }),
        high: Some(if by_ratio { ratio + 0.018 } else { added + 0.0001 }),
        notice: Some(0.01),
        limit: (verdict != Call::Report).then_some(if by_ratio { 0.05 } else { 0.0005 }),
        rule_out: Some(0.10),
        mde: by_ratio.then_some(0.071),
        n: 14,
        against: "base".to_owned(),
        reason: "the whole interval lies where it should".to_owned(),
        advice: String::new(),
        file: None,
        line: None,
    }
}

/// All gated metrics pass, some are only reported.
fn quiet() -> Vec<Finding> {
    let slow = |ms: u64| Finding { threshold_ms: Some(ms), ..finding(Metric::SlowShare, 0.0012, 0.5, Call::Pass) };
    let process =
        |metric, base, percent, call| Finding { scenario: String::new(), ..finding(metric, base, percent, call) };
    let closed =
        |metric, base, percent| Finding { scenario: "closed".to_owned(), ..finding(metric, base, percent, Call::Pass) };
    vec![
        finding(Metric::CpuNsPerRequest, 30_100.0, 0.4, Call::Pass),
        finding(Metric::CpuNsPerRequestSum, 30_900.0, 0.9, Call::Pass),
        finding(Metric::LatencyP50Ns, 112_000.0, -0.2, Call::Pass),
        finding(Metric::LatencyP99Ns, 840_000.0, 1.8, Call::Pass),
        slow(1),
        slow(10),
        finding(Metric::LatencyP999Ns, 4_200_000.0, 21.0, Call::Report),
        closed(Metric::ThroughputRps, 31_200.0, -0.6),
        finding(Metric::UpstreamConnectionsPerRequest, 0.0, 0.0, Call::Pass),
        process(Metric::AllocatedBytes, 5_300_000.0, 0.1, Call::Pass),
        process(Metric::RssBytes, 61_000_000.0, 0.3, Call::Report),
    ]
}

struct Case {
    record: Record,
    verdict: Verdict,
}

impl Case {
    fn new(outcome: Outcome, reason: &str, findings: Vec<Finding>) -> Self {
        let target = TargetVerdict {
            target: "checkout".to_owned(),
            verdict: outcome,
            base: Some("envoy/checkout.base.yaml".to_owned()),
            head: "envoy/checkout.yaml".to_owned(),
            reasons: vec![reason.to_owned()],
            notes: Vec::new(),
            next_steps: Vec::new(),
            family_size: 8,
            alpha: 0.01,
            flip_rate: 0.0031,
            blocks: 14,
            accepted: Vec::new(),
        };
        let verdict = Verdict {
            schema: SCHEMA,
            verdict: outcome,
            exit_code: outcome.exit_code(sidegate::policy::OnInconclusive::Pass),
            profile: Profile::Standard,
            limits: LimitSet::Default,
            family_bound: 0.01,
            notes: Vec::new(),
            targets: vec![target],
            findings,
        };
        Self { record: record(), verdict }
    }

    fn regression() -> Self {
        let mut findings = quiet();
        findings[0] = Finding {
            advice: "the filter envoy.filters.http.lua runs on every request; see what it does".to_owned(),
            file: Some("envoy/checkout.yaml".to_owned()),
            line: Some(42),
            ..finding(Metric::CpuNsPerRequest, 30_100.0, 11.3, Call::Regression)
        };
        findings[2].verdict = Call::Costlier;
        let reason = "cpu_ns_per_request rose by 11.3 % (at least 9.4 %), more than the limit of 5 %";
        let mut case = Self::new(Outcome::Regression, reason, findings);
        case.verdict.targets[0].notes = vec!["the generator was on CPU 91 % of the time in scenario closed".to_owned()];
        case.verdict.targets[0].next_steps = vec!["look at what changed in the http_filters of ingress".to_owned()];
        case
    }

    fn target(&mut self) -> &mut TargetVerdict {
        &mut self.verdict.targets[0]
    }

    fn show(&self) -> String {
        let (record, verdict) = (&self.record, &self.verdict);
        format!("{}\n{}\n{}", text(record, verdict, false), "=".repeat(80), markdown(record, verdict))
    }
}

fn record() -> Record {
    let source = |file: &str, hash: &str| Source {
        file: file.to_owned(),
        sha256: hash.repeat(32),
        proxy: ProxyId { kind: "envoy".to_owned(), version: "1.40.0".to_owned(), sha256: "0a".repeat(32) },
        changes: vec![Change {
            pointer: "/static_resources/listeners/0/address".to_owned(),
            span: Some(Span { line: 7, column: 5 }),
            what: "listener ingress moved to a loopback port".to_owned(),
        }],
    };
    let scenario = |name: &str, load| Scenario {
        name: name.to_owned(),
        path: "one".to_owned(),
        protocol: "http1".to_owned(),
        connections: 32,
        load,
        response_bytes: 1024,
        slice_ns: 75_000_000,
        rounds: 16,
        capacity_rps: Some(31_200.0),
    };
    let target = TargetRecord {
        name: "checkout".to_owned(),
        base: Some(source("envoy/checkout.base.yaml", "ab")),
        no_base: None,
        head: source("envoy/checkout.yaml", "cd"),
        policy: Policy::default(),
        concurrency: 1,
        cpus: CpuLayout { workers: vec![1], rest: vec![0], realtime: true },
        workload: vec![RequestLine {
            method: "GET".to_owned(),
            authority: "shop.example".to_owned(),
            path: "/cart|x".to_owned(),
            route: "checkout/cart".to_owned(),
        }],
        scenarios: vec![scenario("open", Load::Open { rate_rps: 14_000.0 }), scenario("closed", Load::Closed)],
        looks: vec![8, 14, 20],
        cost: None,
        baseline: None,
        blocks: (0..2).map(block).collect(),
        end: End::Complete,
    };
    Record {
        schema: sidegate::record::SCHEMA,
        tool: "sidegate 0.1.0".to_owned(),
        started_at: "2026-12-01T10:00:00Z".to_owned(),
        host: Host {
            os: "Debian 12".to_owned(),
            kernel: "6.1.0".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu_model: "A CPU @ 2.0 GHz".to_owned(),
            cpus: 2,
            memory_bytes: 8 << 30,
            cpu_quota: None,
        },
        seed: 7,
        scope: sidegate::record::Scope::default(),
        targets: vec![target],
    }
}

fn block(index: u32) -> Block {
    let slice = |arm: Arm| Slice {
        scenario: 0,
        round: 0,
        arm,
        elapsed_ns: 75_000_000,
        completed: 1050,
        errors: if arm == Arm::Direct { BTreeMap::new() } else { BTreeMap::from([("status 503".to_owned(), 2)]) },
        latency: Histogram::from_pairs([(110_000, 900), (850_000, 50)]),
        uncorrected_p50_ns: 100_000,
        uncorrected_p99_ns: 800_000,
        lateness_p99_ns: 21_000,
        generator_cpu_ns: 30_000_000,
        backend_cpu_ns: 20_000_000,
        upstream_connections: 0,
        upstream_requests: 1050,
        proxy: (arm != Arm::Direct).then(|| ProxyTimes { worker_cpu_ns: vec![33_000_000], ..ProxyTimes::default() }),
    };
    Block {
        index,
        base_slot: Slot::A,
        baseline_slot: None,
        void: (index == 1).then(|| "the hypervisor took 12 % of the time".to_owned()),
        arms: Vec::new(),
        slices: vec![slice(Arm::Direct), slice(Arm::Base), slice(Arm::Head)],
    }
}

#[test]
fn a_pass() {
    let case = Case::new(Outcome::Pass, "every gated metric stays within its limit", quiet());
    insta::assert_snapshot!(case.show());
}

#[test]
fn a_regression() {
    insta::assert_snapshot!(Case::regression().show());
}

#[test]
fn an_inconclusive_run() {
    let mut findings = quiet();
    findings[3] = finding(Metric::LatencyP99Ns, 840_000.0, 14.0, Call::Inconclusive);
    let mut case = Case::new(Outcome::Inconclusive, "latency_p99_ns is too noisy to exclude a rise of 25 %", findings);
    case.target().next_steps = vec!["run again with --profile deep: about 95 more seconds".to_owned()];
    insta::assert_snapshot!(case.show());
}

#[test]
fn an_improvement() {
    let mut findings = quiet();
    findings[0] = finding(Metric::CpuNsPerRequest, 30_100.0, -12.5, Call::Improved);
    let case = Case::new(Outcome::Improved, "cpu_ns_per_request fell by 12.5 %", findings);
    insta::assert_snapshot!(case.show());
}

#[test]
fn an_invalid_run() {
    let errors = Finding { ratio: None, ..finding(Metric::ErrorsPerRequest, 0.02, 0.0, Call::Invalid) };
    let mut case = Case::new(Outcome::Invalid, "base answered 2 of 100 requests with status 503", vec![errors]);
    case.record.targets[0].end = End::Failed { arm: Some(Arm::Base), message: "envoy ended by signal 9".to_owned() };
    insta::assert_snapshot!(case.show());
}

#[test]
fn a_run_without_base() {
    let absolute = Finding {
        against: "absolute".to_owned(),
        base: None,
        ratio: None,
        added: Some(310_000.0),
        low: None,
        high: None,
        limit: Some(500_000.0),
        mde: None,
        ..finding(Metric::LatencyP99Ns, 840_000.0, 0.0, Call::Pass)
    };
    let report = Finding {
        base: None,
        ratio: None,
        added: None,
        low: None,
        high: None,
        ..finding(Metric::CpuNsPerRequest, 30_100.0, 0.0, Call::Report)
    };
    let mut case = Case::new(Outcome::Pass, "head stays within its absolute limits", vec![absolute, report]);
    case.target().base = None;
    case.record.targets[0].base = None;
    case.record.targets[0].no_base = Some("base does not load: unknown field `foo`".to_owned());
    insta::assert_snapshot!(case.show());
}

#[test]
fn without_a_base_what_is_zero_takes_one_line() {
    let alone = |metric, scenario: &str, value| Finding {
        base: None,
        ratio: None,
        added: None,
        low: None,
        high: None,
        limit: None,
        scenario: scenario.to_owned(),
        ..finding(metric, value, 0.0, Call::Report)
    };
    let findings = vec![
        alone(Metric::CpuNsPerRequest, "closed", 30_100.0),
        alone(Metric::LatencyP50Ns, "closed", 900_000.0),
        alone(Metric::ErrorsPerRequest, "closed", 0.0),
        alone(Metric::RetriesPerRequest, "closed", 0.0),
        alone(Metric::UpstreamRequestsPerRequest, "closed", 1.0),
    ];
    let mut case = Case::new(Outcome::Pass, "no base", findings);
    case.target().base = None;
    let shown = text(&case.record, &case.verdict, false);
    assert!(shown.contains("per request none: errors, retries\n"), "{shown}");
    assert!(shown.contains("cpu_ns_per_request") && shown.contains("upstream_requests_per_request"), "{shown}");
    assert!(!shown.contains("latency_p50_ns"), "{shown}");
}

#[test]
fn an_interrupted_run() {
    let mut case = Case::new(Outcome::Inconclusive, "interrupted after 3 of 20 blocks", Vec::new());
    case.record.targets[0].end = End::Interrupted { by: "SIGINT".to_owned() };
    case.target().blocks = 3;
    insta::assert_snapshot!(case.show());
}

#[test]
fn an_accepted_cost() {
    let mut findings = quiet();
    findings[0] = finding(Metric::CpuNsPerRequest, 30_100.0, 11.3, Call::Accepted);
    let mut case = Case::new(Outcome::Pass, "cpu_ns_per_request rose by 11.3 %, which is accepted", findings);
    case.target().accepted = vec![Accept {
        target: "checkout".to_owned(),
        metric: Metric::CpuNsPerRequest,
        up_to: 0.15,
        until: "2027-01-31".to_owned(),
        reason: "JWT filter, TICKET-7".to_owned(),
    }];
    insta::assert_snapshot!(case.show());
}

/// Counts of one class: instructions per request around `instructions`, and system calls.
fn class_cost(instructions: f64, syscalls: f64) -> ClassCost {
    let window = |times: f64| Window {
        requests: 1000,
        instructions: (instructions * times * 1e3) as u64,
        syscalls: (syscalls * 1e3) as u64,
        clock_reads: 40,
    };
    ClassCost {
        windows: [0.9997, 1.0, 1.0004].map(window).to_vec(),
        heap_growth_bytes: Some(48_000),
        heap_bytes_per_connection: Some(41_300.0),
        statuses: vec![(200, 3000)],
        failed: None,
    }
}

/// Three classes: one that costs 11 % more, one that costs a call more, one whose big bodies are refused.
fn cost() -> Cost {
    let class = |name: &str, body_bytes: u64| RequestClass {
        name: name.to_owned(),
        method: "GET".to_owned(),
        authority: "shop.example".to_owned(),
        path: "/v1/orders".to_owned(),
        headers: Vec::new(),
        body_bytes,
        new_connection: false,
        route: "orders".to_owned(),
    };
    let refused = ClassCost { statuses: vec![(413, 3000)], ..class_cost(48_000.0, 5.0) };
    let part = |what: &str, pointer: &str, line: Option<u32>, instructions| BlamePart {
        pointer: pointer.to_owned(),
        span: line.map(|line| Span { line, column: 7 }),
        what: what.to_owned(),
        instructions,
    };
    Cost {
        missing: None,
        machine: Some(CountingClass {
            architecture: "x86_64".to_owned(),
            instruction_set: "x86-64-v3".to_owned(),
            libc: "glibc 2.36".to_owned(),
            valgrind: "valgrind-3.19.0".to_owned(),
            workload_version: 1,
        }),
        classes: vec![class("GET /v1/orders", 0), class("GET /health", 0), class("POST /v1/orders 20 KiB", 20_480)],
        left_out: vec!["GET /v1/orders, new connection".to_owned()],
        arms: vec![
            ArmCost {
                arm: Arm::Base,
                classes: vec![class_cost(154_392.0, 8.0), class_cost(101_000.0, 8.0), class_cost(310_000.0, 14.0)],
            },
            ArmCost {
                arm: Arm::Head,
                classes: vec![class_cost(171_700.0, 8.004), class_cost(101_050.0, 9.0), refused],
            },
        ],
        blame: Some(Blame {
            class: 0,
            base: 154_392.0,
            head: 171_700.0,
            parts: vec![
                part("HTTP filter envoy.filters.http.lua added", "/filters/0", Some(42), Some(16_100.0)),
                part("cluster cart removed", "/static_resources/clusters/3", None, Some(-210.0)),
                part("access log changed", "/access_log/0", Some(80), None),
            ],
            untried: vec!["route /v2 added".to_owned()],
        }),
    }
}

/// What the counts alone say of it.
fn counted(cost: Cost) -> Case {
    let mut record = record();
    let target = &mut record.targets[0];
    (target.cost, target.blocks, target.looks) = (Some(cost), Vec::new(), Vec::new());
    let verdict = judge(&record);
    Case { record, verdict }
}

#[test]
fn a_regression_in_counts() {
    insta::assert_snapshot!(counted(cost()).show());
}

#[test]
fn counts_that_pass_take_a_row_a_class_and_one_sentence() {
    let mut cost = cost();
    cost.arms[1].classes = cost.arms[0].classes.clone();
    (cost.blame, cost.left_out) = (None, Vec::new());
    let case = counted(cost);
    assert_eq!(case.verdict.verdict, Outcome::Pass);
    let shown = text(&case.record, &case.verdict, false);
    assert!(shown.contains("system calls per request unchanged, pass"), "{shown}");
    assert_eq!(shown.lines().filter(|l| l.ends_with(" pass")).count(), 4, "{shown}");
    let report = markdown(&case.record, &case.verdict);
    let above = report.split("<details>").next().unwrap();
    assert!(above.contains("instructions per request changed by -0.1 … +0.1 % in 3 classes of request"), "{above}");
    assert!(!above.contains('|'), "{above}");
}

#[test]
fn a_regression_in_counts_comes_with_the_entry_that_would_accept_it() {
    let mut cost = cost();
    cost.arms[1].classes[2] = class_cost(310_000.0, 14.0);
    let case = counted(cost);
    let report = markdown(&case.record, &case.verdict);
    for entry in ["instructions_per_request, up_to: 12%, until", "syscalls_per_request, up_to: 13%, until"] {
        assert!(report.contains(entry), "{report}");
    }
}

#[test]
fn the_verdict_file_reads_back_to_the_same_verdict() {
    let case = Case::regression();
    let back: Verdict = serde_json::from_str(&json(&case.verdict)).unwrap();
    assert_eq!(back, case.verdict);
}

#[test]
fn colour_adds_nothing_but_colour() {
    let case = Case::regression();
    let coloured = text(&case.record, &case.verdict, true);
    assert!(coloured.contains("\x1b[1;31mREGRESSION\x1b[0m"));
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    assert_eq!(bare, text(&case.record, &case.verdict, false));
}

#[test]
fn the_table_is_exactly_80_columns_wide() {
    let case = Case::regression();
    let shown = text(&case.record, &case.verdict, false);
    let widest = shown.lines().map(|l| l.chars().count()).max();
    assert_eq!(widest, Some(80));
}

#[test]
fn above_the_fold_stand_no_statisticians_words() {
    for case in [Case::regression(), Case::new(Outcome::Pass, "all is well", quiet())] {
        let report = markdown(&case.record, &case.verdict);
        let above = report.split("<details>").next().unwrap().to_lowercase();
        for word in ["p-value", "signed-rank", "wilcoxon", "hodges", "alpha", "family", "mde", "null hypothesis"] {
            assert!(!above.contains(word), "{word} in:\n{above}");
        }
        assert!(above.contains("19 times in 20"), "what the run could have caught is missing:\n{above}");
    }
}

#[test]
fn one_acceptance_covers_both_cpu_figures_and_counts_are_no_percentages() {
    let mut case = Case::regression();
    case.verdict.findings.extend([
        finding(Metric::CpuNsPerRequestSum, 30_100.0, 20.0, Call::Regression),
        finding(Metric::ThroughputRps, 30_000.0, -20.0, Call::Regression),
        finding(Metric::RetriesPerRequest, 0.1, 90.0, Call::Regression),
    ]);
    let report = markdown(&case.record, &case.verdict);
    let entries: Vec<&str> = report.lines().filter(|l| l.starts_with("  - {target")).collect();
    let ends = ["cpu_ns_per_request, up_to: 22%", "throughput_rps, up_to: 22%", "retries_per_request, up_to: 0.1,"];
    assert_eq!(entries.len(), 3, "{entries:?}");
    for (entry, end) in entries.iter().zip(ends) {
        assert!(entry.contains(end), "{entry} has not {end}");
    }
}

#[test]
fn nothing_is_said_twice() {
    let mut case = Case::regression();
    case.verdict.findings[0].line = None;
    let advice = "look at what changed in the filters";
    case.verdict.findings[0].advice = advice.to_owned();
    case.verdict.findings[2].advice = advice.to_owned();
    case.target().next_steps = vec![advice.to_owned()];
    case.record.targets[0].end = End::Interrupted { by: "SIGTERM".to_owned() };
    case.target().reasons = vec!["the run was interrupted by SIGTERM".to_owned()];
    let report = markdown(&case.record, &case.verdict);
    let above = report.split("<details>").next().unwrap();
    for shown in [text(&case.record, &case.verdict, false).as_str(), above] {
        assert_eq!(shown.matches(advice).count(), 1, "{shown}");
        assert_eq!(shown.matches("SIGTERM").count(), 1, "{shown}");
    }
}

#[test]
fn a_regression_comes_with_the_entry_that_would_accept_it() {
    let case = Case::regression();
    let entry = "- {target: checkout, metric: cpu_ns_per_request, up_to: 14%, until: 2027-03-01, reason: \"…\"}";
    assert!(markdown(&case.record, &case.verdict).contains(entry));
}

/// The report's skeleton: every element but code spans, which differ with the words.
pub fn skeleton(report: &str) -> Vec<String> {
    Parser::new_ext(report, Options::all().difference(Options::ENABLE_SMART_PUNCTUATION))
        .filter_map(|event| match event {
            Event::Text(_) | Event::Code(_) => None,
            Event::Start(Tag::CodeBlock(_)) => Some("code block".to_owned()),
            Event::Html(html) | Event::InlineHtml(html) => Some(format!("html {html}")),
            other => Some(format!("{other:?}")),
        })
        .collect()
}

/// Puts `name` wherever a config or its owner has a say.
fn hostile(name: &str) -> Case {
    let mut case = Case::regression();
    let own = |text: &mut String| *text = name.to_owned();
    for finding in &mut case.verdict.findings {
        own(&mut finding.target);
        finding.advice = if finding.advice.is_empty() { String::new() } else { format!("look at {name} first") };
        finding.reason = format!("see {name}");
        finding.file = finding.file.as_ref().map(|_| name.to_owned());
    }
    case.verdict.findings[1].verdict = Call::Accepted;
    case.verdict.findings[1].scenario = name.to_owned();
    let target = case.target();
    for text in [&mut target.target, &mut target.head] {
        *text = name.to_owned();
    }
    target.base = Some(name.to_owned());
    target.reasons = vec![name.to_owned(), format!("{name} rose")];
    target.notes = vec![name.to_owned()];
    target.next_steps = vec![format!("1. {name}")];
    target.accepted = vec![Accept {
        target: name.to_owned(),
        metric: Metric::CpuNsPerRequestSum,
        up_to: 0.1,
        until: name.to_owned(),
        reason: name.to_owned(),
    }];
    let host = &mut case.record.host;
    for text in [&mut host.os, &mut host.cpu_model] {
        *text = name.to_owned();
    }
    let record = &mut case.record.targets[0];
    own(&mut record.name);
    own(&mut record.head.file);
    own(&mut record.head.changes[0].what);
    record.head.changes[0].span = None;
    own(&mut record.head.changes[0].pointer);
    own(&mut record.workload[0].path);
    own(&mut record.workload[0].route);
    own(&mut record.scenarios[0].name);
    let mut cost = cost();
    let blame = cost.blame.as_mut().unwrap();
    for part in &mut blame.parts {
        own(&mut part.what);
        own(&mut part.pointer);
    }
    blame.untried = vec![name.to_owned(), name.to_owned()];
    cost.left_out = vec![name.to_owned()];
    cost.missing = Some(Missing { why: name.to_owned(), help: name.to_owned() });
    own(&mut cost.machine.as_mut().unwrap().libc);
    own(&mut cost.machine.as_mut().unwrap().valgrind);
    for class in &mut cost.classes {
        own(&mut class.name);
    }
    cost.arms[1].classes[1].failed = Some(name.to_owned());
    record.cost = Some(cost);
    let counts = judge(&case.record).findings.into_iter().filter(|f| f.request_class().is_some());
    case.verdict.findings.splice(0..0, counts);
    let record = &mut case.record.targets[0];
    record.end = End::Failed { arm: None, message: name.to_owned() };
    record.blocks[1].void = Some(name.to_owned());
    record.blocks[0].slices[1].errors = BTreeMap::from([(name.to_owned(), 1)]);
    case
}

/// Pieces that mean something to Markdown, HTML, GitHub, YAML or a terminal, and plain ones.
pub fn name() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "a",
            "lua",
            " ",
            "  ",
            "\n",
            "\n\n",
            "\r\n",
            "\t",
            "`",
            "```",
            "|",
            "\\",
            "\\|",
            "[x](http://e.example)",
            "![i](http://e.example/i.png)",
            "http://e.example",
            "https://e.example/`",
            "www.e.example",
            "a@e.example",
            "@all",
            "#1",
            "# h",
            "<b>",
            "<script>",
            "</details>",
            "<!--",
            "-->",
            "&lt;",
            "**",
            "*",
            "_",
            "~~",
            "---",
            "===",
            "- ",
            "1. ",
            "1)",
            "> ",
            "[ ] ",
            "$x$",
            ":tada:",
            "[^1]",
            "[^1]: x",
            "\u{1b}[2J",
            "\u{7}",
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{2028}",
            "::error::x",
            "##[error]",
            "漢字",
            "e\u{301}",
            "\u{1f600}",
            "\u{0}",
            "+",
            "%",
            "{",
            "}",
            "\"",
            "'",
            "(",
            ")",
            ".",
            ":",
            "www",
            "http:",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        "[ -~]{1,12}",
    ];
    proptest::collection::vec(piece, 1..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_name_changes_what_the_report_is_made_of(name in name()) {
        let plain = markdown_of("lua");
        let report = markdown_of(&name);
        prop_assert_eq!(skeleton(&report), skeleton(&plain), "{}", report);
        prop_assert!(!report.chars().any(|c| (c.is_control() && c != '\n') || is_direction(c)), "{:?}", report);
    }

    #[test]
    fn names_that_github_would_link_stand_in_code(name in name()) {
        let report = markdown_of(&name);
        for event in Parser::new_ext(&report, Options::ENABLE_TABLES) {
            if let Event::Text(text) = event {
                if text.contains("reason: \"…\"") {
                    continue; // the fenced entry to paste
                }
                for sign in ["://", "www.", "@", "#", "<", "&"] {
                    prop_assert!(!text.contains(sign), "{sign} in plain text: {text:?}");
                }
            }
        }
    }

    #[test]
    fn no_line_of_text_is_wider_than_80_columns(name in name()) {
        let case = hostile(&name);
        let shown = text(&case.record, &case.verdict, false);
        for line in shown.lines() {
            prop_assert!(line.chars().count() <= 80, "{line:?}");
            prop_assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "a command to CI: {line:?}");
        }
        prop_assert!(!shown.chars().any(|c| (c.is_control() && c != '\n') || is_direction(c)), "{shown:?}");
    }

    #[test]
    fn any_figure_can_be_shown(bits in any::<u64>(), other in any::<u64>()) {
        let (value, second) = (f64::from_bits(bits), f64::from_bits(other));
        for metric in Metric::ALL {
            let mut finding = finding(metric, value, second, Call::Regression);
            (finding.low, finding.high, finding.limit) = (Some(second), Some(value), Some(second));
            let case = Case::new(Outcome::Regression, "r", vec![finding]);
            prop_assert!(case.show().lines().take_while(|l| !l.starts_with('=')).all(|l| l.chars().count() <= 80));
        }
    }
}

fn markdown_of(name: &str) -> String {
    let case = hostile(name);
    markdown(&case.record, &case.verdict)
}

fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}
