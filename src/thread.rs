//! What the harness asks of the kernel for its own threads: a clock, a place to run, exact timers, plain sockets.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};

/// Nanoseconds on the monotonic clock, the one timers and every time stamp of the harness use.
pub fn now_ns() -> u64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds this thread has been on a CPU.
pub fn own_cpu_ns() -> u64 {
    read_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// The kernel's id of this thread, as in `/proc/self/task/<id>`.
pub fn own_id() -> i32 {
    gettid().as_raw()
}

/// Keeps this thread (and threads it starts later) on `cpus`; an empty list changes nothing.
pub fn pin(cpus: &[u32]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(usize::try_from(cpu).map_err(io::Error::other)?)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Timeouts of this thread expire when they are due, not up to 50 microseconds later (the kernel's default slack).
pub fn exact_timers() -> io::Result<()> {
    Ok(nix::sys::prctl::set_timerslack(1)?)
}

/// Priority of the threads a measurement consists of: above everything ordinary, below what others made real-time on
/// purpose.
const REALTIME_PRIORITY: i32 = 10;

/// Gives a thread (of any process of ours) a place before all ordinary ones: first in, first out, no time slices. What
/// else runs on the machine then no longer takes the CPU from it for milliseconds. Needs CAP_SYS_NICE.
#[expect(unsafe_code, reason = "there is no safe form of sched_setscheduler")]
pub fn realtime(thread_id: i32) -> io::Result<()> {
    let wanted = libc::sched_param { sched_priority: REALTIME_PRIORITY };
    // SAFETY: the call reads one plain structure, which lives until it returns.
    match unsafe { libc::sched_setscheduler(thread_id, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &wanted) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether [`realtime`] would succeed, found out on a thread that ends at once.
pub fn may_be_realtime() -> bool {
    std::thread::spawn(|| realtime(own_id()).is_ok()).join().unwrap_or(false)
}

/// Raises the soft limit of open files to the hard one. The limit is left alone where that is refused.
pub fn raise_open_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Takes the simplest congestion control for a socket (a listener's is inherited by what it accepts). Where the
/// system's default paces packets (BBR), each of them may wait for a kernel timer, even on loopback.
pub fn never_pace(socket: &impl AsFd) {
    let _ = setsockopt(socket, sockopt::TcpCongestion, &OsString::from("reno"));
}

fn read_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |t| {
        let (seconds, nanos) = (u64::try_from(t.tv_sec()).unwrap_or(0), u64::try_from(t.tv_nsec()).unwrap_or(0));
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    })
}
