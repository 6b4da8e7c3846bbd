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

/// A block as far as one scenario goes. `base` is whoever head is held against: the base, or the stored baseline.
#[derive(Debug)]
pub struct ScenarioBlock<'a> {
    pub base_slot: Slot,
    pub rounds: Vec<Round<'a>>,
    /// Latencies of the whole block, by arm.
    pub direct: Merged,
    pub base: Merged,
    pub head: Merged,
    base_counted: Option<Counted>,
    head_counted: Option<Counted>,
}

/// A proxy's own counters over a scenario, and the requests of all its slices.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    pub counters: Counters,
    pub requests: f64,
}

impl<'a> ScenarioBlock<'a> {
    /// Against the stored baseline only the rounds count in which it ran: all arms have as many slices, side by side.
    pub fn new(block: &'a Block, scenario: u32, against: Arm) -> Self {
        let mut rounds: BTreeMap<u32, Round<'a>> = BTreeMap::new();
        for slice in block.slices.iter().filter(|s| s.scenario == scenario) {
            let round = rounds.entry(slice.round).or_default();
            match slice.arm {
                Arm::Direct => round.direct = Some(slice),
                Arm::Head => round.head = Some(slice),
                arm if arm == against => round.base = Some(slice),
                Arm::Base | Arm::Baseline => {}
            }
        }
        let counted = |arm: Arm| {
            let at = usize::try_from(scenario).ok()?;
            let counters = *arm_block(block, arm)?.counters.get(at)?;
            let own = block.slices.iter().filter(|s| s.scenario == scenario && s.arm == arm);
            Some(Counted { counters, requests: own.map(requests).sum() })
        };
        let keep = |r: &Round<'a>| against != Arm::Baseline || r.base.is_some();
        let rounds: Vec<Round<'a>> = rounds.into_values().filter(keep).collect();
        let merged =
            |pick: fn(&Round<'a>) -> Option<&'a Slice>| Merged::of(rounds.iter().filter_map(pick).map(latency));
        Self {
            base_slot: slot_of(block, against),
            direct: merged(|r| r.direct),
            base: merged(|r| r.base),
            head: merged(|r| r.head),
            base_counted: counted(against),
            head_counted: counted(Arm::Head),
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
            Arm::Base | Arm::Baseline => r.base,
            Arm::Head => r.head,
        })
    }

    pub fn merged(&self, arm: Arm) -> &Merged {
        match arm {
            Arm::Direct => &self.direct,
            Arm::Base | Arm::Baseline => &self.base,
            Arm::Head => &self.head,
        }
    }

    pub fn counted(&self, arm: Arm) -> Option<Counted> {
        match arm {
            Arm::Direct => None,
            Arm::Base | Arm::Baseline => self.base_counted,
            Arm::Head => self.head_counted,
        }
    }

    /// Sum over an arm's slices; `None` if there are none, or one of them lacks the figure.
    pub fn sum(&self, arm: Arm, figure: impl Fn(&Slice) -> Option<f64>) -> Option<f64> {
        let mut slices = self.slices(arm).peekable();
        slices.peek()?;
        slices.map(figure).sum()
    }
}

/// Where the arm sat that head is held against.
pub fn slot_of(block: &Block, against: Arm) -> Slot {
    match against {
        Arm::Baseline => block.baseline_slot.unwrap_or(block.base_slot),
        _ => block.base_slot,
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
