//! Stored baselines: what is in a file, what is wrong with one, and what a gate makes of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sidegate::analysis::analyze;
use sidegate::baseline::{Baseline, StoredConfig, redact};
use sidegate::judge::judge;
use sidegate::lab::{Lab, LabFailure};
use sidegate::metric::Metric;
use sidegate::plan::BlockPlan;
use sidegate::policy::{Policy, Profile};
use sidegate::problem::Problem;
use sidegate::record::{Arm, Block, End, Record, Replay, Scenario, TargetRecord};
use sidegate::run::{Bounds, run as measure};
use sidegate::simulate::{Design, Effects, Noise, SimulatedLab, Simulation, record};
use sidegate::verdict::{Call, Outcome, Verdict};
use tempfile::TempDir;

use crate::common::{children_of, envoy, example, gate, is_running, machine, run, sidegate, text, wait};

const VERSION: &str = "0.1.0";

fn simulated(seed: u64, profile: Profile, cpu: f64, baseline: Option<f64>) -> TargetRecord {
    let of = |cpu: f64| Effects { cpu, ..Effects::default() };
    Simulation {
        seed,
        policy: Policy { profile, ..Policy::default() },
        effects: of(cpu),
        noise: Noise::steady(),
        design: Design::Interleaved,
        baseline: baseline.map(of),
        early: true,
    }
    .run()
}

fn verdict_of(target: TargetRecord) -> Verdict {
    judge(&record(1, target))
}

/// A whole baseline, as text.
fn whole() -> String {
    let mut target = simulated(3, Profile::Quick, 0.0, None);
    target.base = None;
    let mut record = record(3, target.clone());
    record.tool = format!("sidegate {VERSION}");
    let document = json!({"static_resources": {"listeners": [{"name": "a"}]}});
    let redacted = redact(&document);
    let config =
        StoredConfig { file: "envoy/a.yaml".to_owned(), redacted: redacted.places, document: redacted.document };
    Baseline::of(&record, &target, &analyze(&target), config).to_text().unwrap()
}

fn read(text: &str) -> Result<Baseline, Problem> {
    Baseline::read("b.json", text, VERSION)
}

/// `text` with one thing done to its fields.
fn edited(text: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    edit(&mut value);
    value.to_string()
}

#[test]
fn a_baseline_comes_back_as_it_was_written_however_it_is_formatted() {
    let text = whole();
    let baseline = read(&text).unwrap();
    assert_eq!(read(&baseline.to_text().unwrap()).unwrap(), baseline);
    assert_eq!(read(&edited(&text, |_| {})).unwrap(), baseline);
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let cpu = baseline.figures.iter().find(|f| f.metric == Metric::CpuNsPerRequest).unwrap();
    assert_eq!((cpu.blocks.len() as u32, baseline.blocks), (8, 8));
    assert!(baseline.histograms.iter().any(|h| h.scenario == "open" && h.latency.len() > 1000));
}

#[test]
fn every_broken_baseline_is_told_by_its_field() {
    let text = whole();
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let cases: Vec<(String, &str)> = vec![
        (String::new(), "the file is empty"),
        ("\0\0\0\0".to_owned(), "not a baseline"),
        (text[..text.len() / 2].to_owned(), "ends in the middle"),
        (text.replacen("{\n", "<<<<<<< ours\n=======\n>>>>>>> theirs\n{\n", 1), "merge conflict"),
        (" ".repeat(5 << 20), "larger than the 4 MiB"),
        (deep, "not a baseline"),
        ("[]".to_owned(), "no JSON object"),
        ("{}".to_owned(), "no `kind`"),
        (edited(&text, |v| v["kind"] = json!("k6 summary")), "`kind` is `k6 summary`"),
        (edited(&text, |v| v["kind"] = json!(1)), "`kind` is no text"),
        (edited(&text, |v| v["schema"] = json!(2)), "`schema` is 2; this sidegate reads 1"),
        (edited(&text, |v| v["schema"] = json!("1")), "`schema` is no whole number"),
        (edited(&text, |v| v["tool"] = json!("sidegate 0.2.0")), "`tool` is `sidegate 0.2.0`, later than this"),
        (edited(&text, |v| v["tool"] = json!("fortio 1.0")), "not a version of sidegate"),
        (edited(&text, |v| v["figures"][0]["blocks"][0] = json!(1.5)), "`content_sha256` does not fit"),
        (edited(&text, |v| v["config"]["document"]["admin"] = json!({})), "`content_sha256` does not fit"),
        (edited(&text, |v| v["extra"] = json!(1)), "`content_sha256` does not fit"),
        (edited(&text, |v| v["host"] = json!({"os": "x"})), "the field `host`: missing field `kernel`"),
        (edited(&text, |v| v["blocks"] = json!(-1)), "the field `blocks`: "),
        (edited(&text, |v| v["histograms"][0]["latency"] = json!("1:x")), "the field `histograms`: a histogram is"),
    ];
    for (broken, said) in cases {
        let problem = read(&broken).unwrap_err();
        assert!(problem.to_string().contains(said), "{said}: {problem}");
        assert!(problem.help.is_some() && problem.file == "b.json", "{problem}");
    }
    let fields: Value = serde_json::from_str(&text).unwrap();
    for field in fields.as_object().unwrap().keys() {
        for gone in [
            edited(&text, |v| _ = v.as_object_mut().unwrap().remove(field)),
            edited(&text, |v| v[field] = json!([[null]])),
        ] {
            let problem = read(&gone).unwrap_err().to_string();
            assert!(problem.contains(&format!("`{field}`")), "{field}: {problem}");
        }
    }
}

/// Cut anywhere, or with any byte changed, a file is refused and nothing panics.
#[test]
fn no_damaged_file_is_taken_for_whole() {
    let text = whole();
    let whole = read(&text).unwrap();
    for at in (0..text.len()).step_by(211).filter(|at| text.is_char_boundary(*at)) {
        assert!(read(&text[..at]).is_err(), "cut at {at}");
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'7' { b'3' } else { b'7' };
        // A blank between fields may change without changing what is said.
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        assert!(read(&changed).map_or(true, |b| b == whole), "changed at {at}");
    }
}

fn stored(dir: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn the_commands_refuse_broken_files_and_leave_them_alone() {
    let dir = TempDir::new().unwrap();
    let good = stored(&dir, "good.json", &whole());
    let bad = stored(&dir, "bad.json", "{\"kind\": \"other\"}");
    let (code, stdout, stderr) = run(sidegate().args(["baseline", "check"]).arg(&good).arg(&bad));
    assert_eq!(code, 2, "{stderr}");
    assert!(stdout.contains("good.json: whole") && stderr.contains("bad.json: `kind` is `other`"), "{stdout}{stderr}");
    let (code, stdout, _) = run(sidegate().args(["baseline", "show"]).arg(&good));
    assert_eq!(code, 0);
    for part in ["target       simulated", "profile quick, 8 blocks", "cpu_ns_per_request", "config.document yourself"]
    {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let (code, _, stderr) = run(sidegate().args(["baseline", "show"]).arg(&bad));
    assert_eq!((code, stderr.contains("`kind`")), (2, true), "{stderr}");
    let config = example("basic/envoy.yaml");
    let record = |out: &Path| {
        let mut command = sidegate();
        command.args(["baseline", "record", "--target", "x", "--config"]).arg(&config).arg("--out").arg(out);
        run(&mut command)
    };
    let (code, _, stderr) = record(&bad);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("nothing was overwritten") && stderr.contains("--force"), "{stderr}");
    assert_eq!(fs::read_to_string(&bad).unwrap(), "{\"kind\": \"other\"}");
    let (code, _, stderr) = record(dir.path());
    assert_eq!(code, 2, "{stderr}");
    let mut command = sidegate();
    command.args(["baseline", "record", "--target", "../x", "--config"]).arg(&config);
    let (code, _, stderr) = run(&mut command);
    assert_eq!((code, stderr.contains("cannot name a baseline")), (2, true), "{stderr}");
    for (file, said) in [(&bad, "`kind` is `other`"), (&good, "`target` is `simulated`, not `x`")] {
        let mut command = sidegate();
        command.args(["gate", "--print-plan", "--target", "x", "--head"]).arg(&config).arg("--baseline").arg(file);
        let (code, _, stderr) = run(&mut command);
        assert_eq!((code, stderr.contains(said)), (2, true), "{stderr}");
    }
}

#[test]
fn a_gate_finds_the_baseline_of_its_target() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("baselines")).unwrap();
    fs::copy(example("basic/envoy.yaml"), dir.path().join("simulated.yaml")).unwrap();
    fs::write(dir.path().join("baselines/simulated.json"), whole()).unwrap();
    let mut command = sidegate();
    command.current_dir(dir.path()).args(["gate", "--print-plan", "--head", "simulated.yaml"]);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("baseline     baselines/simulated.json"), "{stdout}");
    fs::write(dir.path().join("baselines/simulated.json"), "{").unwrap();
    let (code, _, stderr) = run(&mut command);
    assert_eq!((code, stderr.contains("ends in the middle")), (2, true), "{stderr}");
}

/// Five accepted steps of +2.5 % CPU: none is beyond 5 %, all together are beyond the anchor's 8 %.
#[test]
fn creep_passes_step_by_step_and_fails_against_the_baseline() {
    const STEP: f64 = 1.025;
    let mut passed = 0;
    for seed in 0..5 {
        let at = |step: i32, stored: bool| {
            let since = STEP.powi(1 - step) - 1.0;
            verdict_of(simulated(seed, Profile::Standard, STEP - 1.0, stored.then_some(since)))
        };
        passed += u32::from(at(1, true).verdict == Outcome::Pass);
        let alone = at(5, false);
        assert_ne!(alone.verdict, Outcome::Regression, "{:?}", alone.targets[0].reasons);
        let held = at(5, true);
        assert_eq!((held.verdict, held.exit_code), (Outcome::Regression, 1), "{:?}", held.targets[0].reasons);
        let red: Vec<_> = held.findings.iter().filter(|f| f.verdict == Call::Regression).collect();
        assert!(red.iter().all(|f| f.against == "baseline"), "{red:?}");
        assert!(red.iter().any(|f| f.metric == Metric::CpuNsPerRequest && f.limit == Some(0.08)), "{red:?}");
        let target = &held.targets[0];
        assert!(target.reasons[0].contains("against the stored baseline"), "{:?}", target.reasons);
        assert!(target.next_steps.iter().any(|s| s.contains("sidegate baseline record")), "{:?}", target.next_steps);
    }
    assert!(passed >= 4, "{passed}");
}

#[test]
fn a_baseline_beside_identical_configs_changes_nothing() {
    for seed in 0..20 {
        let target = simulated(seed, Profile::Quick, 0.0, Some(0.0));
        let verdict = verdict_of(target.clone());
        assert_ne!(verdict.verdict, Outcome::Regression, "{seed}: {:?}", verdict.targets[0].reasons);
        let without = verdict_of(TargetRecord { baseline: None, ..target });
        assert!(verdict.targets[0].family_size > without.targets[0].family_size);
    }
    // An improvement on the baseline alone is nothing to report of head against base.
    let verdict = verdict_of(simulated(1, Profile::Quick, 0.0, Some(0.5)));
    assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.targets[0].reasons);
}

#[test]
fn a_record_with_a_baseline_reads_back_to_the_same_verdict() {
    let record = record(1, simulated(5, Profile::Quick, 0.1, Some(-0.1)));
    let text = serde_json::to_string(&record).unwrap();
    let again: Record = serde_json::from_str(&text).unwrap();
    assert_eq!(judge(&record), judge(&again));
    assert!(judge(&again).findings.iter().any(|f| f.against == "baseline" && f.verdict == Call::Regression));
}

/// Errors of the baseline are no errors of head or base: it is left out, and said so.
#[test]
fn a_baseline_that_answers_with_errors_decides_nothing() {
    let mut target = simulated(5, Profile::Quick, 0.0, Some(-0.3));
    for slice in target.blocks.iter_mut().flat_map(|b| &mut b.slices).filter(|s| s.arm == Arm::Baseline) {
        slice.errors.insert("status 404".to_owned(), 3);
    }
    let verdict = verdict_of(target);
    assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.targets[0].reasons);
    assert!(verdict.findings.iter().all(|f| f.against != "baseline" || !f.gated));
    let notes = verdict.targets[0].notes.join("\n");
    assert!(notes.contains("status 404") && notes.contains("record it anew"), "{notes}");
}

/// A lab in which the baseline's proxy fails from block `from` on.
struct Failing {
    inner: SimulatedLab,
    from: u32,
}

impl Lab for Failing {
    fn calibrate(&mut self, _: &mut [Scenario], _: &[Arm]) -> Result<(), LabFailure> {
        Ok(())
    }

    fn run_block(&mut self, plan: &BlockPlan) -> Result<Block, LabFailure> {
        if plan.index >= self.from && plan.slot_of(Arm::Baseline).is_some() {
            return Err(LabFailure::Arm { arm: Some(Arm::Baseline), message: "envoy ended by signal 11".to_owned() });
        }
        Ok(self.inner.run_block(plan))
    }
}

#[test]
fn a_baseline_that_fails_is_left_and_the_run_goes_on() {
    let mut target = simulated(5, Profile::Quick, 0.0, Some(0.0));
    target.blocks.clear();
    let inner = SimulatedLab::new(7, Effects::default(), Noise::steady(), target.scenarios.clone(), 12);
    let mut lab = Failing { inner, from: 3 };
    let mut events = Vec::new();
    let bounds = Bounds { seed: 7, budget: Duration::from_secs(600) };
    measure(&mut target, &mut lab, bounds, &mut |event| events.push(format!("{event:?}")));
    assert!(matches!(target.end, End::Complete | End::Early), "{:?}", target.end);
    assert!(target.blocks.len() >= 8 && target.blocks[2].arms.len() == 3 && target.blocks[3].arms.len() == 2);
    assert!(events.iter().any(|e| e.contains("BaselineLeft")), "{events:?}");
    let verdict = verdict_of(target);
    assert_eq!(verdict.verdict, Outcome::Pass, "{:?}", verdict.targets[0].reasons);
    assert!(verdict.targets[0].notes.iter().any(|n| n.contains("signal 11")), "{:?}", verdict.targets[0].notes);
}

/// The command that records a baseline, under way.
fn recorded(out: &Path, config: &Path) -> std::process::Child {
    let mut command = sidegate();
    command.args(["baseline", "record", "--target", "t", "--profile", "quick", "--no-cost", "--envoy", &envoy()]);
    command
        .arg("--config")
        .arg(config)
        .arg("--out")
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Everything for real: recorded, replayed, judged, analysed again.
#[test]
fn a_recorded_baseline_is_replayed_and_compare_agrees() {
    let _machine = machine();
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.json");
    let output = wait(recorded(&file, &example("basic/envoy.yaml")), Duration::from_secs(300));
    // On a machine too busy to measure on nothing is written.
    if output.status.code() == Some(4) {
        assert!(!file.exists(), "{}", text(&output.stderr));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let baseline = read(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((baseline.target.as_str(), baseline.workload.len()), ("t", 3));
    let gate_on = |base: &Path, head: &Path, out: &str, more: &[&str]| {
        let mut command = gate(base, head, &dir.path().join(out));
        command.args(["--target", "t", "--baseline"]).arg(&file).args(more);
        let (code, _, stderr) = run(&mut command);
        let text = fs::read_to_string(dir.path().join(out).join("record.json")).unwrap_or_default();
        (code, serde_json::from_str::<Record>(&text).map(|r| r.targets[0].clone()), stderr)
    };
    // The budget ends both at once: what became of the baseline is known by then.
    let same = example("basic/envoy.yaml");
    let (_, target, stderr) = gate_on(&same, &same, "same", &["--budget", "1ms"]);
    let replay = target.unwrap().baseline.unwrap().replay;
    assert_eq!(replay, Replay::IsBase, "{stderr}");
    // Base and head moved on since: the baseline runs as a third arm.
    let changed = dir.path().join("changed.yaml");
    let source = fs::read_to_string(&same).unwrap();
    fs::write(&changed, source.replace("timeout: 5s", "timeout: 6s")).unwrap();
    let (code, target, stderr) = gate_on(&changed, &changed, "live", &["--profile", "quick"]);
    assert!(code == 0 || code == 4, "{code} {stderr}");
    let target = target.unwrap();
    assert!(target.baseline.as_ref().unwrap().is_live(), "{stderr}");
    let block = target.blocks.iter().find(|b| b.void.is_none()).unwrap();
    let ran = |arm: Arm| block.slices.iter().filter(|s| s.arm == arm && s.scenario == 0).count();
    // A slow machine has longer slices, and fewer of them.
    let rounds = target.scenarios[0].rounds as usize;
    assert_eq!((ran(Arm::Base), ran(Arm::Head)), (rounds, rounds));
    assert_eq!((ran(Arm::Baseline), block.arms.len()), (rounds.div_ceil(3), 3));
    let live = dir.path().join("live");
    let again = dir.path().join("again");
    run(sidegate().arg("compare").arg(live.join("record.json")).arg("--out").arg(&again));
    let read = |dir: &Path, name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read(&live, "verdict.json"), read(&again, "verdict.json"));
    assert!(read(&live, "verdict.json").contains("\"against\": \"baseline\""));
    assert!(read(&live, "report.md").contains("Against the stored baseline"));
    // What the proxy of today rejects stays out, and the gate goes on.
    let broken = edited(&fs::read_to_string(&file).unwrap(), |v| {
        v["config"]["document"]["static_resources"]["clusters"][0]["no_such_field"] = json!(1);
    });
    fs::write(&file, resealed(&broken)).unwrap();
    let (code, target, stderr) = gate_on(&same, &same, "left", &["--budget", "1ms"]);
    // Envoy may take more than its minute to judge where the machine is that busy; that is no verdict (4).
    let Ok(target) = target else {
        assert_eq!(code, 4, "{stderr}");
        return;
    };
    let Replay::Left { why } = target.baseline.unwrap().replay else { panic!("{stderr}") };
    assert!(why.contains("no_such_field"), "{why}");
}

/// As if a later Envoy had dropped a field: the seal fits again.
fn resealed(text: &str) -> String {
    serde_json::from_str::<Baseline>(text).unwrap().to_text().unwrap()
}

#[test]
fn a_signal_while_recording_leaves_the_old_file() {
    let _machine = machine();
    let dir = TempDir::new().unwrap();
    let file = stored(&dir, "t.json", &whole());
    let child = recorded(&file, &example("basic/envoy.yaml"));
    let pid = child.id();
    // Until its first proxy runs.
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while children_of(pid).is_empty() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    let children = children_of(pid);
    crate::child::signal(pid, nix::sys::signal::Signal::SIGTERM);
    let output = wait(child, Duration::from_secs(30));
    assert_ne!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert_eq!(fs::read_to_string(&file).unwrap(), whole());
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["t.json"], "{}", text(&output.stderr));
    assert!(children.iter().all(|&child| !is_running(child)));
}

/// A disk that is full when the file is to be written: the old one is still there.
#[test]
fn a_full_disk_leaves_the_old_file() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k,mode=755", "tmpfs"])
        .arg(folder.path())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        return;
    }
    let path = stored(&folder, "t.json", "old");
    let full = sidegate::files::replace(&path, whole().as_bytes());
    let (old, left) = (fs::read_to_string(&path), fs::read_dir(folder.path()).unwrap().count());
    let small = sidegate::files::replace(&path, b"new");
    let new = fs::read_to_string(&path);
    let unmounted = std::process::Command::new("umount").arg(folder.path()).status().unwrap();
    assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    assert_eq!((old.unwrap().as_str(), left, unmounted.success()), ("old", 1, true));
    assert_eq!((small.is_ok(), new.unwrap().as_str()), (true, "new"));
}
