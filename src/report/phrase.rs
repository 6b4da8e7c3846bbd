//! Numbers as people read them: `31.2 µs`, `12.4 MiB`, `+11.3 % (+9.4 … +13.1 %)`. Total: what is not finite is `?`.

use crate::metric::{Metric, Scale};
use crate::verdict::Finding;

/// What stands where there is no figure.
pub const NONE: &str = "-";

/// `850 ns`, `31.2 µs`, `1.24 ms`, `12.3 s`.
pub fn ns(value: f64) -> String {
    scaled(value, &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")])
}

/// `512 B`, `12.4 MiB`.
pub fn bytes(value: f64) -> String {
    const K: f64 = 1024.0;
    scaled(value, &[(1.0, "B"), (K, "KiB"), (K * K, "MiB"), (K * K * K, "GiB")])
}

/// `850`, `154.4 k`, `1.544 M`: one digit more than other figures, for a change of a percent to show.
pub fn instructions(value: f64) -> String {
    let size = value.abs();
    let (scale, unit) = match size {
        s if s < 999.5 => return significant(value),
        s if s < 999.95e3 => (1e3, "k"),
        s if s < 999.95e6 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    let decimals = match size / scale {
        s if s < 9.9995 => 3,
        s if s < 99.995 => 2,
        s if s < 999.95 => 1,
        _ => return format!("{} {unit}", significant(value / scale)),
    };
    format!("{:.decimals$} {unit}", value / scale)
}

/// A value in a metric's unit (`instructions`, `calls`, `ns`, `bytes`, `ms`, `share`, `1/s`, `1/request`), nine columns or fewer.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ns" => ns(value),
        "ms" => ns(value * 1e6),
        "bytes" => bytes(value),
        "instructions" => instructions(value),
        "share" => format!("{} %", significant(value * 100.0)),
        "1/s" => scaled(value, &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")]),
        _ => significant(value),
    }
}

/// The same, or a dash.
pub fn quantity_or_none(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| NONE.to_owned(), |v| quantity(v, unit))
}

/// A relative change with its sign: 1.113 as `+11.3 %`; from elevenfold on as `x12.3`.
pub fn relative(ratio: f64) -> String {
    if ratio.abs() < BIG { format!("{} %", signed_percent(ratio)) } else { times(ratio) }
}

/// A margin or a detectable change on the metric's scale: `5 %`, `0.05 pt`, `0.05`.
pub fn margin(value: f64, metric: Metric) -> String {
    let percent = significant((value * 1e5).round() / 1e3);
    match (metric.scale(), metric) {
        (Scale::Ratio, _) => format!("{percent} %"),
        (Scale::Difference, Metric::SlowShare) => format!("{percent} pt"),
        (Scale::Difference, Metric::HeapBytesPerRequest) => bytes(value),
        (Scale::Difference, _) => significant(value),
    }
}

/// The change from base to head with its interval, 26 columns or fewer: `+11.3 % (+9.4 … +13.1 %)`,
/// `+0.05 pt (+0.02 … +0.08)`; a dash without a base.
pub fn change(finding: &Finding) -> String {
    match (finding.metric.scale(), finding.ratio, finding.added) {
        (Scale::Ratio, Some(ratio), _) => ratio_change(ratio, finding.low.zip(finding.high)),
        // Without a ratio (base is 0) the difference is all there is.
        (Scale::Ratio, None, Some(added)) if finding.base.is_some() => signed_quantity(added, &finding.unit),
        (Scale::Difference, _, Some(added)) if finding.base.is_some() => {
            difference(added, finding.low.zip(finding.high), finding.metric)
        }
        _ => NONE.to_owned(),
    }
}

/// The same in 24 columns or fewer, for a table on a terminal: `+11.3 % (+9.4…+13.1 %)`, `+.05 pt (-.01…+.12)`.
pub fn compact_change(finding: &Finding) -> String {
    let text = change(finding).replace(" … ", "…");
    match finding.metric.scale() {
        Scale::Ratio => text,
        Scale::Difference => text.replace("+0.", "+.").replace("-0.", "-."),
    }
}

/// A margin in five columns or fewer: `5 %`, `12.5%`, `.05pt`.
pub fn compact_margin(value: f64, metric: Metric) -> String {
    let text = margin(value, metric);
    if text.chars().count() <= 5 {
        return text;
    }
    let dense = text.replace(' ', "").trim_start_matches('0').to_owned();
    if dense.chars().count() <= 5 { dense } else { dense.trim_end_matches("pt").trim_end_matches("iB").to_owned() }
}

/// What the change adds, without its interval: `+1.2 µs`, `+0.05 pt`; a dash where it is not known.
pub fn added(finding: &Finding) -> String {
    match (finding.added, finding.metric.scale()) {
        (None, _) => NONE.to_owned(),
        (Some(value), Scale::Ratio) => signed_quantity(value, &finding.unit),
        (Some(value), Scale::Difference) => difference(value, None, finding.metric),
    }
}

/// `+1.2 µs`.
pub fn signed_quantity(value: f64, unit: &str) -> String {
    let text = quantity(value.abs(), unit);
    if value < 0.0 { format!("-{text}") } else { format!("+{text}") }
}

/// From this ratio on a percentage says less than "so many times".
const BIG: f64 = 11.0;

fn ratio_change(ratio: f64, interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval else { return relative(ratio) };
    if ratio.abs().max(high.abs()) < BIG {
        let (ratio, low, high) = (signed_percent(ratio), signed_percent(low), signed_percent(high));
        format!("{ratio} % ({low} … {high} %)")
    } else {
        format!("{} ({} … {})", times(ratio), times(low), times(high))
    }
}

fn difference(added: f64, interval: Option<(f64, f64)>, metric: Metric) -> String {
    let (scale, unit) = match metric {
        Metric::SlowShare => (100.0, " pt"),
        Metric::HeapBytesPerRequest => (1.0, " B"),
        _ => (1.0, ""),
    };
    let signed = |value: f64| {
        let value = value * scale;
        // A thousandth of a point, or of an event a request, is less than any run can tell.
        let text = significant((value.abs() * 1e3).round() / 1e3);
        match text.as_str() {
            "0" => text,
            _ if value < 0.0 => format!("-{text}"),
            _ => format!("+{text}"),
        }
    };
    match interval {
        Some((low, high)) => format!("{}{unit} ({} … {})", signed(added), signed(low), signed(high)),
        None => format!("{}{unit}", signed(added)),
    }
}

/// 1.113 as `+11.3`.
fn signed_percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if !percent.is_finite() {
        "?".to_owned()
    } else if percent.abs() < 99.95 {
        // No `-0.0`.
        let rounded = (percent * 10.0).round() / 10.0;
        format!("{:+.1}", if rounded == 0.0 { 0.0 } else { rounded })
    } else {
        format!("{percent:+.0}")
    }
}

fn times(ratio: f64) -> String {
    format!("x{}", significant(ratio))
}

/// Three significant digits at most, no trailing zeros: `12.3`, `0.05`, `1230`, `2e9`; six columns or fewer, one more
/// for a sign.
fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let size = value.abs();
    if size < 5e-5 {
        return "0".to_owned();
    }
    if size >= 99_999.5 {
        return format!("{value:.0e}");
    }
    let decimals = match size {
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.0995 => 2,
        s if s >= 0.00995 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The largest unit in which the value is at least one.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    // Rounding must not print `1000 µs`.
    let fits = |&&(scale, _): &&(f64, &str)| value.abs() / scale >= 0.9995;
    let &(scale, unit) = units.iter().rev().find(fits).or(units.first()).unwrap_or(&(1.0, ""));
    let separator = if unit.starts_with('/') { "" } else { " " };
    format!("{}{separator}{unit}", significant(value / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_the_unit_that_reads_best() {
        assert_eq!(ns(850.0), "850 ns");
        assert_eq!(ns(31_212.0), "31.2 µs");
        assert_eq!(ns(999_960.0), "1 ms");
        assert_eq!(ns(1_240_000.0), "1.24 ms");
        assert_eq!(ns(12_300_000_000.0), "12.3 s");
        assert_eq!(ns(0.0), "0 ns");
        assert_eq!(bytes(13_002_342.0), "12.4 MiB");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(quantity(43.25, "ms"), "43.2 ms");
        assert_eq!(quantity(0.0012, "share"), "0.12 %");
        assert_eq!(quantity(14_230.0, "1/s"), "14.2 k/s");
        assert_eq!(quantity(840.0, "1/s"), "840/s");
        assert_eq!(quantity(1.0, "1/request"), "1");
        assert_eq!(quantity(154_392.0, "instructions"), "154.4 k");
        assert_eq!(quantity(999_960.0, "instructions"), "1.000 M");
        assert_eq!(quantity(9_999.6, "instructions"), "10.00 k");
        assert_eq!(quantity(8.046, "calls"), "8.05");
        assert_eq!(quantity(f64::NAN, "ns"), "? ns");
        assert_eq!(quantity_or_none(None, "ns"), "-");
    }

    #[test]
    fn changes_are_signed_and_huge_ones_are_told_as_times() {
        assert_eq!(ratio_change(1.113, Some((1.094, 1.131))), "+11.3 % (+9.4 … +13.1 %)");
        assert_eq!(ratio_change(0.99999, Some((0.98, 1.02))), "+0.0 % (-2.0 … +2.0 %)");
        assert_eq!(ratio_change(2.5, Some((2.4, 2.6))), "+150 % (+140 … +160 %)");
        assert_eq!(ratio_change(12.3, Some((11.0, 1234.4))), "x12.3 (x11 … x1234)");
        assert_eq!(ratio_change(f64::INFINITY, Some((1.0, f64::NAN))), "x? (x1 … x?)");
        assert_eq!(relative(1.05), "+5.0 %");
        assert_eq!(difference(0.0005, Some((-0.0001, 0.0012)), Metric::SlowShare), "+0.05 pt (-0.01 … +0.12)");
        assert_eq!(difference(0.0, Some((-1e-9, 1e-9)), Metric::RetriesPerRequest), "0 (0 … 0)");
        assert_eq!(difference(0.25, None, Metric::RetriesPerRequest), "+0.25");
        assert_eq!(margin(0.05, Metric::CpuNsPerRequest), "5 %");
        assert_eq!(margin(0.0005, Metric::SlowShare), "0.05 pt");
        assert_eq!(margin(0.05, Metric::ErrorsPerRequest), "0.05");
    }

    #[test]
    fn no_number_is_wider_than_its_column() {
        let mut value = 1.0e-12_f64;
        while value < 1e15 {
            for unit in ["instructions", "calls", "ns", "ms", "bytes", "share", "1/s", "1/request"] {
                assert!(quantity(value, unit).chars().count() <= 9, "{value} {unit}: {}", quantity(value, unit));
            }
            let text = ratio_change(value, Some((value * 0.93, value * 1.07))).replace(" … ", "…");
            assert!(text.chars().count() <= 24, "{value}: {text}");
            let share = value.min(1.0);
            let text = difference(-share, Some((-share * 1.07, -share * 0.93)), Metric::SlowShare).replace(" … ", "…");
            assert!(text.replace("-0.", "-.").chars().count() <= 24, "{share}: {text}");
            assert!(compact_margin(value.min(20.0), Metric::CpuNsPerRequest).chars().count() <= 5, "{value}");
            assert!(compact_margin(share, Metric::SlowShare).chars().count() <= 5, "{share}");
            value *= 1.37;
        }
    }
}
