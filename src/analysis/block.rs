//! One block's slices of one scenario, put together by round and by arm.

use std::collections::BTreeMap;

use super::merged::Merged;
use crate::record::{Arm, ArmBlock, Block, Counters, Slice, Slot};

/// The slices of one round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round<'a> {
    pub direct: Option<&'a Slice>,
    pub base: Option<&'a Slice>,
    pub head: Option<&'a Slice>,
}

/// A block as far as one scenario goes.
#[derive(Debug)]
pub struct ScenarioBlock<'a> {
    pub base_slot: Slot,
    pub rounds: Vec<Round<'a>>,
    /// Latencies of the whole block, by arm.
    pub direct: Merged,
    pub base: Merged,
    pub head: Merged,
    base_counters: Option<Counters>,
    head_counters: Option<Counters>,
}

impl<'a> ScenarioBlock<'a> {
    pub fn new(block: &'a Block, scenario: u32) -> Self {
        let mut rounds: BTreeMap<u32, Round<'a>> = BTreeMap::new();
        for slice in block.slices.iter().filter(|s| s.scenario == scenario) {
            let round = rounds.entry(slice.round).or_default();
            match slice.arm {
                Arm::Direct => round.direct = Some(slice),
                Arm::Base => round.base = Some(slice),
                Arm::Head => round.head = Some(slice),
            }
        }
        let rounds: Vec<Round<'a>> = rounds.into_values().collect();
        let merged =
            |pick: fn(&Round<'a>) -> Option<&'a Slice>| Merged::of(rounds.iter().filter_map(pick).map(latency));
        let counters = |arm: Arm| {
            arm_block(block, arm).and_then(|a| a.counters.get(usize::try_from(scenario).unwrap_or(usize::MAX)).copied())
        };
        Self {
            base_slot: block.base_slot,
            direct: merged(|r| r.direct),
            base: merged(|r| r.base),
            head: merged(|r| r.head),
            base_counters: counters(Arm::Base),
            head_counters: counters(Arm::Head),
            rounds,
        }
    }

    /// Rounds in which both base and head ran: (base, head).
    pub fn pairs(&self) -> impl Iterator<Item = (&'a Slice, &'a Slice)> {
        self.rounds.iter().filter_map(|r| Some((r.base?, r.head?)))
    }

    pub fn slices(&self, arm: Arm) -> impl Iterator<Item = &'a Slice> {
        self.rounds.iter().filter_map(move |r| match arm {
            Arm::Direct => r.direct,
            Arm::Base => r.base,
            Arm::Head => r.head,
        })
    }

    pub fn merged(&self, arm: Arm) -> &Merged {
        match arm {
            Arm::Direct => &self.direct,
            Arm::Base => &self.base,
            Arm::Head => &self.head,
        }
    }

    pub fn counters(&self, arm: Arm) -> Option<Counters> {
        match arm {
            Arm::Direct => None,
            Arm::Base => self.base_counters,
            Arm::Head => self.head_counters,
        }
    }

    /// Sum over an arm's slices; `None` if there are none, or one of them lacks the figure.
    pub fn sum(&self, arm: Arm, figure: impl Fn(&Slice) -> Option<f64>) -> Option<f64> {
        let mut slices = self.slices(arm).peekable();
        slices.peek()?;
        slices.map(figure).sum()
    }
}

pub fn arm_block(block: &Block, arm: Arm) -> Option<&ArmBlock> {
    block.arms.iter().find(|a| a.arm == arm)
}

/// Requests of a slice, answered as expected or not.
pub fn requests(slice: &Slice) -> f64 {
    slice.completed as f64 + failed(slice)
}

pub fn failed(slice: &Slice) -> f64 {
    slice.errors.values().map(|&n| n as f64).sum()
}

fn latency(slice: &Slice) -> &crate::histogram::Histogram {
    &slice.latency
}
