//! Quantities as people write and read them: `250ms`, `1KiB`, `8%`, `0.1 points`.

use std::time::Duration;

/// A quantity that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}; write {wanted}")]
pub struct UnitError {
    pub text: String,
    what: &'static str,
    wanted: &'static str,
}

/// A positive or zero length of time: a number and one of `ns us ms s m h`, several in a row (`1m30s`).
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    const UNITS: [(&str, f64); 6] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let bad = || UnitError {
        text: text.to_owned(),
        what: "duration",
        wanted: "a number and a unit, such as 250ms, 3s or 1m30s",
    };
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or_else(bad)?;
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit = if unit == "µs" { "us" } else { unit };
        let (_, scale) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
        seconds += number * scale;
        rest = after.trim_start();
    }
    // Rounded to nanoseconds, which the shortest unit resolves.
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

/// A number of bytes: plain, or with `B`, `KiB`, `MiB`, `GiB` (powers of 1024) or `kB`, `MB`, `GB` (powers of 1000).
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let bad =
        || UnitError { text: text.to_owned(), what: "size", wanted: "a number of bytes, such as 512, 1KiB or 80MiB" };
    let (number, unit) = split_number(text.trim()).ok_or_else(bad)?;
    let scale = match unit.trim() {
        "" | "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return Err(bad()),
    };
    let bytes = number * scale;
    // Whole and within what a float counts exactly.
    if bytes.fract() == 0.0 && bytes <= 9_007_199_254_740_992.0 { Ok(bytes as u64) } else { Err(bad()) }
}

/// A share of one: `8%` is 0.08, `0.1 points` (percentage points) is 0.001. A sign is allowed; a bare number is not,
/// for nobody knows whether 0.5 means a half or half a percent.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let bad =
        || UnitError { text: text.to_owned(), what: "percentage", wanted: "a percentage such as 8%, or 0.1 points" };
    let trimmed = text.trim();
    let (sign, magnitude) = match trimmed.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (number, unit) = split_number(magnitude).ok_or_else(bad)?;
    match unit.trim() {
        "%" | "points" | "point" => Ok(sign * number / 100.0),
        _ => Err(bad()),
    }
}

/// CPU numbers in ascending order, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

/// CPUs as the kernel writes them: `0`, `2-3`, `0,2-3`.
pub fn parse_cpus(text: &str) -> Result<CpuList, UnitError> {
    let bad =
        || UnitError { text: text.to_owned(), what: "list of CPUs", wanted: "numbers and ranges, such as 1 or 0,2-3" };
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (low.parse::<u32>().map_err(|_| bad())?, high.parse::<u32>().map_err(|_| bad())?);
        // No kernel has more CPUs; a long range must not fill the memory.
        if low > high || high >= 8192 {
            return Err(bad());
        }
        cpus.extend(low..=high);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(CpuList(cpus))
}

/// A time for people, three digits: `412 ns`, `41.2 µs`, `1.00 ms`, `2.50 s`. Negative times keep their sign.
pub fn show_ns(ns: f64) -> String {
    match ns.abs() {
        a if a < 999.5 => format!("{ns:.0} ns"),
        a if a < 999.5e3 => format!("{} µs", three_digits(ns / 1e3)),
        a if a < 999.5e6 => format!("{} ms", three_digits(ns / 1e6)),
        _ => format!("{} s", three_digits(ns / 1e9)),
    }
}

/// A size for people, three digits, in powers of 1024: `512 B`, `1.00 KiB`, `80.0 MiB`.
pub fn show_bytes(bytes: f64) -> String {
    const KIB: f64 = 1024.0;
    match bytes.abs() {
        a if a < KIB => format!("{bytes:.0} B"),
        a if a < KIB * KIB => format!("{} KiB", three_digits(bytes / KIB)),
        a if a < KIB * KIB * KIB => format!("{} MiB", three_digits(bytes / (KIB * KIB))),
        _ => format!("{} GiB", three_digits(bytes / (KIB * KIB * KIB))),
    }
}

/// A share of one as a percentage: 0.113 is `11.3 %`, 0.0005 is `0.05 %`. No plus sign is added.
pub fn show_percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        a if (0.005..0.095).contains(&a) => format!("{percent:.2} %"),
        a if a < 99.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        a if a < 9.995 => format!("{value:.2}"),
        a if a < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A leading decimal number (`8`, `0.5`, `.5`), finite and without a sign, and what follows it.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        let ns = |text| parse_duration(text).unwrap().as_nanos();
        assert_eq!(ns("3s"), 3_000_000_000);
        assert_eq!(ns("250ms"), 250_000_000);
        assert_eq!(ns("500us"), 500_000);
        assert_eq!(ns("500µs"), 500_000);
        assert_eq!(ns("7 ns"), 7);
        assert_eq!(ns("1m30s"), 90_000_000_000);
        assert_eq!(ns("1.5h"), 5_400_000_000_000);
        assert_eq!(ns("0s"), 0);
        for bad in ["", "3", "s", "-1s", "1d", "1s2", "1e3s", "1..2s", "s1", "99999999999999999999h"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert_eq!(
            parse_duration("3").unwrap_err().to_string(),
            "`3` is not a duration; write a number and a unit, such as 250ms, 3s or 1m30s"
        );
    }

    #[test]
    fn sizes() {
        let bytes = |text| parse_bytes(text).unwrap();
        assert_eq!(bytes("512"), 512);
        assert_eq!(bytes("1KiB"), 1024);
        assert_eq!(bytes("1.5 KiB"), 1536);
        assert_eq!(bytes("80MiB"), 80 << 20);
        assert_eq!(bytes("1kB"), 1000);
        for bad in ["", "KiB", "0.1B", "1kb", "1 K", "-1", "99999999GiB"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares() {
        let share = |text| parse_share(text).unwrap();
        assert!((share("8%") - 0.08).abs() < 1e-12);
        assert!((share("8 %") - 0.08).abs() < 1e-12);
        assert!((share("-1.5%") + 0.015).abs() < 1e-12);
        assert!((share("0.1 points") - 0.001).abs() < 1e-12);
        for bad in ["", "8", "0.05", "%", "points", "8 percent", "--1%", "nan%", "inf%"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpus("0,2-3,2").unwrap().0, [0, 2, 3]);
        for bad in ["", "a", "3-1", "1,", "0-99999999", "-1"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shown() {
        assert_eq!(show_ns(0.0), "0 ns");
        assert_eq!(show_ns(999.4), "999 ns");
        assert_eq!(show_ns(999.6), "1.00 µs");
        assert_eq!(show_ns(41_234.0), "41.2 µs");
        assert_eq!(show_ns(-1_234_567.0), "-1.23 ms");
        assert_eq!(show_ns(2.5e9), "2.50 s");
        assert_eq!(show_bytes(512.0), "512 B");
        assert_eq!(show_bytes(1024.0), "1.00 KiB");
        assert_eq!(show_bytes(80.0 * 1_048_576.0), "80.0 MiB");
        assert_eq!(show_percent(0.113), "11.3 %");
        assert_eq!(show_percent(0.0005), "0.05 %");
        assert_eq!(show_percent(-0.02), "-2.0 %");
        assert_eq!(show_percent(1.71), "171 %");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (parse_duration(&text), parse_bytes(&text), parse_share(&text), parse_cpus(&text));
        }

        #[test]
        fn what_is_written_plainly_is_read_back(n in 0_u64..1_000_000_000) {
            prop_assert_eq!(parse_duration(&format!("{n}us")).unwrap(), Duration::from_micros(n));
            prop_assert_eq!(parse_bytes(&n.to_string()).unwrap(), n);
        }

        #[test]
        fn every_number_is_shown(x in any::<f64>()) {
            let _ = (show_ns(x), show_bytes(x), show_percent(x));
        }
    }
}
