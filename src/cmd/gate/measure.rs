//! One target measured: made fit, counted, loaded block after block.

use crate::cmd::gate::order::{Counting, Order};
use crate::cmd::gate::prepare::{self, Prepared};
use crate::cmd::gate::{blame, count};
use crate::cmd::progress::Progress;
use crate::exit::Failure;
use crate::lab::{LabFailure, RealLab};
use crate::record::{End, TargetRecord};
use crate::run::{self, Bounds};
use crate::stop::Stop;

/// Refuses what cannot be measured; whatever ends the measurement early is in the target's record.
pub fn measure(order: &Order, stop: &Stop, progress: &mut Progress) -> Result<TargetRecord, Failure> {
    let mut prepared = prepare::prepare(order, stop, progress)?;
    if order.counting != Counting::Never {
        count::count(order, &mut prepared, progress)?;
        blame::find(order.policy.profile, &mut prepared, progress);
    }
    if order.counting == Counting::Only || matches!(prepared.target.end, End::Interrupted { .. }) {
        let mut target = prepared.target;
        // Nothing was loaded, and nothing is to be expected of it.
        target.looks.clear();
        target.scenarios.clear();
        return Ok(target);
    }
    Ok(load(order, prepared, progress))
}

/// The wall-clock part.
fn load(order: &Order, prepared: Prepared, progress: &mut Progress) -> TargetRecord {
    let mut target = prepared.target;
    progress.step("finding the capacity");
    match RealLab::start(prepared.setup, order.seed) {
        Ok(mut lab) => {
            let bounds = Bounds { seed: order.seed, budget: order.budget };
            run::run(&mut target, &mut lab, bounds, &mut |event| progress.event(&event));
        }
        Err(LabFailure::Arm { arm, message }) => target.end = End::Failed { arm, message },
        Err(LabFailure::Interrupted { by, .. }) => target.end = End::Interrupted { by },
    }
    target
}
