//! What makes a measurement invalid, and what is only worth a note.

use super::finding::{Case, prefix};
use super::wording;
use crate::analysis::{ErrorKind, ScenarioQuality, Who};
use crate::metric::Metric;
use crate::record::{Arm, End, Load};

/// Least share of the intended rate that must be answered.
const ACHIEVED: f64 = 0.99;

/// A thread that is saturated in fewer slices than this is not worth a sentence.
const OFTEN: f64 = 0.05;

/// Level of the notes' own tests.
const LEVEL: f64 = 0.01;

/// Why the measurement cannot be trusted: the workload did not run as it was meant to.
pub fn invalid(case: &Case<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    for error in &case.analysis.errors {
        let wrong = [(Arm::Direct, error.direct), (Arm::Base, error.base)];
        for (arm, count) in wrong.into_iter().filter(|w| w.1 > 0) {
            reasons.push(format!(
                "{}{count} requests on {} ended in `{}`, so that nothing can be said about head",
                prefix(case.scenario_name(Some(error.scenario))),
                if arm == Arm::Direct { "the direct path, without a proxy," } else { "base" },
                error.kind
            ));
        }
        if case.target.base.is_none() && error.head > 0 && error.direct == 0 {
            reasons.push(format!(
                "{}{} requests on head ended in `{}`, and there is no base to compare with",
                prefix(case.scenario_name(Some(error.scenario))),
                error.head,
                error.kind
            ));
        }
    }
    for quality in &case.analysis.quality.scenarios {
        for (arm, _) in quality.answered.iter().filter(|a| *a.1 <= 0.0) {
            let name = prefix(case.scenario_name(Some(quality.scenario)));
            reasons.push(format!("{name}no request was answered on {}", arm.name()));
        }
        for (arm, &share) in quality.achieved.iter().filter(|a| *a.1 < ACHIEVED) {
            reasons.push(format!(
                "{}only {:.1} % of the intended rate was answered on {} in the typical slice, less than {:.0} %",
                prefix(case.scenario_name(Some(quality.scenario))),
                100.0 * share,
                arm.name(),
                100.0 * ACHIEVED
            ));
        }
    }
    reasons
}

/// Whether what head is compared with did not run as it was meant to: no time of head can be judged by it.
pub fn base_is_unfit(case: &Case<'_>) -> bool {
    let erred = case.analysis.errors.iter().any(|e| e.base > 0 || e.direct > 0);
    let slow = |quality: &ScenarioQuality| quality.achieved.iter().any(|(arm, &a)| *arm != Arm::Head && a < ACHIEVED);
    erred || case.analysis.quality.scenarios.iter().any(slow)
}

/// Errors that only head has: (scenario, sentence).
pub fn new_errors<'a>(case: &'a Case<'_>) -> impl Iterator<Item = (&'a ErrorKind, String)> {
    let with_base = case.target.base.is_some();
    case.analysis.errors.iter().filter(move |e| with_base && e.head > 0 && e.base == 0 && e.direct == 0).map(|e| {
        let text = format!(
            "{}requests end in `{}` on head only ({} of {:.0})",
            prefix(case.scenario_name(Some(e.scenario))),
            e.kind,
            e.head,
            e.head_requests
        );
        (e, text)
    })
}

/// Sentences about the measurement's weak points.
pub fn notes(case: &Case<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let analysis = case.analysis;
    if analysis.voided > 0 {
        let why: Vec<&str> = case.target.blocks.iter().filter_map(|b| b.void.as_deref()).collect();
        notes.push(format!(
            "{} of {} blocks do not count: {}",
            analysis.voided,
            case.target.blocks.len(),
            distinct(&why).join("; ")
        ));
    }
    if case.family.alpha < super::family::BOUND {
        notes.push(format!(
            "the measurements scatter so widely that the limits alone do not keep false alarms below {:.0} %: each of \
             the {} timing metrics was tested at a level of {:.2} %",
            100.0 * super::family::BOUND,
            case.family.size,
            100.0 * case.family.alpha
        ));
    }
    if !case.target.cpus.realtime && analysis.blocks > 0 {
        notes.push(
            "measured at ordinary priority, so other work on this machine widens the intervals: run as root (in a \
             container with --cap-add SYS_NICE) to measure before it"
                .to_owned(),
        );
    }
    let few = usize::try_from(analysis.blocks).unwrap_or(usize::MAX) < case.family.blocks_needed;
    if few && analysis.blocks > 0 && case.family.size > 0 && case.target.end == End::Complete {
        notes.push(format!(
            "{} blocks are too few to call a regression at a level of {:.2} %: at least {} are needed",
            analysis.blocks,
            100.0 * case.family.alpha,
            case.family.blocks_needed
        ));
    }
    for quality in &analysis.quality.scenarios {
        of_scenario(case, quality, &mut notes);
    }
    notes
}

fn of_scenario(case: &Case<'_>, quality: &ScenarioQuality, notes: &mut Vec<String>) {
    let name = prefix(case.scenario_name(Some(quality.scenario)));
    let index = usize::try_from(quality.scenario).unwrap_or(usize::MAX);
    let closed = case.target.scenarios.get(index).is_some_and(|s| s.load == Load::Closed);
    let typical = case
        .analysis
        .effects
        .iter()
        .find(|e| e.scenario == Some(quality.scenario) && e.metric == Metric::LatencyP50Ns)
        .and_then(|e| e.head);
    if let Some((late, p50)) = quality.lateness_p99_ns.zip(typical).filter(|(late, p50)| !closed && *late > 0.25 * p50)
    {
        notes.push(format!(
            "{name}the generator itself was up to {} late (P99 of its lateness; typical latency is {}): latencies \
             contain that, on all arms alike",
            wording::value("ns", late),
            wording::value("ns", p50)
        ));
    }
    notes.extend(bounded_by(quality, closed).map(|text| format!("{name}{text}")));
    let disturbed = quality.disturbed.values().copied().fold(0.0, f64::max);
    if disturbed > 0.1 {
        notes.push(format!(
            "{name}in up to {:.0} % of an arm's slices something else had the worker's CPU for 3 ms or longer: the \
             machine is busy",
            100.0 * disturbed
        ));
    }
    if let Some(found) = quality.interference.filter(|i| i.p <= LEVEL) {
        notes.push(format!(
            "{name}head's workers waited for a CPU {:.2} ms a slice longer than base's: its own threads may compete with \
             each other",
            found.ms_a_slice
        ));
    }
    if let Some(slot) = quality.slot_effect.filter(|s| s.p <= LEVEL && s.estimate.abs() > 0.01) {
        notes.push(format!(
            "{name}CPU per request differs by {:.1} % between the harness's two slots, whatever config sits in them; the \
             coin keeps that out of the comparison",
            100.0 * slot.estimate.exp_m1().abs()
        ));
    }
}

/// Who bounded the result. A saturated worker is what closed loop is for; anything else limits what can be seen.
fn bounded_by(quality: &ScenarioQuality, closed: bool) -> impl Iterator<Item = String> {
    let mut worst: std::collections::BTreeMap<Who, f64> = std::collections::BTreeMap::new();
    // On the direct path there is no proxy, and generator or backend are expected to be the bound of a closed loop.
    for s in quality.saturated.iter().filter(|s| s.share > OFTEN && !(closed && s.arm == Arm::Direct)) {
        let share = worst.entry(s.who).or_default();
        *share = share.max(s.share);
    }
    worst.into_iter().map(move |(who, share)| {
        let share = 100.0 * share;
        match who {
            Who::Worker(n) if closed => {
                format!("the proxy's worker {n} bounded the result (saturated in {share:.0} % of slices), as it should")
            }
            Who::Worker(n) => {
                format!("the proxy's worker {n} was saturated in {share:.0} % of slices: latency is queueing")
            }
            Who::Generator => {
                format!("the load generator was saturated in {share:.0} % of slices and bounded the result")
            }
            Who::Backend => format!("the backend was saturated in {share:.0} % of slices and bounded the result"),
        }
    })
}

fn distinct<'a>(texts: &[&'a str]) -> Vec<&'a str> {
    let mut seen: Vec<&str> = Vec::new();
    for text in texts {
        if !seen.contains(text) {
            seen.push(text);
        }
    }
    seen
}
