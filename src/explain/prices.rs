//! The price of every block of one config: the whole, the bare config, the whole without each block, and each block alone.

use std::time::Duration;

use crate::envoy::ablate::Ablation;
use crate::explain::bench::{Bench, Event, count_all};
use crate::record::{BlockPrice, Counted, CountingClass, Prices, RequestClass};

/// What is explained, as it will stand in the result.
#[derive(Debug, Clone)]
pub struct Subject {
    pub file: String,
    /// `envoy 1.40.0`.
    pub proxy: String,
    pub machine: Option<CountingClass>,
    pub class: RequestClass,
}

/// Counts a config, itself without any block, without each block, and without all others, the blocks that usually cost
/// most first. Ends when all is counted, when the next config would not fit into the budget, or on a signal: what was counted stays.
pub fn prices(
    subject: Subject,
    ablation: &Ablation,
    whole: crate::yaml::Document,
    bench: &mut dyn Bench,
    budget: Duration,
    events: &mut dyn FnMut(Event),
) -> Prices {
    let blocks = ablation.blocks();
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|&at| blocks[at].kind);
    // A single block's absence is the bare config, and its presence the whole.
    let jobs = if order.len() > 1 { 2 + 2 * order.len() } else { order.len() + 1 };
    let config = |job: usize| match job {
        0 => whole.clone(),
        1 => ablation.bare(),
        job => match order.get(job - 2) {
            Some(&block) => ablation.without(&[block]),
            None => ablation.only(order[job - 2 - order.len()]),
        },
    };
    let outcome = count_all(bench, budget, jobs, &config, events);
    let mut counted = outcome.counted.into_iter();
    let whole = counted.next().unwrap_or(Counted::Untried);
    let bare = if blocks.is_empty() { whole.clone() } else { counted.next().unwrap_or(Counted::Untried) };
    let mut without: Vec<Counted> = vec![bare.clone(); blocks.len()];
    let mut alone: Vec<Counted> = vec![whole.clone(); blocks.len()];
    if order.len() > 1 {
        order.iter().zip(counted.by_ref()).for_each(|(&at, counted)| without[at] = counted);
        order.iter().zip(counted).for_each(|(&at, counted)| alone[at] = counted);
    }
    let price = |(block, (without, alone)): (&crate::envoy::ablate::Block, (Counted, Counted))| BlockPrice {
        pointer: block.pointer.clone(),
        span: block.span,
        what: block.what.clone(),
        without,
        alone,
    };
    Prices {
        file: subject.file,
        proxy: subject.proxy,
        machine: subject.machine,
        class: subject.class,
        whole,
        bare,
        blocks: blocks.iter().zip(without.into_iter().zip(alone)).map(price).collect(),
        elsewhere: u32::try_from(ablation.elsewhere()).unwrap_or(u32::MAX),
        ended_by: outcome.ended_by,
    }
}
