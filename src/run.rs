//! Runs one target: calibrates, then block after block until a look ends it. All that is impure is behind `Lab`.

use std::time::{Duration, Instant};

use crate::judge;
use crate::lab::{Lab, LabFailure};
use crate::plan;
use crate::record::{Arm, Block, End, Replay, TargetRecord};

/// What happens while a target runs; reporters print it, nobody else does.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Capacity was found and the open-loop rate set from it.
    Calibrated {
        capacity_rps: f64,
        rate_rps: Option<f64>,
    },
    /// A block ended; `left` is the time until the last look if nothing stops earlier.
    BlockDone {
        done: u32,
        of: u32,
        left: Duration,
    },
    BlockVoided {
        index: u32,
        why: String,
    },
    /// The stored baseline failed; the run goes on without it.
    BaselineLeft {
        why: String,
    },
    /// A look ended the run early: every gated metric surely passes.
    StoppedEarly {
        done: u32,
    },
}

/// Bounds that do not depend on what is measured.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub seed: u64,
    /// No block starts after it.
    pub budget: Duration,
}

/// Fills `target` with blocks. Never fails: how it ended is in `target.end`, and what was measured stays.
pub fn run(target: &mut TargetRecord, lab: &mut dyn Lab, bounds: Bounds, events: &mut dyn FnMut(Event)) {
    let started = Instant::now();
    target.end = match measure(target, lab, bounds, started, events) {
        Ok(end) => end,
        Err(LabFailure::Arm { arm, message }) => End::Failed { arm, message },
        Err(LabFailure::Interrupted { by, partial }) => {
            target.blocks.extend(partial.map(|block| *block));
            End::Interrupted { by }
        }
    };
}

fn measure(
    target: &mut TargetRecord,
    lab: &mut dyn Lab,
    bounds: Bounds,
    started: Instant,
    events: &mut dyn FnMut(Event),
) -> Result<End, LabFailure> {
    let mut arms = target.arms();
    without_unfit_baseline(target, &mut arms, events, |target, arms| lab.calibrate(&mut target.scenarios, arms))?;
    for scenario in &target.scenarios {
        if let (Some(capacity_rps), crate::record::Load::Open { rate_rps }) = (scenario.capacity_rps, scenario.load) {
            events(Event::Calibrated { capacity_rps, rate_rps: Some(rate_rps) });
        }
    }
    let rounds: Vec<u32> = target.scenarios.iter().map(|s| s.rounds).collect();
    let last = target.looks.last().copied().unwrap_or(0);
    // Voided blocks are replaced, but only so many: a machine that voids more than a quarter is too noisy to judge on.
    let most = last + last / 3;
    let measuring = Instant::now();
    for index in 0..most {
        if started.elapsed() > bounds.budget {
            return Ok(End::Interrupted { by: format!("the budget of {} s", bounds.budget.as_secs()) });
        }
        let block = without_unfit_baseline(target, &mut arms, events, |_, arms| {
            lab.run_block(&plan::block(bounds.seed, index, &rounds, arms))
        })?;
        if let Some(why) = &block.void {
            events(Event::BlockVoided { index, why: why.clone() });
        }
        target.blocks.push(block);
        let valid = valid_blocks(&target.blocks);
        let left = measuring.elapsed() / (index + 1) * last.saturating_sub(valid);
        events(Event::BlockDone { done: valid, of: last, left });
        if valid >= last {
            return Ok(End::Complete);
        }
        if is_fresh_look(target, valid) && judge::may_stop(target) {
            events(Event::StoppedEarly { done: valid });
            return Ok(End::Early);
        }
    }
    Ok(End::Complete)
}

/// A stored baseline that fails must not keep head from being judged against base: what it ended is done again without
/// it.
fn without_unfit_baseline<T>(
    target: &mut TargetRecord,
    arms: &mut Vec<Arm>,
    events: &mut dyn FnMut(Event),
    mut attempt: impl FnMut(&mut TargetRecord, &[Arm]) -> Result<T, LabFailure>,
) -> Result<T, LabFailure> {
    match attempt(target, arms) {
        Err(LabFailure::Arm { arm: Some(Arm::Baseline), message }) => {
            arms.retain(|arm| *arm != Arm::Baseline);
            if let Some(baseline) = &mut target.baseline {
                baseline.replay = Replay::Left { why: message.clone() };
            }
            events(Event::BaselineLeft { why: message });
            attempt(target, arms)
        }
        other => other,
    }
}

/// A look happens once, when the number of valid blocks has just reached it.
fn is_fresh_look(target: &TargetRecord, valid: u32) -> bool {
    target.looks.contains(&valid) && target.blocks.last().is_some_and(|b| b.void.is_none())
}

fn valid_blocks(blocks: &[Block]) -> u32 {
    u32::try_from(blocks.iter().filter(|b| b.void.is_none()).count()).unwrap_or(u32::MAX)
}
