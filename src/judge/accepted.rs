//! Intended costs: an `accept` entry raises the limit of one metric of one target until a day.

use jiff::civil::Date;

use crate::metric::Metric;
use crate::policy::{Accept, Policy};

/// What the acceptances say about a regression.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing<'a> {
    /// No entry for it.
    None,
    /// Within what was accepted.
    Within(&'a Accept),
    /// Surely beyond what was accepted.
    Exceeded(&'a Accept),
    /// Its last day has passed, or is no date.
    Expired(&'a Accept),
}

/// The best standing that any entry gives. `surely_beyond` asks the test whether the change exceeds a margin.
pub fn standing<'a>(
    policy: &'a Policy,
    target: &str,
    metric: Metric,
    day: Option<Date>,
    surely_beyond: impl Fn(f64) -> bool,
) -> Standing<'a> {
    let mut best = Standing::None;
    for entry in policy.accept.iter().filter(|a| a.target == target && covers(a.metric, metric)) {
        let in_time = entry.until.parse::<Date>().ok().zip(day).is_some_and(|(until, day)| day <= until);
        if in_time && !surely_beyond(entry.up_to) {
            return Standing::Within(entry);
        }
        best = match (in_time, best) {
            (true, _) => Standing::Exceeded(entry),
            (false, Standing::None) => Standing::Expired(entry),
            (false, earlier) => earlier,
        };
    }
    best
}

/// The day of an RFC 3339 time.
pub fn day_of(time: &str) -> Option<Date> {
    time.get(..10)?.parse().ok()
}

/// Both CPU figures are one metric to their owner.
fn covers(accepted: Metric, metric: Metric) -> bool {
    accepted == metric || (accepted == Metric::CpuNsPerRequest && metric == Metric::CpuNsPerRequestSum)
}
