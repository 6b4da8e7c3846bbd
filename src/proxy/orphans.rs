//! Processes that left their group: a config's code can fork twice and begin a session of its own, and then no signal
//! to the group reaches it. Its parent gone, it becomes a child of ours, and is ended.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// An orphan that is killed leaves orphans in turn; one that forks faster than this stays.
const ROUNDS: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Off in programs that have children of other kinds.
static ADOPTING: AtomicBool = AtomicBool::new(false);

/// Children we started and have not reaped. Held while one is being started, so that none is taken for an orphan.
static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// From now on this process inherits what its children leave behind, and ends it with them. Only for a process whose
/// children are all started by [`Spawner`](super::Spawner).
pub fn adopt() -> io::Result<()> {
    prctl::set_child_subreaper(true)?;
    ADOPTING.store(true, Ordering::Relaxed);
    Ok(())
}

/// Starts a child with `start` and remembers it as ours.
pub(super) fn own<T>(start: impl FnOnce() -> io::Result<T>, pid: impl FnOnce(&T) -> u32) -> io::Result<T> {
    let mut own = owned();
    let started = start()?;
    own.insert(pid(&started));
    Ok(started)
}

/// A child of ours was reaped: its number may be another's from now on.
pub(super) fn disown(pid: u32) {
    owned().remove(&pid);
}

/// Kills and reaps every child that we did not start.
pub(super) fn end() {
    if !ADOPTING.load(Ordering::Relaxed) {
        return;
    }
    for _ in 0..ROUNDS {
        let own = owned();
        let strangers: Vec<i32> =
            children().into_iter().filter(|pid| !own.contains(pid)).map(u32::cast_signed).collect();
        if strangers.is_empty() {
            return;
        }
        for pid in strangers.into_iter().map(Pid::from_raw) {
            let _ = kill(pid, Signal::SIGKILL);
            let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        }
        drop(own);
        thread::sleep(PAUSE);
    }
}

fn owned() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All children of this process, those that ended and are not reaped too. None where the kernel does not tell.
fn children() -> Vec<u32> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
