//! What surrounds the binary: action.yml, workflows, Dockerfile, README. Each names things that others define.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sidegate::cmd::gate::order::DEFAULT_ENVOY;
use sidegate::yaml::Document;

use crate::common::{run, sidegate};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn yaml(path: &str) -> Value {
    Document::parse(path, &read(path)).unwrap_or_else(|problems| panic!("{path}: {problems:?}")).value
}

/// All workflows, ours and the examples, by their paths from the root.
fn workflows() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = vec![root.join(".github/workflows"), root.join("examples/workflows")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    assert!(found.len() >= 6, "{found:?}");
    found
}

/// Every value under that key, wherever it stands.
fn all<'v>(value: &'v Value, key: &str) -> Vec<&'v Value> {
    let nested: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    };
    value.get(key).into_iter().chain(nested.into_iter().flat_map(|v| all(v, key))).collect()
}

#[test]
fn action_has_the_inputs_and_outputs_that_are_promised() {
    let action = yaml("action.yml");
    let names = |key: &str| action[key].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names("inputs").join(" "),
        "command config spec profile limits envoy-version on-inconclusive comment github-token base-ref out"
    );
    assert_eq!(names("outputs").join(" "), "verdict result-path report-path regressions");
    for key in ["inputs", "outputs"] {
        for (name, entry) in action[key].as_object().unwrap() {
            assert!(entry["description"].as_str().is_some_and(|text| !text.is_empty()), "{name} is not described");
            // The runner does not enforce it, so it would only mislead.
            assert!(entry.get("required").is_none(), "{name}");
        }
    }
}

/// `INPUT_CONFIG` is no argument: whoever writes an input must not write a command line.
#[test]
fn action_runs_the_binary_with_constant_arguments() {
    let runs = &yaml("action.yml")["runs"];
    assert_eq!(
        (runs["using"].as_str(), runs["entrypoint"].as_str()),
        (Some("docker"), Some("/usr/local/bin/sidegate"))
    );
    assert!(!runs.to_string().contains("${{"), "{runs}");
    let dockerfile = read("Dockerfile");
    assert!(
        dockerfile.contains("\nENTRYPOINT [\"/usr/local/bin/sidegate\"]\n"),
        "another entry point than action.yml's"
    );
    for line in dockerfile.lines() {
        assert!(!line.starts_with("USER"), "the runner's files belong to others: {line}");
    }

    let args: Vec<&str> = runs["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let mut command = sidegate();
    let (code, _, said) = run(command.args(args).env("INPUT_COMMAND", "no-such-command"));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("the input `command` is `no-such-command`"), "{said}");
}

/// A tag can be moved to other code, a commit cannot. Our own tree needs none.
#[test]
fn every_action_is_pinned_by_its_commit_with_the_version_beside_it() {
    let mut pinned = 0;
    for path in workflows() {
        for uses in all(&yaml(&path), "uses") {
            let uses = uses.as_str().unwrap();
            if uses == "./" {
                continue;
            }
            let (_, commit) = uses.split_once('@').unwrap_or_else(|| panic!("{path}: {uses} names no commit"));
            let is_hash = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(is_hash, "{path}: {uses} is not pinned by a commit");
            let text = read(&path);
            let line = text.lines().find(|line| line.contains(uses)).unwrap();
            let version = line.rsplit_once("# v").map(|(_, version)| version).unwrap_or_default();
            assert_eq!(version.split('.').count(), 3, "{path}: no version beside {line}");
            pinned += 1;
        }
    }
    assert!(pinned > 8, "{pinned}");
}

#[test]
fn jobs_have_a_time_limit_and_rights_of_their_own() {
    for path in workflows() {
        let workflow = yaml(&path);
        assert_eq!(workflow["permissions"], serde_json::json!({}), "{path}: rights that every job gets");
        assert!(workflow["concurrency"]["group"].is_string(), "{path}");
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            assert!(job["timeout-minutes"].is_u64() || job["timeout-minutes"].is_i64(), "{path}: {name}");
            assert!(job["permissions"].is_object(), "{path}: {name}");
            assert!(job["strategy"].is_null(), "{path}: {name}: a matrix gives a required check another name");
        }
    }
}

/// A filtered run never reports, and a required check waits for it for ever: the gate itself says `skipped`.
#[test]
fn examples_always_run() {
    for path in workflows().iter().filter(|path| path.starts_with("examples")) {
        let text = read(path);
        for filter in ["paths:", "paths-ignore:", "branches:", "pull_request_target"] {
            assert!(!text.contains(filter), "{path}: {filter}");
        }
    }
}

/// Who measures holds no token that writes, and who holds one runs nothing of the pull request.
#[test]
fn two_workflows_keep_the_token_away_from_the_change() {
    let gate = yaml("examples/workflows/forks/sidegate.yml");
    assert_eq!(gate["jobs"]["gate"]["permissions"], serde_json::json!({"contents": "read"}));
    assert!(!read("examples/workflows/forks/sidegate.yml").contains("github.token"));
    let report = read("examples/workflows/forks/sidegate-report.yml");
    assert!(!report.contains("actions/checkout"), "{report}");
    assert!(all(&yaml("examples/workflows/forks/sidegate-report.yml")["jobs"], "run").is_empty());
    assert!(report.contains("'failure'"), "a failed gate is what people want to read about");
    let name = gate["name"].as_str().unwrap();
    assert!(report.contains(&format!("workflows: [{name}]")), "the second workflow waits for another name");
}

/// What people copy is what is linted.
#[test]
fn quick_start_of_the_readme_is_the_example() {
    let example = read("examples/workflows/sidegate.yml");
    let block = format!("```yaml\n{example}```\n");
    assert!(read("README.md").contains(&block), "README.md does not show examples/workflows/sidegate.yml as it is");
}

#[test]
fn image_has_the_envoy_that_is_used_where_none_is_named() {
    let dockerfile = read("Dockerfile");
    let argument = |name: &str| {
        let line = dockerfile.lines().find_map(|line| line.strip_prefix(&format!("ARG {name}=")));
        line.unwrap_or_else(|| panic!("the Dockerfile has no {name}")).to_owned()
    };
    assert_eq!(argument("ENVOY"), DEFAULT_ENVOY);
    assert_eq!(argument("ENVOY_SHA256").len(), 64);
    for image in ["BASE", "RUST"] {
        let name = argument(image);
        assert!(name.split_once("@sha256:").is_some_and(|(_, digest)| digest.len() == 64), "{name} is no fixed image");
    }
    assert!(read("Makefile").contains(&format!("\nENVOY ?= {DEFAULT_ENVOY}\n")));
}

/// A build inside must see the whole program, whose sources are in these.
#[test]
fn build_context_has_all_sources() {
    let kept = read(".dockerignore");
    for part in ["Cargo.toml", "Cargo.lock", "src", "benches", "tests", "schema", "THIRD_PARTY", "scripts/program"] {
        assert!(kept.lines().any(|line| line == format!("!{part}")), "{part}");
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(part).exists(), "{part}");
    }
}
