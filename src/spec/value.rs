//! Quantities as people type them: `10m`, `80MiB`, `8%`. Each returns `None` for what it does not understand.

use std::time::Duration;

/// Longest duration anyone means: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// `500us`, `75 ms`, `1.5s`, `10m`, `2h`; a unit is required.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let seconds = number
        * match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
    if seconds > MAX_SECONDS {
        return None;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// `512B`, `80MiB`, `1.5 GB` as bytes; a unit is required.
pub fn parse_bytes(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * scale)
}

/// `8%`, `0.05 %` as a share (0.08, 0.0005); the sign is required.
pub fn parse_share(text: &str) -> Option<f64> {
    match split(text)? {
        (number, "%") => Some(number / 100.0),
        _ => None,
    }
}

/// A plain decimal number and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    number.is_finite().then(|| (number, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_need_their_unit() {
        assert_eq!(parse_duration("10m"), Some(Duration::from_secs(600)));
        assert_eq!(parse_duration("500us"), Some(Duration::from_micros(500)));
        assert_eq!(parse_duration("1.5 s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_bytes("80MiB"), Some(83_886_080.0));
        assert_eq!(parse_bytes("1.5 kB"), Some(1500.0));
        assert_eq!(parse_share("8%"), Some(0.08));
        assert_eq!(parse_share("0.05 %"), Some(0.0005));
        for wrong in ["", "10", "-1s", "1e3s", "s", "1.2.3s", "99999999999999h", "10 parsecs", "inf"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        assert_eq!(parse_bytes("80"), None);
        assert_eq!(parse_share("0.08"), None);
        assert_eq!(parse_share(".5%"), None);
    }
}
