//! Child processes under supervision: contained from their first instruction, gone when their owner is.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::problem::printable;
use crate::proxy::contain;
use crate::proxy::lock::{self, Lock};
use crate::proxy::orphans;
use crate::proxy::reach::{self, Staged};
use crate::proxy::under::{self, Under};
use crate::record::Slot;

/// Users (and groups) of the proxies when we are root: numbers that distributions and containers give to nobody.
const SLOT_UIDS: [u32; 3] = [64_801, 64_802, 64_803];
/// How much of a child's output is ever shown.
const TAIL_BYTES: u64 = 64 << 10;
/// After SIGKILL a process is gone within milliseconds, unless a device holds it; then nobody waits for it.
const KILL_WAIT: Duration = Duration::from_millis(800);

/// Run folders younger than this are not swept: their owner may not have locked them yet.
const STALE: Duration = Duration::from_secs(60);
const FOLDER_PREFIX: &str = "sidegate-";

/// Starts children. The parent-death signal is sent when the *thread* that forked ends, so all of them are forked by
/// one thread, which lives until the last clone of this handle and the last child are gone.
#[derive(Debug, Clone)]
pub struct Spawner(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    forks: Mutex<mpsc::Sender<Fork>>,
    /// Everybody may pass, nobody may look around (0711).
    folder: TempDir,
    /// Says that the folder is in use, to those who [`sweep`].
    _lock: Lock,
    uncontained: Vec<String>,
    staged: Staged,
}

struct Fork {
    command: Command,
    reply: mpsc::Sender<io::Result<(std::process::Child, Instant)>>,
}

/// Whose process it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The slot's own, if we may become it. Its environment is empty.
    Slot(Slot),
    /// Ours, with our environment: for tools such as pip.
    Own,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Spec {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub user: User,
    /// CPUs it starts on; anywhere, if empty.
    pub cpus: Vec<u32>,
    /// Files laid into its folder beforehand.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// A program that executes this one in its stead, within the same process.
    pub under: Option<Under>,
}

impl Spawner {
    /// Makes the run folder in the temporary directory, and the thread.
    pub fn new() -> io::Result<Self> {
        let mut uncontained = missing_rights();
        let folder = run_folder(&mut uncontained)?;
        let lock = lock::try_acquire(&folder.path().join("lock"))?;
        if let Some(parent) = folder.path().parent() {
            sweep(parent, STALE);
        }
        let (forks, queue) = mpsc::channel::<Fork>();
        thread::Builder::new().name("spawner".into()).spawn(move || {
            for Fork { mut command, reply } in queue {
                let _ = reply.send(fork(&mut command));
            }
        })?;
        let (forks, staged) = (Mutex::new(forks), Staged::default());
        Ok(Self(Arc::new(Inner { forks, folder, _lock: lock, uncontained, staged })))
    }

    /// Whether proxies run as users of their own.
    pub fn contained(&self) -> bool {
        self.0.uncontained.is_empty()
    }

    /// Why they do not.
    pub fn uncontained_because(&self) -> &[String] {
        &self.0.uncontained
    }

    /// The uid of a slot's processes; `None` where they run as ours.
    pub fn uid(&self, slot: Slot) -> Option<u32> {
        self.contained().then_some(SLOT_UIDS[slot.index()])
    }

    /// Whether every user that children run as can execute `program` where it lies.
    pub fn reaches(&self, program: &Path) -> bool {
        !self.contained() || reach::executable(program)
    }

    /// Starts a child in a private folder of its own, which is its working directory, with its standard input from
    /// /dev/null and its outputs into files there. Returns once it has executed its program, or could not.
    pub fn spawn(&self, spec: &Spec) -> io::Result<Child> {
        let uid = match spec.user {
            User::Slot(slot) => self.uid(slot),
            User::Own => None,
        };
        let program = match uid {
            Some(_) => self.0.staged.reachable(&spec.program, self.0.folder.path())?,
            None => spec.program.clone(),
        };
        // Names of equal length for both slots: a path's length can move a proxy's memory.
        let folder = tempfile::Builder::new().prefix("run-").rand_bytes(8).tempdir_in(self.0.folder.path())?;
        let own = |path: &Path| uid.map_or(Ok(()), |uid| chown(path, Some(uid), Some(uid)));
        for (name, content) in &spec.files {
            let path = folder.path().join(name);
            fs::write(&path, content)?;
            own(&path)?;
        }
        let output = |name: &str| {
            let path = folder.path().join(name);
            let file = File::options().read(true).append(true).create_new(true).open(&path)?;
            own(&path).map(|()| file)
        };
        let (stdout, stderr) = (output("stdout.log")?, output("stderr.log")?);
        // The umask decided until now; the last step, since from here only its owner may enter.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        own(folder.path())?;

        let mut command = under::command(spec.under.as_ref(), &program);
        command.args(&spec.args).current_dir(folder.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        if let User::Slot(_) = spec.user {
            command.env_clear();
        }
        under::set_environment(spec.under.as_ref(), &mut command);
        if let Some(uid) = uid {
            // With a uid set and no groups, the standard library drops root's supplementary groups.
            command.gid(uid).uid(uid);
        }
        let fixed_addresses = spec.under.as_ref().is_some_and(|under| under.fixed_addresses);
        contain::contain(&mut command, &spec.cpus, fixed_addresses)?;
        let (process, started) = self.fork(command)?;
        Ok(Child { process, uid, started, status: None, folder, stdout, stderr, _spawner: self.clone() })
    }

    fn fork(&self, command: Command) -> io::Result<(std::process::Child, Instant)> {
        let (reply, answer) = mpsc::channel();
        let gone = || io::Error::other("the spawning thread has ended");
        let forks = self.0.forks.lock().unwrap_or_else(PoisonError::into_inner);
        forks.send(Fork { command, reply }).map_err(|_| gone())?;
        drop(forks);
        answer.recv().map_err(|_| gone())?
    }
}

/// A started process and its group. Dropping it kills the whole group, reaps the process and removes its folder.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    uid: Option<u32>,
    started: Instant,
    status: Option<ExitStatus>,
    folder: TempDir,
    /// Open since before the start: the child may replace the names, not these.
    stdout: File,
    stderr: File,
    _spawner: Spawner,
}

impl Child {
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The uid it runs as, if that is not ours.
    pub fn uid(&self) -> Option<u32> {
        self.uid
    }

    /// Just before the fork (exec follows within a millisecond).
    pub fn started(&self) -> Instant {
        self.started
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How it ended, if it has. Whatever it left in its group is killed then.
    pub fn try_status(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() && self.has_ended()? {
            // While the leader is not reaped its number, and so the group's, cannot belong to anyone else.
            self.signal(Signal::SIGKILL);
            self.status = self.process.try_wait()?;
            if self.status.is_some() {
                orphans::disown(self.process.id());
                orphans::end();
            }
        }
        Ok(self.status)
    }

    /// Asks the group to end, without waiting. Ask several children first, then [`Child::stop`] each.
    pub fn ask_to_stop(&mut self) {
        if self.status.is_none() {
            self.signal(Signal::SIGTERM);
        }
    }

    /// SIGTERM to the group, SIGKILL after `grace` (at most one second), and reaps: under two seconds in all.
    /// `None`: the kernel does not let go of the process.
    pub fn stop(&mut self, grace: Duration) -> Option<ExitStatus> {
        self.ask_to_stop();
        self.wait(grace.min(Duration::from_secs(1))).or_else(|| self.kill())
    }

    /// Waits for the end, at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Ok(Some(status)) = self.try_status() {
                return Some(status);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            thread::sleep(left.min(Duration::from_millis(2)));
        }
    }

    /// All of standard output, at most 64 KiB from its end.
    pub fn stdout_tail(&self) -> String {
        tail(&self.stdout)
    }

    /// The last `lines` lines of its error output (of its standard output where there is none), made printable.
    pub fn log_tail(&self, lines: usize) -> String {
        let mut text = tail(&self.stderr);
        if text.trim().is_empty() {
            text = tail(&self.stdout);
        }
        let all: Vec<&str> = text.trim_end().lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    fn kill(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.signal(Signal::SIGKILL);
        }
        self.wait(KILL_WAIT)
    }

    /// Only while the process is not reaped: afterwards its number may be another's.
    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.process.id()) {
            let _ = killpg(Pid::from_raw(pid), signal);
        }
    }

    fn has_ended(&self) -> io::Result<bool> {
        let pid = i32::try_from(self.process.id()).map_err(io::Error::other)?;
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(waitid(Id::Pid(Pid::from_raw(pid)), flags)? != WaitStatus::StillAlive)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `exit code 1`, `killed by SIGKILL`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal().map(Signal::try_from)) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(Ok(signal))) => format!("killed by {signal}"),
        _ => status.to_string(),
    }
}

fn tail(file: &File) -> String {
    let length = file.metadata().map_or(0, |meta| meta.len());
    let mut bytes = vec![0; usize::try_from(length.min(TAIL_BYTES)).unwrap_or(0)];
    match file.read_exact_at(&mut bytes, length.saturating_sub(TAIL_BYTES)) {
        Ok(()) => printable(&String::from_utf8_lossy(&bytes)),
        Err(_) => String::new(),
    }
}

/// A program file that was just written is busy while some other child, forked meanwhile, still holds it open: until
/// that one has executed its own program.
fn fork(command: &mut Command) -> io::Result<(std::process::Child, Instant)> {
    for _ in 0..100 {
        let before = Instant::now();
        match orphans::own(|| command.spawn(), std::process::Child::id) {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(Duration::from_millis(5)),
            result => return result.map(|process| (process, before)),
        }
    }
    orphans::own(|| command.spawn(), std::process::Child::id).map(|process| (process, Instant::now()))
}

/// What keeps us from giving each slot a user of its own; empty if nothing does.
fn missing_rights() -> Vec<String> {
    if !nix::unistd::geteuid().is_root() {
        return vec!["not root: proxies run as the same user".to_owned()];
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    // Numbers from linux/capability.h.
    let needed = [("CAP_CHOWN", 0), ("CAP_DAC_OVERRIDE", 1), ("CAP_KILL", 5), ("CAP_SETGID", 6), ("CAP_SETUID", 7)];
    let lacks = |bit: u32| held.is_some_and(|held| held & (1 << bit) == 0);
    let mut missing: Vec<String> =
        needed.iter().filter(|(_, bit)| lacks(*bit)).map(|(name, _)| format!("root without {name}")).collect();
    for (map, what) in [("/proc/self/uid_map", "users"), ("/proc/self/gid_map", "groups")] {
        let text = fs::read_to_string(map).unwrap_or_default();
        if !text.is_empty() && !SLOT_UIDS.iter().all(|&id| maps(&text, id)) {
            missing.push(format!("this user namespace has no {what} 64801 and 64802"));
        }
    }
    missing
}

/// Lines of `inside outside count`.
fn maps(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first.saturating_add(count)).contains(&u64::from(id)))
    })
}

/// A folder that the proxies' users can pass: TMPDIR may lie in a home that only root enters.
fn run_folder(uncontained: &mut Vec<String>) -> io::Result<TempDir> {
    let make = |parent: &Path| {
        let folder = tempfile::Builder::new().prefix(FOLDER_PREFIX).tempdir_in(parent)?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        io::Result::Ok(folder)
    };
    let places = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/run".into()];
    if uncontained.is_empty() {
        for place in places {
            if let Ok(folder) = make(&place)
                && reach::passable(folder.path())
            {
                return Ok(folder);
            }
        }
        uncontained.push("no temporary folder that other users can pass".to_owned());
    }
    make(&std::env::temp_dir())
}

/// Removes run folders that killed processes of this user left in `parent`; how many.
pub fn sweep(parent: &Path, older_than: Duration) -> usize {
    let is_left = |path: &Path| {
        let named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FOLDER_PREFIX));
        let ours = fs::symlink_metadata(path).is_ok_and(|meta| {
            let age = meta.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
            meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && age >= older_than
        });
        // The lock falls with its holder, however that ended. A folder without one is none of ours.
        named && ours && path.join("lock").is_file() && lock::try_acquire(&path.join("lock")).is_ok()
    };
    let Ok(entries) = fs::read_dir(parent) else { return 0 };
    let left = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_left(path));
    left.filter(|path| fs::remove_dir_all(path).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_namespaces_that_lack_the_users_are_seen() {
        assert!(maps("         0          0 4294967295\n", 64_801));
        assert!(!maps("         0       1000          1\n", 64_801));
        assert!(!maps("garbage\n", 64_801));
    }

    #[test]
    fn ends_are_told_in_words() {
        assert_eq!(describe(ExitStatus::from_raw(1 << 8)), "exit code 1");
        assert_eq!(describe(ExitStatus::from_raw(9)), "killed by SIGKILL");
    }
}
