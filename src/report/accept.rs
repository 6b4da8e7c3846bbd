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

/// One line of YAML; `None` for findings that no acceptance can cover.
pub fn entry(record: &Record, finding: &Finding) -> Option<String> {
    if finding.verdict != Call::Regression || finding.metric == Metric::ErrorsPerRequest || finding.base.is_none() {
        return None;
    }
    let up_to = up_to(finding)?;
    let until = until(record)?;
    if finding.target.chars().count() > MAX_NAME {
        return None;
    }
    let target = yaml_text(&finding.target);
    let metric = finding.metric.name();
    Some(format!("- {{target: {target}, metric: {metric}, up_to: {up_to}, until: {until}, reason: \"…\"}}"))
}

/// The far end of the interval, rounded up.
fn up_to(finding: &Finding) -> Option<String> {
    let end = if finding.metric.higher_is_better() { finding.low } else { finding.high };
    let in_percent = |share: f64, steps: f64| {
        // A rounding error of the arithmetic must not add a step.
        let up = (share * 100.0 * steps - 1e-9).ceil() / steps;
        (up.is_finite() && up > 0.0).then(|| format!("{up}%"))
    };
    match (finding.metric.scale(), finding.metric) {
        (Scale::Ratio, _) => in_percent((end.or(finding.ratio)? - 1.0).abs(), 1.0),
        (Scale::Difference, Metric::SlowShare) => in_percent(end.or(finding.added)?, 100.0),
        (Scale::Difference, _) => {
            let up = (end.or(finding.added)? * 100.0 - 1e-9).ceil() / 100.0;
            (up.is_finite() && up > 0.0).then(|| format!("{up}"))
        }
    }
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
