//! Verdicts on records that are built, damaged or cut short.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use sidegate::exit;
use sidegate::judge::{judge, may_stop};
use sidegate::metric::Metric;
use sidegate::policy::{Accept, LimitOverride, OnInconclusive, Policy, Profile};
use sidegate::record::{Arm, End, Record, TargetRecord};
use sidegate::simulate::{Effects, Noise, record, run};
use sidegate::verdict::{Call, Finding, Outcome, Verdict};

const COSTLY: Effects = Effects {
    cpu: 0.3,
    p50: 0.0,
    tail: 0.0,
    slow_share: 0.0,
    slow_ms: 0.0,
    memory: 0.0,
    startup: 0.0,
    errors: 0.0,
    retries: 0.0,
};

fn quick() -> Policy {
    Policy { profile: Profile::Quick, ..Policy::default() }
}

fn simulated(policy: &Policy, effects: Effects) -> TargetRecord {
    run(11, policy, effects, Noise::steady())
}

fn verdict_of(target: TargetRecord) -> Verdict {
    judge(&record(11, target))
}

fn find<'a>(verdict: &'a Verdict, metric: Metric, scenario: &str) -> &'a Finding {
    verdict.findings.iter().find(|f| f.metric == metric && f.scenario == scenario).unwrap()
}

fn without_base(mut target: TargetRecord) -> TargetRecord {
    target.base = None;
    target.no_base = Some("new file".to_owned());
    for block in &mut target.blocks {
        block.arms.retain(|a| a.arm == Arm::Head);
        block.slices.retain(|s| s.arm != Arm::Base);
    }
    target
}

fn accept(up_to: f64, until: &str) -> Policy {
    let entry = |metric| Accept {
        target: "simulated".to_owned(),
        metric,
        up_to,
        until: until.to_owned(),
        reason: "TICKET-7".to_owned(),
    };
    Policy { accept: vec![entry(Metric::CpuNsPerRequest), entry(Metric::ThroughputRps)], ..quick() }
}

#[test]
fn a_regression_says_what_how_much_and_what_to_do() {
    let verdict = verdict_of(simulated(&quick(), COSTLY));
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Regression, exit::REGRESSION));
    let finding = find(&verdict, Metric::CpuNsPerRequest, "open");
    assert_eq!(finding.verdict, Call::Regression);
    let (low, ratio, high) = (finding.low.unwrap(), finding.ratio.unwrap(), finding.high.unwrap());
    assert!(1.05 < low && low < ratio && ratio < high && (ratio - 1.3).abs() < 0.05, "{low} {ratio} {high}");
    assert!(finding.mde.is_some_and(|mde| mde > 0.05 && mde < 0.2));
    let throughput = find(&verdict, Metric::ThroughputRps, "closed");
    assert_eq!(throughput.verdict, Call::Regression);
    assert!(throughput.low.unwrap() < throughput.ratio.unwrap() && throughput.ratio.unwrap() < 0.85);
    let target = &verdict.targets[0];
    assert!(target.reasons[0].contains("), limit 5 %"), "{}", target.reasons[0]);
    let steps = target.next_steps.join("\n");
    assert!(steps.contains("filters"), "{steps}");
    assert!(target.next_steps.len() <= 3, "{steps}");
}

/// What is counted per request says why; what is timed only says that.
#[test]
fn a_count_that_grew_is_named_before_the_times_that_grew_with_it() {
    let mut target = simulated(&quick(), COSTLY);
    for slice in target.blocks.iter_mut().flat_map(|b| &mut b.slices) {
        slice.upstream_connections = if slice.arm == Arm::Head { slice.completed / 4 } else { 0 };
    }
    let verdict = verdict_of(target);
    assert_eq!(verdict.verdict, Outcome::Regression);
    let target = &verdict.targets[0];
    assert!(target.reasons[0].contains("upstream connections"), "{:?}", target.reasons);
    assert!(target.next_steps[0].contains("max_requests_per_connection"), "{:?}", target.next_steps);
}

#[test]
fn an_intended_cost_may_pass_until_its_day_and_up_to_its_cap() {
    let verdict = verdict_of(simulated(&accept(0.4, "2026-01-01"), COSTLY));
    assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.targets[0].reasons);
    assert_eq!(find(&verdict, Metric::CpuNsPerRequest, "open").verdict, Call::Accepted);
    assert_eq!(verdict.targets[0].accepted.len(), 2);
    assert!(verdict.targets[0].reasons[0].contains("TICKET-7"));
    for (up_to, until, said) in [
        (0.1, "2027-01-01", "beyond the 10 % accepted"),
        (0.4, "2025-12-31", "ended on 2025-12-31"),
        (0.4, "soon", "soon"),
    ] {
        let verdict = verdict_of(simulated(&accept(up_to, until), COSTLY));
        assert_eq!(verdict.verdict, Outcome::Regression);
        assert!(verdict.targets[0].reasons[0].contains(said), "{:?}", verdict.targets[0].reasons);
    }
}

#[test]
fn errors_on_head_only_are_a_regression_and_anywhere_else_invalid() {
    let failing = Effects { errors: 0.01, ..Effects::default() };
    let verdict = verdict_of(simulated(&quick(), failing));
    assert_eq!(verdict.verdict, Outcome::Regression);
    assert!(verdict.targets[0].reasons[0].contains("`status 503` on head only"));
    for arm in [Arm::Base, Arm::Direct] {
        let mut target = simulated(&quick(), Effects::default());
        let slice = target.blocks[0].slices.iter_mut().find(|s| s.arm == arm).unwrap();
        slice.errors = BTreeMap::from([("reset".to_owned(), 1)]);
        let verdict = verdict_of(target);
        assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Invalid, exit::INVALID), "{arm:?}");
    }
    // A single one of a new kind suffices.
    let mut target = simulated(&quick(), Effects::default());
    let slice = target.blocks[0].slices.iter_mut().find(|s| s.arm == Arm::Head).unwrap();
    slice.errors = BTreeMap::from([("reset".to_owned(), 1)]);
    let verdict = verdict_of(target);
    assert_eq!(verdict.verdict, Outcome::Regression);
    assert_eq!(find(&verdict, Metric::ErrorsPerRequest, "open").verdict, Call::Regression);
}

#[test]
fn how_a_run_ended_can_decide_alone() {
    let failed = |arm| End::Failed { arm, message: "exited with status 1".to_owned() };
    let ends = [
        (failed(Some(Arm::Head)), Outcome::Regression),
        (failed(Some(Arm::Base)), Outcome::Invalid),
        (failed(None), Outcome::Invalid),
        (End::Interrupted { by: "SIGINT".to_owned() }, Outcome::Invalid),
    ];
    for (end, expected) in ends {
        let mut target = simulated(&quick(), COSTLY);
        target.blocks.truncate(5);
        target.end = end.clone();
        let verdict = verdict_of(target);
        assert_eq!(verdict.verdict, expected, "{end:?}");
        assert!(verdict.findings.iter().filter(|f| f.gated).all(|f| f.verdict == Call::Invalid));
    }
}

#[test]
fn without_a_base_only_absolute_limits_decide() {
    let verdict = verdict_of(without_base(simulated(&quick(), COSTLY)));
    assert_eq!(verdict.verdict, Outcome::Pass);
    assert!(verdict.findings.iter().all(|f| f.verdict == Call::Report && f.base.is_none()));
    assert!(verdict.targets[0].reasons[0].contains("no base: new file"));

    let mut policy = quick();
    policy.max.insert(Metric::RssBytes, 20e6);
    policy.added_max.insert(Metric::LatencyP99Ns, 50e6);
    let verdict = verdict_of(without_base(simulated(&policy, COSTLY)));
    assert_eq!(verdict.verdict, Outcome::Regression);
    let against: Vec<&Finding> = verdict.findings.iter().filter(|f| f.against == "absolute").collect();
    assert!(against.iter().any(|f| f.metric == Metric::RssBytes && f.verdict == Call::Regression));
    assert!(against.iter().any(|f| f.metric == Metric::LatencyP99Ns && f.verdict == Call::Pass));
}

#[test]
fn a_noisy_machine_decides_nothing() {
    let mut target = simulated(&quick(), COSTLY);
    let voided = target.blocks.len() / 4 + 1;
    for block in &mut target.blocks[..voided] {
        block.void = Some("steal time".to_owned());
    }
    let verdict = verdict_of(target.clone());
    assert_eq!((verdict.verdict, verdict.exit_code), (Outcome::Inconclusive, exit::PASS));
    assert!(verdict.targets[0].reasons[0].contains("noisy machine"));
    assert!(verdict.targets[0].notes.iter().any(|n| n.contains("steal time")));
    target.policy.on_inconclusive = OnInconclusive::Fail;
    assert_eq!(verdict_of(target).exit_code, exit::INCONCLUSIVE);
}

#[test]
fn a_workload_that_did_not_run_is_invalid() {
    let mut target = simulated(&quick(), Effects::default());
    for slice in target.blocks.iter_mut().flat_map(|b| &mut b.slices).filter(|s| s.scenario == 0) {
        slice.completed = slice.completed * 97 / 100;
    }
    let verdict = verdict_of(target);
    assert_eq!(verdict.verdict, Outcome::Invalid);
    assert!(verdict.targets[0].reasons[0].contains("of the intended rate"));

    let mut target = simulated(&quick(), Effects::default());
    for slice in target.blocks.iter_mut().flat_map(|b| &mut b.slices) {
        if slice.scenario == 1 && slice.arm == Arm::Head {
            slice.completed = 0;
        }
    }
    let verdict = verdict_of(target);
    assert_eq!(verdict.verdict, Outcome::Invalid);
    assert!(verdict.targets[0].reasons[0].contains("closed: no request was answered on head"));
}

/// Every twentieth slice lasts four times as long: a stalled machine, not a proxy that cannot keep up.
#[test]
fn a_few_stalled_slices_do_not_make_a_run_invalid() {
    let mut target = simulated(&quick(), Effects::default());
    let open = target.blocks.iter_mut().flat_map(|b| &mut b.slices).filter(|s| s.scenario == 0);
    for slice in open.step_by(20) {
        slice.elapsed_ns *= 4;
    }
    let verdict = verdict_of(target);
    assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.targets[0].reasons);
}

#[test]
fn too_few_samples_count_neither_for_nor_against() {
    let mut target = simulated(&quick(), Effects { tail: 1.0, ..Effects::default() });
    target.blocks.truncate(1);
    let verdict = verdict_of(target);
    let finding = find(&verdict, Metric::LatencyP99Ns, "open");
    assert_eq!((finding.gated, finding.verdict), (false, Call::Report));
    assert!(finding.reason.contains("too few samples"));
    // One block decides nothing about the others either.
    assert_eq!(verdict.verdict, Outcome::Inconclusive);
    assert_eq!(find(&verdict, Metric::CpuNsPerRequest, "open").verdict, Call::Inconclusive);
}

#[test]
fn a_change_below_the_floor_fails_no_one() {
    let effects = Effects { startup: 0.8, ..Effects::default() };
    let mut target = simulated(&quick(), effects);
    let full = verdict_of(target.clone());
    assert_eq!(find(&full, Metric::StartupMs, "").verdict, Call::Regression);
    // The same ratio of a proxy that starts in a tenth of the time: 14 ms more.
    for arm in target.blocks.iter_mut().flat_map(|b| &mut b.arms) {
        arm.startup_ns /= 10;
    }
    assert_eq!(find(&verdict_of(target), Metric::StartupMs, "").verdict, Call::Pass);
}

#[test]
fn levels_drop_where_margins_do_not_protect() {
    // A limit of next to nothing on a noisy figure: sign flips of the same values often exceed it.
    let tight = LimitOverride { notice: None, limit: Some(1e-9), rule_out: None };
    let mut policy = quick();
    for metric in [Metric::LatencyP50Ns, Metric::LatencyP90Ns, Metric::CpuNsPerRequest] {
        policy.overrides.insert(metric, tight);
    }
    let mut noise = Noise::steady();
    noise.stalls = 0.2;
    let verdict = judge(&record(3, run(3, &policy, Effects::default(), noise)));
    let target = &verdict.targets[0];
    assert!(target.flip_rate > 0.01);
    assert!((target.alpha - 0.01 / f64::from(target.family_size)).abs() < 1e-12);
    assert!(target.notes.iter().any(|n| n.contains("scatter")));
}

#[test]
fn an_empty_record_is_skipped_and_one_without_blocks_inconclusive() {
    let empty = Record { targets: Vec::new(), ..record(0, simulated(&quick(), COSTLY)) };
    assert_eq!((judge(&empty).verdict, judge(&empty).exit_code), (Outcome::Skipped, exit::PASS));
    let mut target = simulated(&quick(), COSTLY);
    target.blocks.clear();
    assert!(!may_stop(&target));
    assert_eq!(verdict_of(target).verdict, Outcome::Inconclusive);
}

#[test]
fn a_record_that_was_stored_is_judged_the_same() {
    let record = record(11, simulated(&quick(), COSTLY));
    let stored: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(judge(&record), judge(&stored));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever is missing or absurd in a record, it gets a verdict.
    #[test]
    fn no_record_panics(damage in prop::collection::vec((0_usize..9, any::<prop::sample::Index>(), any::<u64>()), 1..40)) {
        let mut target = simulated(&quick(), Effects::default());
        for (kind, at, value) in damage {
            let block = at.get_mut(&mut target.blocks);
            let many = block.slices.len();
            if many == 0 {
                continue;
            }
            let slice = &mut block.slices[at.index(many)];
            match kind {
                0 => slice.elapsed_ns = value,
                1 => slice.completed = value,
                2 => slice.latency = sidegate::histogram::Histogram::from_pairs([(value, value), (0, u64::MAX)]),
                3 => slice.proxy = None,
                4 => slice.errors = BTreeMap::from([("reset".to_owned(), value)]),
                5 => slice.scenario = 7,
                6 => block.arms.clear(),
                7 => block.slices.clear(),
                _ => {
                    slice.round = value as u32;
                    if let Some(proxy) = &mut slice.proxy {
                        (proxy.cpu_ns, proxy.worker_wait_ns, proxy.context_switches) = (value, value, value);
                        proxy.worker_cpu_ns = vec![value; 3];
                    }
                }
            }
        }
        let _ = may_stop(&target);
        let verdict = verdict_of(target);
        prop_assert!(serde_json::to_string(&verdict).is_ok());
    }
}
