//! From a target's record to effects: one value a block and metric, and what is doubtful about the measurement. Pure and
//! total: what is missing is left out, never a panic.

mod block;
mod effect;
mod family;
mod merged;
mod quality;

pub use effect::{Effect, TooFew};
pub use family::is_wall_clock;
pub use quality::{ErrorKind, Interference, Quality, Saturated, ScenarioQuality, SlotEffect, Who};

use crate::record::{Arm, Block, TargetRecord};
use block::ScenarioBlock;

/// What a target's record says, before any judgement.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Blocks that count.
    pub blocks: u32,
    /// Blocks that were voided, label-blind.
    pub voided: u32,
    /// Scenario by scenario, then what belongs to the target as a whole.
    pub effects: Vec<Effect>,
    /// Kinds of errors seen on any arm.
    pub errors: Vec<ErrorKind>,
    pub quality: Quality,
}

/// Analyses the blocks that were not voided: head against base.
pub fn analyze(target: &TargetRecord) -> Analysis {
    analyze_against(target, Arm::Base)
}

/// Head against base or against the stored baseline; `base` in what is returned is that arm.
pub fn analyze_against(target: &TargetRecord, against: Arm) -> Analysis {
    let blocks: Vec<&Block> = target.blocks.iter().filter(|b| b.void.is_none()).collect();
    let mut effects = Vec::new();
    let mut errors = Vec::new();
    let mut scenarios = Vec::new();
    for (index, scenario) in (0_u32..).zip(&target.scenarios) {
        let views: Vec<ScenarioBlock<'_>> = blocks.iter().map(|b| ScenarioBlock::new(b, index, against)).collect();
        effects.extend(effect::of_scenario(target, index, scenario, &views, against));
        errors.extend(quality::errors(index, &views));
        scenarios.push(quality::of_scenario(target, index, scenario, &views, &effects));
    }
    effects.extend(effect::of_target(target, &blocks, against));
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Analysis {
        blocks: count(blocks.len()),
        voided: count(target.blocks.len() - blocks.len()),
        effects,
        errors,
        quality: Quality { scenarios, block_seconds: quality::block_seconds(&blocks) },
    }
}
