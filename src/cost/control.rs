//! Telling a running valgrind what to do.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::CostFailure;
use super::subject::Subject;
use super::tools::Tools;
use crate::proxy::Spawner;
use crate::proxy::child::{Spec, User, describe};
use crate::record::Slot;
use crate::stop::Stop;

/// On an idle machine the slowest command takes half a second. A crowded one may give us a tenth of its time.
const DEADLINE: Duration = Duration::from_secs(30);
/// Between two looks at the command's end, and so between two pokes.
const POKE: Duration = Duration::from_millis(30);

/// Where valgrind puts its pipes, beside the proxy's log.
pub(super) const PIPES: &str = "vg";
/// Where callgrind puts what it counted: `out.1-01` and so on.
pub(super) const DUMPS: &str = "out";

/// Commands to one valgrind, by `vgdb`.
#[derive(Debug)]
pub(super) struct Control {
    spawner: Spawner,
    vgdb: PathBuf,
    slot: Slot,
    arguments: Vec<String>,
    stop: Stop,
}

/// Why a command was not carried out.
#[derive(Debug)]
pub(super) enum Fault {
    /// The candidate is at fault.
    Arm(String),
    Ours(CostFailure),
}

impl From<CostFailure> for Fault {
    fn from(failure: CostFailure) -> Self {
        Self::Ours(failure)
    }
}

impl Control {
    pub fn of(tools: &Tools, spawner: &Spawner, slot: Slot, subject: &mut Subject, stop: &Stop) -> Self {
        let pipes = subject.folder().join(PIPES);
        // Valgrind is never attached to, which needs rights and can hang: it looks at its pipe by itself, now and then,
        // as long as it executes something.
        let arguments = vec![
            format!("--vgdb-prefix={}", pipes.display()),
            "--max-invoke-ms=0".to_owned(),
            format!("--pid={}", subject.pid()),
        ];
        Self { spawner: spawner.clone(), vgdb: tools.vgdb.clone(), slot, arguments, stop: stop.clone() }
    }

    /// Has valgrind carry out a command, which the proxy's main thread executes while workers are idle.
    pub fn command(&self, words: &[&str], subject: &mut Subject) -> Result<(), Fault> {
        let began = Instant::now();
        let spec = Spec {
            program: self.vgdb.clone(),
            args: self.arguments.iter().map(String::as_str).chain(words.iter().copied()).map(Into::into).collect(),
            user: User::Slot(self.slot),
            cpus: Vec::new(),
            files: Vec::new(),
            under: None,
        };
        let mut child = self
            .spawner
            .spawn(&spec)
            .map_err(|e| CostFailure::Ours(format!("cannot run {}: {e}", self.vgdb.display())))?;
        loop {
            // What matters is that some basic blocks are executed; whether the look is answered does not.
            let _ = subject.poke();
            if let Some(status) = child.wait(POKE) {
                if status.success() {
                    return Ok(());
                }
                subject.alive().map_err(Fault::Arm)?;
                let said = child.log_tail(3);
                return Err(CostFailure::Control(format!(
                    "`{}` failed ({}): {said}",
                    words.join(" "),
                    describe(status)
                ))
                .into());
            }
            subject.alive().map_err(Fault::Arm)?;
            if let Some(by) = self.stop.requested() {
                return Err(CostFailure::Stopped { by: by.to_owned() }.into());
            }
            if began.elapsed() > DEADLINE {
                let said = format!("`{}` was not carried out within {} s", words.join(" "), DEADLINE.as_secs());
                return Err(CostFailure::Control(said).into());
            }
        }
    }
}

/// Whether a file of the proxy's folder is one of callgrind's dumps.
pub(super) fn is_dump(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("out.") && name.contains('-'))
}
