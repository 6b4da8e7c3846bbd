//! The Envoy driver, against the real binary.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed; one prints for people"
)]

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidegate::probe::{cpus, ports};
use sidegate::proxy::{Envoy, Launch, ProxyBinary, Running, Spawner, Store};
use sidegate::record::{CpuLayout, Slot};
use sidegate::stop::Stop;

use crate::child::{PATIENCE, is_running};

/// The real Envoy that tests use.
pub fn real_envoy() -> PathBuf {
    PathBuf::from(std::env::var_os("SIDEGATE_TEST_ENVOY").expect("SIDEGATE_TEST_ENVOY must name a real Envoy binary"))
}

pub fn envoy(spawner: &Spawner) -> ProxyBinary {
    Store::new("/nonexistent".into(), spawner).inspect(&real_envoy(), &Stop::default()).unwrap()
}

pub fn fake(path: PathBuf) -> ProxyBinary {
    ProxyBinary { path, version: "0.0.0".into(), sha256: String::new() }
}

pub fn config(admin: u16, listener: u16, upstream: u16) -> Value {
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

pub fn launch<'a>(binary: &'a ProxyBinary, config: &'a [u8], admin: u16) -> Launch<'a> {
    Launch {
        binary,
        config,
        slot: Slot::A,
        concurrency: 1,
        cpus: cpus::layout(1).unwrap(),
        admin: on(admin),
        ready_deadline: PATIENCE,
        under: None,
        stop: Stop::default(),
    }
}

pub fn start(spawner: &Spawner) -> Running {
    let binary = envoy(spawner);
    let ports = ports::reserve(3).unwrap().release();
    let text = config(ports[0], ports[1], ports[2]).to_string();
    Envoy::start(spawner, &launch(&binary, text.as_bytes(), ports[0])).unwrap()
}

fn status_line(pid: u32, key: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim().to_owned()
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

/// Of any version: it starts and answers what a run asks.
pub fn answers_all(binary: &ProxyBinary) {
    let spawner = Spawner::new().unwrap();
    let ports = ports::reserve(3).unwrap().release();
    let text = config(ports[0], ports[1], ports[2]).to_string();
    let mut running = Envoy::start(&spawner, &launch(binary, text.as_bytes(), ports[0])).unwrap();
    assert!(running.memory().unwrap().allocated_bytes.is_some());
    assert!(running.counters().unwrap().overflow.is_some());
    assert_eq!(running.threads().unwrap().workers.len(), 1);
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
