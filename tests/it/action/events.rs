//! What each event compares, refuses or skips. None of these starts a proxy.

use std::os::unix::fs::{MetadataExt, symlink};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::runner::Step;
use crate::git::Sandbox;

pub const CONFIG: &str = "envoy/*.yaml";

pub fn pull_request(head_sha: &str, fork: bool) -> Value {
    let id = if fork { 2 } else { 1 };
    let head = json!({"sha": head_sha, "repo": {"id": id, "full_name": "x/mesh"}});
    let own = json!({"id": 1, "full_name": "shop/mesh"});
    json!({"number": 5, "pull_request": {"number": 5, "head": head, "base": {"repo": own}}, "repository": own})
}

/// A test merge as GitHub makes it: HEAD^1 is the base branch, HEAD^2 the pull request's head. Returns that head.
pub fn test_merge(base: &[(&str, &str)], head: &[(&str, &str)]) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    base.iter().for_each(|(path, content)| _ = sandbox.write(path, content));
    sandbox.commit("fork point");
    sandbox.git(&["checkout", "-q", "-b", "feature"]);
    head.iter().for_each(|(path, content)| _ = sandbox.write(path, content));
    let tip = sandbox.commit("feature");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.write("elsewhere", "main went on").commit("main went on");
    sandbox.git(&["merge", "-q", "--no-ff", "-m", "test merge", "feature"]);
    (sandbox, tip)
}

#[test]
fn an_unrelated_change_is_skipped_before_any_proxy() {
    let (sandbox, tip) = test_merge(&[("envoy/a.yaml", "a: 1\n"), ("code.rs", "x")], &[("code.rs", "y")]);
    let shallow = sandbox.shallow(2);
    let step = Step::new(&shallow, "pull_request", pull_request(&tip, false)).input("config", CONFIG);
    let began = Instant::now();
    let done = step.run();
    let took = began.elapsed();
    assert_eq!((done.code, done.output("verdict"), done.output("regressions")), (0, "skipped", "0"), "{}", done.log);
    assert_eq!(done.output("result-path"), "sidegate-out/verdict.json");
    assert!(shallow.at.join(done.output("report-path")).is_file());
    assert!(done.summary.starts_with("# sidegate: skipped") && done.summary.contains("1 under the gate"));
    assert!(done.commands.is_empty(), "{:?}", done.commands);
    // 0.1 s on an idle machine; a busy one may take its time.
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn privileged_events_are_refused_in_every_form() {
    let sandbox = Sandbox::change(&[("envoy/a.yaml", "a: 1\n")], &[("envoy/a.yaml", "a: 2\n")]);
    for event in ["pull_request_target", "workflow_run", "issue_comment"] {
        for base in ["", "HEAD^1"] {
            let step = Step::new(&sandbox, event, json!({})).input("config", CONFIG).input("base-ref", base);
            let done = step.run();
            assert_eq!((done.code, done.output("verdict")), (2, "invalid"), "{}", done.log);
            assert!(
                done.summary.contains("config is code") && done.summary.contains("on: pull_request"),
                "{}",
                done.summary
            );
            assert!(done.annotations("error")[0].data.contains(event));
            assert!(!sandbox.at.join("sidegate-out").exists());
        }
    }
}

#[test]
fn missing_history_names_the_setting_that_brings_it() {
    let (sandbox, tip) = test_merge(&[("envoy/a.yaml", "a: 1\n")], &[("envoy/a.yaml", "a: 2\n")]);
    let old = sandbox.git(&["rev-parse", "HEAD~2"]);
    let shallow = sandbox.shallow(1);
    let push = json!({"before": old, "forced": false});
    let group = json!({"merge_group": {"base_sha": old, "head_sha": sandbox.head()}});
    for (event, payload, depth) in [
        ("pull_request", pull_request(&tip, false), "fetch-depth: 2"),
        ("push", push, "fetch-depth: 0"),
        ("merge_group", group, "fetch-depth: 0"),
    ] {
        let done = Step::new(&shallow, event, payload).input("config", CONFIG).run();
        assert_eq!(done.code, 2, "{}", done.log);
        let said = &done.annotations("error")[0].data;
        assert!(said.contains("history was cut off") && said.contains(depth), "{said}");
    }
}

#[test]
fn a_checkout_that_is_not_the_test_merge_is_refused() {
    let (sandbox, tip) = test_merge(&[("envoy/a.yaml", "a: 1\n")], &[("envoy/a.yaml", "a: 2\n")]);
    let run = |payload: Value| Step::new(&sandbox, "pull_request", payload).input("config", CONFIG).run();
    // Another head was pushed meanwhile.
    let other = sandbox.git(&["rev-parse", "HEAD^1"]);
    assert!(run(pull_request(&other, false)).log.contains("is not the merge of pull request 5"));
    sandbox.git(&["checkout", "-q", "feature"]);
    let done = run(pull_request(&tip, false));
    assert!(done.code == 2 && done.log.contains("remove `ref:`"), "{}", done.log);
}

#[test]
fn bases_of_merge_groups_pushes_and_dispatches() {
    let sandbox = Sandbox::change(&[("envoy/a.yaml", "a: 1\n")], &[("code", "x")]);
    let base = sandbox.git(&["rev-parse", "HEAD^1"]);
    let none = json!({});
    for (event, payload, input) in [
        ("merge_group", json!({"merge_group": {"base_sha": base, "head_sha": sandbox.head()}}), ""),
        ("push", json!({"before": base, "forced": false}), ""),
        ("workflow_dispatch", none.clone(), "HEAD^1"),
        ("schedule", none.clone(), "main"),
    ] {
        let step = Step::new(&sandbox, event, payload).input("config", CONFIG).input("base-ref", input);
        let done = step.run();
        assert_eq!((done.code, done.output("verdict")), (0, "skipped"), "{event}: {}", done.log);
    }
    let done = Step::new(&sandbox, "workflow_dispatch", none).input("config", CONFIG).run();
    assert!(done.code == 2 && done.log.contains("`workflow_dispatch` names no base commit"), "{}", done.log);
    assert!(done.log.contains("base-ref"), "{}", done.log);
}

#[test]
fn a_push_that_made_its_branch_or_replaced_history_has_no_base() {
    let sandbox = Sandbox::change(&[("envoy/a.yaml", "a: 1\n")], &[("envoy/a.yaml", "not: envoy\n")]);
    let gone = "1234567890123456789012345678901234567890";
    for (before, forced, code) in [("0".repeat(40).as_str(), false, 2), (gone, true, 2)] {
        let step = Step::new(&sandbox, "push", json!({"before": before, "forced": forced})).input("config", CONFIG);
        let done = step.run();
        // It is no Envoy config: refused, with its place, and as a target of its own.
        assert_eq!((done.code, done.output("verdict")), (code, "invalid"), "{}", done.log);
        assert!(done.summary.contains("nothing to compare it with"), "{}", done.summary);
        assert_eq!(done.annotations("error")[0].properties["file"], "envoy/a.yaml");
        assert_eq!(forced, done.summary.contains("replaced history"));
    }
    let step = Step::new(&sandbox, "push", json!({"before": gone, "forced": false})).input("config", CONFIG);
    assert!(step.run().log.contains("is not in this repository"));
}

#[test]
fn inputs_that_are_wrong_end_two_and_are_named() {
    let sandbox = Sandbox::change(&[("envoy/a.yaml", "a: 1\n")], &[("code", "x")]);
    let base = sandbox.git(&["rev-parse", "HEAD^1"]);
    for (name, value, said) in [
        ("profile", "fast", "--profile"),
        ("limits", "--out=/etc", "--limits"),
        ("on-inconclusive", "maybe", "--on-inconclusive"),
        ("command", "proxy", "`command` is `proxy`"),
        ("config", "[", "`[` is not a pattern"),
        ("config", "", "which configs are under the gate"),
    ] {
        let step = Step::new(&sandbox, "push", json!({"before": base})).input("config", CONFIG).input(name, value);
        let done = step.run();
        assert_eq!((done.code, done.output("verdict")), (2, "invalid"), "{name}: {}", done.log);
        assert!(done.annotations("error")[0].data.contains(said), "{name}: {}", done.log);
        assert!(done.summary.contains(said), "{}", done.summary);
        done.gave_only_annotations();
    }
}

#[test]
fn a_payload_that_is_none_is_told() {
    let sandbox = Sandbox::change(&[("envoy/a.yaml", "a: 1\n")], &[("code", "x")]);
    for payload in [json!(null), json!([]), json!({"number": 5, "pull_request": {"head": {"sha": "-x"}}})] {
        let done = Step::new(&sandbox, "pull_request", payload).input("config", CONFIG).run();
        assert!(done.code == 2 && done.log.contains("payload of `pull_request`"), "{}", done.log);
    }
    let step = Step::new(&sandbox, "push", json!({})).variable("GITHUB_EVENT_PATH", "/nowhere").input("config", CONFIG);
    let done = step.run();
    assert!(done.code == 2 && done.log.contains("/nowhere"), "{}", done.log);
}

/// A container runs as root in the workspace of another user, whose next checkout must be able to remove what it left.
#[test]
fn results_belong_to_whoever_owns_the_workspace() {
    let (sandbox, tip) = test_merge(&[("envoy/a.yaml", "a: 1\n"), ("code.rs", "x")], &[("code.rs", "y")]);
    if std::os::unix::fs::chown(&sandbox.at, Some(12_345), Some(12_345)).is_err() {
        return; // Only root can give a folder away, and only root is in this place.
    }
    let done = Step::new(&sandbox, "pull_request", pull_request(&tip, false)).input("config", CONFIG).run();
    assert_eq!((done.code, done.output("verdict")), (0, "skipped"), "{}", done.log);
    for path in ["sidegate-out", "sidegate-out/record.json", "sidegate-out/verdict.json", "sidegate-out/report.md"] {
        assert_eq!(std::fs::metadata(sandbox.at.join(path)).unwrap().uid(), 12_345, "{path}");
    }
}

/// Each is told by itself, and none hides another.
#[test]
fn targets_that_cannot_be_measured_are_each_named() {
    let sandbox = Sandbox::new();
    sandbox.write("envoy/gone.yaml", "a: 1\n").write("envoy/moved.yaml", &"some: line\n".repeat(9)).commit("base");
    sandbox.write("envoy/broken.yaml", "a: [\n").write("envoy/other.yaml", "a: 1\nb: {}\na: 2\n");
    sandbox.git(&["rm", "-q", "envoy/gone.yaml"]);
    sandbox.git(&["mv", "envoy/moved.yaml", "envoy/there.yaml"]);
    symlink("/etc/passwd", sandbox.at.join("envoy/link.yaml")).unwrap();
    sandbox.commit("head");
    let base = sandbox.git(&["rev-parse", "HEAD^1"]);
    let done = Step::new(&sandbox, "push", json!({"before": base})).input("config", CONFIG).run();
    assert_eq!((done.code, done.output("verdict")), (2, "invalid"), "{}", done.log);
    for said in ["removes the config", "moved from", "symbolic link", "envoy/broken.yaml:", "envoy/other.yaml:3:1"] {
        assert!(done.summary.contains(said), "no {said:?} in\n{}", done.summary);
    }
    let at: Vec<(&str, &str)> = done
        .annotations("error")
        .iter()
        .map(|c| (c.properties["file"].as_str(), c.properties["line"].as_str()))
        .collect();
    assert!(at.contains(&("envoy/other.yaml", "3")) && at.contains(&("envoy/link.yaml", "1")), "{at:?}");
    assert!(!done.log.contains("root:"), "{}", done.log);
    // The record says it all again.
    let record = sandbox.at.join("sidegate-out/record.json");
    let (code, out, err) = crate::common::run(crate::common::sidegate().arg("compare").arg(record));
    assert!(code == 2 && out.contains("symbolic link"), "{out}{err}");
}

#[test]
fn forks_change_neither_limits_nor_acceptances() {
    let base = "version: 1\ndefaults: {profile: quick}\ntargets: [{name: t, config: envoy/a.yaml}]\n";
    let head = "version: 1\ntargets: [{name: t, config: envoy/a.yaml}, {name: u, config: envoy/u.yaml}]\n";
    let (sandbox, tip) = test_merge(
        &[("sidegate.yaml", base), ("envoy/a.yaml", "a: 1\n")],
        &[("sidegate.yaml", head), ("envoy/u.yaml", "b: 1\n")],
    );
    for (fork, said) in [(true, "comes from a fork"), (false, "acceptances are head")] {
        let done = Step::new(&sandbox, "pull_request", pull_request(&tip, fork)).run();
        // Neither is an Envoy config; both are under the gate, as the list itself changed.
        assert_eq!(done.code, 2, "{}", done.log);
        assert!(done.summary.contains("edits") && done.summary.contains(said), "{}", done.summary);
        assert!(done.summary.contains("`t`: invalid") && done.summary.contains("`u`: invalid"), "{}", done.summary);
    }
}
