//! How far two identical configs differ, by design: slices interleaved in one block against one after the other.
//!
//! `make bench-noise` prints, for each metric, the standard deviation over trials of ln(head/base) of both designs, and
//! the quotient of the two; and what the first is without real-time priority. The trials of all take turns in one run on
//! one machine, with the same config on both sides and the same load per arm and trial.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use sidegate::analysis;
use sidegate::cmd::gate::order::Order;
use sidegate::cmd::gate::prepare::{Prepared, prepare};
use sidegate::cmd::{gate, progress::Progress};
use sidegate::lab::{Lab, LabFailure, RealLab};
use sidegate::metric::Metric;
use sidegate::plan::{self, BlockPlan, On, Step};
use sidegate::record::{Arm, Load, Scenario, Slice, Slot, TargetRecord};
use sidegate::stats::location;
use sidegate::stop::Stop;

/// Spread of a trial on this machine, for identical configs.
#[derive(Debug, Parser)]
struct Args {
    /// Trials of each design.
    #[arg(long, default_value_t = 16)]
    trials: u32,
    /// Config to measure against itself.
    #[arg(long, default_value = "examples/basic/envoy.yaml")]
    config: PathBuf,
    #[arg(long, default_value = "1.40.0", env = "SIDEGATE_TEST_ENVOY")]
    envoy: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Slices of this length instead of the gate's own; rounds change so that the load stays the same.
    #[arg(long)]
    slice_ms: Option<u64>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

const PAIR: [Arm; 2] = [Arm::Base, Arm::Head];
const METRICS: [Metric; 4] =
    [Metric::CpuNsPerRequest, Metric::LatencyP50Ns, Metric::LatencyP90Ns, Metric::LatencyP99Ns];

fn main() {
    let args = Args::parse();
    if let Err(message) = run(&args) {
        let _ = writeln!(std::io::stderr(), "noise: {message}");
        std::process::exit(4);
    }
}

fn run(args: &Args) -> Result<(), String> {
    let stop = Stop::on_signals().map_err(|e| e.to_string())?;
    let pair = prepared(args, true, &stop)?;
    let mut plain = prepared(args, true, &stop)?;
    plain.setup.cpus.realtime = false;
    let alone = prepared(args, false, &stop)?;
    let mut record = pair.target;
    let mut interleaved = lab(pair.setup, args.seed)?;
    let mut ordinary = lab(plain.setup, args.seed)?;
    let mut one_by_one = lab(alone.setup, args.seed)?;
    interleaved.calibrate(&mut record.scenarios, &PAIR).map_err(|e| told(&e))?;
    if let Some(ms) = args.slice_ms {
        relength(&mut record.scenarios, ms);
        interleaved.set_scenarios(&record.scenarios);
    }
    ordinary.set_scenarios(&record.scenarios);
    let mut at_ordinary = TargetRecord { scenarios: record.scenarios.clone(), ..plain.target };
    let long = whole(&record.scenarios[0]);
    one_by_one.set_scenarios(std::slice::from_ref(&long));
    let rounds: Vec<u32> = record.scenarios.iter().map(|s| s.rounds).collect();
    let mut naive: Vec<[f64; METRICS.len()]> = Vec::new();
    for trial in 0..args.trials {
        let plan = plan::block(args.seed, trial, &rounds, &PAIR);
        record.blocks.push(interleaved.run_block(&plan).map_err(|e| told(&e))?);
        at_ordinary.blocks.push(ordinary.run_block(&plan).map_err(|e| told(&e))?);
        let base = one_slice(&mut one_by_one, trial)?;
        let head = one_slice(&mut one_by_one, trial)?;
        naive.push(differences(&base, &head).ok_or("a trial had no answers")?);
        let _ = writeln!(std::io::stderr(), "noise: {} of {} trials", trial + 1, args.trials);
    }
    print(&record, &at_ordinary, &naive);
    Ok(())
}

fn prepared(args: &Args, with_base: bool, stop: &Stop) -> Result<Prepared, String> {
    #[derive(Parser)]
    struct Gate {
        #[command(flatten)]
        gate: gate::Args,
    }
    let config = args.config.display().to_string();
    let mut line = vec!["noise", "--head", &config, "--envoy", &args.envoy, "--scenario", "open"];
    if with_base {
        line.extend(["--base", &config]);
    }
    let gate = Gate::try_parse_from(line).map_err(|e| e.to_string())?.gate;
    let fault = |failure: sidegate::exit::Failure| {
        failure.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let order = Order::of_files(&gate, &args.config).map_err(fault)?;
    prepare(&order, stop, &mut Progress::default()).map_err(fault)
}

fn lab(setup: sidegate::lab::Setup, seed: u64) -> Result<RealLab, String> {
    RealLab::start(setup, seed).map_err(|e| told(&e))
}

fn relength(scenarios: &mut [Scenario], slice_ms: u64) {
    for scenario in scenarios {
        let load_ns = scenario.slice_ns * u64::from(scenario.rounds);
        scenario.slice_ns = slice_ms * 1_000_000;
        scenario.rounds = u32::try_from(load_ns / scenario.slice_ns).unwrap_or(1).max(1);
    }
}

/// The same load per arm as one slice.
fn whole(scenario: &Scenario) -> Scenario {
    Scenario { slice_ns: scenario.slice_ns * u64::from(scenario.rounds), rounds: 1, ..scenario.clone() }
}

/// Fresh proxy, warm-up, one long slice, stop: what a script does that measures base, then head.
fn one_slice(lab: &mut RealLab, trial: u32) -> Result<Slice, String> {
    let steps = vec![Step { scenario: 0, round: 0, on: On::Slot(Slot::A) }];
    let plan = BlockPlan { index: trial, seats: vec![Arm::Head], start: vec![Slot::A], steps };
    lab.run_block(&plan).map_err(|e| told(&e))?.slices.pop().ok_or_else(|| "no slice".to_owned())
}

fn differences(base: &Slice, head: &Slice) -> Option<[f64; METRICS.len()]> {
    let cpu = |s: &Slice| Some(s.proxy.as_ref()?.cpu_ns as f64 / s.completed as f64);
    let quantile = |s: &Slice, q: f64| s.latency.quantile(q).map(|v| v as f64);
    let pairs = [
        (cpu(base)?, cpu(head)?),
        (quantile(base, 0.50)?, quantile(head, 0.50)?),
        (quantile(base, 0.90)?, quantile(head, 0.90)?),
        (quantile(base, 0.99)?, quantile(head, 0.99)?),
    ];
    Some(pairs.map(|(base, head)| (head / base).ln()))
}

fn print(record: &TargetRecord, at_ordinary: &TargetRecord, naive: &[[f64; METRICS.len()]]) {
    let spread = |record: &TargetRecord, metric: Metric| {
        let effects = analysis::analyze(record).effects;
        let effect = effects.into_iter().find(|e| e.metric == metric);
        effect.and_then(|e| location::sd(&e.differences)).unwrap_or(f64::NAN)
    };
    let mut out = std::io::stdout().lock();
    let scenario = &record.scenarios[0];
    let rate = if let Load::Open { rate_rps } = scenario.load { rate_rps } else { 0.0 };
    let _ = writeln!(
        out,
        "identical configs, {} trials of each design, {} connections, open loop at {rate:.0} requests/s\n\
         interleaved: {} rounds of {} ms slices; one after the other: {} ms each\n\n\
         sd of ln(head/base)     interleaved   base, then head   quotient   interleaved, ordinary priority",
        record.blocks.len(),
        scenario.connections,
        scenario.rounds,
        scenario.slice_ns / 1_000_000,
        scenario.slice_ns * u64::from(scenario.rounds) / 1_000_000,
    );
    for (i, metric) in METRICS.into_iter().enumerate() {
        let ours = spread(record, metric);
        let theirs = location::sd(&naive.iter().map(|d| d[i]).collect::<Vec<_>>()).unwrap_or(f64::NAN);
        let _ = writeln!(
            out,
            "{:<22} {:>10.2} % {:>14.1} % {:>10.1} {:>29.2} %",
            metric.name(),
            100.0 * ours,
            100.0 * theirs,
            theirs / ours,
            100.0 * spread(at_ordinary, metric),
        );
    }
}

fn told(failure: &LabFailure) -> String {
    match failure {
        LabFailure::Arm { arm, message } => format!("{}: {message}", arm.map_or("sidegate", |a| a.name())),
        LabFailure::Interrupted { by, .. } => format!("interrupted by {by}"),
    }
}
