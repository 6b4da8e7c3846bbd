//! Child supervision: who owns a child, and that nothing outlives its owner.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sidegate::proxy::Spawner;
use sidegate::proxy::child::{Spec, User};
use sidegate::record::Slot;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// A program in a folder that every user can pass.
pub fn script(folder: &Path, text: &str) -> PathBuf {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.join("envoy");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn spec(program: &str, args: &[&str]) -> Spec {
    Spec {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        user: User::Slot(Slot::A),
        cpus: Vec::new(),
        files: Vec::new(),
        under: None,
    }
}

pub fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}

/// `check` holds within a time that even a busy machine keeps.
pub fn eventually(check: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if check() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

pub fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

fn helper(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env("SIDEGATE_TEST_HELPER", "1");
    command
}

#[test]
fn children_die_with_us() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let note = folder.path().join("pid");
    let mut parent = helper("child::helper_spawns")
        .env("TMPDIR", folder.path())
        .env("SIDEGATE_TEST_NOTE", &note)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let child = || fs::read_to_string(&note).ok()?.trim().parse::<u32>().ok();
    assert!(eventually(|| child().is_some()));
    let pid = child().unwrap();
    assert!(is_running(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(eventually(|| !is_running(pid)), "the child outlived its parent");
    // What the killed process could not remove, the next one does.
    let left: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    assert_eq!(left.len(), 1);
    let swept = sidegate::proxy::child::sweep(folder.path(), Duration::ZERO);
    assert!(swept == 1 && !left[0].exists());
}

#[test]
#[ignore = "a process of children_die_with_us"]
fn helper_spawns() {
    let Some(note) = std::env::var_os("SIDEGATE_TEST_NOTE") else { return };
    let spawner = Spawner::new().unwrap();
    // Started from a thread that ends at once: the child must survive that, and not survive us.
    let theirs = spawner.clone();
    let child = thread::spawn(move || theirs.spawn(&spec("/bin/sleep", &["300"])).unwrap()).join().unwrap();
    thread::sleep(Duration::from_millis(100));
    assert!(is_running(child.pid()));
    fs::write(Path::new(&note).with_extension("new"), child.pid().to_string()).unwrap();
    fs::rename(Path::new(&note).with_extension("new"), &note).unwrap();
    thread::sleep(PATIENCE);
}

#[test]
fn folders_in_use_are_not_swept() {
    let spawner = Spawner::new().unwrap();
    let child = spawner.spawn(&spec("/bin/sleep", &["300"])).unwrap();
    let folder = child.folder().parent().unwrap().to_owned();
    sidegate::proxy::child::sweep(folder.parent().unwrap(), Duration::from_secs(3600));
    assert!(child.folder().exists());
    let lock = fs::File::open(folder.join("lock")).unwrap();
    let locked = nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusiveNonblock);
    assert!(locked.is_err());
}

#[test]
fn children_outlive_the_thread_that_asked_and_the_spawner_handle() {
    let mut child = {
        let spawner = Spawner::new().unwrap();
        thread::spawn(move || spawner.spawn(&spec("/bin/sleep", &["300"])).unwrap()).join().unwrap()
    };
    thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_status().unwrap(), None);
    assert!(child.folder().exists());
}

#[test]
fn a_child_that_ignores_sigterm_is_gone_too_with_its_own_children() {
    let spawner = Spawner::new().unwrap();
    let script = "trap '' TERM; sleep 300 & echo $!; while :; do sleep 1; done";
    let mut child = spawner.spawn(&spec("/bin/sh", &["-c", script])).unwrap();
    assert!(eventually(|| child.stdout_tail().contains('\n')));
    let grandchild: u32 = child.stdout_tail().trim().parse().unwrap();
    let began = Instant::now();
    let status = child.stop(Duration::from_millis(300)).expect("reaped");
    assert_eq!(sidegate::proxy::child::describe(status), "killed by SIGKILL");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(eventually(|| !is_running(grandchild)));
}

#[test]
fn what_a_child_leaves_behind_is_killed_when_its_end_is_seen() {
    let spawner = Spawner::new().unwrap();
    let mut child = spawner.spawn(&spec("/bin/sh", &["-c", "sleep 300 & echo $!"])).unwrap();
    assert!(child.wait(PATIENCE).unwrap().success());
    let grandchild: u32 = child.stdout_tail().trim().parse().unwrap();
    assert!(eventually(|| !is_running(grandchild)));
}

#[test]
fn dropping_a_stopped_child_kills_it() {
    let spawner = Spawner::new().unwrap();
    let child = spawner.spawn(&spec("/bin/sleep", &["300"])).unwrap();
    let (pid, folder) = (child.pid(), child.folder().to_owned());
    signal(pid, Signal::SIGSTOP);
    drop(child);
    assert!(!is_running(pid) && !folder.exists());
}

#[test]
fn output_cannot_steer_the_terminal_nor_lead_elsewhere() {
    let spawner = Spawner::new().unwrap();
    let script = "printf '\\033[2Jone\\ntwo\\nthree\\n' >&2; rm stderr.log; ln -s /etc/shadow stderr.log";
    let mut child = spawner.spawn(&spec("/bin/sh", &["-c", script])).unwrap();
    child.wait(PATIENCE).unwrap();
    assert_eq!(child.log_tail(2), "two\nthree");
    assert_eq!(child.log_tail(9), "\u{fffd}[2Jone\ntwo\nthree");
}

#[test]
fn a_binary_behind_a_closed_folder_is_run_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tool");
    fs::copy("/bin/sleep", &program).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let spawner = Spawner::new().unwrap();
    let mut child = spawner.spawn(&spec(program.to_str().unwrap(), &["0"])).unwrap();
    assert!(child.wait(PATIENCE).unwrap().success());
    assert!(spawner.spawn(&spec("/nonexistent/envoy", &[])).is_err());
}
