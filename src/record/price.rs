//! What each block of one config costs one class of requests, by ablation.

use serde::{Deserialize, Serialize};

use super::{CountingClass, RequestClass};
use crate::problem::Span;

/// The prices of a config's blocks. What could not be counted stands beside what was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// The config's name as the user gave it.
    pub file: String,
    /// `envoy 1.40.0`.
    pub proxy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<CountingClass>,
    /// What was sent.
    pub class: RequestClass,
    /// The config as it is.
    pub whole: Counted,
    /// The config without all of its blocks.
    pub bare: Counted,
    /// In the order of the file.
    pub blocks: Vec<BlockPrice>,
    /// Blocks of listeners that the request does not pass.
    pub elsewhere: u32,
    /// Why not all was tried: `the budget of 120 s`, `SIGINT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
}

/// One config under the counter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Counted {
    Done(Count),
    /// The proxy rejects the config, or it did not answer; the reason in plain words.
    Failed {
        why: String,
    },
    Untried,
}

/// Medians over windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Per request, on the worker thread.
    pub instructions: f64,
    /// Per request, without readings of the clock.
    pub syscalls: f64,
    /// Largest minus smallest window, as a share of the median.
    pub spread: f64,
    /// The statuses of the answers, ascending.
    pub statuses: Vec<u16>,
}

/// One block, the config without it, and the bare config with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockPrice {
    /// JSON pointer of its first place.
    pub pointer: String,
    /// Where that stands in the file.
    pub span: Option<Span>,
    /// `HTTP filter envoy.filters.http.lua`.
    pub what: String,
    /// The config without this block.
    pub without: Counted,
    /// This block alone on the bare config.
    pub alone: Counted,
}

/// What a block adds to a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub instructions: f64,
    pub syscalls: f64,
    /// Instructions as a share of the whole config's.
    pub share: f64,
}

impl Counted {
    pub fn count(&self) -> Option<&Count> {
        if let Self::Done(count) = self { Some(count) } else { None }
    }
}

impl Prices {
    /// The whole minus the config without the block.
    pub fn price(&self, block: &BlockPrice) -> Option<Price> {
        between(self.whole.count()?, block.without.count()?)
    }

    /// The bare config with the block minus the bare config: what adding the block alone costs. It is more than the price
    /// where other blocks do part of the same work, and less where the block makes work for others.
    pub fn alone(&self, block: &BlockPrice) -> Option<Price> {
        let price = between(block.alone.count()?, self.bare.count()?)?;
        let share = price.instructions / self.whole.count()?.instructions;
        Some(Price { share, ..price })
    }

    /// The whole minus the bare config.
    pub fn all(&self) -> Option<Price> {
        between(self.whole.count()?, self.bare.count()?)
    }

    /// The sum of all prices. `None` while one of them is not known.
    pub fn sum(&self) -> Option<Price> {
        let zero = Price { instructions: 0.0, syscalls: 0.0, share: 0.0 };
        self.blocks.iter().try_fold(zero, |sum, block| {
            let price = self.price(block)?;
            Some(Price {
                instructions: sum.instructions + price.instructions,
                syscalls: sum.syscalls + price.syscalls,
                share: sum.share + price.share,
            })
        })
    }

    /// What the blocks cost together beyond the sum of their prices: above zero where two of them share work, which stays
    /// whichever of them goes; below zero where one makes work for another, which goes with either.
    pub fn interactions(&self) -> Option<Price> {
        let (all, sum) = (self.all()?, self.sum()?);
        Some(Price {
            instructions: all.instructions - sum.instructions,
            syscalls: all.syscalls - sum.syscalls,
            share: all.share - sum.share,
        })
    }

    /// Whether requests get other answers without this block, so that its price is that of another path.
    pub fn answers_differ(&self, block: &BlockPrice) -> bool {
        match (self.whole.count(), block.without.count()) {
            (Some(whole), Some(without)) => whole.statuses != without.statuses,
            _ => false,
        }
    }
}

fn between(more: &Count, less: &Count) -> Option<Price> {
    let instructions = more.instructions - less.instructions;
    let share = instructions / more.instructions;
    share.is_finite().then_some(Price { instructions, syscalls: more.syscalls - less.syscalls, share })
}
