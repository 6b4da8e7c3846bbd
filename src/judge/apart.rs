//! Two runs that did not run side by side: what was counted can be compared, what was timed cannot.

use super::finding::{prefix, unjudged};
use super::target::outcome;
use super::{judge, wording};
use crate::analysis::{Analysis, Effect, analyze, is_wall_clock};
use crate::metric::{Metric, Scale};
use crate::record::{
    Arm, ArmCost, ClassCost, Cost, CountingClass, CpuLayout, End, Load, Missing, Record, RequestClass, Scenario,
    TargetRecord,
};
use crate::verdict::{ANOTHER_RUN, Call, Finding, TargetVerdict, Verdict};

/// Head of one run against head of a later one, and the record of what was compared.
///
/// # Errors
/// A sentence, where the runs have no target in common.
pub fn judge_apart(before: &Record, after: &Record) -> Result<(Record, Verdict), String> {
    let pairs = pairs(before, after)?;
    let targets: Vec<TargetRecord> = pairs.iter().map(|(b, a)| joined(b, a)).collect();
    let record = Record { targets, ..after.clone() };
    let mut verdict = judge(&record);
    for ((b, a), target) in pairs.iter().zip(&mut verdict.targets) {
        let (counters, times) = figures(b, a);
        weigh(&counters, target);
        target.notes.extend(unmatched(b, a));
        if !times.is_empty() {
            target.notes.push(
                "times and memory of different runs are not comparable: they are shown and decide nothing".to_owned(),
            );
        }
        verdict.findings.extend(counters.into_iter().chain(times));
    }
    verdict.verdict = verdict.targets.iter().map(|t| t.verdict).max().unwrap_or(verdict.verdict);
    verdict.exit_code =
        verdict.verdict.exit_code(after.targets.first().map(|t| t.policy.on_inconclusive).unwrap_or_default());
    Ok((record, verdict))
}

/// Targets of the same name; where each run has only one, these.
fn pairs<'r>(before: &'r Record, after: &'r Record) -> Result<Vec<(&'r TargetRecord, &'r TargetRecord)>, String> {
    if let ([b], [a]) = (before.targets.as_slice(), after.targets.as_slice()) {
        return Ok(vec![(b, a)]);
    }
    let of_name = |a: &'r TargetRecord| Some((before.targets.iter().find(|b| b.name == a.name)?, a));
    let pairs: Vec<_> = after.targets.iter().filter_map(of_name).collect();
    let names = |r: &Record| r.targets.iter().map(|t| format!("`{}`", t.name)).collect::<Vec<_>>().join(", ");
    if pairs.is_empty() {
        return Err(format!("the runs have no target in common: {} and {}", names(before), names(after)));
    }
    Ok(pairs)
}

/// A record of counts only, as if both heads had been the arms of one run.
fn joined(before: &TargetRecord, after: &TargetRecord) -> TargetRecord {
    let cost = match comparable(before, after) {
        Ok((b, a)) => join(b, a),
        Err(why) => Cost {
            missing: Some(Missing {
                why,
                help: "count both with the same sidegate, proxy and valgrind, on machines of one class".to_owned(),
            }),
            ..Cost::default()
        },
    };
    TargetRecord {
        base: Some(before.head.clone()),
        no_base: None,
        cpus: CpuLayout::default(),
        scenarios: Vec::new(),
        looks: Vec::new(),
        cost: Some(cost),
        blocks: Vec::new(),
        end: End::Complete,
        ..after.clone()
    }
}

/// The counts of both, or what forbids comparing them.
fn comparable<'r>(before: &'r TargetRecord, after: &'r TargetRecord) -> Result<(&'r Cost, &'r Cost), String> {
    let cost = |t: &'r TargetRecord, which: &str| match &t.cost {
        None => Err(format!("the {which} run did not count")),
        Some(Cost { missing: Some(missing), .. }) => Err(format!("the {which} run did not count: {}", missing.why)),
        Some(cost) => Ok(cost),
    };
    let (b, a) = (cost(before, "first")?, cost(after, "second")?);
    let (then, now) = (&before.head.proxy, &after.head.proxy);
    let proxy = |p: &crate::record::ProxyId| {
        format!("{} {} ({})", p.kind, p.version, p.sha256.chars().take(12).collect::<String>())
    };
    let parts = |cost: &Cost| cost.machine.as_ref().map(CountingClass::parts).unwrap_or_default();
    let machines = parts(b).into_iter().zip(parts(a)).map(|((what, then), (_, now))| (what, then, now));
    let others = [
        ("concurrency", before.concurrency.to_string(), after.concurrency.to_string()),
        ("proxy", proxy(then), proxy(now)),
    ];
    let differ: Vec<String> =
        machines.chain(others).filter(|(_, b, a)| b != a).map(|(what, b, a)| format!("{what} {b} and {a}")).collect();
    if differ.is_empty() { Ok((b, a)) } else { Err(format!("the runs differ in {}", differ.join(", "))) }
}

/// Classes that both counted, in the order of the later run.
fn join(before: &Cost, after: &Cost) -> Cost {
    let mut joined = Cost { machine: after.machine.clone(), ..Cost::default() };
    let (mut base, mut head) = (Vec::new(), Vec::new());
    for class in &after.classes {
        let (Some(b), Some(a)) = (of_head(before, class), of_head(after, class)) else { continue };
        joined.classes.push(class.clone());
        base.push(b.clone());
        head.push(a.clone());
    }
    joined.arms = vec![ArmCost { arm: Arm::Base, classes: base }, ArmCost { arm: Arm::Head, classes: head }];
    joined
}

fn of_head<'c>(cost: &'c Cost, class: &RequestClass) -> Option<&'c ClassCost> {
    let index = cost.classes.iter().position(|c| c.is_same_request(class))?;
    cost.arms.iter().find(|a| a.arm == Arm::Head)?.classes.get(index)
}

/// Classes that only one run counted.
fn unmatched(before: &TargetRecord, after: &TargetRecord) -> Option<String> {
    let (b, a) = comparable(before, after).ok()?;
    let only = |one: &Cost, other: &Cost| -> Vec<String> {
        let alone = |c: &&RequestClass| of_head(one, c).is_some() && of_head(other, c).is_none();
        one.classes.iter().filter(alone).map(|c| c.name.clone()).collect()
    };
    let names = [only(b, a), only(a, b)].concat();
    (!names.is_empty()).then(|| format!("counted in one run only, not compared: {}", names.join("; ")))
}

/// Counters of the proxy and the backend, judged, and times, shown.
fn figures(before: &TargetRecord, after: &TargetRecord) -> (Vec<Finding>, Vec<Finding>) {
    let (old, new) = (analyze(before), analyze(after));
    let mut figures = (Vec::new(), Vec::new());
    for effect in &new.effects {
        let scenario = scenario_of(after, effect);
        let known = old.effects.iter().find(|e| {
            let same = scenario_of(before, e).map(|s| s.name.as_str()) == scenario.map(|s| s.name.as_str());
            same && e.metric == effect.metric && e.threshold_ms == effect.threshold_ms
        });
        let Some(known) = known else { continue };
        let alike = scenario.zip(scenario_of(before, known)).is_some_and(|(a, b)| same_load(a, b));
        if is_counter(effect.metric) && alike {
            let new_kinds = new_errors(&old, known, &new, effect);
            figures.0.extend(counter(after, effect, known, &new_kinds));
        } else {
            figures.1.push(shown(after, effect, known));
        }
    }
    figures
}

fn scenario_of<'t>(target: &'t TargetRecord, effect: &Effect) -> Option<&'t Scenario> {
    target.scenarios.get(usize::try_from(effect.scenario?).ok()?)
}

/// Whether two scenarios send the same; the rate is set by the machine.
fn same_load(a: &Scenario, b: &Scenario) -> bool {
    let model = |s: &Scenario| matches!(s.load, Load::Closed);
    let identity = |s: &Scenario| (s.path.clone(), s.protocol.clone(), s.connections, s.response_bytes, model(s));
    identity(a) == identity(b)
}

fn is_counter(metric: Metric) -> bool {
    metric.scale() == Scale::Difference && !is_wall_clock(metric)
}

/// Kinds of errors that only the later run's head shows.
fn new_errors(old: &Analysis, known: &Effect, new: &Analysis, effect: &Effect) -> Vec<String> {
    if effect.metric != Metric::ErrorsPerRequest {
        return Vec::new();
    }
    let before =
        |kind: &str| old.errors.iter().any(|e| Some(e.scenario) == known.scenario && e.kind == kind && e.head > 0);
    let later = new.errors.iter().filter(|e| Some(e.scenario) == effect.scenario && e.head > 0 && e.direct == 0);
    later.filter(|e| !before(&e.kind)).map(|e| format!("`{}`", e.kind)).collect()
}

/// A counter's blocks, range against range: counters do not depend on how fast the machine is.
fn counter(target: &TargetRecord, after: &Effect, before: &Effect, new_errors: &[String]) -> Option<Finding> {
    let margins = target.policy.margins(after.metric)?;
    let ends = |e: &Effect| {
        let fold = |f: fn(f64, f64) -> f64| e.head_blocks.iter().copied().reduce(f);
        fold(f64::min).zip(fold(f64::max))
    };
    let ((old_low, old_high), (new_low, new_high)) = (ends(before)?, ends(after)?);
    let (low, high) = (new_low - old_high, new_high - old_low);
    let mut finding = shown(target, after, before);
    finding.gated = true;
    (finding.low, finding.high) = (Some(low), Some(high));
    finding.added = finding.head.zip(finding.base).map(|(h, b)| h - b);
    (finding.notice, finding.limit, finding.rule_out) =
        (Some(margins.notice), Some(margins.limit), Some(margins.rule_out));
    finding.n = u32::try_from(before.head_blocks.len().min(after.head_blocks.len())).unwrap_or(u32::MAX);
    finding.verdict = match (low, high) {
        _ if !new_errors.is_empty() => Call::Regression,
        (low, _) if low > margins.limit => Call::Regression,
        (_, high) if high >= margins.rule_out => Call::Inconclusive,
        (_, high) if high < -margins.limit => Call::Improved,
        (low, _) if low > margins.notice => Call::Costlier,
        _ => Call::Pass,
    };
    finding.reason = super::finding::said(&finding);
    if !new_errors.is_empty() {
        finding.reason += &format!("; requests end in {} in the second run only", new_errors.join(", "));
    }
    Some(finding)
}

/// Both runs' figures without a comparison.
fn shown(target: &TargetRecord, after: &Effect, before: &Effect) -> Finding {
    let scenario = scenario_of(target, after).map_or("", |s| s.name.as_str());
    let unit = after.metric.unit();
    let value = |v: Option<f64>| v.map_or_else(|| "?".to_owned(), |v| wording::value(unit, v));
    let label = wording::label(after.metric, after.threshold_ms);
    Finding {
        threshold_ms: after.threshold_ms,
        direct: after.direct,
        base: before.head,
        head: after.head,
        reason: format!(
            "{}{label} {} and {}, in different runs: not comparable",
            prefix(scenario),
            value(before.head),
            value(after.head)
        ),
        ..unjudged(&target.name, &target.head.file, scenario, after.metric, ANOTHER_RUN)
    }
}

/// Puts what the counters say behind what the counts said.
fn weigh(counters: &[Finding], target: &mut TargetVerdict) {
    let worst = counters.iter().map(|f| outcome(f.verdict)).max();
    target.verdict = worst.map_or(target.verdict, |worst| worst.max(target.verdict));
    let told =
        |f: &&Finding| matches!(f.verdict, Call::Regression | Call::Inconclusive | Call::Costlier | Call::Improved);
    target.reasons.extend(counters.iter().filter(told).map(|f| f.reason.clone()));
    let regressed = counters.iter().filter(|f| f.verdict == Call::Regression);
    for advice in regressed.map(|f| f.advice.clone()) {
        if !target.next_steps.contains(&advice) {
            target.next_steps.push(advice);
        }
    }
}
