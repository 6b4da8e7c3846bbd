//! The `accept` entry that would let a regression pass, ready to paste into `sidegate.yaml`.

use jiff::ToSpan;
use jiff::civil::Date;

use super::clean::is_hidden;
use crate::metric::{Metric, Scale};
use crate::record::Record;
use crate::verdict::{Call, Finding};

/// How long a proposed acceptance holds, in days from the run.
const DAYS: i64 = 90;
/// Longer names are not repeated.
const MAX_NAME: usize = 120;

/// Entries for all regressions of one target that an acceptance can cover, one line of YAML each.
pub fn entries(record: &Record, findings: &[&Finding]) -> Vec<String> {
    let Some(until) = until(record) else { return Vec::new() };
    let mut needed: Vec<(&str, Metric, f64)> = Vec::new();
    // An entry for errors would let every request fail: whoever wants that writes it by hand.
    let proposed = |f: &&&Finding| f.metric != Metric::ErrorsPerRequest && f.base.is_some();
    for finding in findings.iter().filter(|f| f.verdict == Call::Regression).filter(proposed) {
        let Some(up_to) = up_to(finding) else { continue };
        if finding.target.chars().count() > MAX_NAME {
            continue;
        }
        // Both CPU figures are one metric to their owner: one entry covers both.
        let metric = match finding.metric {
            Metric::CpuNsPerRequestSum => Metric::CpuNsPerRequest,
            metric => metric,
        };
        match needed.iter_mut().find(|(_, m, _)| *m == metric) {
            Some((.., known)) => *known = known.max(up_to),
            None => needed.push((&finding.target, metric, up_to)),
        }
    }
    needed
        .into_iter()
        .map(|(target, metric, up_to)| {
            let (target, name) = (yaml_text(target), metric.name());
            let sign = match metric {
                Metric::HeapBytesPerRequest => "B",
                metric if is_percent(metric) => "%",
                _ => "",
            };
            format!("- {{target: {target}, metric: {name}, up_to: {up_to}{sign}, until: {until}, reason: \"…\"}}")
        })
        .collect()
}

fn is_percent(metric: Metric) -> bool {
    metric.scale() == Scale::Ratio || metric == Metric::SlowShare
}

/// The far end of the interval, rounded up, as it is written: in percent or points, or a number a request.
fn up_to(finding: &Finding) -> Option<f64> {
    let change = match (finding.metric.scale(), finding.metric.higher_is_better()) {
        // Of what is better when higher, the fall.
        (Scale::Ratio, true) => 1.0 - finding.low.or(finding.ratio)?,
        (Scale::Ratio, false) => finding.high.or(finding.ratio)? - 1.0,
        (Scale::Difference, _) => finding.high.or(finding.added)?,
    };
    let (scale, steps) = match finding.metric.scale() {
        Scale::Ratio => (100.0, 1.0),
        Scale::Difference if finding.metric == Metric::HeapBytesPerRequest => (1.0, 1.0),
        Scale::Difference => (if is_percent(finding.metric) { 100.0 } else { 1.0 }, 100.0),
    };
    // A rounding error of the arithmetic must not add a step.
    let up = (change * scale * steps - 1e-9).ceil() / steps;
    (up.is_finite() && up > 0.0).then_some(up)
}

/// A fixed time after the run, so that the report depends on the record alone.
fn until(record: &Record) -> Option<Date> {
    let day: Date = record.started_at.get(..10)?.parse().ok()?;
    Some(day.saturating_add(DAYS.days()))
}

/// Plain where YAML reads it back as the same text, else double-quoted; what cannot be seen is written as its number.
fn yaml_text(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    if plain {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c.is_whitespace() && c != ' ') || is_hidden(c) => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_yaml_would_read_something_else() {
        assert_eq!(yaml_text("checkout-v1.2"), "checkout-v1.2");
        assert_eq!(yaml_text("no"), "\"no\"");
        assert_eq!(yaml_text("1.40"), "\"1.40\"");
        assert_eq!(yaml_text("a\"b\\c: d\n\u{202e}"), "\"a\\\"b\\\\c: d\\U0000000a\\U0000202e\"");
    }
}
