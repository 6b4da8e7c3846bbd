//! Child supervision and the Envoy driver, against the real binary.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed; one prints for people"
)]

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use sidegate::probe::{cpus, ports};
use sidegate::proxy::child::{Spec, User};
use sidegate::proxy::{Cause, Envoy, Launch, ProxyBinary, Running, Spawner, StartFailure, Store, ValidateError};
use sidegate::record::{CpuLayout, Slot};
use sidegate::stop::Stop;

const PATIENCE: Duration = Duration::from_secs(60);

/// The real Envoy that tests use.
pub fn real_envoy() -> PathBuf {
    PathBuf::from(std::env::var_os("SIDEGATE_TEST_ENVOY").expect("SIDEGATE_TEST_ENVOY must name a real Envoy binary"))
}

fn envoy(spawner: &Spawner) -> ProxyBinary {
    Store::new("/nonexistent".into(), spawner).inspect(&real_envoy()).unwrap()
}

/// A program in a folder that every user can pass.
fn script(folder: &Path, text: &str) -> PathBuf {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.join("envoy");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn fake(path: PathBuf) -> ProxyBinary {
    ProxyBinary { path, version: "0.0.0".into(), sha256: String::new() }
}

fn spec(program: &str, args: &[&str]) -> Spec {
    Spec {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        user: User::Slot(Slot::A),
        cpus: Vec::new(),
        files: Vec::new(),
    }
}

fn config(admin: u16, listener: u16, upstream: u16) -> Value {
    let address = |port: u16| json!({"socket_address": {"address": "127.0.0.1", "port_value": port}});
    let http = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    json!({
        "admin": {"address": address(admin)},
        "static_resources": {
            "listeners": [{"name": "in", "address": address(listener), "filter_chains": [{"filters": [{
                "name": "http",
                "typed_config": {
                    "@type": http, "stat_prefix": "in",
                    "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
                        {"match": {"prefix": "/"}, "route": {"cluster": "up"}}]}]},
                    "http_filters": [{"name": "router", "typed_config": {"@type": router}}]}}]}]}],
            "clusters": [{"name": "up", "type": "STATIC", "load_assignment": {"cluster_name": "up", "endpoints": [
                {"lb_endpoints": [{"endpoint": {"address": address(upstream)}}]}]}}]}
    })
}

fn on(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn launch<'a>(binary: &'a ProxyBinary, config: &'a [u8], admin: u16) -> Launch<'a> {
    Launch {
        binary,
        config,
        slot: Slot::A,
        concurrency: 1,
        cpus: cpus::layout(1).unwrap(),
        admin: on(admin),
        ready_deadline: PATIENCE,
        stop: Stop::default(),
    }
}

fn start(spawner: &Spawner) -> Running {
    let binary = envoy(spawner);
    let ports = ports::reserve(3).unwrap().release();
    let text = config(ports[0], ports[1], ports[2]).to_string();
    Envoy::start(spawner, &launch(&binary, text.as_bytes(), ports[0])).unwrap()
}

fn status_line(pid: u32, key: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim().to_owned()
}

fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}

/// `check` holds within a time that even a busy machine keeps.
fn eventually(check: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if check() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

#[test]
fn a_running_envoy_is_contained() {
    let spawner = Spawner::new().unwrap();
    let mut running = start(&spawner);
    let pid = running.pid();
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"", "empty environment");
    assert_eq!(status_line(pid, "NoNewPrivs:"), "1");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(fields[2], pid.to_string(), "its own process group");
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"));
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(folder, running.child().folder());
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(folder.parent().unwrap()).unwrap().mode() & 0o777, 0o711);
    assert_eq!(fs::read_link(format!("/proc/{pid}/fd/0")).unwrap(), Path::new("/dev/null"));
    if nix::unistd::geteuid().is_root() {
        assert!(spawner.contained(), "{:?}", spawner.uncontained_because());
        let uid = spawner.uid(Slot::A).unwrap();
        assert_ne!(Some(uid), spawner.uid(Slot::B));
        let all_four = vec![uid.to_string(); 4].join("\t");
        assert_eq!(status_line(pid, "Uid:"), all_four);
        assert_eq!(status_line(pid, "Gid:"), all_four);
        assert_eq!(status_line(pid, "Groups:"), "");
        assert_eq!(status_line(pid, "CapEff:").trim_start_matches('0'), "");
        assert_eq!(fs::metadata(&folder).unwrap().uid(), uid);
        assert!(!fs::read_to_string("/etc/passwd").unwrap().contains(&format!(":{uid}:")));
    } else {
        assert!(!spawner.contained() && !spawner.uncontained_because().is_empty());
    }
    running.stop();
    assert!(!is_running(pid) && !folder.exists());
}

#[test]
fn a_running_envoy_is_measured() {
    let spawner = Spawner::new().unwrap();
    let mut running = start(&spawner);
    assert!(running.startup() > Duration::from_millis(1) && running.startup() < PATIENCE);
    let memory = running.memory().unwrap();
    assert!(memory.allocated_bytes.unwrap() > 1 << 20 && memory.rss_anon_bytes > 1 << 20, "{memory:?}");
    assert!(memory.rss_bytes > memory.rss_anon_bytes && memory.rss_peak_bytes > 0, "{memory:?}");
    let counters = running.counters().unwrap();
    assert_eq!((counters.retries, counters.timeouts, counters.overflow), (Some(0), Some(0), Some(0)));

    let first = running.threads().unwrap();
    assert_eq!(first.workers.len(), 1);
    for _ in 0..5 {
        running.memory().unwrap();
    }
    let second = running.threads().unwrap();
    assert!(second.all.cpu_ns > first.all.cpu_ns && second.all.switches > first.all.switches);
    assert!(second.workers[0].cpu_ns >= first.workers[0].cpu_ns && second.all.cpu_ns > second.workers[0].cpu_ns);
    let times = second.since(&first);
    assert!(times.cpu_ns > 0 && times.context_switches > 0 && times.worker_cpu_ns.len() == 1);
    assert!(running.alive().is_ok());
}

#[test]
fn workers_are_pinned_alone() {
    let spawner = Spawner::new().unwrap();
    let mut running = start(&spawner);
    running.threads().unwrap();
    assert_pinned(running.pid());
}

fn assert_pinned(pid: u32) {
    let layout = cpus::layout(1).unwrap();
    let mut workers = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let task = task.unwrap().path();
        let is_worker = fs::read_to_string(task.join("comm")).unwrap().starts_with("wrk:worker_");
        workers += usize::from(is_worker);
        let status = fs::read_to_string(task.join("status")).unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned();
        let expected = if is_worker { layout.workers[0].to_string() } else { ranges(&layout.rest) };
        assert_eq!(list, expected, "{}", task.display());
    }
    assert_eq!(workers, 1);
}

/// As the kernel prints a list of CPUs.
fn ranges(cpus: &[u32]) -> String {
    let mut text: Vec<String> = Vec::new();
    for chunk in cpus.chunk_by(|a, b| a + 1 == *b) {
        let (first, last) = (chunk[0], chunk[chunk.len() - 1]);
        text.push(if first == last { first.to_string() } else { format!("{first}-{last}") });
    }
    text.join(",")
}

/// Containers take CAP_SYS_NICE from root, and then only the owner may move a process.
#[test]
fn workers_are_pinned_without_the_right_to() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let exe = std::env::current_exe().unwrap();
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"])
        .arg(exe)
        .args(["--exact", "proxy::helper_pins", "--ignored", "--nocapture"])
        .env("SIDEGATE_TEST_HELPER", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "a process of workers_are_pinned_without_the_right_to"]
fn helper_pins() {
    if std::env::var_os("SIDEGATE_TEST_HELPER").is_none() {
        return;
    }
    let held = u64::from_str_radix(&status_line(std::process::id(), "CapEff:"), 16).unwrap();
    assert_eq!(held & (1 << 23), 0, "CAP_SYS_NICE is gone");
    let spawner = Spawner::new().unwrap();
    let mut running = start(&spawner);
    running.threads().unwrap();
    assert_pinned(running.pid());
    assert!(nix::unistd::geteuid().is_root(), "only one thread gave root up");
    assert!(fs::read_dir("/proc/self/fd").is_ok());
}

fn helper(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env("SIDEGATE_TEST_HELPER", "1");
    command
}

#[test]
fn children_die_with_us() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pid");
    let mut parent =
        helper("proxy::helper_spawns").env("SIDEGATE_TEST_NOTE", &note).stdout(Stdio::null()).spawn().unwrap();
    let child = || fs::read_to_string(&note).ok()?.trim().parse::<u32>().ok();
    assert!(eventually(|| child().is_some()));
    let pid = child().unwrap();
    assert!(is_running(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(eventually(|| !is_running(pid)), "the child outlived its parent");
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

#[test]
fn both_slots_look_alike() {
    let spawner = Spawner::new().unwrap();
    let binary = envoy(&spawner);
    let ports = ports::reserve(6).unwrap().release();
    let texts: Vec<String> = ports.chunks(3).map(|p| config(p[0], p[1], p[2]).to_string()).collect();
    let running: Vec<Running> = Slot::BOTH
        .into_iter()
        .map(|slot| {
            let i = slot.index();
            let launch = Launch { slot, ..launch(&binary, texts[i].as_bytes(), ports[3 * i]) };
            Envoy::start(&spawner, &launch).unwrap()
        })
        .collect();
    let seen =
        |name: &str| running.iter().map(|one| fs::read(format!("/proc/{}/{name}", one.pid())).unwrap()).collect();
    let cmdlines: Vec<Vec<u8>> = seen("cmdline");
    assert_eq!(cmdlines[0], cmdlines[1]);
    assert!(String::from_utf8_lossy(&cmdlines[0]).contains("--disable-hot-restart"));
    let lengths: Vec<usize> = running
        .iter()
        .map(|one| fs::read_link(format!("/proc/{}/cwd", one.pid())).unwrap().as_os_str().len())
        .collect();
    assert_eq!(lengths[0], lengths[1]);
}

#[test]
fn a_taken_port_is_recognised() {
    let spawner = Spawner::new().unwrap();
    let binary = envoy(&spawner);
    let reserved = ports::reserve(2).unwrap().release();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = taken.local_addr().unwrap().port();
    let text = config(admin, reserved[0], reserved[1]).to_string();
    let failure = Envoy::start(&spawner, &launch(&binary, text.as_bytes(), admin)).unwrap_err();
    assert!(failure.is_address_in_use(), "{failure}");
    // A listener's port instead of the administration interface's.
    let text = config(reserved[0], admin, reserved[1]).to_string();
    let failure = Envoy::start(&spawner, &launch(&binary, text.as_bytes(), reserved[0])).unwrap_err();
    assert!(failure.is_address_in_use(), "{failure}");
}

#[test]
fn another_proxy_on_the_admin_port_is_not_taken_for_ours() {
    let spawner = Spawner::new().unwrap();
    let binary = envoy(&spawner);
    let ports = ports::reserve(5).unwrap().release();
    let text = config(ports[0], ports[1], ports[2]).to_string();
    let _first = Envoy::start(&spawner, &launch(&binary, text.as_bytes(), ports[0])).unwrap();
    let text = config(ports[0], ports[3], ports[4]).to_string();
    let failure = Envoy::start(&spawner, &launch(&binary, text.as_bytes(), ports[0])).unwrap_err();
    assert!(failure.is_address_in_use(), "{failure}");
}

#[test]
fn an_envoy_that_ends_at_its_start_is_told() {
    let spawner = Spawner::new().unwrap();
    let binary = envoy(&spawner);
    let failure = Envoy::start(&spawner, &launch(&binary, br#"{"nonsense": 1}"#, 1)).unwrap_err();
    let StartFailure::Exited { how, cause, log } = &failure else { panic!("{failure}") };
    assert_eq!((how.as_str(), *cause), ("exit code 1", Some(Cause::ConfigRejected)));
    assert!(log.contains("nonsense"), "{log}");
}

#[test]
fn an_envoy_that_hangs_is_told_and_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(folder.path(), "#!/bin/sh\necho still here >&2\nexec sleep 300\n");
    let spawner = Spawner::new().unwrap();
    let binary = fake(path);
    let admin = ports::reserve(1).unwrap().release()[0];
    let launch = Launch { ready_deadline: Duration::from_millis(700), ..launch(&binary, b"{}", admin) };
    let failure = Envoy::start(&spawner, &launch).unwrap_err();
    let StartFailure::NotReady { after, last, log } = &failure else { panic!("{failure}") };
    assert!(*after >= Duration::from_millis(700) && last.contains("refused") && log == "still here", "{failure}");
}

#[test]
fn an_admin_that_accepts_and_says_nothing_is_a_hang() {
    let folder = tempfile::tempdir().unwrap();
    let binary = fake(script(folder.path(), "#!/bin/sh\nexec sleep 300\n"));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let spawner = Spawner::new().unwrap();
    let admin = silent.local_addr().unwrap().port();
    let launch = Launch { ready_deadline: Duration::from_millis(700), ..launch(&binary, b"{}", admin) };
    let failure = Envoy::start(&spawner, &launch).unwrap_err();
    assert!(matches!(failure, StartFailure::NotReady { .. }), "{failure}");
}

#[test]
fn a_missing_or_foreign_binary_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let spawner = Spawner::new().unwrap();
    let start = |path: PathBuf| {
        let binary = fake(path);
        Envoy::start(&spawner, &launch(&binary, b"{}", 1)).unwrap_err()
    };
    let missing = start("/nonexistent/envoy".into());
    assert!(matches!(missing, StartFailure::NotStarted(_)), "{missing}");
    // The C library hands what the kernel does not know to the shell, which ends at once.
    let foreign = start(script(folder.path(), "\u{7f}no program\n"));
    assert!(matches!(foreign, StartFailure::Exited { cause: None, .. }), "{foreign}");
}

#[test]
fn an_envoy_killed_mid_run_is_told() {
    let spawner = Spawner::new().unwrap();
    let mut running = start(&spawner);
    running.alive().unwrap();
    signal(running.pid(), Signal::SIGKILL);
    let deadline = Instant::now() + PATIENCE;
    let died = loop {
        if let Err(died) = running.alive() {
            break died;
        }
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(died.how, "killed by SIGKILL");
    assert!(running.threads().is_err() && running.memory().is_err() && running.counters().is_err());
}

#[test]
fn a_hung_envoy_is_stopped_in_time() {
    let spawner = Spawner::new().unwrap();
    let running = start(&spawner);
    let pid = running.pid();
    signal(pid, Signal::SIGSTOP);
    let began = Instant::now();
    running.stop();
    assert!(began.elapsed() < Duration::from_secs(2) && !is_running(pid), "{:?}", began.elapsed());
}

#[test]
fn configs_are_judged() {
    let spawner = Spawner::new().unwrap();
    let binary = envoy(&spawner);
    let judge = |config: &Value| Envoy::validate(&spawner, &binary, config, PATIENCE, &Stop::default());
    let mut config = config(1, 2, 3);
    judge(&config).unwrap();
    config["static_resources"]["clusters"][0]["typo_field"] = json!(1);
    let Err(ValidateError::Rejected { output }) = judge(&config) else { panic!("accepted") };
    assert!(output.contains("typo_field"), "{output}");
}

#[test]
fn a_judge_that_hangs_or_crashes_has_judged_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spawner = Spawner::new().unwrap();
    let judge = |text: &str| {
        let binary = fake(script(folder.path(), text));
        Envoy::validate(&spawner, &binary, &json!({}), Duration::from_millis(500), &Stop::default()).unwrap_err()
    };
    let hung = judge("#!/bin/sh\nexec sleep 300\n");
    assert!(matches!(hung, ValidateError::NotJudged(StartFailure::NotReady { .. })), "{hung}");
    let crashed = judge("#!/bin/sh\nkill -SEGV $$\n");
    assert!(matches!(crashed, ValidateError::NotJudged(StartFailure::Exited { .. })), "{crashed}");
}

#[test]
fn hidden_counters_are_none() {
    let spawner = Spawner::new().unwrap();
    let binary = envoy(&spawner);
    let ports = ports::reserve(3).unwrap().release();
    let mut config = config(ports[0], ports[1], ports[2]);
    config["stats_config"] = json!({"stats_matcher": {"reject_all": true}});
    let text = config.to_string();
    let running = Envoy::start(&spawner, &launch(&binary, text.as_bytes(), ports[0])).unwrap();
    assert_eq!(running.counters().unwrap(), sidegate::record::Counters::default());
}

#[test]
fn two_workers_are_told_apart() {
    let spawner = Spawner::new().unwrap();
    let binary = envoy(&spawner);
    let ports = ports::reserve(3).unwrap().release();
    let text = config(ports[0], ports[1], ports[2]).to_string();
    let cpus: CpuLayout = cpus::layout(2).unwrap();
    let launch = Launch { concurrency: 2, cpus, ..launch(&binary, text.as_bytes(), ports[0]) };
    let mut running = Envoy::start(&spawner, &launch).unwrap();
    assert_eq!(running.threads().unwrap().workers.len(), 2);
}

/// Printed for people: `cargo test --release costs -- --ignored --nocapture`.
#[test]
#[ignore = "prints what looking costs"]
fn costs_of_looking() {
    let spawner = Spawner::new().unwrap();
    let mut startups = Vec::new();
    for _ in 0..10 {
        let running = start(&spawner);
        startups.push(running.startup().as_micros());
        let began = Instant::now();
        running.stop();
        eprintln!("stop {:?}", began.elapsed());
    }
    startups.sort_unstable();
    eprintln!("startup us {startups:?}");
    let mut running = start(&spawner);
    let mut time = |name: &str, look: &mut dyn FnMut(&mut Running)| {
        let mut all: Vec<u128> = (0..200)
            .map(|_| {
                let began = Instant::now();
                look(&mut running);
                began.elapsed().as_nanos()
            })
            .collect();
        all.sort_unstable();
        eprintln!("{name}: median {} us, p90 {} us", all[100] / 1000, all[180] / 1000);
    };
    time("threads", &mut |running| drop(running.threads().unwrap()));
    time("alive", &mut |running| running.alive().unwrap());
    time("memory", &mut |running| {
        running.memory().unwrap();
    });
    time("counters", &mut |running| {
        running.counters().unwrap();
    });
}
