//! The calls that have no safe form: what a child does between `fork` and `exec`, and one thread taking another uid.
#![expect(unsafe_code, reason = "pre_exec closures and per-thread credentials exist only as unsafe calls")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};

/// Makes `command`'s child lose the right to gain privileges, die with the thread that spawns it, leave no core
/// dump, and start on `cpus` (anywhere, if empty). With `fixed_addresses` it asks for a memory layout without chance;
/// containers may refuse that, and nothing depends on it.
///
/// The standard library runs these steps last, after it has changed groups, gid, uid, folder and process group.
/// That order matters: a change of uid clears the parent-death signal.
pub(super) fn contain(command: &mut Command, cpus: &[u32], fixed_addresses: bool) -> nix::Result<()> {
    let parent = getpid();
    let cpus = if cpus.is_empty() { None } else { Some(set(cpus)?) };
    let steps = move || -> io::Result<()> {
        prctl::set_no_new_privs()?;
        setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
        if let Some(cpus) = &cpus {
            sched_setaffinity(Pid::from_raw(0), cpus)?;
        }
        if fixed_addresses {
            // SAFETY: the call takes one number.
            unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        }
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the signal was set.
        if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    // SAFETY: the closure only makes system calls on values made before the fork: it neither allocates nor locks.
    unsafe { command.pre_exec(steps) };
    Ok(())
}

/// Binds the thread `tid` to `cpus`. Moving another user's threads takes CAP_SYS_NICE, which containers withhold even
/// from root; but a thread with the owner's uid may, so on EPERM a short-lived thread of ours becomes `owner` first.
pub(super) fn pin(tid: i32, cpus: &[u32], owner: Option<u32>) -> nix::Result<()> {
    let (tid, cpus) = (Pid::from_raw(tid), set(cpus)?);
    match (sched_setaffinity(tid, &cpus), owner) {
        (Err(Errno::EPERM), Some(uid)) => {
            let done = std::thread::scope(|scope| {
                scope.spawn(|| become_uid(uid).and_then(|()| sched_setaffinity(tid, &cpus))).join()
            });
            // A thread's change of uid makes the whole process undumpable, which hides parts of /proc/self.
            let _ = prctl::set_dumpable(true);
            done.unwrap_or(Err(Errno::EPERM))
        }
        (result, _) => result,
    }
}

/// Gives up root in the calling thread alone, for good: the raw call, unlike the C library's, leaves other threads.
fn become_uid(uid: u32) -> nix::Result<()> {
    // SAFETY: setresuid takes three plain numbers and touches no memory of ours.
    Errno::result(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) }).map(drop)
}

fn set(cpus: &[u32]) -> nix::Result<CpuSet> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(usize::try_from(cpu).map_err(|_| Errno::EINVAL)?)?;
    }
    Ok(set)
}
