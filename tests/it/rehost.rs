//! Re-hosting whole files, with the real Envoy as judge. `SIDEGATE_TEST_ENVOY` names its binary (`make test` sets it).

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidegate::envoy::{Bootstrap, Ports, rejection, workload};
use sidegate::problem::Problem;
use sidegate::yaml::Document;

fn envoy() -> PathBuf {
    let path = std::env::var_os("SIDEGATE_TEST_ENVOY").expect("set SIDEGATE_TEST_ENVOY to an Envoy binary");
    PathBuf::from(path)
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rehost").join(name)
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Ports nobody uses, as far as can be known.
fn free_ports(count: usize) -> Vec<SocketAddr> {
    let held: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind(loopback(0)).unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap()).collect()
}

fn ports(bootstrap: &Bootstrap, log_dir: &Path) -> Ports {
    let needs = bootstrap.needs();
    let mut free = free_ports(1 + needs.listeners + needs.endpoints);
    let endpoints = free.split_off(1 + needs.listeners);
    let listeners = free.split_off(1);
    Ports { admin: free[0], listeners, endpoints, log_dir: log_dir.to_owned() }
}

/// Standard error of `envoy --mode validate`, if it refuses.
fn validate(config: &Value, dir: &Path) -> Result<(), String> {
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
