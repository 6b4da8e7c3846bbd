//! Envoy: judging a config, and starting a process in a slot.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::proxy::admin;
use crate::proxy::binary::{ProxyBinary, not_executed};
use crate::proxy::child::{Child, Spawner, Spec, User, describe};
use crate::proxy::running::Running;
use crate::proxy::under::Under;
use crate::record::{CpuLayout, Slot};
use crate::stop::Stop;

/// How long a look at the administration interface may take.
pub(super) const ADMIN_LIMIT: Duration = Duration::from_secs(5);
/// How often a starting proxy is asked whether it is ready: start-up is known to this.
const READY_POLL: Duration = Duration::from_millis(1);
/// A look is cut short, so that a proxy that accepts but never answers cannot hold up a signal.
const READY_LOOK: Duration = Duration::from_millis(500);
/// The same for a proxy that something executes at a fiftieth of its speed.
const SLOW_READY_POLL: Duration = Duration::from_millis(25);
const SLOW_READY_LOOK: Duration = Duration::from_secs(2);
/// Lines of the proxy's output that go into a message.
const LOG_LINES: usize = 12;
/// The same name in both slots: its length is part of what a slot owns.
const CONFIG: &str = "config.json";

/// The driver: see [`Envoy::validate`] and [`Envoy::start`].
#[derive(Debug)]
pub struct Envoy;

/// One process to start. Everything but `config`'s content belongs to the slot.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    pub binary: &'a ProxyBinary,
    /// A bootstrap in JSON.
    pub config: &'a [u8],
    pub slot: Slot,
    pub concurrency: u32,
    pub cpus: CpuLayout,
    /// Where the config puts the administration interface.
    pub admin: SocketAddr,
    /// From the start until it must say that it is ready.
    pub ready_deadline: Duration,
    /// What executes the proxy, slowly: it is asked less often and more patiently whether it is ready.
    pub under: Option<&'a Under>,
    pub stop: Stop,
}

/// What a proxy that ended at its start complains of, where that is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A port was taken: reserve others and start again.
    AddressInUse,
    /// The proxy does not accept its config.
    ConfigRejected,
    /// The binary needs a newer C library than this machine has.
    LibraryTooOld,
}

#[derive(Debug, thiserror::Error)]
pub enum StartFailure {
    /// It could not be executed, or its folder not be made.
    #[error("cannot start the proxy: {0}")]
    NotStarted(String),
    #[error("the proxy ended at its start ({how}){}", shown(.log))]
    Exited { how: String, cause: Option<Cause>, log: String },
    #[error("the proxy was not ready after {:.1} s ({last}){}", .after.as_secs_f64(), shown(.log))]
    NotReady { after: Duration, last: String, log: String },
    #[error("stopped by {by}")]
    Stopped { by: &'static str },
    #[error("cannot pin the proxy's threads: {0}")]
    NotPinned(String),
}

impl StartFailure {
    /// Worth another try on other ports.
    pub fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Exited { cause: Some(Cause::AddressInUse), .. })
    }
}

/// Why a config was not found valid.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// Envoy refuses the config. `output` is all it printed (64 KiB from its end), control characters replaced.
    #[error("the proxy rejects the config: {output}")]
    Rejected { output: String },
    /// Nothing is known of the config: the proxy could not be run, did not end in time, crashed or was stopped.
    #[error(transparent)]
    NotJudged(#[from] StartFailure),
}

impl Envoy {
    /// Has `--mode validate` judge a bootstrap, contained like a run. Opens no port.
    pub fn validate(
        spawner: &Spawner,
        binary: &ProxyBinary,
        config: &Value,
        deadline: Duration,
        stop: &Stop,
    ) -> Result<(), ValidateError> {
        let mut arguments = arguments(1);
        arguments.extend(["--mode", "validate"].map(str::to_owned));
        let config = config.to_string().into_bytes();
        let mut child = spawn(spawner, binary, &config, Slot::A, arguments, Vec::new(), None)?;
        loop {
            if let Some(status) = child.wait(deadline.min(Duration::from_millis(20))) {
                return match status.code() {
                    Some(0) => Ok(()),
                    Some(_) if cause(&child.log_tail(usize::MAX)) != Some(Cause::LibraryTooOld) => {
                        Err(ValidateError::Rejected { output: child.log_tail(usize::MAX) })
                    }
                    _ => Err(exited(&child, describe(status)).into()),
                };
            }
            give_up(&child, deadline, stop, "--mode validate still runs")?;
        }
    }

    /// Starts a proxy, waits until its administration interface says LIVE, and pins its threads.
    pub fn start(spawner: &Spawner, launch: &Launch) -> Result<Running, StartFailure> {
        let arguments = arguments(launch.concurrency);
        let cpus = launch.cpus.rest.clone();
        let mut child = spawn(spawner, launch.binary, launch.config, launch.slot, arguments, cpus, launch.under)?;
        let startup = ready(&mut child, launch)?;
        let mut running = Running::new(child, launch.admin, startup, launch.cpus.clone())
            .map_err(|e| StartFailure::NotPinned(e.to_string()))?;
        // A foreign proxy on our port would say LIVE as well; worker threads of this very process cannot be borrowed.
        let wanted = usize::try_from(launch.concurrency.max(1)).unwrap_or(usize::MAX);
        while running.pin_threads().map_err(|e| StartFailure::NotPinned(e.to_string()))? < wanted {
            let child = running.child();
            if let Ok(Some(status)) = child.try_status() {
                return Err(exited(child, describe(status)));
            }
            give_up(child, launch.ready_deadline, &launch.stop, "it has fewer worker threads than asked for")?;
            std::thread::sleep(READY_POLL);
        }
        Ok(running)
    }
}

/// Polls until LIVE; the time since the process began.
fn ready(child: &mut Child, launch: &Launch) -> Result<Duration, StartFailure> {
    let started = child.started();
    let (look, poll) = match launch.under {
        None => (READY_LOOK, READY_POLL),
        Some(_) => (SLOW_READY_LOOK, SLOW_READY_POLL),
    };
    loop {
        if let Ok(Some(status)) = child.try_status() {
            return Err(exited(child, describe(status)));
        }
        let last = match admin::get(launch.admin, "/ready", look) {
            Ok(answer) if answer.status == 200 && answer.body.trim() == "LIVE" => return Ok(started.elapsed()),
            Ok(answer) => format!("/ready answers {} {}", answer.status, crate::problem::printable(answer.body.trim())),
            Err(e) => format!("/ready on {}: {e}", launch.admin),
        };
        give_up(child, launch.ready_deadline, &launch.stop, &last)?;
        std::thread::sleep(poll);
    }
}

/// The end of waiting: a signal, or the deadline counted from the start.
fn give_up(child: &Child, deadline: Duration, stop: &Stop, last: &str) -> Result<(), StartFailure> {
    if let Some(by) = stop.requested() {
        return Err(StartFailure::Stopped { by });
    }
    let after = Instant::now().saturating_duration_since(child.started());
    if after < deadline {
        return Ok(());
    }
    Err(StartFailure::NotReady { after, last: last.to_owned(), log: child.log_tail(LOG_LINES) })
}

fn spawn(
    spawner: &Spawner,
    binary: &ProxyBinary,
    config: &[u8],
    slot: Slot,
    arguments: Vec<String>,
    cpus: Vec<u32>,
    under: Option<&Under>,
) -> Result<Child, StartFailure> {
    let spec = Spec {
        program: binary.path.clone(),
        args: arguments.into_iter().map(Into::into).collect(),
        user: User::Slot(slot),
        cpus,
        files: vec![(CONFIG, config.to_vec())],
        under: under.cloned(),
    };
    spawner.spawn(&spec).map_err(|e: io::Error| {
        StartFailure::NotStarted(match e.kind() {
            io::ErrorKind::StorageFull => format!("the temporary folder's file system is full: {e}"),
            _ => format!("{}: {}", under.map_or(&binary.path, |u| &u.program).display(), not_executed(&e)),
        })
    })
}

/// Without hot restart there is no shared memory between the slots, and no base id that could differ.
fn arguments(concurrency: u32) -> Vec<String> {
    let concurrency = concurrency.max(1).to_string();
    ["-c", CONFIG, "--concurrency", &concurrency, "--disable-hot-restart", "--log-level", "warning"]
        .map(str::to_owned)
        .to_vec()
}

fn exited(child: &Child, how: String) -> StartFailure {
    StartFailure::Exited { how, cause: cause(&child.log_tail(usize::MAX)), log: child.log_tail(LOG_LINES) }
}

fn cause(log: &str) -> Option<Cause> {
    let says = |text: &str| log.contains(text);
    if says("Address already in use") {
        Some(Cause::AddressInUse)
    } else if says("GLIBC_") && says("not found") {
        Some(Cause::LibraryTooOld)
    } else if says("error initializing config") || says("initializing config") {
        Some(Cause::ConfigRejected)
    } else {
        None
    }
}

fn shown(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; its last output:\n{log}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_recognised() {
        let taken = "[critical] error `cannot bind '127.0.0.1:1': Address already in use` initializing config 'c'";
        assert_eq!(cause(taken), Some(Cause::AddressInUse));
        assert_eq!(cause("error initializing configuration 'c.json': no such field"), Some(Cause::ConfigRejected));
        let old = "/lib/libc.so.6: version `GLIBC_2.38' not found (required by envoy)";
        assert_eq!(cause(old), Some(Cause::LibraryTooOld));
        assert_eq!(cause("Segmentation fault"), None);
    }
}
