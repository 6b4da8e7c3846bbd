//! Running the real binary on real files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Gates load both CPUs; tests that run one take turns.
static MACHINE: Mutex<()> = Mutex::new(());

pub fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The Envoy that `make test` installed. Tests that need it fail without it: a skipped test tests nothing.
pub fn envoy() -> String {
    std::env::var("SIDEGATE_TEST_ENVOY").expect("SIDEGATE_TEST_ENVOY must hold the path of an Envoy; run `make test`")
}

pub fn sidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidegate"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// A gate on two files with the results in `out`, without the instruction counts.
pub fn gate(base: &Path, head: &Path, out: &Path) -> Command {
    let mut command = counting_gate(base, head, out);
    command.arg("--no-cost");
    command
}

/// The same as a user has it.
pub fn counting_gate(base: &Path, head: &Path, out: &Path) -> Command {
    let mut command = sidegate();
    command.args(["gate", "--envoy", &envoy(), "--base"]).arg(base).arg("--head").arg(head).arg("--out").arg(out);
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exit code, standard output, standard error.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("sidegate starts");
    (status.code().unwrap_or(-1), text(&stdout), text(&stderr))
}

/// Waits for a child, at most so long; kills it and fails after that.
pub fn wait(mut child: Child, most: Duration) -> Output {
    let until = Instant::now() + most;
    while Instant::now() < until {
        if child.try_wait().expect("child can be waited for").is_some() {
            return child.wait_with_output().expect("output can be read");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let output = child.wait_with_output().expect("output can be read");
    panic!("still running after {most:?}:\n{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// Processes whose parent or command line ties them to `parent`: its direct children.
pub fn children_of(parent: u32) -> Vec<u32> {
    let task = format!("/proc/{parent}/task");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(task).into_iter().flatten().flatten() {
        let list = std::fs::read_to_string(entry.path().join("children")).unwrap_or_default();
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

/// Whether a process exists and is not a zombie.
pub fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}
