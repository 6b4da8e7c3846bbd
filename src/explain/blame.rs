//! Which of the changes between base and head account for a difference in cost.

use std::cmp::Reverse;
use std::time::Duration;

use crate::envoy::difference::{Change, Difference};
use crate::explain::bench::{Bench, Event, count_all};
use crate::record::{Blame, BlamePart, Counted};

/// What has been counted of both arms already.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Index of the class of requests.
    pub class: u32,
    /// Instructions per request.
    pub base: f64,
    pub head: f64,
}

/// Counts base with each change alone, those that usually cost most first, within the budget. Where all is one change,
/// that is to blame and nothing is counted.
pub fn blame(
    difference: &Difference,
    known: Known,
    bench: &mut dyn Bench,
    budget: Duration,
    events: &mut dyn FnMut(Event),
) -> Blame {
    let changes = difference.changes();
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by_key(|&at| (changes[at].kind, Reverse(changes[at].places)));
    let mut untried = Vec::new();
    let mut parts: Vec<BlamePart> = if let [only] = changes {
        vec![part(only, Some(known.head - known.base))]
    } else {
        let config = |job: usize| difference.alone(order[job]);
        let outcome = count_all(bench, budget, order.len(), &config, events);
        let mut parts = Vec::new();
        for (&at, counted) in order.iter().zip(outcome.counted) {
            match counted {
                Counted::Done(count) => parts.push(part(&changes[at], Some(count.instructions - known.base))),
                Counted::Failed { .. } => parts.push(part(&changes[at], None)),
                Counted::Untried => untried.push(changes[at].what.clone()),
            }
        }
        parts
    };
    let size = |part: &BlamePart| part.instructions.map_or(-1.0, f64::abs);
    parts.sort_by(|a, b| size(b).total_cmp(&size(a)));
    Blame { class: known.class, base: known.base, head: known.head, parts, untried }
}

fn part(change: &Change, instructions: Option<f64>) -> BlamePart {
    BlamePart { pointer: change.pointer.clone(), span: change.span, what: change.what.clone(), instructions }
}
