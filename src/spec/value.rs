//! Quantities in `sidegate.yaml`: stricter than on the command line, since a file is read by people who did not write it.
//! A unit is required, signs are not allowed. Each returns `None` for what it does not take.

use std::time::Duration;

use crate::units;

/// Longest duration anyone means: a year.
const MAX: Duration = Duration::from_secs(366 * 86_400);

/// `500us`, `75 ms`, `1.5s`, `10m`, `2h`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    units::parse_duration(text).ok().filter(|d| *d <= MAX)
}

/// `512B`, `80MiB`, `1.5 kB` as bytes.
pub fn parse_bytes(text: &str) -> Option<f64> {
    let has_unit = text.ends_with('B');
    units::parse_bytes(text).ok().filter(|_| has_unit).map(|bytes| bytes as f64)
}

/// `8%`, `0.05 %` as a share (0.08, 0.0005).
pub fn parse_share(text: &str) -> Option<f64> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with('%');
    units::parse_share(text).ok().filter(|_| plain)
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
        assert_eq!(parse_share("-5%"), None);
        assert_eq!(parse_share("0.1 points"), None);
    }
}
