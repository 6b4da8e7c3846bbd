//! Counting one config after the other until all are counted, or the time is over.

use std::time::Duration;

use crate::record::Counted;
use crate::yaml::Document;

/// Counts configs under one class of requests.
pub trait Bench {
    /// How many configs are counted at the same time; at least one.
    fn width(&self) -> usize;

    /// Counts these at the same time: one result each, in their order.
    fn count(&mut self, configs: &[Document]) -> Vec<Counted>;

    /// Since the work began.
    fn spent(&self) -> Duration;

    /// The signal that asks to stop.
    fn stopped(&self) -> Option<&'static str>;
}

/// What happens meanwhile, for whoever shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Configs counted, or found not to be countable.
    pub done: usize,
    /// Configs that are wanted.
    pub of: usize,
    /// Until all are done, at the speed so far.
    pub left: Duration,
}

/// What came of a list of configs.
#[derive(Debug)]
pub(super) struct Outcome {
    /// One for each config, in order.
    pub counted: Vec<Counted>,
    /// Why the last ones are untried.
    pub ended_by: Option<String>,
}

/// Counts `jobs` configs in their order. No batch starts that would probably end after the budget; the first one always
/// does.
pub(super) fn count_all(
    bench: &mut dyn Bench,
    budget: Duration,
    jobs: usize,
    config: &dyn Fn(usize) -> Document,
    events: &mut dyn FnMut(Event),
) -> Outcome {
    let width = bench.width().max(1);
    let begun = bench.spent();
    let mut counted = Vec::with_capacity(jobs);
    let mut longest = Duration::ZERO;
    let mut ended_by = None;
    while counted.len() < jobs {
        ended_by = bench.stopped().map(str::to_owned);
        let before = bench.spent();
        if !counted.is_empty() && ended_by.is_none() && before + longest > budget {
            ended_by = Some(format!("the budget of {} s", budget.as_secs()));
        }
        if ended_by.is_some() {
            break;
        }
        let batch: Vec<Document> = (counted.len()..jobs).take(width).map(config).collect();
        let mut results = bench.count(&batch);
        // A bench that says less, or more, must not shift the results of others.
        results.resize(batch.len(), Counted::Untried);
        counted.extend(results);
        longest = longest.max(bench.spent().saturating_sub(before));
        let done = u32::try_from(counted.len()).unwrap_or(u32::MAX);
        let rest = u32::try_from(jobs - counted.len()).unwrap_or(u32::MAX);
        let left = bench.spent().saturating_sub(begun) / done * rest;
        events(Event { done: counted.len(), of: jobs, left: left.min(budget.saturating_sub(bench.spent())) });
    }
    counted.resize(jobs, Counted::Untried);
    Outcome { counted, ended_by }
}
