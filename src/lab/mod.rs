//! Where plans become measurements. `Lab` is the one impure border: the real one drives proxies, the simulator draws.

mod meter;
mod real;
mod slots;
mod void;

pub use real::{ArmSetup, RealLab, Setup};

use crate::plan::BlockPlan;
use crate::record::{Arm, Block, Scenario};

pub trait Lab {
    /// Finds the capacity of the slowest of `arms` once, label-blind, and sets the rate and slice length of open-loop
    /// scenarios from it.
    fn calibrate(&mut self, scenarios: &mut [Scenario], arms: &[Arm]) -> Result<(), LabFailure>;
    /// Fresh proxies, warm-up, every step of the plan, scrape, stop.
    fn run_block(&mut self, plan: &BlockPlan) -> Result<Block, LabFailure>;
}

/// Why nothing more can be measured.
#[derive(Debug, Clone, PartialEq)]
pub enum LabFailure {
    /// A proxy failed (`arm`), or something of ours did (`None`).
    Arm { arm: Option<Arm>, message: String },
    /// A signal. `partial` holds the slices of the block it interrupted.
    Interrupted { by: String, partial: Option<Box<Block>> },
}

impl LabFailure {
    /// Which of two failures at once is told: what keeps anything from being said about head comes first.
    fn rank(&self) -> u8 {
        match self {
            Self::Interrupted { .. } => 0,
            Self::Arm { arm: None, .. } => 1,
            Self::Arm { arm: Some(Arm::Base | Arm::Direct), .. } => 2,
            Self::Arm { arm: Some(Arm::Head), .. } => 3,
            Self::Arm { arm: Some(Arm::Baseline), .. } => 4,
        }
    }
}
