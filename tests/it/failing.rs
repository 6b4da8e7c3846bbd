//! Proxies that do not start, hang, are killed, or have nothing sensible to say.

use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sidegate::probe::ports;
use sidegate::proxy::{Cause, Envoy, Launch, Spawner, StartFailure, ValidateError};
use sidegate::stop::Stop;

use crate::child::{PATIENCE, is_running, script, signal};
use crate::proxy::{config, envoy, fake, launch, start};

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
