//! Creep for real: five accepted changes of about +0.9 % instructions each, counted under valgrind.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{envoy, example, machine, run, sidegate};

const STEPS: usize = 5;

/// The example after so many changes, each of which adds a header to every answer.
fn after(steps: usize, dir: &Path) -> PathBuf {
    let source = fs::read_to_string(example("lua/base.yaml")).unwrap();
    let routes = "                      routes:\n";
    assert!(source.contains(routes), "the example's layout changed");
    let mut lines = String::new();
    for step in 0..steps {
        lines += &format!(
            "                        - {{header: {{key: x-release-note-{step}, value: accepted-change-number-{step}}}}}\n"
        );
    }
    if steps > 0 {
        lines = format!("                      response_headers_to_add:\n{lines}");
    }
    let path = dir.join(format!("{steps}.yaml"));
    fs::write(&path, source.replacen(routes, &format!("{lines}{routes}"), 1)).unwrap();
    path
}

/// Every step passes; the last is beyond what the stored baseline allows. Minutes under valgrind: `make creep`.
#[test]
#[ignore = "minutes of valgrind: make creep"]
fn five_accepted_steps_fail_at_the_fifth() {
    let _machine = machine();
    let dir = TempDir::new().unwrap();
    let stored = dir.path().join("creep.json");
    let mut command = sidegate();
    command.args(["baseline", "record", "--cost-only", "--target", "creep", "--profile", "quick", "--envoy", &envoy()]);
    command.arg("--config").arg(after(0, dir.path())).arg("--out").arg(&stored);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 0, "{stdout}{stderr}");
    for step in 1..=STEPS {
        let (code, findings) = gate(step, &stored, dir.path());
        let of = |against: &str| -> Vec<&Value> {
            findings.iter().filter(|f| f["against"] == against && f["metric"] == "instructions_per_request").collect()
        };
        let told = |f: &&Value| format!("{}: {} {}", f["against"], f["reason"], f["verdict"]);
        let all: Vec<String> = of("base").iter().chain(&of("baseline")).map(told).collect();
        println!("step {step}: exit {code}\n  {}", all.join("\n  "));
        // A machine that makes counts scatter decides nothing (0); it never makes a step a regression.
        assert!(of("base").iter().all(|f| f["verdict"] != "regression"), "{all:#?}");
        if step < STEPS {
            assert_eq!(code, 0, "step {step}: {all:#?}");
        } else {
            assert_eq!(code, 1, "step {step}: {all:#?}");
            assert!(of("baseline").iter().any(|f| f["verdict"] == "regression"), "{all:#?}");
        }
    }
}

fn gate(step: usize, stored: &Path, dir: &Path) -> (i32, Vec<Value>) {
    let out = dir.join(format!("out-{step}"));
    let mut command = sidegate();
    command.args(["gate", "--cost-only", "--target", "creep", "--profile", "quick", "--envoy", &envoy()]);
    command.arg("--base").arg(after(step - 1, dir)).arg("--head").arg(after(step, dir));
    command.arg("--baseline").arg(stored).arg("--out").arg(&out);
    let (code, _, stderr) = run(&mut command);
    let record: Value =
        serde_json::from_str(&fs::read_to_string(out.join("record.json")).expect(&stderr)).expect("record");
    // Counts travel: the file's own stand beside today's, without a third arm. At the first step base is the baseline.
    if step > 1 {
        assert_eq!(record["targets"][0]["baseline"]["counts"]["how"], "stored", "{stderr}");
    }
    let verdict: Value =
        serde_json::from_str(&fs::read_to_string(out.join("verdict.json")).expect(&stderr)).expect("verdict");
    (code, verdict["findings"].as_array().expect("findings").clone())
}
