//! Instruction counts: real valgrind around the real Envoy, and what happens when either is missing, killed or hung.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sidegate::cost::{Candidate, Counter, Effort};
use sidegate::envoy::{Bootstrap, classes, workload};
use sidegate::probe::cpus;
use sidegate::proxy::{ProxyBinary, Spawner};
use sidegate::record::{ClassCost, Cost, Record};
use sidegate::stats::location;
use sidegate::stop::Stop;
use sidegate::yaml::Document;
use tempfile::TempDir;

use crate::common::{children_of, counting_gate, envoy, example, is_running, machine, run, text, wait};

fn bootstrap(path: &Path) -> Bootstrap {
    let document = Document::parse("t.yaml", &fs::read_to_string(path).unwrap()).unwrap();
    Bootstrap::read(&document).unwrap()
}

fn binary() -> ProxyBinary {
    ProxyBinary { path: envoy().into(), version: "1".to_owned(), sha256: String::new() }
}

/// As the gate takes it.
fn instructions(cost: &ClassCost) -> f64 {
    let all: Vec<f64> = cost.windows.iter().map(|w| w.instructions as f64 / w.requests as f64).collect();
    location::typical(&all).expect("windows")
}

fn syscalls(cost: &ClassCost) -> f64 {
    let (calls, requests) = cost.windows.iter().fold((0, 0), |(c, r), w| (c + w.syscalls, r + w.requests));
    calls as f64 / requests as f64
}

/// Nothing of a run is left in its temporary folder.
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_copy_costs_the_same_and_a_lua_filter_more() {
    let _machine = machine();
    let stop = Stop::default();
    let spawner = Spawner::new().unwrap();
    let counter = Counter::find(&spawner, &cpus::layout(1).unwrap(), &stop).unwrap();
    assert!(counter.class().valgrind.starts_with("valgrind-3."), "{:?}", counter.class());
    let (base, head) = (bootstrap(&example("lua/base.yaml")), bootstrap(&example("lua/head.yaml")));
    let workload = workload::derive(&base).unwrap();
    let classes = classes::derive(&[&base, &head], &workload.requests, 8).classes;
    let wanted: Vec<_> =
        [false, true].iter().filter_map(|new| classes.iter().find(|c| c.new_connection == *new).cloned()).collect();
    assert_eq!(wanted.len(), 2, "{classes:?}");
    let binary = binary();
    let candidate = |bootstrap| Candidate { binary: &binary, bootstrap, listener: workload.listener };
    let candidates = [candidate(&base), candidate(&base), candidate(&head)];
    let mut events = 0;
    let effort = Effort { most: 100, instructions: 16_000_000, ..Effort::default() };
    let costs = counter.count(&candidates, &wanted, &effort, &mut |_| events += 1).unwrap();
    assert_eq!(events, 3 + 3 * 2);
    for (class, _) in wanted.iter().enumerate() {
        let [base, copy, lua] = [0, 1, 2].map(|arm| &costs[arm][class]);
        for cost in [base, copy, lua] {
            assert_eq!((cost.failed.as_ref(), cost.statuses.len(), cost.statuses[0].0), (None, 1, 200), "{cost:?}");
            assert!(cost.windows.iter().all(|w| w.clock_reads > w.syscalls), "{cost:?}");
        }
        let difference = instructions(copy) / instructions(base) - 1.0;
        assert!(difference.abs() < 0.004, "a copy differs by {:.3} %: {base:?} {copy:?}", 100.0 * difference);
        assert!(instructions(lua) > 1.03 * instructions(base), "{base:?} {lua:?}");
        let (own, other) = (syscalls(base), syscalls(copy));
        assert!((4.0..40.0).contains(&own) && (own / other - 1.0).abs() < 0.03, "{own} {other}");
    }
    let (kept, new) = (&costs[0][0], &costs[0][1]);
    assert!(instructions(new) > 1.1 * instructions(kept), "accepting and closing must be counted: {kept:?} {new:?}");
    let heap = kept.heap_bytes_per_connection.unwrap();
    assert!((1000.0..100_000.0).contains(&heap), "{heap}");
}

/// A gate that counts and nothing else, with a temporary folder of its own.
fn counting(tmp: &Path, out: &Path) -> Command {
    let base = example("basic/envoy.yaml");
    let mut command = counting_gate(&base, &base, out);
    command.args(["--cost-only", "--profile", "quick"]).env("TMPDIR", tmp);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The processes of `gate` that valgrind executes.
fn under_valgrind(gate: &Child) -> Vec<u32> {
    let is_one =
        |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| text(&line).contains("--tool=callgrind"));
    children_of(gate.id()).into_iter().filter(is_one).collect()
}

/// Waits until both arms run under valgrind, and a while longer.
fn both_arms(gate: &Child, then: Duration) -> Vec<u32> {
    // Configs are validated and the binary is hashed first, which takes long in a debug build on a busy machine.
    let until = Instant::now() + Duration::from_secs(240);
    while under_valgrind(gate).len() < 2 {
        assert!(Instant::now() < until, "nothing runs under valgrind");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(then);
    under_valgrind(gate)
}

fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill").args([name, &pid.to_string()]).status();
}

fn cost_in(out: &Path) -> Cost {
    let record: Record = serde_json::from_slice(&fs::read(out.join("record.json")).unwrap()).unwrap();
    record.targets[0].cost.clone().expect("counts")
}

#[test]
fn a_signal_ends_counting_at_any_stage() {
    let _machine = machine();
    // While it starts, while its first requests are sent, while they are counted.
    for (name, after) in [("-TERM", 100), ("-INT", 5500), ("-TERM", 9000)] {
        let (tmp, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let gate = counting(tmp.path(), out.path()).spawn().unwrap();
        let children = both_arms(&gate, Duration::from_millis(after));
        let sent = Instant::now();
        signal(gate.id(), name);
        let output = wait(gate, Duration::from_secs(15));
        assert!(sent.elapsed() < Duration::from_secs(6), "{:?}", sent.elapsed());
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("interrupted"), "{}", text(&output.stdout));
        assert!(children.iter().all(|&pid| !is_running(pid)));
        assert!(is_empty(tmp.path()), "files are left");
    }
}

#[test]
fn a_killed_arm_is_named_and_leaves_nothing() {
    let _machine = machine();
    for after in [1000, 8000] {
        let (tmp, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let gate = counting(tmp.path(), out.path()).spawn().unwrap();
        let children = both_arms(&gate, Duration::from_millis(after));
        signal(children[0], "-KILL");
        let output = wait(gate, Duration::from_secs(120));
        let cost = cost_in(out.path());
        let failed: Vec<&ClassCost> =
            cost.arms.iter().flat_map(|arm| &arm.classes).filter(|cost| cost.failed.is_some()).collect();
        assert!(!failed.is_empty(), "{}", text(&output.stderr));
        assert!(failed.iter().all(|cost| cost.failed.as_ref().unwrap().contains("SIGKILL")), "{failed:?}");
        assert!(cost.arms.iter().any(|arm| arm.classes.iter().all(|cost| cost.failed.is_none())), "{cost:?}");
        assert!(children.iter().all(|&pid| !is_running(pid)) && is_empty(tmp.path()));
    }
}

#[test]
fn sidegate_killed_hard_takes_valgrind_with_it() {
    let _machine = machine();
    let (tmp, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut gate = counting(tmp.path(), out.path()).spawn().unwrap();
    let children = both_arms(&gate, Duration::from_secs(7));
    gate.kill().unwrap();
    gate.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while children.iter().any(|&pid| is_running(pid)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(children.iter().all(|&pid| !is_running(pid)), "valgrind outlived sidegate");
}

#[test]
fn a_hung_arm_is_given_up() {
    let _machine = machine();
    let (tmp, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let gate = counting(tmp.path(), out.path()).spawn().unwrap();
    let children = both_arms(&gate, Duration::from_secs(8));
    signal(children[0], "-STOP");
    let output = wait(gate, Duration::from_secs(240));
    // A request that is never answered is the arm's failure; a command that is never carried out is valgrind's.
    let said =
        format!("{}{}", text(&output.stderr), fs::read_to_string(out.path().join("record.json")).unwrap_or_default());
    assert!(
        said.contains("no answer within") || said.contains("not carried out") || said.contains("never idle"),
        "{said}"
    );
    assert!(children.iter().all(|&pid| !is_running(pid)) && is_empty(tmp.path()));
}

/// A folder with programs by these names that do this.
fn programs(list: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, script) in list {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

#[test]
fn valgrinds_that_do_not_work_are_told_with_the_remedy() {
    let _machine = machine();
    let real = "exec valgrind \"$@\"";
    let path = "export PATH=/usr/local/bin:/usr/bin:/bin";
    for (tools, said) in [
        (programs(&[]), "there is no `valgrind` in SIDEGATE_VALGRIND"),
        (programs(&[("valgrind", real)]), "there is no `vgdb`"),
        (programs(&[("valgrind", "echo hello"), ("vgdb", "exit 0")]), "does not work"),
        (
            programs(&[("valgrind", "[ \"$1\" = --version ] && echo valgrind-3.0.0 || exit 3"), ("vgdb", "")]),
            "exit code 3",
        ),
        (programs(&[("valgrind", &format!("{path}; {real}")), ("vgdb", "echo no; exit 1")]), "cannot be controlled"),
    ] {
        let (tmp, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (code, _, stderr) = run(counting(tmp.path(), out.path()).env("SIDEGATE_VALGRIND", tools.path()));
        assert_eq!(code, 4, "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("help:"), "no {said:?} in {stderr}");
        assert!(is_empty(tmp.path()), "files are left");
    }
}

#[test]
fn without_valgrind_the_rest_is_measured_and_the_record_says_so() {
    let _machine = machine();
    let (tools, out) = (programs(&[]), TempDir::new().unwrap());
    let base = example("basic/envoy.yaml");
    let mut command = counting_gate(&base, &base, out.path());
    command.args(["--profile", "quick"]).env("SIDEGATE_VALGRIND", tools.path());
    let (code, _, stderr) = run(command.arg("--require-cost"));
    assert!(code == 4 && stderr.contains("apt-get install valgrind"), "{stderr}");
    let mut command = counting_gate(&base, &base, out.path());
    command.args(["--profile", "quick"]).env("SIDEGATE_VALGRIND", tools.path());
    let mut gate = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(gate.stderr.take().unwrap()).lines();
    let said: Vec<String> =
        lines.map_while(Result::ok).take_while(|line| !line.contains("finding the capacity")).collect();
    let said = said.join("\n");
    signal(gate.id(), "-TERM");
    wait(gate, Duration::from_secs(20));
    assert!(said.contains("instructions are not counted") && said.contains("apt-get install valgrind"), "{said}");
    let missing = cost_in(out.path()).missing.expect("missing");
    assert!(missing.why.contains("no `valgrind`"), "{missing:?}");
}
