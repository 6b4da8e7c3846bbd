//! Counting a target's instructions: its classes, its arms, and what is said where it cannot be done.

use crate::cmd::gate::order::{self, Counting, Order};
use crate::cmd::gate::prepare::Prepared;
use crate::cmd::gate::stored_counts::{self, Today};
use crate::cmd::progress::Progress;
use crate::cost::{Candidate, CostFailure, Counter, Effort, Event};
use crate::envoy::classes::{self, Classes};
use crate::exit::Failure;
use crate::lab::Setup;
use crate::problem::Problem;
use crate::record::{
    Arm, ArmCost, ClassCost, Cost, CountingClass, End, Missing, Replay, RequestClass, StoredBaseline, StoredCounts,
};

/// Fills `target.cost`; a signal ends the target.
///
/// # Errors
/// Counts are required and cannot be had: an environment problem.
pub fn count(order: &Order, prepared: &mut Prepared, progress: &mut Progress) -> Result<(), Failure> {
    let target = &mut prepared.target;
    let cost = match counted(order, &prepared.setup, target.baseline.as_mut(), progress) {
        Ok(cost) => cost,
        Err(Uncounted::Stopped(by)) => {
            target.end = End::Interrupted { by };
            return Ok(());
        }
        Err(Uncounted::Missing(missing)) => Cost { missing: Some(missing), ..Cost::default() },
    };
    if let Some(Missing { why, help }) = &cost.missing {
        if matches!(order.counting, Counting::Required | Counting::Only) {
            let problem = Problem::new("", format!("instructions cannot be counted: {why}")).help(help);
            return Err(Failure::environment(problem));
        }
        progress.note(&format!("instructions are not counted: {why}; {help}"));
    }
    target.cost = Some(cost);
    Ok(())
}

enum Uncounted {
    Stopped(String),
    Missing(Missing),
}

fn counted(
    order: &Order,
    setup: &Setup,
    stored: Option<&mut StoredBaseline>,
    progress: &mut Progress,
) -> Result<Cost, Uncounted> {
    let stopped = || setup.stop.requested().map(|by| Uncounted::Stopped(by.to_owned()));
    let counter = Counter::find(&setup.spawner, &setup.cpus, &setup.stop)
        .map_err(|missing| stopped().unwrap_or(Uncounted::Missing(missing)))?;
    let configs: Vec<_> = setup.arms.iter().map(|arm| &arm.bootstrap).collect();
    let most = order::classes(order.policy.profile);
    let Classes { classes, left_out } = classes::derive(&configs, &setup.requests, most);
    let baseline = stored.and_then(|joined| of_baseline(order, setup, joined, counter.class(), &classes));
    let arms: Vec<_> = setup.arms.iter().filter(|arm| baseline.is_none() || arm.arm != Arm::Baseline).collect();
    let candidates: Vec<Candidate> = arms
        .iter()
        .map(|arm| Candidate { binary: &arm.binary, bootstrap: &arm.bootstrap, listener: arm.listener })
        .collect();
    progress.step(&format!("counting instructions of {} kinds of requests under valgrind", classes.len()));
    let effort = Effort::of(order.policy.profile);
    let mut events = |event: Event| match event {
        Event::Started { .. } => {}
        Event::ClassDone { candidate, class } => {
            progress.step(&format!("counted {} on {}", classes[class].name, arms[candidate].arm.name()));
        }
    };
    let costs = counter.count(&candidates, &classes, &effort, &mut events).map_err(|failure| match failure {
        CostFailure::Stopped { by } => Uncounted::Stopped(by),
        failure => Uncounted::Missing(Missing {
            why: failure.to_string(),
            help: "run the gate with --no-cost to leave the counts out".to_owned(),
        }),
    })?;
    let mut arms: Vec<ArmCost> =
        arms.iter().zip(costs).map(|(arm, classes)| ArmCost { arm: arm.arm, classes }).collect();
    let nothing = nothing(&arms);
    arms.extend(baseline.map(|classes| ArmCost { arm: Arm::Baseline, classes }));
    match nothing {
        Some(why) => Err(Uncounted::Missing(Missing {
            why: format!("no arm could be counted: {why}"),
            help: "run the gate with --no-cost to leave the counts out".to_owned(),
        })),
        None => Ok(Cost { machine: Some(counter.class().clone()), classes, left_out, arms, ..Cost::default() }),
    }
}

/// The stored baseline's own counts, where they may stand beside today's: no arm needs to be counted for it then. Says in
/// `joined` where its counts are from.
fn of_baseline(
    order: &Order,
    setup: &Setup,
    joined: &mut StoredBaseline,
    machine: &CountingClass,
    classes: &[RequestClass],
) -> Option<Vec<ClassCost>> {
    if joined.replay == Replay::IsBase {
        return None;
    }
    let head = setup.arms.iter().find(|arm| arm.arm == Arm::Head)?;
    let stored = &order.baseline.as_ref()?.baseline;
    let today = Today { machine, proxy_sha256: &head.binary.sha256, classes };
    let (counts, how) = match stored_counts::taken(stored.cost.as_ref(), &stored.proxy, &today) {
        Ok(counts) => (Some(counts), StoredCounts::Stored),
        Err(why) if joined.is_live() => (None, StoredCounts::Again { why }),
        Err(why) => (None, StoredCounts::None { why }),
    };
    joined.counts = Some(how);
    counts
}

/// Why nothing at all was counted, if so, of each arm: what happens to all of them is not a config's doing.
fn nothing(arms: &[ArmCost]) -> Option<String> {
    if arms.iter().flat_map(|arm| &arm.classes).any(|cost| !cost.windows.is_empty()) {
        return None;
    }
    let whys = arms.iter().filter_map(|arm| {
        let why = arm.classes.iter().find_map(|cost| cost.failed.as_ref())?;
        Some(format!("{}: {why}", arm.arm.name()))
    });
    Some(whys.collect::<Vec<_>>().join("; "))
}
