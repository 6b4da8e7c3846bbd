//! The result on a terminal: the reason first, then a table of exactly 80 columns.

use super::clean::{fit, line, width};
use super::counted::{self, Parts, Place, Row};
use super::{
    accept, anchored_of, baseline, findings_of, is_told, is_unmeasured, metric_label, only_counted, phrase, record_of,
};
use crate::metric::Metric;
use crate::record::{End, Record, TargetRecord};
use crate::verdict::{ANOTHER_RUN, Call, Finding, Outcome, TargetVerdict, Verdict};

const COLUMNS: usize = 80;
/// Metric, base, head, change, limit, verdict; one space between.
const CELLS: [usize; 6] = [18, 8, 8, 24, 5, 12];

/// The verdict and its record for a terminal of 80 columns. Without `colour` the text has no control characters but
/// newlines.
pub fn text(record: &Record, verdict: &Verdict, colour: bool) -> String {
    let mut page = Page { out: String::new(), colour };
    for (i, target) in verdict.targets.iter().enumerate() {
        if i > 0 {
            page.out.push('\n');
        }
        page.target(record, verdict, target);
    }
    if verdict.targets.is_empty() {
        page.paragraph(&format!("{}: nothing was measured", verdict.verdict.name().to_uppercase()), "");
    } else if verdict.targets.len() > 1 {
        let all = format!("{} targets together: {}", verdict.targets.len(), verdict.verdict.name());
        page.out.push('\n');
        page.paragraph(&all, "");
    }
    for note in &verdict.notes {
        page.paragraph(&format!("note: {note}"), "  ");
    }
    page.out
}

struct Page {
    out: String,
    colour: bool,
}

impl Page {
    fn target(&mut self, record: &Record, verdict: &Verdict, target: &TargetVerdict) {
        self.headline(target);
        let of_target = record_of(record, target);
        self.what_ran(record, verdict, target, of_target);
        let findings: Vec<&Finding> = findings_of(verdict, target).collect();
        if !is_unmeasured(record, target) {
            self.table(&findings);
        }
        if let Some(parts) = of_target.and_then(counted::parts) {
            self.blame(&parts);
        }
        self.out.push('\n');
        let anchored = anchored_of(verdict, target);
        if let Some(text) = of_target.and_then(|t| baseline::summary(t, &anchored)) {
            self.paragraph(&text, "  ");
        }
        for a in &target.accepted {
            let (metric, up_to) = (a.metric.name(), phrase::margin(a.up_to, a.metric));
            self.paragraph(&format!("accepted: {metric} up to {up_to} until {}: {}", a.until, a.reason), "  ");
        }
        // The table says the rest of what was measured; what is not in it is said here.
        let told = |reason: &str| findings.iter().any(|f| f.gated && !is_only_words(f) && f.reason == reason);
        for reason in target.reasons.iter().skip(1).filter(|r| !told(r)) {
            self.paragraph(&format!("also: {reason}"), "  ");
        }
        for note in &target.notes {
            self.paragraph(&format!("note: {note}"), "  ");
        }
        for step in &target.next_steps {
            self.paragraph(&format!("next: {step}"), "  ");
        }
        let entries = accept::entries(record, &findings);
        if !entries.is_empty() {
            self.paragraph("next: if the cost is intended, add to `accept` in sidegate.yaml:", "  ");
            for entry in entries {
                self.paragraph(&entry, "      ");
            }
        }
    }

    fn headline(&mut self, target: &TargetVerdict) {
        let reason = target.reasons.first().map_or("", String::as_str);
        let word = target.verdict.name().to_uppercase();
        let lines = wrap(&format!("{word}: {reason}"), COLUMNS, 2);
        for (i, text) in lines.iter().enumerate() {
            match text.strip_prefix(word.as_str()).filter(|_| i == 0) {
                Some(rest) => {
                    let painted = self.paint(outcome_colour(target.verdict), &word);
                    self.push(&format!("{painted}{rest}"));
                }
                None => self.push(text),
            }
        }
        self.out.push('\n');
    }

    fn what_ran(
        &mut self,
        record: &Record,
        verdict: &Verdict,
        target: &TargetVerdict,
        of_target: Option<&TargetRecord>,
    ) {
        let (name, head) = (line(&target.target, 60), line(&target.head, 60));
        match &target.base {
            Some(base) => self.paragraph(&format!("target {name}: {} -> {head}", line(base, 60)), ""),
            None => self.paragraph(&format!("target {name}: {head}"), ""),
        }
        if let Some(why) = of_target.and_then(|t| t.no_base.as_deref()).filter(|w| !is_told(target, w)) {
            self.paragraph(&format!("no base: {why}; only absolute limits decide"), "");
        }
        if is_unmeasured(record, target) {
            return;
        }
        let mut facts = vec![
            format!("profile {}", verdict.profile.name()),
            format!("limits {}", verdict.limits.name()),
            if of_target.is_some_and(only_counted) {
                "counted, not timed".to_owned()
            } else {
                format!("{} block{}", target.blocks, if target.blocks == 1 { "" } else { "s" })
            },
        ];
        if let Some(t) = of_target {
            facts.push(format!("{} {}", t.head.proxy.kind, t.head.proxy.version));
            facts.push(format!("concurrency {}", t.concurrency));
        }
        self.paragraph(&facts.join(", "), "");
        if let Some(end) = of_target.and_then(|t| ended(target, &t.end)) {
            self.paragraph(&end, "");
        }
        self.out.push('\n');
    }

    /// Gated findings, and the few others that people look for, scenario by scenario.
    fn table(&mut self, findings: &[&Finding]) {
        if !findings.iter().any(|f| f.gated) {
            self.paragraph("no metric was gated", "");
        }
        let (counts, timed): (Vec<&Finding>, Vec<&Finding>) =
            findings.iter().copied().partition(|f| f.request_class().is_some());
        let rows = counted::rows(&counts);
        let shown: Vec<&Finding> =
            timed.into_iter().filter(|f| f.gated || f.against == ANOTHER_RUN || is_looked_for(f)).collect();
        if shown.is_empty() && rows.is_empty() {
            return;
        }
        self.row(["metric", "base", "head", "change (interval)", "limit", "verdict"].map(str::to_owned), None);
        self.push(&"-".repeat(COLUMNS));
        self.counted(&rows, &counts);
        let mut scenarios: Vec<&str> = Vec::new();
        for finding in &shown {
            if !scenarios.contains(&finding.scenario.as_str()) {
                scenarios.push(&finding.scenario);
            }
        }
        for scenario in scenarios {
            let title = if scenario.is_empty() { "whole process".to_owned() } else { line(scenario, 60) };
            self.push(&fit(&format!("[{}]", defuse(&title)), COLUMNS));
            let (quiet, loud): (Vec<&Finding>, Vec<&Finding>) =
                shown.iter().copied().filter(|f| f.scenario == scenario).partition(|f| is_quiet_count(f));
            for finding in loud {
                self.finding(finding);
            }
            if !quiet.is_empty() {
                let names: Vec<&str> = quiet.iter().map(|f| f.metric.name().trim_end_matches("_per_request")).collect();
                let what = if quiet.iter().all(|f| f.base.is_none()) { "none" } else { "unchanged, pass" };
                self.paragraph(&format!("per request {what}: {}", names.join(", ")), "  ");
            }
        }
    }

    /// A row for each class of request that was counted.
    fn counted(&mut self, rows: &[Row<'_>], counts: &[&Finding]) {
        if rows.is_empty() {
            return;
        }
        self.push("[counted per request: instructions]");
        for row in rows {
            let label = match row.figure {
                None => defuse(&line(row.class, 60)),
                Some(figure) => format!("  {figure}"),
            };
            self.labelled(label, row.finding);
        }
        if counts.iter().any(|f| counted::is_quiet(f)) {
            let all = !rows.iter().any(|r| r.finding.metric == Metric::SyscallsPerRequest);
            self.push(if all {
                "system calls per request unchanged, pass"
            } else {
                "other system calls unchanged, pass"
            });
        }
    }

    /// Which change costs what.
    fn blame(&mut self, parts: &Parts) {
        let (class, base, head) = (&parts.class, &parts.base, &parts.head);
        self.out.push('\n');
        self.paragraph(&format!("which change costs what: {class}, {base} -> {head} instructions per request"), "  ");
        for part in &parts.parts {
            let place = match &part.place {
                Some(Place::Line(line)) => format!("line {line}: "),
                Some(Place::Pointer(pointer)) => format!("{pointer}: "),
                None => String::new(),
            };
            self.paragraph(&format!("- {} {place}{}", part.amount, part.what), "    ");
        }
        if !parts.untried.is_empty() {
            self.paragraph(&format!("- not tried for lack of time: {}", parts.untried.join(", ")), "    ");
        }
    }

    fn finding(&mut self, finding: &Finding) {
        self.labelled(metric_label(finding), finding);
    }

    fn labelled(&mut self, mut label: String, finding: &Finding) {
        if width(&label) > CELLS[0] {
            self.push(&fit(&label, COLUMNS));
            label = String::new();
        }
        let absolute = finding.against == "absolute";
        let change = match finding.limit {
            Some(limit) if absolute => format!("at most {}", phrase::quantity(limit, &finding.unit)),
            _ => phrase::compact_change(finding),
        };
        let limit = match finding.limit {
            Some(limit) if !absolute => phrase::compact_margin(limit, finding.metric),
            _ => String::new(),
        };
        let cells = [
            label,
            phrase::quantity_or_none(finding.base, &finding.unit),
            phrase::quantity_or_none(finding.head, &finding.unit),
            change,
            limit,
            if finding.against == ANOTHER_RUN && !finding.gated {
                "incomparable".to_owned()
            } else {
                call_word(finding.verdict).to_owned()
            },
        ];
        self.row(cells, Some(finding.verdict));
    }

    /// One line of the table: the first and the last column to the left, numbers to the right.
    fn row(&mut self, cells: [String; 6], call: Option<Call>) {
        let mut text = String::new();
        for (i, (cell, columns)) in cells.iter().zip(CELLS).enumerate() {
            let cell = fit(cell, columns);
            let pad = " ".repeat(columns - width(&cell).min(columns));
            if i > 0 {
                text.push(' ');
            }
            match i {
                0 => text.push_str(&format!("{cell}{pad}")),
                5 => text.push_str(&call.map_or(cell.clone(), |c| self.paint(call_colour(c), &cell))),
                _ => text.push_str(&format!("{pad}{cell}")),
            }
        }
        self.push(&text);
    }

    /// Foreign text may be in it: made harmless, wrapped, later lines indented.
    fn paragraph(&mut self, text: &str, indent: &str) {
        for part in wrap(text, COLUMNS, indent.len()) {
            self.push(&part);
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Not gated, yet missed if it were not there. The closed loop's latencies only mirror its throughput.
fn is_looked_for(finding: &Finding) -> bool {
    match finding.metric {
        Metric::LatencyP999Ns | Metric::ContextSwitchesPerRequest => finding.scenario != "closed",
        Metric::RssBytes => true,
        // Latencies of a saturated worker are its throughput read backwards.
        _ => finding.base.is_none() && !(finding.scenario == "closed" && finding.metric.name().starts_with("latency")),
    }
}

/// What a class of request answered instead, or why it failed: no row can say it.
fn is_only_words(finding: &Finding) -> bool {
    finding.request_class().is_some() && (finding.metric == Metric::ErrorsPerRequest || finding.head.is_none())
}

/// A counter of head alone that counted nothing.
fn is_nothing(finding: &Finding) -> bool {
    finding.metric.unit() == "1/request" && finding.base.is_none() && !finding.gated && finding.head == Some(0.0)
}

/// A count that passes because nothing changed: one line for all of them is enough.
fn is_quiet_count(finding: &Finding) -> bool {
    is_nothing(finding)
        || finding.metric.unit() == "1/request"
            && finding.verdict == Call::Pass
            && matches!(finding.against.as_str(), "base" | ANOTHER_RUN)
            && [finding.added, finding.low, finding.high].iter().all(|v| v.is_none_or(|v| v.abs() < 1e-4))
}

/// Longest paragraph, in characters.
const PARAGRAPH: usize = 4000;

/// Words in lines of at most `columns`, those after the first indented; what is too long for a line is cut.
fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut current = String::new();
    let text = text.split('\n').map(|l| line(l, PARAGRAPH)).collect::<Vec<_>>().join(" ");
    for word in text.split(' ') {
        let word = fit(&defuse(word), columns - indent);
        let gap = usize::from(!current.trim().is_empty());
        if gap == 1 && width(&current) + gap + width(&word) > columns {
            lines.push(std::mem::replace(&mut current, " ".repeat(indent)));
        } else if gap == 1 {
            current.push(' ');
        }
        current.push_str(&word);
    }
    lines.push(current);
    lines
}

/// CI systems take `::command::` at the start of a line and `##[command]` anywhere for orders.
fn defuse(word: &str) -> String {
    let colons = word.len() - word.trim_start_matches(':').len();
    word[colons.saturating_sub(1)..].replace("##[", "## [")
}

fn ended(target: &TargetVerdict, end: &End) -> Option<String> {
    match end {
        End::Complete => None,
        End::Early => Some("ended early: all had passed".to_owned()),
        End::Interrupted { by } if is_told(target, by) => None,
        End::Failed { message, .. } if is_told(target, message) => None,
        End::Interrupted { by } => Some(format!("interrupted by {by}: the record is partial")),
        End::Failed { arm, message } => {
            Some(format!("{} failed: {message}; the record is partial", arm.map_or("the run", |a| a.name())))
        }
    }
}

fn call_word(call: Call) -> &'static str {
    match call {
        Call::Pass => "pass",
        Call::Costlier => "costlier",
        Call::Regression => "REGRESSION",
        Call::Improved => "improved",
        Call::Inconclusive => "inconclusive",
        Call::Invalid => "INVALID",
        Call::Accepted => "accepted",
        Call::Report => "",
    }
}

fn call_colour(call: Call) -> &'static str {
    match call {
        Call::Pass | Call::Improved => GREEN,
        Call::Regression | Call::Invalid => RED,
        Call::Costlier | Call::Inconclusive | Call::Accepted => YELLOW,
        Call::Report => PLAIN,
    }
}

fn outcome_colour(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass | Outcome::Improved | Outcome::Skipped => GREEN,
        Outcome::Regression | Outcome::Invalid => RED,
        Outcome::Inconclusive => YELLOW,
    }
}

/// Parameters of the terminal's "select graphic rendition".
const PLAIN: &str = "0";
const RED: &str = "1;31";
const GREEN: &str = "1;32";
const YELLOW: &str = "1;33";
