//! Re-hosting whole files, with the real Envoy as judge. `SIDEGATE_TEST_ENVOY` names its binary (`make test` sets it).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the functions tests share may fail and show like tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidegate::backend::Authority;
use sidegate::envoy::{Bootstrap, Ports, rejection, workload};
use sidegate::problem::Problem;
use sidegate::upstream::Upstreams;
use sidegate::yaml::Document;

pub fn envoy() -> PathBuf {
    let path = std::env::var_os("SIDEGATE_TEST_ENVOY").expect("set SIDEGATE_TEST_ENVOY to an Envoy binary");
    PathBuf::from(path)
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rehost").join(name)
}

pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Ports nobody uses, as far as can be known.
pub fn free_ports(count: usize) -> Vec<SocketAddr> {
    let held: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind(loopback(0)).unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap()).collect()
}

pub fn ports(bootstrap: &Bootstrap, log_dir: &Path) -> Ports {
    let needs = bootstrap.needs();
    let mut free = free_ports(1 + needs.listeners + needs.endpoints);
    let endpoints = free.split_off(1 + needs.listeners);
    let listeners = free.split_off(1);
    let trust = Authority::trust_for(needs.upstreams).unwrap();
    let upstreams = Upstreams::new(needs.upstreams, endpoints, trust);
    Ports { admin: free[0], listeners, upstreams, log_dir: log_dir.to_owned() }
}

/// Standard error of `envoy --mode validate`, if it refuses.
pub fn validate(config: &Value, dir: &Path) -> Result<(), String> {
    let file = dir.join("config.json");
    fs::write(&file, config.to_string()).unwrap();
    let output = Command::new(envoy()).args(["--mode", "validate", "-c"]).arg(&file).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn read(path: &Path) -> Result<Bootstrap, Vec<Problem>> {
    Bootstrap::read(&Document::open(path)?)
}

/// Runs only where `SIDEGATE_CORPUS` names a folder with `configs/` and `pairs/*/{base,head}.yaml`: configs collected
/// from public repositories, which are not part of this one. Each must be re-hosted so that Envoy accepts it, or be
/// refused with file, line and remedy.
#[test]
fn every_corpus_file_is_rehosted_or_refused_if_a_corpus_is_given() {
    let Some(corpus) = std::env::var_os("SIDEGATE_CORPUS").map(PathBuf::from) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut counts = BTreeMap::<&str, usize>::new();
    for path in corpus_files(&corpus) {
        let name = path.strip_prefix(&corpus).unwrap().display().to_string();
        let file = path.display().to_string();
        let bootstrap = match read(&path) {
            Ok(bootstrap) => bootstrap,
            Err(problems) => {
                *counts.entry("refused").or_default() += 1;
                println!("refused  {name}");
                for problem in problems {
                    println!("   {}", problem.to_string().replace(&file, ""));
                    assert_eq!(problem.file, file);
                    assert!(problem.span.is_some() && problem.help.is_some(), "{problem}");
                }
                continue;
            }
        };
        let rehosted = bootstrap.rehost(&ports(&bootstrap, dir.path()));
        match validate(&rehosted, dir.path()) {
            Ok(()) => {
                *counts.entry("accepted").or_default() += 1;
                println!("accepted {name} {:?}", bootstrap.needs());
            }
            Err(stderr) => {
                *counts.entry("rejected by Envoy").or_default() += 1;
                let document = Document::open(&path).unwrap();
                println!(
                    "rejected {name}\n   {}",
                    rejection::problem(&document, &stderr).to_string().replace(&file, "")
                );
            }
        }
        match workload::derive(&bootstrap) {
            Ok(workload) => {
                for request in &workload.requests {
                    println!("   {} {}{} ({})", request.method, request.authority, request.path, request.route);
                }
                println!("   {} drivable, skipped {:?}", workload.drivable, workload.skipped);
            }
            Err(problem) => println!("   {}", problem.to_string().replace(&file, "")),
        }
    }
    println!("{counts:?}");
    assert!(counts.values().sum::<usize>() > 50, "{counts:?}");
}

fn corpus_files(corpus: &Path) -> Vec<PathBuf> {
    let list = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut files: Vec<PathBuf> = list(corpus.join("configs")).into_iter().filter(|path| path.is_file()).collect();
    files.extend(list(corpus.join("pairs")).iter().flat_map(|pair| [pair.join("base.yaml"), pair.join("head.yaml")]));
    files.sort();
    files
}

/// A running Envoy, killed when dropped.
pub struct Proxy(Child);

impl Proxy {
    pub fn start(config: &Path) -> Self {
        let child = Command::new(envoy())
            .arg("-c")
            .arg(config)
            .args(["--disable-hot-restart", "--concurrency", "1", "-l", "error"])
            .args(["--admin-address-path".as_ref(), admin_file(config).as_os_str()])
            .stderr(Stdio::inherit())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub fn admin_file(config: &Path) -> PathBuf {
    let mut name = config.as_os_str().to_owned();
    name.push(".admin");
    PathBuf::from(name)
}

/// Asks until there is an answer, for at most a minute.
pub fn patiently<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no answer within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The body of a GET, if it is answered 200.
pub fn get(address: &str, authority: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.starts_with("HTTP/1.1 200") {
        return None;
    }
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return Some(body.to_owned());
    }
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        whole.push_str(after.get(..size)?);
        rest = after.get(size + 2..)?;
        if size == 0 {
            break;
        }
    }
    Some(whole)
}

/// `node.metadata` as a running Envoy has read it from this file.
fn metadata_read_by_envoy(config: &Path) -> Value {
    let _proxy = Proxy::start(config);
    let admin = patiently(|| fs::read_to_string(admin_file(config)).ok().filter(|text| !text.is_empty()));
    let dump = patiently(|| get(&admin, "admin", "/config_dump"));
    let dump: Value = serde_json::from_str(&dump).unwrap();
    dump.pointer("/configs/0/bootstrap/node/metadata").cloned().unwrap()
}

/// JSON numbers of a protobuf struct are all doubles.
fn with_doubles(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(with_doubles).collect(),
        Value::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), with_doubles(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn scalars_are_read_as_the_real_envoy_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["scalars.yaml", "scalars.json"] {
        let copy = dir.path().join(name);
        fs::copy(data(name), &copy).unwrap();
        let ours = Document::open(&copy).unwrap().value.pointer("/node/metadata").cloned().unwrap();
        let theirs = metadata_read_by_envoy(&copy);
        for (key, value) in ours.as_object().unwrap() {
            assert_eq!(with_doubles(value), with_doubles(&theirs[key]), "{name}: {key}");
        }
        assert_eq!(with_doubles(&ours), with_doubles(&theirs), "{name}");
    }
}

#[test]
fn a_config_with_everything_is_rehosted_and_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let bootstrap = read(&data("many.yaml")).unwrap();
    assert_eq!((bootstrap.needs().listeners, bootstrap.needs().endpoints), (3, 3));
    let example = Ports {
        admin: loopback(9901),
        listeners: (0..3).map(|at| loopback(10_000 + at)).collect(),
        upstreams: (0..3).map(|at| loopback(20_000 + at)).collect::<Vec<_>>().into(),
        log_dir: PathBuf::from("/logs"),
    };
    insta::assert_json_snapshot!("rehosted", bootstrap.rehost(&example));
    let changes: Vec<String> =
        bootstrap.changes().iter().map(|change| format!("{}: {}", change.span.unwrap().line, change.what)).collect();
    insta::assert_json_snapshot!("changes", changes);
    let workload = workload::derive(&bootstrap).unwrap();
    let requests: Vec<String> = workload
        .requests
        .iter()
        .map(|request| format!("{} {}{} ({})", request.method, request.authority, request.path, request.route))
        .collect();
    insta::assert_json_snapshot!(
        "requests",
        json!({
            "listener": workload.listener, "requests": requests, "skipped": workload.skipped,
        })
    );
    let real = bootstrap.rehost(&ports(&bootstrap, dir.path()));
    assert_eq!(validate(&real, dir.path()), Ok(()));
}

/// A backend that answers every request with the Host header it was sent, until the test ends.
fn echo_host(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut seen = Vec::new();
                let mut byte = [0_u8; 1];
                while stream.read(&mut byte).is_ok_and(|count| count == 1) {
                    seen.push(byte[0]);
                    if !seen.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    let text = String::from_utf8_lossy(&seen).to_lowercase();
                    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("none").to_owned();
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{host}", host.len());
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                    seen.clear();
                }
            });
        }
    });
}

#[test]
fn rewritten_hosts_are_those_of_the_original_endpoints() {
    let dir = tempfile::tempdir().unwrap();
    let backends: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind(loopback(0)).unwrap()).collect();
    let endpoints: Vec<SocketAddr> = backends.iter().map(|backend| backend.local_addr().unwrap()).collect();
    backends.into_iter().for_each(echo_host);
    let bootstrap = read(&data("many.yaml")).unwrap();
    let ports = Ports { upstreams: endpoints.into(), ..ports(&bootstrap, dir.path()) };
    let config = dir.path().join("config.json");
    fs::write(&config, bootstrap.rehost(&ports).to_string()).unwrap();
    let _proxy = Proxy::start(&config);
    let workload = workload::derive(&bootstrap).unwrap();
    let address = ports.listeners[workload.listener].to_string();
    let canary = workload.requests.iter().find(|request| request.route.contains("canary")).unwrap();
    let ask = |path: &str| patiently(|| get(&address, &canary.authority, path));
    // Envoy takes endpoints in one by one while it starts, so the last may come late.
    let expected = ["kept.internal", "one.internal", "three.internal"];
    let mut seen = BTreeSet::new();
    patiently(|| {
        seen.insert(ask(&canary.path));
        (seen.len() == expected.len()).then_some(())
    });
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected);
    // Without a rewrite, the client's own name arrives.
    assert_eq!(ask("/v1"), canary.authority);
    // Every derived request reaches the backend.
    for request in &workload.requests {
        assert!(get(&address, &request.authority, &request.path).is_some(), "{request:?}");
    }
    assert!(dir.path().join("0.log").exists());
}

#[test]
fn examples_are_rehosted_and_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut workloads = Vec::new();
    for name in ["basic/envoy.yaml", "lua/base.yaml", "lua/head.yaml"] {
        let bootstrap = read(&examples.join(name)).unwrap();
        let rehosted = bootstrap.rehost(&ports(&bootstrap, dir.path()));
        assert_eq!(validate(&rehosted, dir.path()), Ok(()), "{name}");
        workloads.push(workload::derive(&bootstrap).unwrap());
    }
    assert_eq!(workloads[0].requests.len(), 3);
    assert_eq!(workloads[1].requests, workloads[2].requests);
}
