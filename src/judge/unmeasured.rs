//! The verdict on a target that was not measured: why not, and what to do.

use crate::record::{Unmeasured, Why};
use crate::verdict::{Outcome, TargetVerdict};

pub fn judge(target: &Unmeasured) -> TargetVerdict {
    let (verdict, next) = match target.why {
        Why::Removed | Why::Moved => (Outcome::Skipped, None),
        Why::DidNotFit => {
            (Outcome::Skipped, Some("give the run more time with `--budget`, or gate fewer configs in one job"))
        }
        Why::Refused => (Outcome::Invalid, Some("correct the config, or take it out of the gate")),
        Why::Environment | Why::Interrupted => {
            (Outcome::Invalid, Some("nothing was decided: remove the cause named above and run the gate again"))
        }
    };
    TargetVerdict {
        target: target.target.clone(),
        verdict,
        base: target.base.clone(),
        head: target.head.clone().unwrap_or_default(),
        reasons: vec![format!("not measured: {}", target.message)],
        notes: Vec::new(),
        next_steps: next.map(str::to_owned).into_iter().collect(),
        family_size: 0,
        alpha: 0.0,
        flip_rate: 0.0,
        blocks: 0,
        accepted: Vec::new(),
    }
}
