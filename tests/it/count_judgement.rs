//! Verdicts on deterministic counts: per class of request, beside and without timing.

use std::sync::OnceLock;

use proptest::prelude::*;
use sidegate::exit;
use sidegate::judge::{Comparison, compare, cost_regressed, judge, judge_apart};
use sidegate::metric::Metric;
use sidegate::policy::{Accept, LimitOverride, LimitSet, Policy, Profile};
use sidegate::problem::Span;
use sidegate::record::*;
use sidegate::report::text;
use sidegate::simulate::{Effects, Noise, record, run};
use sidegate::stats::normal::Normal;
use sidegate::verdict::{Call, Finding, Outcome, Verdict};

use crate::common::sidegate;

const REQUESTS: u64 = 1000;
const BASE: f64 = 154_392.0;

fn class(name: &str) -> RequestClass {
    RequestClass {
        name: name.to_owned(),
        method: "GET".to_owned(),
        authority: "shop.example".to_owned(),
        path: "/v1/orders".to_owned(),
        headers: Vec::new(),
        body_bytes: 0,
        new_connection: false,
        route: "orders".to_owned(),
    }
}

fn window(instructions: f64, syscalls: f64) -> Window {
    Window {
        requests: REQUESTS,
        instructions: (instructions * REQUESTS as f64) as u64,
        syscalls: (syscalls * REQUESTS as f64) as u64,
        clock_reads: 7,
    }
}

/// Windows of these instructions per request, eight system calls each.
fn counted(instructions: &[f64]) -> ClassCost {
    ClassCost {
        windows: instructions.iter().map(|i| window(*i, 8.0)).collect(),
        heap_growth_bytes: Some(3000),
        heap_bytes_per_connection: Some(40_960.0),
        statuses: vec![(200, 3 * REQUESTS)],
        failed: None,
    }
}

/// Three windows around `times` what base costs, 0.1 % apart.
fn steady(times: f64) -> ClassCost {
    counted(&[0.9995, 1.0, 1.0005].map(|w| BASE * times * w))
}

fn cost(base: Vec<ClassCost>, head: Vec<ClassCost>) -> Cost {
    let names = ["GET /v1/orders", "POST /v1/orders 20 KiB", "GET /v1/orders, new connection"];
    Cost {
        classes: names.iter().take(head.len()).map(|n| class(n)).collect(),
        arms: vec![ArmCost { arm: Arm::Base, classes: base }, ArmCost { arm: Arm::Head, classes: head }],
        ..Cost::default()
    }
}

/// A run of identical configs that was timed.
fn simulated() -> TargetRecord {
    static RUN: OnceLock<TargetRecord> = OnceLock::new();
    let policy = Policy { profile: Profile::Quick, ..Policy::default() };
    RUN.get_or_init(|| run(11, &policy, Effects::default(), Noise::steady())).clone()
}

/// The counts beside it.
fn timed(cost: Cost) -> TargetRecord {
    TargetRecord { cost: Some(cost), ..simulated() }
}

/// A record that only counts.
fn only(cost: Cost) -> TargetRecord {
    static EMPTY: OnceLock<TargetRecord> = OnceLock::new();
    let empty = EMPTY.get_or_init(|| TargetRecord { blocks: Vec::new(), looks: Vec::new(), ..simulated() });
    TargetRecord { cost: Some(cost), ..empty.clone() }
}

fn verdict_of(target: TargetRecord) -> Verdict {
    judge(&record(11, target))
}

fn called(head: ClassCost) -> (Call, String) {
    let verdict = verdict_of(only(cost(vec![steady(1.0)], vec![head])));
    let finding = verdict.findings.iter().find(|f| f.metric == Metric::InstructionsPerRequest).unwrap();
    (finding.verdict, finding.reason.clone())
}

fn find(verdict: &Verdict, metric: Metric) -> &Finding {
    verdict.findings.iter().find(|f| f.metric == metric).unwrap()
}

#[test]
fn a_change_is_called_by_the_ends_of_the_ranges() {
    for (times, expected) in [
        (1.0, Call::Pass),
        (1.009, Call::Pass),
        (1.013, Call::Costlier),
        (1.0505, Call::Costlier),
        (1.06, Call::Regression),
        (1.112, Call::Regression),
        (2.71, Call::Regression),
        (0.98, Call::Pass),
        (0.90, Call::Improved),
    ] {
        assert_eq!(called(steady(times)).0, expected, "{times}");
    }
    let (_, reason) = called(steady(1.112));
    assert_eq!(reason, "count: GET /v1/orders: instructions per request +11.2 % (+11.1 … +11.3 %), limit 5 %");
}

#[test]
fn a_finding_says_the_ends_of_the_ranges_and_how_many_windows() {
    let verdict = verdict_of(only(cost(vec![steady(1.0)], vec![steady(1.112)])));
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regression, exit::REGRESSION));
    let finding = find(&verdict, Metric::InstructionsPerRequest);
    assert_eq!((finding.scenario.as_str(), finding.n, finding.gated), ("count: GET /v1/orders", 3, true));
    let near = |value: Option<f64>, wanted: f64| (value.unwrap() - wanted).abs() < 1e-6;
    assert!(near(finding.ratio, 1.112), "{finding:?}");
    assert!(near(finding.low, 1.112 * 0.9995 / 1.0005) && near(finding.high, 1.112 * 1.0005 / 0.9995), "{finding:?}");
    assert!(finding.mde.is_some_and(|m| m > 0.05 && m < 0.055), "{finding:?}");
    assert_eq!((finding.unit.as_str(), finding.against.as_str()), ("instructions", "base"));
    // Not one of the tests that share the bound of false alarms.
    assert_eq!(verdict.targets[0].family_size, 0);
    assert!((verdict.family_bound - 0.0).abs() < 1e-12);
}

#[test]
fn of_five_windows_the_tightest_three_decide_and_what_scatters_must_leave_no_room() {
    let outlier = counted(&[1.0, 1.05, 1.0005, 0.9, 0.9995].map(|w| BASE * w));
    assert_eq!(called(outlier).0, Call::Pass);
    assert_eq!(called(counted(&[1.0, 1.003, 1.006].map(|w| BASE * w))).0, Call::Pass);
    assert_eq!(called(counted(&[0.3, 0.4, 0.5].map(|w| BASE * w))).0, Call::Pass);
    let (call, reason) = called(counted(&[1.0, 1.003, 1.12].map(|w| BASE * w)));
    assert_eq!(call, Call::Inconclusive);
    assert!(reason.contains("scatter by 12.0 %, more than 0.4 %"), "{reason}");
    let (call, reason) = called(counted(&[BASE * 1.5, BASE * 1.5]));
    assert_eq!(call, Call::Inconclusive);
    assert!(reason.contains("2 windows are too few"), "{reason}");
}

/// Scripts that collect garbage, short windows on a busy machine: a change of +70 % is one all the same.
#[test]
fn windows_that_scatter_still_show_what_is_far_beyond_their_scatter() {
    let five = |times: f64| counted(&[1.0, 1.05, 1.02, 1.1, 1.04].map(|w| BASE * times * w));
    let (call, reason) = called(five(1.7));
    assert_eq!(call, Call::Regression);
    assert!(reason.ends_with(", limit 5 %; far beyond the 10.0 % by which repeats scatter"), "{reason}");
    // Within the limit and twice the range, or with too few windows, nothing is called.
    assert_eq!(called(five(1.25)).0, Call::Inconclusive);
    assert_eq!(called(five(1.0)).0, Call::Inconclusive);
    assert_eq!(called(five(0.5)).0, Call::Pass);
    assert_eq!(called(counted(&[1.7, 1.75, 1.72].map(|w| BASE * w))).0, Call::Inconclusive);
}

/// However windows scatter, a copy is not called a regression.
#[test]
fn windows_that_scatter_do_not_fail_a_copy() {
    const DRAWS: usize = 100_000;
    let (policy, names) = (Policy::default(), [class("GET /")]);
    let mut draws = Normal::new(6, 1);
    let mut regressions = 0_usize;
    for draw in 0..DRAWS {
        let spread = [0.003, 0.02, 0.1, 0.3][draw % 4];
        let mut arm = |n: usize| {
            let windows: Vec<f64> = (0..n).map(|_| BASE * (spread * draws.draw()).exp()).collect();
            vec![counted(&windows)]
        };
        let base = ArmCost { arm: Arm::Base, classes: arm(if draw % 8 < 4 { 5 } else { 3 }) };
        let head = ArmCost { arm: Arm::Head, classes: arm(5) };
        let margins = |metric| policy.margins(metric).filter(|_| metric == Metric::InstructionsPerRequest);
        let comparison = Comparison {
            target: "t",
            file: "f",
            classes: &names,
            base: Some(&base),
            head: &head,
            against: "base",
            policy: &policy,
            day: None,
            margins: &margins,
        };
        regressions += usize::from(compare(&comparison)[0].verdict == Call::Regression);
    }
    println!("{DRAWS} copies that scatter: {regressions} regressions");
    assert!(regressions <= 5, "{regressions}");
}

#[test]
fn system_calls_have_a_floor_and_may_jitter() {
    let with = |calls: [f64; 3]| ClassCost { windows: calls.iter().map(|c| window(BASE, *c)).collect(), ..steady(1.0) };
    let call = |base, head| {
        let verdict = verdict_of(only(cost(vec![with(base)], vec![with(head)])));
        find(&verdict, Metric::SyscallsPerRequest).verdict
    };
    assert_eq!(call([8.0, 8.02, 8.05], [8.03, 8.0, 8.05]), Call::Pass);
    // 45 % more of next to nothing.
    assert_eq!(call([1.0; 3], [1.45; 3]), Call::Pass);
    assert_eq!(call([1.0; 3], [1.55; 3]), Call::Regression);
    assert_eq!(call([8.0; 3], [9.0, 9.003, 9.01]), Call::Regression);
    assert_eq!(call([8.0; 3], [7.0; 3]), Call::Improved);
    assert_eq!(call([8.0; 3], [8.0, 8.4, 8.9]), Call::Inconclusive);
    // A floor in calls holds where there is no share to speak of.
    assert_eq!(call([0.0; 3], [0.0; 3]), Call::Pass);
    assert_eq!(call([0.0; 3], [0.4; 3]), Call::Pass);
    assert_eq!(call([0.0; 3], [1.0; 3]), Call::Regression);
}

#[test]
fn heap_is_shown_and_gates_only_with_a_limit_of_the_target() {
    let mut head = steady(1.0);
    (head.heap_growth_bytes, head.heap_bytes_per_connection) = (Some(600_000), Some(81_920.0));
    let mut target = only(cost(vec![steady(1.0)], vec![head]));
    let verdict = verdict_of(target.clone());
    assert_eq!(verdict.verdict, Outcome::Pass);
    let finding = find(&verdict, Metric::HeapBytesPerRequest);
    assert_eq!((finding.gated, finding.verdict, finding.head), (false, Call::Report, Some(200.0)));
    let limit = |limit| LimitOverride { limit: Some(limit), ..LimitOverride::default() };
    target.policy.overrides.insert(Metric::HeapBytesPerRequest, limit(64.0));
    target.policy.overrides.insert(Metric::HeapBytesPerConnection, limit(0.5));
    let verdict = verdict_of(target);
    assert_eq!(find(&verdict, Metric::HeapBytesPerRequest).verdict, Call::Regression);
    assert_eq!(find(&verdict, Metric::HeapBytesPerConnection).verdict, Call::Regression);
    assert!(find(&verdict, Metric::HeapBytesPerRequest).reason.contains("+199.0 bytes"), "{verdict:?}");
}

#[test]
fn absolute_limits_hold_with_and_without_a_base() {
    let mut target = only(cost(vec![steady(1.0)], vec![steady(1.0)]));
    target.policy.max.insert(Metric::InstructionsPerRequest, 150_000.0);
    for without in [false, true] {
        if without {
            target.base = None;
            target.cost.as_mut().unwrap().arms.remove(0);
        }
        let verdict = verdict_of(target.clone());
        assert_eq!(verdict.verdict, Outcome::Regression, "{without}");
        assert!(verdict.targets[0].reasons[0].contains("absolute limit 150.0 k"), "{:?}", verdict.targets[0].reasons);
    }
    target.policy.max.insert(Metric::InstructionsPerRequest, 160_000.0);
    assert_eq!(verdict_of(target).verdict, Outcome::Pass);
}

#[test]
fn a_class_that_only_head_fails_is_a_regression_and_any_other_failure_is_that_of_the_class() {
    let failed = |why: &str| ClassCost { failed: Some(why.to_owned()), ..ClassCost::default() };
    for target in [
        only(cost(vec![steady(1.0)], vec![failed("the proxy ended by signal 11")])),
        timed(cost(vec![steady(1.0)], vec![failed("the proxy ended by signal 11")])),
    ] {
        let verdict = verdict_of(target);
        assert_eq!(verdict.verdict, Outcome::Regression);
        assert_eq!(verdict.targets[0].reasons[0], "count: GET /v1/orders: head failed: the proxy ended by signal 11");
    }
    for head in [steady(1.0), failed("no answer")] {
        let both = cost(vec![failed("no answer"), steady(1.0)], vec![head, steady(1.0)]);
        let verdict = verdict_of(timed(both.clone()));
        assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.targets[0].reasons);
        assert_eq!(find(&verdict, Metric::InstructionsPerRequest).verdict, Call::Invalid);
        assert!(verdict.targets[0].notes[0].contains("base failed: no answer"), "{:?}", verdict.targets[0].notes);
        // Where nothing was timed, nothing covers for it.
        let verdict = verdict_of(only(both));
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, exit::INVALID));
        assert!(verdict.targets[0].reasons[0].contains("base failed: no answer"), "{:?}", verdict.targets[0].reasons);
    }
}

#[test]
fn a_new_status_is_a_regression_and_failing_fast_no_improvement() {
    let with = |times: f64, statuses: &[(u16, u64)]| ClassCost { statuses: statuses.to_vec(), ..steady(times) };
    let ok: &[(u16, u64)] = &[(200, 3000)];
    for (head, said) in [
        (with(0.3, &[(413, 3000)]), "413 instead of 200"),
        (with(0.99, &[(200, 2990), (503, 10)]), "503 in 10 of 3000 answers, base gives 200"),
        (with(1.3, &[(301, 3000)]), "301 instead of 200"),
    ] {
        let verdict = verdict_of(only(cost(vec![with(1.0, ok)], vec![head])));
        assert_eq!(verdict.verdict, Outcome::Regression, "{said}");
        assert_eq!(verdict.targets[0].reasons, [format!("count: GET /v1/orders: {said}")]);
        assert_eq!(find(&verdict, Metric::ErrorsPerRequest).verdict, Call::Regression);
        let instructions = find(&verdict, Metric::InstructionsPerRequest);
        assert_eq!((instructions.gated, instructions.verdict), (false, Call::Report));
        assert!(instructions.reason.contains("the answers differ"), "{}", instructions.reason);
    }
    // The same errors on both sides are base's business; fewer of them are no new kind.
    let broken: &[(u16, u64)] = &[(503, 3000)];
    for (base, head, expected) in [
        (broken, broken, Outcome::Pass),
        (broken, ok, Outcome::Inconclusive),
        (&[(200, 2000), (503, 1000)], ok, Outcome::Inconclusive),
    ] {
        let verdict = verdict_of(only(cost(vec![with(1.0, base)], vec![with(1.0, head)])));
        assert_eq!(verdict.verdict, expected, "{base:?} {head:?} {:?}", verdict.targets[0].reasons);
    }
}

#[test]
fn counts_decide_whatever_became_of_timing() {
    let costly = cost(vec![steady(1.0)], vec![steady(1.112)]);
    let noisy = |mut t: TargetRecord| {
        t.blocks.iter_mut().for_each(|b| b.void = Some("steal time".to_owned()));
        t
    };
    let ended = |mut t: TargetRecord, end: End| {
        t.blocks.truncate(3);
        t.end = end;
        t
    };
    let interrupted = End::Interrupted { by: "SIGTERM".to_owned() };
    let base_failed = End::Failed { arm: Some(Arm::Base), message: "exited with status 1".to_owned() };
    for target in [
        timed(costly.clone()),
        noisy(timed(costly.clone())),
        ended(timed(costly.clone()), interrupted),
        ended(timed(costly), base_failed),
    ] {
        let verdict = verdict_of(target);
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regression, exit::REGRESSION));
        let reasons = &verdict.targets[0].reasons;
        assert!(reasons[0].starts_with("count: GET /v1/orders: instructions per request +11.2 %"), "{reasons:?}");
        assert!(!reasons.iter().any(|r| r.contains("nothing is decided")), "{reasons:?}");
        assert!(verdict.findings[0].request_class().is_some(), "counts stand first");
    }
}

#[test]
fn without_timing_counts_alone_decide() {
    let verdict = verdict_of(only(cost(vec![steady(1.0), steady(1.0)], vec![steady(1.0), steady(1.0)])));
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Pass, exit::PASS));
    assert_eq!(
        verdict.targets[0].reasons,
        [
            "no metric got worse beyond its limit: instructions per request changed by -0.1 … +0.1 % in 2 classes of request"
        ]
    );
    let mut missing = only(Cost { arms: Vec::new(), ..cost(vec![], vec![]) });
    let why = Missing { why: "valgrind is not installed".to_owned(), help: "apt-get install valgrind".to_owned() };
    missing.cost.as_mut().unwrap().missing = Some(why);
    let verdict = verdict_of(missing);
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, exit::INVALID));
    assert_eq!(verdict.targets[0].reasons, ["nothing was counted: valgrind is not installed"]);
    assert_eq!(verdict.targets[0].next_steps, ["apt-get install valgrind"]);
    assert_eq!(verdict_of(only(Cost::default())).verdict, Outcome::Invalid);
}

#[test]
fn what_could_not_be_counted_is_a_note_and_changes_no_verdict() {
    let mut missing = timed(Cost::default());
    let why = Missing {
        why: "valgrind is not installed".to_owned(),
        help: "install it: apt-get install valgrind".to_owned(),
    };
    missing.cost.as_mut().unwrap().missing = Some(why);
    let verdict = verdict_of(missing);
    assert_eq!(verdict.verdict, Outcome::Pass);
    let note =
        "instructions per request were not counted: valgrind is not installed; install it: apt-get install valgrind";
    assert_eq!(verdict.targets[0].notes[0], note);

    let scattered = counted(&[1.0, 1.03, 1.12].map(|w| BASE * w));
    let mut target = timed(cost(vec![steady(1.0)], vec![scattered]));
    target.cost.as_mut().unwrap().left_out = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
    let verdict = verdict_of(target.clone());
    assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.targets[0].reasons);
    assert_eq!(verdict.targets[0].notes[0], "not counted for lack of time: a; b; c and 2 more");
    assert!(verdict.targets[0].notes[1].contains("scatter by 12.0 %"), "{:?}", verdict.targets[0].notes);
    (target.blocks, target.looks) = (Vec::new(), Vec::new());
    assert_eq!(verdict_of(target).verdict, Outcome::Inconclusive);
}

#[test]
fn an_intended_cost_may_pass_until_its_day_and_up_to_its_cap() {
    let entry = |up_to: f64, until: &str| Accept {
        target: "simulated".to_owned(),
        metric: Metric::InstructionsPerRequest,
        up_to,
        until: until.to_owned(),
        reason: "TICKET-7".to_owned(),
    };
    for (up_to, until, expected, said) in [
        (0.12, "2026-03-01", Outcome::Pass, "accepted up to 12 % until 2026-03-01: TICKET-7"),
        (0.08, "2026-03-01", Outcome::Regression, "beyond the 8 % accepted"),
        (0.12, "2025-12-31", Outcome::Regression, "ended on 2025-12-31"),
    ] {
        let mut target = only(cost(vec![steady(1.0)], vec![steady(1.112)]));
        target.policy.accept = vec![entry(up_to, until)];
        let verdict = verdict_of(target);
        assert_eq!(verdict.verdict, expected);
        assert!(verdict.targets[0].reasons[0].contains(said), "{:?}", verdict.targets[0].reasons);
        assert_eq!(verdict.targets[0].accepted.len(), usize::from(expected == Outcome::Pass));
    }
}

#[test]
fn strict_limits_fail_what_is_noticed() {
    let mut target = only(cost(vec![steady(1.0)], vec![steady(1.013)]));
    target.policy.limits = LimitSet::Strict;
    assert_eq!(verdict_of(target).verdict, Outcome::Regression);
}

#[test]
fn the_class_that_grew_most_is_the_one_to_look_into_and_the_change_that_costs_most_is_named() {
    let three = |a, b, c| vec![steady(a), steady(b), steady(c)];
    let mut target = only(cost(three(1.0, 1.0, 1.0), three(1.08, 1.3, 1.0)));
    assert_eq!(cost_regressed(&target), Some(1));
    assert_eq!(cost_regressed(&only(cost(three(1.0, 1.0, 1.0), three(1.0, 1.02, 1.0)))), None);
    assert_eq!(cost_regressed(&run(1, &Policy::default(), Effects::default(), Noise::steady())), None);
    let part = |what: &str, line: Option<u32>, instructions| BlamePart {
        pointer: "/x".to_owned(),
        span: line.map(|line| Span { line, column: 1 }),
        what: what.to_owned(),
        instructions,
    };
    target.cost.as_mut().unwrap().blame = Some(Blame {
        class: 1,
        base: BASE,
        head: 1.3 * BASE,
        parts: vec![
            part("access log added", Some(80), None),
            part("HTTP filter envoy.filters.http.lua added", Some(42), Some(46_000.0)),
            part("route added", Some(9), Some(300.0)),
        ],
        untried: vec!["cluster b changed".to_owned()],
    });
    let verdict = verdict_of(target);
    let lines: Vec<Option<u32>> =
        verdict.findings.iter().filter(|f| f.metric == Metric::InstructionsPerRequest).map(|f| f.line).collect();
    assert_eq!(lines, [None, Some(42), None]);
    let step =
        "look at line 42 of head.yaml: HTTP filter envoy.filters.http.lua added costs 46.0 k instructions per request";
    assert_eq!(verdict.targets[0].next_steps[0], step);
    // The largest change first.
    assert!(verdict.targets[0].reasons[0].contains("POST /v1/orders 20 KiB"), "{:?}", verdict.targets[0].reasons);
}

#[test]
fn other_counts_can_be_compared_by_the_same_rule_with_limits_of_their_own() {
    let names = [class("GET /"), class("GET /new")];
    let stored = ArmCost { arm: Arm::Base, classes: vec![steady(1.0), ClassCost::default()] };
    let head = ArmCost { arm: Arm::Head, classes: vec![steady(1.045), steady(1.0)] };
    let policy = Policy::default();
    let findings = compare(&Comparison {
        target: "checkout",
        file: "head.yaml",
        classes: &names,
        base: Some(&stored),
        head: &head,
        against: "baseline",
        policy: &policy,
        day: None,
        margins: &|metric| {
            policy.margins(metric).map(|m| sidegate::policy::Margins { limit: 0.04, rule_out: 0.05, ..m })
        },
    });
    let of = |class: &str| {
        findings
            .iter()
            .find(|f| f.request_class() == Some(class) && f.metric == Metric::InstructionsPerRequest)
            .unwrap()
    };
    assert_eq!((of("GET /").verdict, of("GET /").against.as_str()), (Call::Regression, "baseline"));
    // A class that the stored counts do not have is shown by itself.
    assert_eq!((of("GET /new").verdict, of("GET /new").base), (Call::Report, None));
}

fn machine() -> CountingClass {
    CountingClass {
        architecture: "x86_64".to_owned(),
        instruction_set: "x86-64-v3".to_owned(),
        libc: "glibc 2.36".to_owned(),
        valgrind: "valgrind-3.19.0".to_owned(),
        workload_version: 1,
    }
}

/// A run whose head costs `times` what base costs.
fn run_of(times: f64) -> Record {
    let cost = Cost { machine: Some(machine()), ..cost(vec![steady(1.0)], vec![steady(times)]) };
    record(11, timed(cost))
}

#[test]
fn two_runs_are_compared_by_their_heads_counts_and_counters_and_not_by_their_times() {
    let (before, mut after) = (run_of(1.0), run_of(1.112));
    let (_, same) = judge_apart(&before, &before).unwrap();
    assert_eq!(same.verdict, Outcome::Pass, "{:?}", same.targets[0].reasons);
    let (joined, verdict) = judge_apart(&before, &after).unwrap();
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regression, exit::REGRESSION));
    let target = &verdict.targets[0];
    assert!(target.reasons[0].starts_with("count: GET /v1/orders: instructions per request +11.2 %"), "{target:?}");
    assert!(target.notes.iter().any(|n| n.contains("different runs are not comparable")), "{target:?}");
    let cpu = find(&verdict, Metric::CpuNsPerRequest);
    assert_eq!((cpu.gated, cpu.ratio, cpu.low, cpu.against.as_str()), (false, None, None, "another run"));
    assert!(cpu.base.is_some() && cpu.head.is_some());
    let shown = text(&joined, &verdict, false);
    assert!(shown.lines().any(|l| l.starts_with("cpu_ns_per_request") && l.ends_with(" incomparable")), "{shown}");
    assert!(shown.contains("[counted per request: instructions]"), "{shown}");

    // What the backend counts does not depend on how fast the machine is.
    for slice in after.targets[0].blocks.iter_mut().flat_map(|b| &mut b.slices).filter(|s| s.arm == Arm::Head) {
        slice.upstream_connections = slice.completed / 4;
    }
    after.targets[0].cost = before.targets[0].cost.clone();
    let (_, verdict) = judge_apart(&before, &after).unwrap();
    assert_eq!(verdict.verdict, Outcome::Regression);
    assert_eq!(find(&verdict, Metric::UpstreamConnectionsPerRequest).verdict, Call::Regression);
    assert!(verdict.targets[0].next_steps[0].contains("max_requests_per_connection"), "{:?}", verdict.targets[0]);
    let first = &mut after.targets[0].blocks[0].slices;
    first.iter_mut().for_each(|s| s.upstream_connections = 0);
    first.iter_mut().find(|s| s.arm == Arm::Head).unwrap().errors = [("reset".to_owned(), 1)].into();
    let (_, verdict) = judge_apart(&before, &after).unwrap();
    let errors = find(&verdict, Metric::ErrorsPerRequest);
    assert!(
        errors.verdict == Call::Regression && errors.reason.contains("`reset` in the second run only"),
        "{errors:?}"
    );
}

#[test]
fn what_forbids_comparing_two_runs_is_said() {
    let before = run_of(1.0);
    let changed = |change: &dyn Fn(&mut TargetRecord)| {
        let mut after = run_of(1.0);
        change(&mut after.targets[0]);
        let (_, verdict) = judge_apart(&before, &after).unwrap();
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, exit::INVALID));
        verdict.targets[0].reasons[0].clone()
    };
    let machine = |change: fn(&mut CountingClass)| {
        move |t: &mut TargetRecord| change(t.cost.as_mut().unwrap().machine.as_mut().unwrap())
    };
    let said = changed(&machine(|m| m.valgrind = "valgrind-3.25.1".to_owned()));
    assert_eq!(said, "nothing was counted: the runs differ in valgrind valgrind-3.19.0 and valgrind-3.25.1");
    assert!(changed(&machine(|m| m.libc = "musl 1.2".to_owned())).contains("C library glibc 2.36 and musl 1.2"));
    assert!(changed(&|t| t.head.proxy.sha256 = "ff".repeat(32)).contains("proxy simulated 0"));
    assert!(changed(&|t| t.concurrency = 2).contains("concurrency 1 and 2"));
    assert!(changed(&|t| t.cost = None).contains("the second run did not count"));

    let mut other = run_of(1.0);
    other.targets[0].cost.as_mut().unwrap().classes[0].name = "GET /other".to_owned();
    let (_, verdict) = judge_apart(&before, &other).unwrap();
    assert!(verdict.targets[0].notes.iter().any(|n| n.contains("in one run only")), "{:?}", verdict.targets[0]);

    let mut two = run_of(1.0);
    two.targets.push(TargetRecord { name: "b".to_owned(), ..two.targets[0].clone() });
    two.targets[0].name = "a".to_owned();
    assert!(judge_apart(&before, &two).unwrap_err().contains("no target in common: `simulated` and `a`, `b`"));
}

#[test]
fn the_command_compares_two_records() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str, record: &Record| {
        let path = dir.path().join(name);
        std::fs::write(&path, serde_json::to_string(record).unwrap()).unwrap();
        path
    };
    let (before, after) = (path("a.json", &run_of(1.0)), path("b.json", &run_of(1.112)));
    let out = dir.path().join("out");
    let ran = sidegate().arg("compare").args([&before, &after]).arg("--out").arg(&out).output().unwrap();
    let (printed, complaint) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(1), "{printed}{complaint}");
    assert!(printed.contains("REGRESSION") && printed.contains("incomparable"), "{printed}");
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("not comparable"), "{report}");
    let ran = sidegate().arg("compare").args([&before, &before]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stdout));
    let ran = sidegate().arg("compare").arg(&before).arg(dir.path().join("none.json")).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
}

/// Three windows, two more where they scatter, of noise as measured: 0.1 % a window.
fn noisy(draws: &mut Normal, times: f64) -> ClassCost {
    let mut window = || BASE * times * (1.0 + 0.001 * draws.draw());
    let mut values = vec![window(), window(), window()];
    let range =
        |v: &[f64]| v.iter().copied().fold(0.0, f64::max) / v.iter().copied().fold(f64::INFINITY, f64::min) - 1.0;
    if range(&values) > 0.002 {
        values.extend([window(), window()]);
    }
    counted(&values)
}

#[test]
fn noise_as_measured_never_fails_a_copy_and_never_hides_six_percent() {
    const DRAWS: usize = 100_000;
    let policy = Policy::default();
    let names = [class("GET /")];
    let mut draws = Normal::new(5, 1);
    for (times, expected) in [(1.0, Call::Pass), (1.06, Call::Regression)] {
        let mut other = 0_usize;
        for _ in 0..DRAWS {
            let base = ArmCost { arm: Arm::Base, classes: vec![noisy(&mut draws, 1.0)] };
            let head = ArmCost { arm: Arm::Head, classes: vec![noisy(&mut draws, times)] };
            let comparison = Comparison {
                target: "t",
                file: "f",
                classes: &names,
                base: Some(&base),
                head: &head,
                against: "base",
                policy: &policy,
                day: None,
                margins: &|metric| policy.margins(metric).filter(|_| metric == Metric::InstructionsPerRequest),
            };
            let findings = compare(&comparison);
            other += usize::from(findings[0].verdict != expected);
        }
        println!("{DRAWS} draws at {times}: {other} not {expected:?}");
        assert_eq!(other, 0, "{times}");
    }
}

fn any_cost() -> impl Strategy<Value = ClassCost> {
    let number = || prop_oneof![0_u64..5, 990_u64..1010, Just(u64::MAX), any::<u64>()];
    let window = (number(), number(), number()).prop_map(|(requests, instructions, syscalls)| Window {
        requests,
        instructions,
        syscalls,
        clock_reads: 0,
    });
    let near = (0.9..1.2_f64).prop_map(|t| window_of(BASE * t));
    let failed = prop_oneof![9 => Just(None), 1 => Just(Some("it ended".to_owned()))];
    let statuses = prop::collection::vec((prop::sample::select(vec![200_u16, 204, 404, 503, 0]), number()), 0..3);
    let windows = prop_oneof![prop::collection::vec(window, 0..6), prop::collection::vec(near, 0..6)];
    (windows, any::<Option<i64>>(), any::<Option<f64>>(), statuses, failed).prop_map(
        |(windows, heap_growth_bytes, heap_bytes_per_connection, statuses, failed)| ClassCost {
            windows,
            heap_growth_bytes,
            heap_bytes_per_connection,
            statuses,
            failed,
        },
    )
}

fn window_of(instructions: f64) -> Window {
    window(instructions, 8.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever was counted gets one call, and what it says agrees with the windows.
    #[test]
    fn no_counts_panic_and_the_rule_never_says_both(
        base in prop::collection::vec(any_cost(), 0..4),
        head in prop::collection::vec(any_cost(), 0..4),
        limit in 0.0..0.3_f64,
        alone in any::<bool>(),
    ) {
        let mut target = only(cost(base, head));
        if alone {
            target.base = None;
        }
        let own = LimitOverride { limit: Some(limit), ..LimitOverride::default() };
        target.policy.overrides.insert(Metric::InstructionsPerRequest, own);
        let _ = cost_regressed(&target);
        let verdict = verdict_of(target);
        prop_assert!(serde_json::to_string(&verdict).is_ok());
        for f in verdict.findings.iter().filter(|f| f.gated && f.metric == Metric::InstructionsPerRequest) {
            let (Some(low), Some(high)) = (f.low, f.high) else { continue };
            let (limit, rule_out) = (1.0 + f.limit.unwrap(), 1.0 + f.rule_out.unwrap());
            match f.verdict {
                Call::Regression => prop_assert!(low > limit * (1.0 - 1e-12), "{f:?}"),
                Call::Pass => prop_assert!(low <= limit * (1.0 + 1e-12) && high < rule_out, "{f:?}"),
                Call::Improved => prop_assert!(high < 1.0 / limit, "{f:?}"),
                Call::Costlier => prop_assert!(low > 1.0 && low <= limit * (1.0 + 1e-12), "{f:?}"),
                _ => {}
            }
        }
    }
}
