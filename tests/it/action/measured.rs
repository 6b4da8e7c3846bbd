//! Gates that measure, as steps of a workflow.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::events::{CONFIG, pull_request, test_merge};
use super::runner::Step;
use crate::common::{children_of, example, is_running, machine};
use crate::git::Sandbox;

fn lua(side: &str) -> String {
    fs::read_to_string(example(&format!("lua/{side}.yaml"))).expect("example")
}

#[test]
fn a_costly_filter_in_a_pull_request_fails_it_at_its_line() {
    let (sandbox, tip) = test_merge(
        &[("envoy/shop.yaml", &lua("base")), ("envoy/broken.yaml", "a: 1\n")],
        &[("envoy/shop.yaml", &lua("head")), ("envoy/broken.yaml", "a: [\n")],
    );
    let shallow = sandbox.shallow(2);
    let _machine = machine();
    let step = Step::new(&shallow, "pull_request", pull_request(&tip, false)).with_envoy();
    let done = step.input("config", CONFIG).input("profile", "quick").run();
    assert_eq!((done.code, done.output("verdict")), (1, "regression"), "{}", done.log);
    assert!(done.output("regressions").parse::<u32>().unwrap() >= 1);
    assert!(done.summary.starts_with("# sidegate: regression"), "{}", done.summary);
    // Worst first; the one that is broken hides nothing.
    let (worst, other) =
        (done.summary.find("`envoy__shop`: regression"), done.summary.find("`envoy__broken`: invalid"));
    assert!(worst.unwrap() < other.unwrap(), "{}", done.summary);
    done.gave_only_annotations();
    let first = done.annotations("error")[0];
    assert_eq!(first.properties["file"], "envoy/shop.yaml");
    let line: usize = first.properties["line"].parse().unwrap();
    let (base, head) = (lua("base"), lua("head"));
    let same = base.lines().zip(head.lines()).take_while(|(b, h)| b == h).count();
    assert!(line > same && line <= head.lines().count(), "{line}");
    let verdict: Value =
        serde_json::from_slice(&fs::read(shallow.at.join(done.output("result-path"))).unwrap()).unwrap();
    assert_eq!(verdict["targets"][0]["head"], "envoy/shop.yaml");
    let record: Value =
        serde_json::from_slice(&fs::read(shallow.at.join("sidegate-out/record.json")).unwrap()).unwrap();
    assert_eq!(record["scope"]["head_commit"], shallow.head());
    assert_eq!(record["scope"]["base_commit"], sandbox.git(&["rev-parse", "HEAD^1"]));
}

#[test]
fn time_that_is_up_is_told_for_each_target_left_out() {
    let lines = "some: line\n".repeat(5);
    let sandbox =
        Sandbox::change(&[("envoy/a.yaml", "a: 1\n")], &[("envoy/a.yaml", &lines), ("envoy/b.yaml", &lua("base"))]);
    let mut command = crate::common::sidegate();
    command.current_dir(&sandbox.at).args(["gate", "--base-rev", "HEAD^1", "--config", CONFIG, "--budget", "1s"]);
    command.args(["--envoy", "/nonexistent/envoy"]).env_remove("GITHUB_ACTIONS");
    let (_, out, err) = crate::common::run(&mut command);
    // The one that changed most goes first, and fails; the other does not fit any more.
    assert!(out.contains("SKIPPED: not measured: did not fit") && out.contains("target envoy__a"), "{out}{err}");
    let verdict: Value =
        serde_json::from_slice(&fs::read(sandbox.at.join("sidegate-out/verdict.json")).unwrap()).unwrap();
    let calls: Vec<&str> =
        verdict["targets"].as_array().unwrap().iter().map(|t| t["verdict"].as_str().unwrap()).collect();
    assert_eq!(calls, ["invalid", "skipped"]);
}

#[test]
fn a_cancelled_job_keeps_what_it_had_of_all_targets() {
    let (base, head) = (lua("base"), lua("head"));
    let sandbox = Sandbox::change(
        &[("envoy/a.yaml", &base), ("envoy/b.yaml", &base)],
        &[("envoy/a.yaml", &head), ("envoy/b.yaml", &head)],
    );
    let before = sandbox.git(&["rev-parse", "HEAD^1"]);
    let _machine = machine();
    let step = Step::new(&sandbox, "push", json!({"before": before})).input("config", CONFIG).with_envoy();
    let child = step.start();
    let until = Instant::now() + Duration::from_secs(60);
    while children_of(child.id()).len() < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(6));
    let children = children_of(child.id());
    let sent = Instant::now();
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let done = step.end(child, Duration::from_secs(20));
    // The runner kills after ten seconds.
    assert!(sent.elapsed() < Duration::from_secs(6), "{:?}", sent.elapsed());
    assert!(children.iter().all(|&pid| !is_running(pid)), "children must be gone");
    assert_eq!((done.code, done.output("verdict")), (4, "invalid"), "{}", done.log);
    assert!(
        done.summary.contains("interrupted by SIGINT") && done.summary.contains("came before its turn"),
        "{}",
        done.summary
    );
}
