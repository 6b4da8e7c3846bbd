//! Rate limits: which answers are one, and how long GitHub asks to wait.

use std::time::Duration;

use hyper::header::HeaderMap;

/// `Some` if the answer is a limit: the wait that its headers ask for, `None` inside where they are silent.
///
/// Source: GitHub's "Rate limits for the REST API": 403 or 429; `retry-after` first, then `x-ratelimit-reset` where
/// nothing remains, else at least a minute.
pub fn of(status: u16, headers: &HeaderMap, message: &str) -> Option<Option<Duration>> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let retry_after = number("retry-after");
    let exhausted = number("x-ratelimit-remaining") == Some(0);
    let worded = message.to_ascii_lowercase().contains("rate limit");
    if status != 429 && !(status == 403 && (retry_after.is_some() || exhausted || worded)) {
        return None;
    }
    let reset = || {
        let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0);
        // A second more, for clocks that differ.
        number("x-ratelimit-reset").filter(|_| exhausted).map(|at| at.saturating_sub(now) + 1)
    };
    Some(retry_after.or_else(reset).map(Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn limits_are_told_from_refusals() {
        let none = headers(&[]);
        assert_eq!(of(403, &none, "Resource not accessible by integration"), None);
        assert_eq!(of(500, &headers(&[("retry-after", "3".to_owned())]), ""), None);
        assert_eq!(of(429, &none, ""), Some(None));
        assert_eq!(of(403, &none, "You have exceeded a secondary rate limit"), Some(None));
        let after = headers(&[("retry-after", "7".to_owned()), ("x-ratelimit-remaining", "0".to_owned())]);
        assert_eq!(of(403, &after, ""), Some(Some(Duration::from_secs(7))));
        let at = jiff::Timestamp::now().as_second() + 20;
        let reset = headers(&[("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", at.to_string())]);
        let wait = of(403, &reset, "").unwrap().unwrap().as_secs();
        assert!((19..=22).contains(&wait), "{wait}");
    }
}
