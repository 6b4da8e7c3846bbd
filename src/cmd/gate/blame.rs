//! After a regression of counts: which of the changes did it.

use std::time::Duration;

use crate::cmd::gate::counting_bench::CountingBench;
use crate::cmd::gate::prepare::Prepared;
use crate::cmd::progress::Progress;
use crate::cost::{Counter, Effort};
use crate::envoy::difference::Difference;
use crate::explain::{self, Bench as _, Known};
use crate::judge;
use crate::policy::Profile;
use crate::record::{Arm, Blame, BlamePart, Counted, Missing};

/// Time for counting changes one by one. A single change needs none.
fn budget(profile: Profile) -> Duration {
    Duration::from_secs(match profile {
        Profile::Quick => 20,
        Profile::Standard => 60,
        Profile::Deep => 120,
    })
}

/// Fills the blame of the target's cost where its counts surely regressed. What cannot be counted leaves it empty.
pub fn find(profile: Profile, prepared: &mut Prepared, progress: &mut Progress) {
    let Some(class) = judge::cost_regressed(&prepared.target) else { return };
    match blame(class, profile, prepared, progress) {
        Ok(blame) => {
            if let Some(cost) = &mut prepared.target.cost {
                cost.blame = Some(blame);
            }
        }
        Err(why) => progress.note(&format!("the changes are not counted one by one: {why}")),
    }
}

fn blame(class: u32, profile: Profile, prepared: &Prepared, progress: &mut Progress) -> Result<Blame, String> {
    let setup = &prepared.setup;
    let nothing = || "there are no counts".to_owned();
    let cost = prepared.target.cost.as_ref().ok_or_else(nothing)?;
    let at = usize::try_from(class).unwrap_or(usize::MAX);
    let sent = cost.classes.get(at).ok_or_else(nothing)?;
    let arm = |wanted: Arm| setup.arms.iter().find(|arm| arm.arm == wanted).ok_or_else(nothing);
    let (base, head) = (arm(Arm::Base)?, arm(Arm::Head)?);
    let counted = |wanted: Arm| {
        let arm = cost.arms.iter().find(|arm| arm.arm == wanted)?;
        Some(explain::count_of(arm.classes.get(at)?).count()?.instructions)
    };
    let (before, after) = (counted(Arm::Base).ok_or_else(nothing)?, counted(Arm::Head).ok_or_else(nothing)?);
    let stop = &setup.stop;
    let counter = Counter::find(&setup.spawner, &setup.cpus, stop).map_err(|Missing { why, .. }| why)?;
    let mut bench = CountingBench::new(&counter, &setup.spawner, (&head.binary, base.listener), sent, stop);
    // As the arms were counted, whose counts these are held against.
    bench.effort = Effort::of(profile);
    let difference = Difference::between(base.bootstrap.document(), head.bootstrap.document());
    progress.step("counting the changes one by one");
    let mut known = Known { class, base: before, head: after };
    // Another proxy is a change like any other: it is counted with base's config, and the rest on top of it.
    let mut upgrade = None;
    if base.binary.sha256 != head.binary.sha256 {
        let on_head = bench.count(&[base.bootstrap.document().clone()]);
        let instructions = on_head.first().and_then(Counted::count).map(|count| count.instructions);
        let what = format!("envoy {} replaced by {}", base.binary.version, head.binary.version);
        known.base = instructions.unwrap_or(before);
        upgrade = Some(BlamePart {
            pointer: String::new(),
            span: None,
            what,
            instructions: instructions.map(|i| i - before),
        });
    }
    let mut events = |event: explain::Event| {
        progress.step(&format!("{} of {} changes counted", event.done, event.of));
    };
    let mut blame = explain::blame(&difference, known, &mut bench, budget(profile), &mut events);
    blame.base = before;
    if let Some(upgrade) = upgrade {
        let size = upgrade.instructions.map_or(-1.0, f64::abs);
        let place = blame.parts.iter().position(|part| part.instructions.map_or(-1.0, f64::abs) < size);
        blame.parts.insert(place.unwrap_or(blame.parts.len()), upgrade);
    }
    Ok(blame)
}
