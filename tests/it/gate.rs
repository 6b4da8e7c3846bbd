//! The main job on the real Envoy: verdicts, files, and what bad input gets.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{children_of, envoy, example, gate, is_running, machine, run, sidegate, text, wait};

fn verdict(out: &Path) -> Value {
    let text = fs::read_to_string(out.join("verdict.json")).expect("verdict.json was written");
    serde_json::from_str(&text).expect("verdict.json is JSON")
}

/// A config with one thing replaced; the replacement must really be there.
fn variant(dir: &TempDir, from: &str, to: &str) -> std::path::PathBuf {
    let source = fs::read_to_string(example("basic/envoy.yaml")).expect("example");
    assert!(source.contains(from), "the example no longer holds {from:?}");
    let path = dir.path().join("head.yaml");
    fs::write(&path, source.replacen(from, to, 1)).expect("can write");
    path
}

#[test]
fn a_costly_lua_filter_is_a_regression_and_compare_agrees() {
    let _machine = machine();
    let out = TempDir::new().expect("temp dir");
    let mut command = gate(&example("lua/base.yaml"), &example("lua/head.yaml"), out.path());
    let child = command
        .args(["--profile", "quick", "--seed", "7", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let pid = child.id();
    let peak = std::thread::spawn(move || peak_rss_kib(pid));
    let output = wait(child, Duration::from_secs(120));
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}\n{stderr}");
    let verdict = verdict(out.path());
    assert_eq!(verdict["verdict"], "regression");
    assert!(
        verdict["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .any(|f| f["metric"] == "cpu_ns_per_request" && f["verdict"] == "regression"),
        "{stdout}"
    );
    assert!(peak.join().expect("thread") < 64 * 1024, "sidegate itself must stay under 64 MiB");
    assert!(fs::metadata(out.path().join("record.json")).expect("record").len() < 5_000_000);
    let again = TempDir::new().expect("temp dir");
    let (code, _, stderr) =
        run(sidegate().arg("compare").arg(out.path().join("record.json")).arg("--out").arg(again.path()));
    assert_eq!(code, 1, "{stderr}");
    let read = |dir: &TempDir| fs::read(dir.path().join("verdict.json")).expect("verdict");
    assert!(read(&out) == read(&again), "compare must reproduce verdict.json byte for byte");
}

/// Highest `VmHWM` seen while the process lived, in KiB.
fn peak_rss_kib(pid: u32) -> u64 {
    let mut peak = 0;
    while let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
        let Some(line) = status.lines().find(|l| l.starts_with("VmHWM:")) else { break };
        peak = peak.max(line.split_ascii_whitespace().nth(1).and_then(|v| v.parse().ok()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(100));
    }
    peak
}

#[test]
fn a_copy_is_never_a_regression() {
    let _machine = machine();
    let dir = TempDir::new().expect("temp dir");
    let copy = dir.path().join("copy.yaml");
    fs::copy(example("basic/envoy.yaml"), &copy).expect("can copy");
    let (code, stdout, stderr) =
        run(gate(&example("basic/envoy.yaml"), &copy, &dir.path().join("out")).args(["--profile", "quick"]));
    // A machine may be too busy to measure on (4); it can never make a regression of nothing.
    assert!(code == 0 || code == 4, "{code}\n{stdout}\n{stderr}");
}

#[test]
fn broken_yaml_names_file_line_and_column() {
    let dir = TempDir::new().expect("temp dir");
    let bad = dir.path().join("bad.yaml");
    fs::write(&bad, "static_resources:\n  listeners: [\n").expect("can write");
    let (code, _, stderr) = run(&mut gate(&example("basic/envoy.yaml"), &bad, dir.path()));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("bad.yaml:"), "{stderr}");
    assert!(
        stderr.lines().next().is_some_and(|l| l.split(':').nth(2).is_some_and(|n| n.parse::<u32>().is_ok())),
        "{stderr}"
    );
}

#[test]
fn duplicate_keys_are_refused_with_both_lines() {
    let dir = TempDir::new().expect("temp dir");
    let bad = dir.path().join("bad.yaml");
    fs::write(&bad, "admin: {}\nstatic_resources: {}\nadmin: {}\n").expect("can write");
    let (code, _, stderr) = run(&mut gate(&example("basic/envoy.yaml"), &bad, dir.path()));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("bad.yaml:3:1") && stderr.contains("line 1"), "{stderr}");
}

#[test]
fn a_config_envoy_rejects_is_reported_at_our_line() {
    let dir = TempDir::new().expect("temp dir");
    let bad = variant(&dir, "stat_prefix:", "stat_prefixx:");
    let line =
        fs::read_to_string(&bad).expect("reads").lines().position(|l| l.contains("stat_prefixx")).expect("there") + 1;
    let (code, _, stderr) = run(&mut gate(&example("basic/envoy.yaml"), &bad, dir.path()));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains(&format!("head.yaml:{line}:")) && stderr.contains("stat_prefixx"), "{stderr}");
}

#[test]
fn a_base_that_cannot_load_leaves_head_measured_alone() {
    let _machine = machine();
    let dir = TempDir::new().expect("temp dir");
    let bad = dir.path().join("bad.yaml");
    fs::write(&bad, "not: [an, envoy, config]\n").expect("can write");
    let out = dir.path().join("out");
    let (code, stdout, stderr) = run(gate(&bad, &example("basic/envoy.yaml"), &out).args(["--profile", "quick"]));
    assert!(code == 0 || code == 4, "{code}\n{stdout}\n{stderr}");
    assert!(stdout.contains("no base"), "{stdout}");
    assert!(verdict(&out)["targets"][0]["base"].is_null());
}

#[test]
fn a_missing_file_an_unknown_flag_and_a_tcp_listener_end_two() {
    let dir = TempDir::new().expect("temp dir");
    let (code, _, stderr) = run(&mut gate(&example("basic/envoy.yaml"), Path::new("nowhere.yaml"), dir.path()));
    assert!(code == 2 && stderr.contains("nowhere.yaml: no such file"), "{stderr}");
    let (code, _, stderr) = run(sidegate().args(["gate", "--hed", "x"]));
    assert!(code == 2 && stderr.contains("--head"), "{stderr}");
    let tcp = variant(&dir, "envoy.filters.network.http_connection_manager", "envoy.filters.network.tcp_proxy");
    let tcp_text = fs::read_to_string(&tcp).expect("reads").replacen(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
        1,
    );
    fs::write(&tcp, tcp_text).expect("can write");
    let (code, _, stderr) = run(&mut gate(&example("basic/envoy.yaml"), &tcp, dir.path()));
    assert!(code == 2 && stderr.contains("head.yaml:") && stderr.contains("HTTP"), "{stderr}");
}

#[test]
fn one_cpu_is_not_enough_and_that_is_said() {
    let dir = TempDir::new().expect("temp dir");
    let base = example("basic/envoy.yaml");
    let binary = sidegate().get_program().to_owned();
    let mut command = std::process::Command::new("taskset");
    command.args(["-c", "0"]).arg(binary).args(["gate", "--envoy", &envoy(), "--base"]).arg(&base);
    let (code, _, stderr) = run(command.arg("--head").arg(&base).arg("--out").arg(dir.path()));
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("two CPUs"), "{stderr}");
}

#[test]
fn a_head_that_answers_503_is_a_regression_and_a_base_that_does_is_invalid() {
    let _machine = machine();
    let dir = TempDir::new().expect("temp dir");
    let bad = dir.path().join("refuses.yaml");
    let source = fs::read_to_string(example("basic/envoy.yaml")).expect("example");
    let router = "                  - name: envoy.filters.http.router\n";
    let fault = "                  - name: envoy.filters.http.fault\n                    typed_config:\n                      '@type': type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault\n                      abort: {http_status: 503, percentage: {numerator: 100}}\n";
    assert!(source.contains(router), "the example's layout changed");
    fs::write(&bad, source.replacen(router, &format!("{fault}{router}"), 1)).expect("can write");
    let good = example("basic/envoy.yaml");
    let (code, stdout, stderr) = run(gate(&good, &bad, &dir.path().join("a")).args(["--profile", "quick"]));
    assert!(code == 1 && stdout.contains("503"), "{code}\n{stdout}\n{stderr}");
    let (code, stdout, stderr) = run(gate(&bad, &good, &dir.path().join("b")).args(["--profile", "quick"]));
    assert!(code == 4 && stdout.contains("503"), "{code}\n{stdout}\n{stderr}");
}

/// Whichever side the draw warms or measures first: what both refuse is not head's doing.
#[test]
fn what_both_sides_refuse_is_invalid_and_never_a_regression() {
    let _machine = machine();
    let dir = TempDir::new().expect("temp dir");
    let router = "                  - name: envoy.filters.http.router\n";
    let filters = [
        "envoy.filters.http.fault\n                    typed_config:\n                      '@type': type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault\n                      abort: {http_status: 403, percentage: {numerator: 100}}\n",
        "envoy.filters.http.local_ratelimit\n                    typed_config:\n                      '@type': type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit\n                      stat_prefix: limit\n                      token_bucket: {max_tokens: 2, tokens_per_fill: 2, fill_interval: 1s}\n                      filter_enabled: {default_value: {numerator: 100}}\n                      filter_enforced: {default_value: {numerator: 100}}\n",
    ];
    for (filter, status) in filters.iter().zip(["403", "429"]) {
        let bad = variant(&dir, router, &format!("                  - name: {filter}{router}"));
        for seed in ["1", "2", "3", "4"] {
            let mut gate = gate(&bad, &bad, &dir.path().join("out"));
            let (code, stdout, stderr) = run(gate.args(["--profile", "quick", "--seed", seed]));
            assert!(code == 4 && stdout.contains(status), "{seed}: {code}\n{stdout}\n{stderr}");
            assert!(stdout.contains("base failed"), "{stdout}");
        }
    }
}

/// Starts a gate of the basic example and waits until proxies run; returns the gate and its children.
#[expect(clippy::zombie_processes, reason = "the caller waits, and a panic ends the test")]
fn started(out: &Path) -> (std::process::Child, Vec<u32>) {
    let base = example("basic/envoy.yaml");
    let child = gate(&base, &base, out).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        let children = children_of(child.id());
        if children.len() >= 2 {
            return (child, children);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no proxies after 30 s");
}

#[test]
fn signals_end_the_run_within_two_seconds_and_keep_the_partial_record() {
    for signal in ["-INT", "-TERM"] {
        let _machine = machine();
        let dir = TempDir::new().expect("temp dir");
        let (child, _) = started(dir.path());
        // Past the capacity search, inside a block.
        std::thread::sleep(Duration::from_secs(7));
        let children = children_of(child.id());
        let sent = Instant::now();
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
        let output = wait(child, Duration::from_secs(10));
        let took = sent.elapsed();
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        assert!(took < Duration::from_secs(4), "took {took:?}");
        assert!(children.iter().all(|&pid| !is_running(pid)), "children must be gone");
        let record: Value =
            serde_json::from_slice(&fs::read(dir.path().join("record.json")).expect("record")).expect("JSON");
        assert_eq!(record["targets"][0]["end"]["how"], "interrupted");
        assert!(text(&output.stdout).contains("interrupted"), "{}", text(&output.stdout));
    }
}

#[test]
fn a_proxy_killed_in_mid_run_is_named_and_leaves_nothing_behind() {
    let _machine = machine();
    let dir = TempDir::new().expect("temp dir");
    let (mut child, _) = started(dir.path());
    let mut victims = Vec::new();
    // Again and again: a proxy that is being stopped anyway is no victim.
    let until = Instant::now() + Duration::from_secs(20);
    while child.try_wait().expect("can be waited for").is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(700));
        for pid in children_of(child.id()) {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
            victims.push(pid);
        }
    }
    let output = wait(child, Duration::from_secs(5));
    let code = output.status.code();
    // Whichever arm is looked at first decides: head is a regression, base is invalid.
    assert!(code == Some(1) || code == Some(4), "{code:?}\n{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("SIGKILL"), "{}", text(&output.stdout));
    assert!(victims.iter().all(|&pid| !is_running(pid)));
}

#[test]
fn sidegate_killed_hard_takes_its_proxies_with_it() {
    let _machine = machine();
    let dir = TempDir::new().expect("temp dir");
    let (mut child, children) = started(dir.path());
    child.kill().expect("can kill");
    child.wait().expect("can wait");
    let until = Instant::now() + Duration::from_secs(5);
    while children.iter().any(|&pid| is_running(pid)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(children.iter().all(|&pid| !is_running(pid)), "proxies outlived sidegate");
}

#[test]
fn an_out_folder_that_takes_no_files_is_found_before_measuring() {
    let began = Instant::now();
    let base = example("basic/envoy.yaml");
    let (code, _, stderr) = run(&mut gate(&base, &base, Path::new("/proc/sidegate-out")));
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("/proc/sidegate-out") && stderr.contains("--out"), "{stderr}");
    // Measuring takes at least half a minute, so this holds on any machine.
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_plan_can_be_read_without_running_it() {
    let base = example("basic/envoy.yaml");
    let (code, stdout, stderr) = run(sidegate()
        .args(["gate", "--print-plan", "--profile", "quick", "--base"])
        .arg(&base)
        .arg("--head")
        .arg(&base));
    assert_eq!(code, 0, "{stderr}");
    for word in ["open", "closed", "8, 12", "32 connections"] {
        assert!(stdout.contains(word), "no {word:?} in\n{stdout}");
    }
}
