//! `sidegate report` as a user or a workflow calls it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use sidegate::simulate::record;
use tempfile::TempDir;

use super::fake::Fake;
use super::world::{Account, Pull, Trouble};
use super::{HEAD, set_up, simulated};
use crate::common::{run, sidegate, wait};

struct Folder(TempDir);

impl Folder {
    fn new(cpu: f64) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("record.json", &serde_json::to_string(&record(11, simulated(cpu))).unwrap());
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn report(&self, more: &[&str]) -> Command {
        let mut command = sidegate();
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GITHUB_") || name.starts_with("INPUT_"))
        {
            command.env_remove(name);
        }
        command.arg("report").arg(self.0.path().join("record.json")).args(more);
        command
    }

    /// As a step of a workflow that `event` started.
    fn step(&self, fake: &Fake, event: &Value, more: &[&str]) -> Command {
        self.write("event.json", &event.to_string());
        let world = fake.world();
        let mut command = self.report(&["--publish"]);
        command
            .args(more)
            .env("GITHUB_API_URL", &fake.api_url)
            .env("GITHUB_REPOSITORY", format!("{}/{}", world.owner, world.repo))
            .env("GITHUB_EVENT_PATH", self.0.path().join("event.json"))
            .env("GITHUB_WORKFLOW", "gate")
            .env("GITHUB_RUN_ID", "50")
            .env("INPUT_GITHUB-TOKEN", &fake.token);
        command
    }
}

fn pull_request() -> Value {
    json!({"number": 7, "pull_request": {"number": 7, "head": {"sha": HEAD, "repo": {"id": 1}}, "base": {"repo": {"id": 1}}}})
}

/// What GitHub says when the run of a fork's pull request is over.
fn workflow_run() -> Value {
    json!({"repository": {"id": 4711}, "workflow_run": {"id": 50, "run_attempt": 1, "name": "gate", "event": "pull_request",
        "head_branch": "fix", "head_sha": HEAD, "pull_requests": [],
        "head_repository": {"id": 99, "owner": {"login": "eve"}}}})
}

#[test]
fn a_record_is_rendered_with_the_verdicts_exit_code() {
    for (cpu, code, sign) in [(0.3, 1, "❌"), (0.0, 0, "✅")] {
        let folder = Folder::new(cpu);
        let (got, out, err) = run(&mut folder.report(&["--format", "comment"]));
        assert_eq!((got, err.as_str()), (code, ""));
        assert!(out.starts_with(&format!("### {sign} ")), "{out}");
        let (got, ..) = run(&mut folder.report(&["--exit-zero", "--format", "json"]));
        assert_eq!(got, 0);
    }
}

#[test]
fn a_workflow_publishes_for_its_own_pull_request() {
    let fake = Fake::new();
    set_up(&fake);
    let folder = Folder::new(0.3);
    let (code, out, err) = run(&mut folder.step(&fake, &pull_request(), &["--format", "comment"]));
    assert_eq!(code, 1);
    assert!(err.starts_with("sidegate: comment created: https://") && err.lines().count() == 1, "{err}");
    let world = fake.world();
    let body = world.comments[0].body.split_once('\n').unwrap().1.trim();
    assert_eq!(body, out.trim());
}

#[test]
fn what_fails_at_github_does_not_change_the_exit_code() {
    let fake = Fake::new();
    set_up(&fake);
    fake.world().account = Account::read_only();
    for (cpu, verdict) in [(0.3, 1), (0.0, 0)] {
        let folder = Folder::new(cpu);
        let (code, out, err) = run(&mut folder.step(&fake, &pull_request(), &[]));
        assert_eq!(code, verdict);
        assert!(err.contains("no comment: GitHub refused (403") && err.lines().count() == 1, "{err}");
        assert!(!format!("{out}{err}").contains(&fake.token));
    }
    let folder = Folder::new(0.0);
    let (code, _, err) = run(folder.report(&["--publish"]).env("GITHUB_REPOSITORY", "o/r"));
    assert_eq!(code, 0);
    assert!(err.contains("there is no token"), "{err}");
}

#[test]
fn a_forks_pull_request_is_found_by_the_head_that_github_names() {
    let fake = Fake::new();
    set_up(&fake);
    let of = |number, owner: &str, repository, branch: &str, sha: &str| Pull {
        number,
        sha: sha.to_owned(),
        head_repository: Some(repository),
        head_owner: owner.to_owned(),
        branch: branch.to_owned(),
        open: true,
        locked: false,
    };
    fake.world().pulls.push(of(8, "eve", 98, "fix", HEAD));
    fake.world().pulls.push(of(9, "eve", 99, "fix", super::OLDER));
    let folder = Folder::new(0.3);
    // The record cannot say whose it is, and no pull request has this head.
    let (code, _, err) = run(&mut folder.step(&fake, &workflow_run(), &["--exit-zero"]));
    assert_eq!(code, 0);
    assert!(err.contains("no open pull request has the measured commit"), "{err}");
    fake.world().pulls.push(of(10, "eve", 99, "fix", HEAD));
    let (_, _, err) = run(&mut folder.step(&fake, &workflow_run(), &[]));
    assert!(err.contains("comment created"), "{err}");
    assert_eq!(fake.world().comments[0].issue, 10);
    assert!(fake.world().comments[0].body.contains("own code, in another repository"));
    fake.world().pulls.push(of(11, "eve", 99, "fix", HEAD));
    let (_, _, err) = run(&mut folder.step(&fake, &workflow_run(), &[]));
    assert!(err.contains("several open pull requests"), "{err}");
    let (_, _, err) = run(&mut folder.step(&fake, &workflow_run(), &["--pr", "11"]));
    assert!(err.contains("comment created"), "{err}");
    let mut push = workflow_run();
    push["workflow_run"]["event"] = json!("push");
    let (_, _, err) = run(&mut folder.step(&fake, &push, &[]));
    assert!(err.contains("started by `push`"), "{err}");
}

#[test]
fn a_signal_ends_publishing_and_keeps_the_verdict() {
    let fake = Fake::unjudged();
    set_up(&fake);
    fake.world().goes_wrong("GET", "/7", 99, Trouble::Silent(Duration::from_secs(20)));
    let folder = Folder::new(0.3);
    let child = folder.step(&fake, &pull_request(), &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while fake.calls().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let asked = Instant::now();
    let output = wait(child, Duration::from_secs(10));
    assert_eq!(output.status.code(), Some(1));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no comment: stopped by SIGTERM"));
}

#[test]
fn what_no_gate_wrote_is_refused() {
    let folder = Folder::new(0.0);
    let good = fs::read_to_string(folder.0.path().join("record.json")).unwrap();
    let mut value: Value = serde_json::from_str(&good).unwrap();
    let refused = |text: &str, says: &str| {
        folder.write("record.json", text);
        let (code, out, err) = run(&mut folder.report(&["--publish", "--exit-zero"]));
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(says), "`{says}` is not in {err}");
    };
    for (text, says) in [
        ("", "not a record"),
        ("{}", "schema"),
        ("[1", "not a record"),
        ("{\"schema\": 9}", "`schema` is 9"),
        (&"[".repeat(100_000), "not a record"),
    ] {
        refused(text, says);
    }
    let target = value["targets"][0].clone();
    value["targets"][0]["name"] = json!("x".repeat(2000));
    refused(&value.to_string(), "a name of more than 1024");
    value["targets"] = (0..201)
        .map(|_| {
            let mut t = target.clone();
            t["blocks"] = json!([]);
            t
        })
        .collect();
    refused(&value.to_string(), "201 targets");
    value["targets"] = json!([target]);
    let block = value["targets"][0]["blocks"][0].clone();
    value["targets"][0]["blocks"] = (0..201)
        .map(|_| {
            let mut b = block.clone();
            b["slices"] = json!([]);
            b
        })
        .collect();
    refused(&value.to_string(), "201 blocks");
    fs::remove_file(folder.0.path().join("record.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.0.path().join("record.json")).unwrap();
    let (code, _, err) = run(&mut folder.report(&[]));
    assert!(code == 2 && err.contains("not a plain file"), "{err}");
    let mut elsewhere = sidegate();
    let (code, _, err) = run(elsewhere.args(["report", "/nowhere/record.json"]));
    assert!(code == 2 && err.contains("No such file"), "{err}");
    let (code, ..) = run(sidegate().arg("report").arg(Path::new("src")));
    assert_eq!(code, 2);
}

/// Every number of the record, in the order of the text.
fn numbers<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|v| numbers(v, found)),
        Value::Object(map) => map.values_mut().for_each(|v| numbers(v, found)),
        Value::Number(_) => found.push(value),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_number_of_a_record_makes_it_panic(at in proptest::collection::vec((any::<prop::sample::Index>(), 0..6_usize), 1..200)) {
        static VALUE: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(record(11, simulated(0.3))).unwrap());
        let mut value = VALUE.clone();
        let mut all = Vec::new();
        numbers(&mut value, &mut all);
        let extremes = [json!(0), json!(1), json!(u64::MAX), json!(u32::MAX), json!(-1), json!(1e308)];
        let count = all.len();
        for (index, which) in at {
            *all[index.index(count)] = extremes[which].clone();
        }
        // What does not fit its field is refused before anything is judged; what does must be judged without a panic.
        if let Ok(record) = serde_json::from_value::<sidegate::record::Record>(value) {
            let comment = super::comment_on(&record);
            prop_assert!(comment.fit(60_000).len() <= 60_000);
        }
    }
}
