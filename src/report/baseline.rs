//! What is said of the stored baseline: one sentence for all, a folded table for those who want to see.

use super::clean::{cell_code, code, sentence};
use super::{markdown, metric_label, phrase};
use crate::record::{Arm, Replay, StoredBaseline, StoredCounts, StoredFigure, TargetRecord};
use crate::verdict::{Call, Finding};

/// How head stands to the stored baseline; `None` where there is none, or where a note tells why it decides nothing.
pub fn summary(target: &TargetRecord, findings: &[&Finding]) -> Option<String> {
    let stored = target.baseline.as_ref()?;
    let of = format!("the stored baseline of {} ({})", day(stored), stored.file);
    match &stored.replay {
        Replay::IsBase => Some(format!("the baseline is the base: {of} holds the same config")),
        Replay::Live { .. } | Replay::Left { .. } => {
            let gated: Vec<&&Finding> = findings.iter().filter(|f| f.gated).collect();
            let count = |call: Call| gated.iter().filter(|f| f.verdict == call).count();
            let within = count(Call::Pass) + count(Call::Improved) + count(Call::Costlier);
            (!gated.is_empty()).then(|| {
                let beyond = count(Call::Regression);
                let rest = if beyond > 0 { format!("; beyond them: {beyond}") } else { String::new() };
                format!("held against {of} too: {within} of {} figures are within its limits{rest}", gated.len())
            })
        }
    }
}

/// The folded part of `report.md`.
pub fn details(target: &TargetRecord, findings: &[&Finding]) -> Option<String> {
    let stored = target.baseline.as_ref()?;
    let mut out = format!("Recorded {} from {}.", code(&stored.recorded_at), code(&stored.config));
    if !findings.is_empty() {
        let ran = match (stored.is_live() && !target.blocks.is_empty(), target.has(Arm::Base)) {
            (false, _) => "",
            (true, true) => " Its config ran beside head in every third round;",
            (true, false) => " Its config ran beside head in base's place;",
        };
        out.push_str(&format!("{ran} `base` in this table is the baseline.\n\n"));
        out.push_str(&markdown::table(findings));
    } else {
        out.push_str("\n\n");
    }
    if let Some(counts) = &stored.counts {
        out.push_str(&counted(counts));
    }
    if let Some(why) = &stored.not_comparable {
        out.push_str(&format!("Its stored figures of time are not compared: {}.\n\n", sentence(why)));
    } else if !stored.figures.is_empty() {
        out.push_str(&then_and_now(stored, findings));
    }
    Some(out)
}

fn counted(counts: &StoredCounts) -> String {
    match counts {
        StoredCounts::Stored => "Its counts are those of the file, made in the same class of machine.\n\n".to_owned(),
        StoredCounts::Again { why } => format!("Its config was counted again: {}.\n\n", sentence(why)),
        StoredCounts::None { why } => format!("Its counts are not compared: {}.\n\n", sentence(why)),
    }
}

/// Stored figures beside today's. They decide nothing: they were measured at another time.
fn then_and_now(stored: &StoredBaseline, findings: &[&Finding]) -> String {
    let mut out =
        format!("As stored, and today (shown only):\n\n| metric | scenario | {} | today | head |\n", day(stored));
    out.push_str("|---|---|--:|--:|--:|\n");
    for finding in findings.iter().filter(|f| f.gated) {
        let Some(figure) = stored.figures.iter().find(|s| is_of(s, finding)) else { continue };
        let scenario = if finding.scenario.is_empty() { String::new() } else { cell_code(&finding.scenario) };
        let cells = [
            cell_code(&metric_label(finding)),
            scenario,
            phrase::quantity(figure.value, &finding.unit),
            phrase::quantity_or_none(finding.base, &finding.unit),
            phrase::quantity_or_none(finding.head, &finding.unit),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
    out
}

fn is_of(stored: &StoredFigure, finding: &Finding) -> bool {
    (stored.metric, stored.threshold_ms) == (finding.metric, finding.threshold_ms)
        && stored.scenario == finding.scenario
}

fn day(stored: &StoredBaseline) -> &str {
    stored.recorded_at.get(..10).unwrap_or(&stored.recorded_at)
}
