//! What all counts of a target say together: their part of the verdict, of its reasons and of its notes.

use super::target::outcome;
use super::wording;
use crate::metric::Metric;
use crate::record::{Missing, TargetRecord};
use crate::verdict::{Call, Finding, Outcome};

/// Names said in a sentence; the record has all.
const NAMED: usize = 3;

/// Whether the target was to be timed at all; a run that only counts has neither looks nor blocks.
pub fn is_timed(target: &TargetRecord) -> bool {
    target.cost.is_none() || !target.looks.is_empty() || !target.blocks.is_empty()
}

pub fn is_counted(finding: &Finding) -> bool {
    finding.request_class().is_some()
}

/// Counts that could not be made, or that scatter, count neither for nor against where timing decides; where nothing was
/// timed they are all there is. What an absolute limit says decides always.
pub fn decides(target: &TargetRecord, finding: &Finding) -> bool {
    let settled = !matches!(finding.verdict, Call::Inconclusive | Call::Invalid);
    finding.gated && (settled || !is_timed(target) || finding.against == "absolute")
}

/// What the counts add to the target's outcomes.
pub fn outcomes(target: &TargetRecord, counts: &[Finding]) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = counts.iter().filter(|f| decides(target, f)).map(|f| outcome(f.verdict)).collect();
    if !is_timed(target) && (missing(target).is_some() || counts.is_empty()) {
        outcomes.push(Outcome::Invalid);
    } else if !is_timed(target) && target.base.is_some() && !counts.iter().any(|f| f.gated) {
        outcomes.push(Outcome::Inconclusive);
    }
    outcomes
}

/// Why counts alone decide nothing, where nothing else was to decide.
pub fn undecided(target: &TargetRecord, counts: &[Finding]) -> Option<String> {
    if is_timed(target) {
        return None;
    }
    match missing(target) {
        Some(missing) => Some(format!("nothing was counted: {}", missing.why)),
        None if counts.is_empty() => Some("nothing was counted, and nothing was timed".to_owned()),
        None if target.base.is_some() && !counts.iter().any(|f| f.gated) => {
            Some("no class of request could be compared".to_owned())
        }
        None => None,
    }
}

/// One line for each thing that was not counted or decides nothing.
pub fn notes(target: &TargetRecord, counts: &[Finding]) -> Vec<String> {
    let Some(cost) = &target.cost else { return Vec::new() };
    let mut notes = Vec::new();
    if let Some(missing) = &cost.missing {
        notes.push(format!("instructions per request were not counted: {}; {}", missing.why, missing.help));
    }
    if !cost.left_out.is_empty() {
        notes.push(format!("not counted for lack of time: {}", some(&cost.left_out)));
    }
    let open: Vec<&Finding> = counts.iter().filter(|f| f.gated && !decides(target, f)).collect();
    notes.extend(open.iter().take(NAMED).map(|f| format!("{}; what was timed decides", f.reason)));
    if open.len() > NAMED {
        notes.push(format!("so do {} more counts, see the table", open.len() - NAMED));
    }
    notes
}

/// `instructions per request -0.1 … +0.1 % in 3 classes of request`; nothing where none was compared.
pub fn summary(counts: &[Finding]) -> Option<String> {
    let compared: Vec<(f64, f64)> = counts
        .iter()
        .filter(|f| f.gated && f.metric == Metric::InstructionsPerRequest && f.against != "absolute")
        .filter(|f| !matches!(f.verdict, Call::Inconclusive | Call::Invalid))
        .filter_map(|f| f.low.zip(f.high))
        .collect();
    let low = compared.iter().map(|c| c.0).min_by(f64::total_cmp)?;
    let high = compared.iter().map(|c| c.1).max_by(f64::total_cmp)?;
    let change = |ratio: f64| wording::change(Metric::InstructionsPerRequest, ratio - 1.0);
    let range = format!("{} … {}", change(low).trim_end_matches(" %"), change(high));
    let classes = if compared.len() == 1 { "class" } else { "classes" };
    Some(format!("instructions per request changed by {range} in {} {classes} of request", compared.len()))
}

pub fn missing(target: &TargetRecord) -> Option<&Missing> {
    target.cost.as_ref().and_then(|c| c.missing.as_ref())
}

fn some(names: &[String]) -> String {
    let mut text = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    if names.len() > NAMED {
        text += &format!(" and {} more", names.len() - NAMED);
    }
    text
}
