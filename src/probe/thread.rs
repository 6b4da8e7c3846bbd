//! A thread's scheduler account: time on a CPU, time waiting for one, times switched in.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::problem::Problem;

/// The three fields of `/proc/*/schedstat` (kernel documentation, scheduler/sched-stats): cumulative since the
/// thread began. The kernel adds a running thread's time at its ticks and switches only, so the first field of a
/// thread that is on a CPU right now lags by up to a tick (1-10 ms); of a sleeping thread it is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedStat {
    pub cpu_ns: u64,
    /// Runnable, but waiting on a run queue.
    pub wait_ns: u64,
    /// Times given a CPU.
    pub switches: u64,
}

impl SchedStat {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            wait_ns: self.wait_ns.saturating_add(other.wait_ns),
            switches: self.switches.saturating_add(other.switches),
        }
    }

    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

/// An open `schedstat` file: each reading is one system call.
#[derive(Debug)]
pub struct SchedClock(File);

impl SchedClock {
    /// `path` is a `/proc/PID/task/TID/schedstat`.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Of a thread of our own process (see [`current`]).
    pub fn of_thread(tid: i32) -> io::Result<Self> {
        Self::open(format!("/proc/self/task/{tid}/schedstat"))
    }

    /// Fails with `ESRCH` once the thread has ended.
    pub fn read(&self) -> io::Result<SchedStat> {
        let mut buffer = [0; 96];
        let length = self.0.read_at(&mut buffer, 0)?;
        parse(&buffer[..length]).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable schedstat"))
    }
}

/// The kernel's number of the calling thread.
pub fn current() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// CPU time of the calling thread, exact even while it runs.
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// Whether no thread of a process is on a CPU or waits for one.
pub fn all_asleep(pid: u32) -> io::Result<bool> {
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that ended since it was listed does not run.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        let state = stat.rsplit(") ").next().unwrap_or_default();
        if state.starts_with('R') || state.starts_with('D') {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether this kernel keeps scheduler accounts at all (`CONFIG_SCHED_INFO`): without them CPU per request cannot be
/// measured. The calling thread has run, so a count of zero means nobody counts.
///
/// # Errors
/// An environment problem: the machine is at fault.
pub fn available() -> Result<(), Problem> {
    let help = "run on a kernel built with CONFIG_SCHED_INFO (every common distribution's is; some sandboxes hide it)";
    match SchedClock::of_thread(current()).and_then(|clock| clock.read()) {
        Ok(stat) if stat.switches > 0 => Ok(()),
        Ok(_) => {
            Err(Problem::new("", "this kernel keeps no scheduler times: /proc/self/schedstat is all zero").help(help))
        }
        Err(e) => Err(Problem::new("", format!("cannot read scheduler times of threads: {e}")).help(help)),
    }
}

fn parse(text: &[u8]) -> Option<SchedStat> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    Some(SchedStat { cpu_ns: next()?, wait_ns: next()?, switches: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_thread_is_read() {
        available().unwrap();
        let clock = SchedClock::of_thread(current()).unwrap();
        let before = clock.read().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        let after = clock.read().unwrap();
        assert!(after.switches > before.switches && after.cpu_ns >= before.cpu_ns, "{before:?} {after:?}");
        assert!(cpu_time() > Duration::ZERO);
    }

    #[test]
    fn a_thread_that_ended_is_an_error() {
        let clock = std::thread::spawn(|| SchedClock::of_thread(current()).unwrap()).join().unwrap();
        // The kernel may take a moment to let go of the thread after it was joined.
        let gone = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            clock.read().is_err()
        });
        assert!(gone);
    }

    #[test]
    fn text_is_parsed_or_refused() {
        assert_eq!(parse(b"12 34 5\n"), Some(SchedStat { cpu_ns: 12, wait_ns: 34, switches: 5 }));
        assert_eq!(parse(b"12 34"), None);
        assert_eq!(parse(b"12 -4 5"), None);
        assert_eq!(parse(b""), None);
    }
}
