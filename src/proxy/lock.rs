//! Files that say "in use" for exactly as long as somebody lives: one installer in a cache, one run in a folder.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::stop::Stop;

/// Held until dropped, or until the process ends in whatever way.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not read")] Flock<File>);

/// Takes the lock file `path` if nobody has it.
pub(super) fn try_acquire(path: &Path) -> io::Result<Lock> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map(Lock).map_err(|(_, e)| e.into())
}

/// Waits for the lock file `path`; `waiting` is called once if somebody else has it.
pub(super) fn acquire(path: &Path, stop: &Stop, waiting: impl FnOnce()) -> io::Result<Lock> {
    let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
    let mut waiting = Some(waiting);
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Lock(lock)),
            Err((back, Errno::EWOULDBLOCK)) => file = back,
            Err((_, e)) => return Err(e.into()),
        }
        if let Some(waiting) = waiting.take() {
            waiting();
        }
        if stop.requested().is_some() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
