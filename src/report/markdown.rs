//! `report.md`: what happened and what to do in plain words first, everything else folded.

use super::clean::{cell_code, cell_sentence, code, sentence};
use super::counted::{self, Place};
use super::{
    accept, advice_of, anchored_of, baseline, details, findings_of, is_told, is_unmeasured, metric_label, only_counted,
    phrase, record_of,
};
use crate::metric::Metric;
use crate::record::{End, Record, TargetRecord};
use crate::verdict::{ANOTHER_RUN, Call, Finding, Outcome, TargetVerdict, Verdict};

/// The report of a run. Text from configs stands in code spans only.
pub fn markdown(record: &Record, verdict: &Verdict) -> String {
    let mut out = format!("# sidegate: {}\n\n", verdict.verdict.name());
    if verdict.targets.is_empty() {
        out.push_str("Nothing was measured.\n\n");
    }
    out.push_str(&commits(record));
    out.push_str(&list("About this run", &verdict.notes));
    for target in &verdict.targets {
        if verdict.targets.len() > 1 {
            out.push_str(&format!("## {}: {}\n\n", code(&target.target), target.verdict.name()));
        }
        out.push_str(&of_target(record, verdict, target));
    }
    out
}

/// What was compared, by the commits' names.
fn commits(record: &Record) -> String {
    let scope = &record.scope;
    match (&scope.base_commit, &scope.head_commit) {
        (Some(base), Some(head)) => format!("Commit {} against {}.\n\n", code(head), code(base)),
        (None, Some(head)) => format!("Commit {}, with nothing to compare it with.\n\n", code(head)),
        _ => String::new(),
    }
}

fn of_target(record: &Record, verdict: &Verdict, target: &TargetVerdict) -> String {
    if is_unmeasured(record, target) {
        return format!("{}{}", reasons(target), list("Next steps", &target.next_steps));
    }
    let findings: Vec<&Finding> = findings_of(verdict, target).collect();
    let mut out = reasons(target);
    out.push_str(&compared(record, target));
    out.push_str(&against_baseline(record, verdict, target));
    out.push_str(&accepted(target));
    out.push_str(&told(target, &findings));
    out.push_str(&record_of(record, target).map(blame).unwrap_or_default());
    out.push_str(&list("Doubts about the measurement", &target.notes));
    out.push_str(&detectable(&findings));
    out.push_str(&next_steps(record, target, &findings));
    out.push_str(&details::details(record, verdict, target, &findings));
    out
}

/// What the stored baseline was and came to; nothing where there is none.
pub fn against_baseline(record: &Record, verdict: &Verdict, target: &TargetVerdict) -> String {
    let anchored = anchored_of(verdict, target);
    let text = record_of(record, target).and_then(|t| baseline::summary(t, &anchored));
    text.map_or_else(String::new, |text| format!("{}.\n\n", sentence(&text)))
}

fn reasons(target: &TargetVerdict) -> String {
    let mut reasons = target.reasons.iter();
    let first = reasons.next().map_or_else(|| sentence(meaning(target.verdict)), |r| sentence(r));
    let mut out = format!("**{}**: {first}\n\n", title(target.verdict));
    for reason in reasons {
        out.push_str(&format!("- {}\n", sentence(reason)));
    }
    if target.reasons.len() > 1 {
        out.push('\n');
    }
    out
}

pub fn compared(record: &Record, target: &TargetVerdict) -> String {
    let of_target = record_of(record, target);
    let head = code(&target.head);
    let mut out = match &target.base {
        Some(base) => format!("Target {}: {} before, {head} after the change", code(&target.target), code(base)),
        None => {
            let why = of_target
                .and_then(|t| t.no_base.as_deref())
                .filter(|w| !is_told(target, w))
                .map(|w| format!(" ({})", sentence(w)));
            let why = why.unwrap_or_default();
            format!("Target {}: {head}, no base{why}: only absolute limits decide", code(&target.target))
        }
    };
    if let Some(t) = of_target {
        let proxy = format!("{} {}", t.head.proxy.kind, t.head.proxy.version);
        if only_counted(t) {
            out.push_str(&format!(", counted with {}, not timed", code(&proxy)));
        } else {
            out.push_str(&format!(", measured with {} in {} blocks", code(&proxy), target.blocks));
        }
    }
    out.push_str(".\n\n");
    match of_target.map(|t| &t.end) {
        Some(End::Interrupted { by }) if !is_told(target, by) => {
            out.push_str(&format!("The run was interrupted by {}: this is what it had until then.\n\n", code(by)));
        }
        Some(End::Failed { arm, message }) if !is_told(target, message) => {
            let who = arm.map_or("The run", |a| a.name());
            out.push_str(&format!(
                "{who} failed: {}. This is what had been measured until then.\n\n",
                sentence(message)
            ));
        }
        _ => {}
    }
    out
}

pub fn accepted(target: &TargetVerdict) -> String {
    let mut out = String::new();
    for a in &target.accepted {
        let (metric, up_to) = (code(a.metric.name()), phrase::margin(a.up_to, a.metric));
        out.push_str(&format!(
            "- Accepted: {metric} up to {up_to} until {}: {}\n",
            code(&a.until),
            sentence(&a.reason)
        ));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// What changed, failed or stayed open; passes are folded.
fn told(target: &TargetVerdict, findings: &[&Finding]) -> String {
    let shown: Vec<&Finding> = findings.iter().copied().filter(|f| is_news(f.verdict)).collect();
    let passed = findings.iter().filter(|f| f.verdict == Call::Pass).count();
    let mut out = String::new();
    if shown.is_empty() {
        if passed > 0 {
            out.push_str(&format!("Nothing changed beyond what is reported; {} passed.\n\n", metrics(passed, "")));
        }
        return out;
    }
    // Classes of request stand together: which one changed says where to look.
    let (counts, timed): (Vec<&Finding>, Vec<&Finding>) = shown.iter().partition(|f| f.request_class().is_some());
    if !counts.is_empty() {
        out.push_str(&counts_table(findings));
    }
    if !timed.is_empty() {
        out.push_str(&table(&timed));
    }
    if passed > 0 {
        out.push_str(&format!("{} passed; all are listed below.\n\n", metrics(passed, "other ")));
    }
    let advised = advice_of(target, findings);
    for finding in &advised {
        let place = match (&finding.file, finding.line) {
            (Some(file), Some(line)) => format!(" ({})", code(&format!("{file}:{line}"))),
            _ => String::new(),
        };
        out.push_str(&format!("- {}{place}: {}\n", code(&metric_label(finding)), sentence(&finding.advice)));
    }
    if !advised.is_empty() {
        out.push('\n');
    }
    out
}

fn metrics(count: usize, which: &str) -> String {
    if count == 1 { format!("1 {which}metric") } else { format!("{count} {which}metrics") }
}

fn is_news(call: Call) -> bool {
    !matches!(call, Call::Pass | Call::Report)
}

/// Findings, one a row.
pub fn table(findings: &[&Finding]) -> String {
    let mut out = String::from("| metric | scenario | direct | base | head | change (interval) | limit | verdict |\n");
    out.push_str("|---|---|--:|--:|--:|--:|--:|---|\n");
    for finding in findings {
        let unit = &finding.unit;
        let scenario = if finding.scenario.is_empty() { String::new() } else { cell_code(&finding.scenario) };
        let limit = limit_of(finding);
        let cells = [
            cell_code(&metric_label(finding)),
            scenario,
            phrase::quantity_or_none(finding.direct, unit),
            phrase::quantity_or_none(finding.base, unit),
            phrase::quantity_or_none(finding.head, unit),
            phrase::change(finding),
            limit,
            cell_sentence(word_of(finding)),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
    out
}

/// What a figure is held to.
fn limit_of(finding: &Finding) -> String {
    match finding.limit {
        Some(limit) if finding.against == "absolute" => {
            format!("at most {}", phrase::quantity(limit, &finding.unit))
        }
        Some(limit) => phrase::margin(limit, finding.metric),
        None => phrase::NONE.to_owned(),
    }
}

/// What was counted, a row for each class of request, its instructions first.
pub fn counts_table(findings: &[&Finding]) -> String {
    let mut out = String::from("| counted per request | figure | base | head | change (range) | limit | verdict |\n");
    out.push_str("|---|---|--:|--:|--:|--:|---|\n");
    for row in counted::rows(findings) {
        let finding = row.finding;
        let limit = limit_of(finding);
        let figure = row.figure.unwrap_or(match finding.metric {
            Metric::ErrorsPerRequest => "errors",
            _ => "instructions",
        });
        let cells = [
            cell_code(row.class),
            figure.to_owned(),
            phrase::quantity_or_none(finding.base, &finding.unit),
            phrase::quantity_or_none(finding.head, &finding.unit),
            phrase::change(finding),
            limit,
            cell_sentence(word_of(finding)),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
    out
}

/// Which change costs what.
pub fn blame(target: &TargetRecord) -> String {
    let Some(parts) = counted::parts(target) else { return String::new() };
    let mut out = format!(
        "Which change costs what, on {} ({} before, {} instructions per request after):\n\n",
        code(&parts.class),
        parts.base,
        parts.head
    );
    for part in &parts.parts {
        let place = match &part.place {
            Some(Place::Line(line)) => format!("line {line}: "),
            Some(Place::Pointer(pointer)) => format!("{}: ", code(pointer)),
            None => String::new(),
        };
        out.push_str(&format!("- {} {place}{}\n", part.amount, sentence(&part.what)));
    }
    if !parts.untried.is_empty() {
        let names: Vec<String> = parts.untried.iter().map(|u| code(u)).collect();
        out.push_str(&format!("- not tried for lack of time: {}\n", names.join(", ")));
    }
    out.push('\n');
    out
}

/// What this run was able to see, metric by metric, the weakest scenario deciding.
pub fn detectable(findings: &[&Finding]) -> String {
    let mut weakest: Vec<&Finding> = Vec::new();
    for finding in findings.iter().copied().filter(|f| f.gated && f.mde.is_some_and(f64::is_finite)) {
        match weakest.iter_mut().find(|f| f.metric == finding.metric && f.threshold_ms == finding.threshold_ms) {
            Some(known) if known.mde < finding.mde => *known = finding,
            Some(_) => {}
            None => weakest.push(finding),
        }
    }
    if weakest.is_empty() {
        return String::new();
    }
    let items: Vec<String> = weakest
        .iter()
        .filter_map(|f| Some(format!("{} {}", code(&metric_label(f)), phrase::margin(f.mde?, f.metric))))
        .collect();
    format!("This run would have caught, 19 times in 20, a change for the worse of: {}.\n\n", items.join(", "))
}

pub fn next_steps(record: &Record, target: &TargetVerdict, findings: &[&Finding]) -> String {
    let mut out = list("Next steps", &target.next_steps);
    let entries = accept::entries(record, findings);
    if !entries.is_empty() {
        out.push_str("If the cost is intended, say so in `sidegate.yaml`:\n\n");
        out.push_str(&fenced("yaml", &format!("accept:\n  {}", entries.join("\n  "))));
    }
    out
}

/// A heading in bold, if there is one, and a list of sentences; nothing if there are none.
pub fn list(title: &str, sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items: String = sentences.iter().map(|s| format!("- {}\n", sentence(s))).collect();
    let title = if title.is_empty() { String::new() } else { format!("**{title}**\n\n") };
    format!("{title}{items}\n")
}

/// Text of any kind, shown as it is.
pub fn code_block(text: &str) -> String {
    fenced("", &crate::problem::printable(text))
}

/// A fenced block whose fence is longer than any run of backticks inside.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}\n\n")
}

pub fn title(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Skipped => "Skipped",
        Outcome::Pass => "Pass",
        Outcome::Improved => "Improved",
        Outcome::Inconclusive => "Inconclusive",
        Outcome::Invalid => "Invalid",
        Outcome::Regression => "Regression",
    }
}

/// Said where the verdict brings no reason of its own.
pub fn meaning(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Skipped => "nothing that concerns this target changed.",
        Outcome::Pass => "every gated metric stays within its limit.",
        Outcome::Improved => "head is surely cheaper than base and nothing got worse.",
        Outcome::Inconclusive => "the measurement is too noisy to say either way.",
        Outcome::Invalid => "the measurement cannot be trusted.",
        Outcome::Regression => "head is surely worse than base by more than the limit.",
    }
}

fn word_of(finding: &Finding) -> &'static str {
    match finding.against.as_str() {
        ANOTHER_RUN if !finding.gated => "not comparable",
        _ => call_word(finding.verdict),
    }
}

fn call_word(call: Call) -> &'static str {
    match call {
        Call::Pass => "pass",
        Call::Costlier => "costlier",
        Call::Regression => "regression",
        Call::Improved => "improved",
        Call::Inconclusive => "inconclusive",
        Call::Invalid => "invalid",
        Call::Accepted => "accepted",
        Call::Report => "not gated",
    }
}
