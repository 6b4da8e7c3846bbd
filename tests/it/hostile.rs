//! Input made to hang, mislead or outlive: files, configs, binaries, records and figures.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::child::script;
use crate::common::{children_of, example, gate, machine, run, sidegate, text, wait};

fn folder() -> TempDir {
    TempDir::new().expect("temp dir")
}

fn file(folder: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).expect("can write");
    path
}

/// The basic example with Lua code in front of its router.
fn with_lua(folder: &TempDir, code: &str) -> PathBuf {
    let source = fs::read_to_string(example("basic/envoy.yaml")).expect("example");
    let router = "                  - name: envoy.filters.http.router\n";
    assert!(source.contains(router), "the example's layout changed");
    let lua = json!({
        "name": "envoy.filters.http.lua",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": code},
        },
    });
    file(folder, "lua.yaml", &source.replacen(router, &format!("                  - {lua}\n{router}"), 1))
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

#[test]
fn a_pipe_is_read_and_one_that_nobody_writes_to_is_given_up() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe);
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            fs::copy(example("basic/envoy.yaml"), pipe)
        })
    };
    let (code, _, stderr) = run(sidegate().arg("rehost").arg(&pipe));
    assert_eq!(code, 0, "{stderr}");
    writer.join().expect("no panic").expect("can write");
    let child = sidegate().arg("rehost").arg(&pipe).stderr(Stdio::piped()).spawn().expect("starts");
    let output = wait(child, Duration::from_secs(60));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("pipe"), "{}", text(&output.stderr));
}

#[test]
fn names_with_line_ends_do_not_begin_a_line() {
    let folder = folder();
    let twice = file(&folder, "twice.yaml", "\"k\\n::error::x\": 1\n\"k\\n::error::x\": 2\n");
    let (code, _, stderr) = run(sidegate().arg("rehost").arg(twice));
    assert_eq!(code, 2, "{stderr}");
    let source = fs::read_to_string(example("basic/envoy.yaml")).expect("example");
    let named = file(&folder, "named.yaml", &source.replacen("name: ingress", "name: \"in\\n::error::x\"", 1));
    let (code, stdout, _) = run(sidegate().arg("rehost").arg(named));
    assert_eq!(code, 0);
    for shown in [stderr, stdout] {
        assert!(shown.contains("::error::x"), "{shown}");
        assert!(!shown.lines().any(|line| line.trim_start().starts_with("::")), "{shown}");
    }
}

#[test]
fn a_binary_that_never_tells_its_version_does_not_hold_up_a_signal() {
    let folder = folder();
    let silent = script(folder.path(), "#!/bin/sh\nexec sleep 300\n");
    let mut command = sidegate();
    command.args(["proxy", "path"]).arg(silent).stderr(Stdio::piped());
    let child = command.spawn().expect("starts");
    let until = Instant::now() + Duration::from_secs(30);
    while children_of(child.id()).is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let sent = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success());
    let output = wait(child, Duration::from_secs(30));
    assert_eq!(output.status.code(), Some(4));
    // Without the signal it takes twenty seconds.
    assert!(sent.elapsed() < Duration::from_secs(10), "{:?}", sent.elapsed());
    assert!(text(&output.stderr).contains("stopped by SIGINT"), "{}", text(&output.stderr));
}

#[test]
fn a_file_that_nobody_may_execute_is_not_executed() {
    let folder = folder();
    let path = script(folder.path(), "#!/bin/sh\necho 'envoy  version: abc/1.40.0/Clean/RELEASE/BoringSSL'\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("can change the mode");
    let (code, _, stderr) = run(sidegate().args(["proxy", "path"]).arg(path));
    assert!(code == 4 && stderr.contains("may not be executed"), "{code} {stderr}");
}

#[test]
fn an_edited_record_that_lacks_what_it_speaks_of_is_refused() {
    let folder = folder();
    let host = json!({"os": "x", "kernel": "x", "architecture": "x", "cpu_model": "x", "cpus": 2, "memory_bytes": 1,
        "cpu_quota": null});
    let record: Value =
        json!({"schema": 1, "tool": "x", "started_at": "x", "host": host, "seed": 1, "targets": Vec::<Value>::new()});
    let path = file(&folder, "record.json", &record.to_string());
    let (code, _, stderr) = run(sidegate().arg("compare").arg(path));
    assert!(code == 2 && stderr.contains("no target"), "{code} {stderr}");
}

#[test]
fn a_config_whose_code_stops_its_process_is_a_failed_head() {
    let _machine = machine();
    let folder = folder();
    let code = "local n = 0\nfunction envoy_on_request(h)\n  n = n + 1\n  if n == 500 then os.execute('kill -STOP $PPID') end\nend\n";
    let head = with_lua(&folder, code);
    let out = folder.path().join("out");
    let (code, stdout, stderr) =
        run(gate(&example("basic/envoy.yaml"), &head, &out).args(["--profile", "quick", "--budget", "1s"]));
    assert!(code == 1 && stdout.contains("head failed"), "{code}\n{stdout}\n{stderr}");
}

#[test]
fn what_a_config_starts_apart_from_its_group_is_gone_afterwards() {
    let _machine = machine();
    let folder = folder();
    // A number of seconds that nobody else sleeps.
    let head = with_lua(&folder, "os.execute('setsid sleep 271828 >/dev/null 2>&1 &')");
    let out = folder.path().join("out");
    let (code, _, stderr) =
        run(gate(&example("basic/envoy.yaml"), &head, &out).args(["--profile", "quick", "--budget", "1s"]));
    assert_eq!(code, 4, "{stderr}");
    let left = fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x00271828\x00"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_config_that_is_not_judged_is_named() {
    let folder = folder();
    let text =
        "#!/bin/sh\ncase \"$*\" in *--version*) echo 'envoy  version: abc/1.40.0/Clean/x';; *) kill -9 $$;; esac\n";
    let killed = script(folder.path(), text);
    let mut command = sidegate();
    command.args(["gate", "--head"]).arg(example("basic/envoy.yaml")).arg("--out").arg(folder.path().join("out"));
    let (code, _, stderr) = run(command.arg("--envoy").arg(killed));
    assert!(code == 4 && stderr.contains("basic/envoy.yaml: the proxy ended"), "{code} {stderr}");
    assert!(stderr.contains("SIGKILL") && stderr.contains("help:"), "{stderr}");
}

#[test]
fn a_load_is_bounded_told_and_stopped() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("can listen");
    let url = format!("http://{}/", silent.local_addr().expect("has an address"));
    let load = |args: &[&str]| run(sidegate().args(["load", &url, "-c", "1"]).args(args));
    let (code, _, stderr) = load(&["-d", "99999999h"]);
    assert!(code == 2 && stderr.contains("24h"), "{code} {stderr}");
    let (code, _, stderr) = load(&["--cpu", "8000"]);
    assert!(code == 4 && stderr.contains("--cpu"), "{code} {stderr}");
    let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut command = sidegate();
    command.args(["load", &url, "-c", "1", "-d", "50ms", "--timeout", "50ms"]).stdout(full).stderr(Stdio::piped());
    let output = wait(command.spawn().expect("starts"), Duration::from_secs(30));
    assert!(text(&output.stderr).contains("standard output"), "{}", text(&output.stderr));
    // More connections than a listener that accepts none has room for.
    let mut command = sidegate();
    let child = command.args(["load", &url, "-c", "500"]).stderr(Stdio::piped()).spawn().expect("starts");
    std::thread::sleep(Duration::from_secs(1));
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs").success());
    let output = wait(child, Duration::from_secs(30));
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("stopped by a signal"), "{}", text(&output.stderr));
}
