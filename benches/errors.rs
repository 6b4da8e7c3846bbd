//! The gate's error rates, by simulating whole runs: `cargo bench --bench errors -- [--runs N] [--profile P] [--only S]`.
//!
//! Sections: `aa` false-positive rate with its Clopper-Pearson bound; `power` by dose; `mde` the table of k recomputed;
//! `coin` what the coin and the interleaving are for. Without `--profile`, `standard` gets a fifth of the runs and `deep`
//! a twentieth. Seeds are fixed: the same command prints the same tables.
#![expect(clippy::print_stdout, reason = "a command that prints tables")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use sidegate::analysis::{Effect, analyze};
use sidegate::judge::judge;
use sidegate::metric::Metric;
use sidegate::policy::{Policy, Profile};
use sidegate::record::End;
use sidegate::simulate::{Design, Effects, Noise, Simulation, record};
use sidegate::stats::location::mean;
use sidegate::stats::{binomial, detectable, signed_rank};
use sidegate::verdict::{Call, Outcome, Verdict};

const PROFILES: [Profile; 3] = [Profile::Quick, Profile::Standard, Profile::Deep];

fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        println!("usage: errors [--runs N] [--profile quick|standard|deep] [--only aa|power|mde|coin]");
        return ExitCode::from(2);
    };
    if options.wants("aa") {
        false_positives(&options);
    }
    if options.wants("power") {
        power(&options);
    }
    if options.wants("mde") {
        factors();
    }
    if options.wants("coin") {
        coin(&options);
    }
    ExitCode::SUCCESS
}

struct Options {
    runs: u64,
    profile: Option<Profile>,
    only: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Options { runs: 10_000, profile: None, only: None };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // Cargo adds this one.
                "--bench" => {}
                "--runs" => options.runs = arguments.next()?.parse().ok()?,
                "--profile" => {
                    let name = arguments.next()?;
                    options.profile = Some(PROFILES.into_iter().find(|p| p.name() == name)?);
                }
                "--only" => options.only = Some(arguments.next()?),
                _ => return None,
            }
        }
        Some(options)
    }

    fn wants(&self, section: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == section)
    }

    /// (profile, number of runs).
    fn profiles(&self) -> Vec<(Profile, u64)> {
        match self.profile {
            Some(profile) => vec![(profile, self.runs)],
            None => PROFILES.into_iter().zip([self.runs, self.runs / 5, self.runs / 20]).collect(),
        }
    }
}

/// What is kept of a simulated run.
struct Ran {
    verdict: Verdict,
    early: bool,
}

fn simulate(seed: u64, profile: Profile, effects: Effects, noise: Noise, baseline: Option<Effects>) -> Ran {
    let policy = Policy { profile, ..Policy::default() };
    let target = Simulation { seed, policy, effects, noise, design: Design::Interleaved, baseline, early: true }.run();
    let early = target.end == End::Early;
    Ran { verdict: judge(&record(seed, target)), early }
}

/// Runs `one` for each seed, on as many threads as there are CPUs; results in the order of seeds.
fn for_seeds<T: Send>(seeds: std::ops::Range<u64>, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return done;
            }
            done.push((seed, one(seed)));
        }
    };
    let mut all: Vec<(u64, T)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().filter_map(|h| h.join().ok()).flatten().collect()
    });
    all.sort_by_key(|(seed, _)| *seed);
    all.into_iter().map(|(_, result)| result).collect()
}

fn noises() -> [(&'static str, Noise); 3] {
    [("steady", Noise::steady()), ("drift", Noise::drifting()), ("heavy tails", Noise::heavy_tailed())]
}

fn share<T>(items: &[T], of: impl Fn(&T) -> bool) -> f64 {
    items.iter().filter(|i| of(i)).count() as f64 / items.len().max(1) as f64
}

fn false_positives(options: &Options) {
    for (title, baseline) in [("", None), (", a stored baseline of the same beside them", Some(Effects::default()))] {
        println!("A/A: runs of identical configs{title} (95 % upper bound by Clopper and Pearson)");
        println!("profile   noise         runs  regressions   rate  bound   inconclusive  improved  early  level cut");
        rates(options, baseline);
    }
}

fn rates(options: &Options, baseline: Option<Effects>) {
    for (profile, runs) in options.profiles() {
        for (name, noise) in noises() {
            let ran = for_seeds(0..runs, |seed| simulate(seed, profile, Effects::default(), noise, baseline));
            let is = |outcome: Outcome| share(&ran, |r| r.verdict.verdict == outcome);
            let red = ran.iter().filter(|r| r.verdict.verdict == Outcome::Regression).count() as u64;
            println!(
                "{:<9} {name:<11} {:>6} {red:>12} {:>5.2}% {:>5.2}% {:>13.1}% {:>8.1}% {:>5.0}% {:>9.1}%",
                profile.name(),
                ran.len(),
                100.0 * is(Outcome::Regression),
                100.0 * binomial::upper(red, ran.len() as u64, 0.05).unwrap_or(1.0),
                100.0 * is(Outcome::Inconclusive),
                100.0 * is(Outcome::Improved),
                100.0 * share(&ran, |r| r.early),
                100.0 * share(&ran, |r| r.verdict.targets.iter().any(|t| t.alpha < 0.01)),
            );
            let calls = ran.iter().flat_map(|r| &r.verdict.findings);
            for f in calls.filter(|f| f.verdict == Call::Regression) {
                println!("          {}", f.reason);
            }
        }
    }
    println!();
}

/// One kind of change, in doses.
struct Curve {
    name: &'static str,
    metric: Metric,
    doses: &'static [f64],
    effects: fn(f64) -> Effects,
}

const CURVES: [Curve; 4] = [
    Curve {
        name: "CPU per request, limit 5 %, rule out 10 %",
        metric: Metric::CpuNsPerRequest,
        doses: &[0.03, 0.05, 0.07, 0.09, 0.10, 0.12, 0.15, 0.20, 0.30],
        effects: |dose| Effects { cpu: dose, ..Effects::default() },
    },
    Curve {
        name: "P50, limit 5 %, rule out 10 %",
        metric: Metric::LatencyP50Ns,
        doses: &[0.03, 0.05, 0.06, 0.07, 0.08, 0.10, 0.12, 0.15],
        effects: |dose| Effects { p50: dose, ..Effects::default() },
    },
    Curve {
        name: "P99, limit 10 %, rule out 25 %",
        metric: Metric::LatencyP99Ns,
        doses: &[0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.60],
        effects: |dose| Effects { tail: dose, ..Effects::default() },
    },
    Curve {
        name: "slow share, requests delayed by 15 ms, limit 0.02 points, rule out 0.1 points",
        metric: Metric::SlowShare,
        doses: &[0.0002, 0.0005, 0.0007, 0.001, 0.0015, 0.002, 0.005],
        effects: |dose| Effects { slow_share: dose, slow_ms: 15.0, ..Effects::default() },
    },
];

fn power(options: &Options) {
    for curve in &CURVES {
        println!("Power: {} (steady noise)", curve.name);
        println!("profile     dose  runs  this metric red  run red  run passed  inconclusive  early   MDE95");
        for (profile, runs) in options.profiles() {
            for &dose in curve.doses {
                let runs = (runs / 50).max(20);
                let ran =
                    for_seeds(0..runs, |seed| simulate(seed, profile, (curve.effects)(dose), Noise::steady(), None));
                let red = |r: &Ran| {
                    r.verdict.findings.iter().any(|f| f.metric == curve.metric && f.verdict == Call::Regression)
                };
                let mde: Vec<f64> = ran
                    .iter()
                    .flat_map(|r| &r.verdict.findings)
                    .filter(|f| f.metric == curve.metric && f.threshold_ms.is_none_or(|ms| ms == 10))
                    .filter(|f| f.scenario == "open")
                    .filter_map(|f| f.mde)
                    .collect();
                let is = |outcome: Outcome| share(&ran, |r| r.verdict.verdict == outcome);
                println!(
                    "{:<9} {:>5.2}% {runs:>5} {:>15.1}% {:>7.1}% {:>10.1}% {:>12.1}% {:>5.0}% {:>6.2}%",
                    profile.name(),
                    100.0 * dose,
                    100.0 * share(&ran, red),
                    100.0 * is(Outcome::Regression),
                    100.0 * (is(Outcome::Pass) + is(Outcome::Improved)),
                    100.0 * is(Outcome::Inconclusive),
                    100.0 * share(&ran, |r| r.early),
                    100.0 * mean(&mde).unwrap_or(f64::NAN),
                );
            }
        }
        println!();
    }
}

fn factors() {
    const SAMPLES: usize = 400_000;
    println!(
        "k of MDE95 = (1 + limit) exp(k s) - 1, recomputed from {SAMPLES} samples a row; columns: level .01 / divisor"
    );
    println!("blocks  {}", detectable::DIVISORS.map(|d| format!("{d:>7}")).concat());
    let rows = for_seeds(0..detectable::BLOCKS.len() as u64, |row| {
        let n = detectable::BLOCKS[row as usize];
        detectable::simulated_factors(n, SAMPLES, 1)
    });
    let mut worst = 0.0_f64;
    for ((n, row), committed) in detectable::BLOCKS.iter().zip(&rows).zip(detectable::FACTORS) {
        println!("{n:>6}  {}", row.map(|k| format!("{k:>7.3}")).concat());
        worst = row.iter().zip(committed).map(|(a, b)| (a - b).abs()).fold(worst, f64::max);
    }
    println!("largest distance from the committed table: {worst:.3}\n");
}

/// The harness's own check: at a limit of zero, identical configs give uniform p-values, if the coin works.
fn coin(options: &Options) {
    const RUNS: u64 = 300;
    const ALLOWED: usize = 21;
    let metrics = [Metric::CpuNsPerRequest, Metric::LatencyP50Ns, Metric::LatencyP90Ns, Metric::LatencyP99Ns];
    println!(
        "The coin: {RUNS} A/A runs under drift, two-sided p < .05 at a limit of zero; at most {ALLOWED} by chance"
    );
    println!("design           {}", metrics.map(|m| format!("{:>22}", m.name())).concat());
    let profile = options.profile.unwrap_or(Profile::Quick);
    for design in [Design::Interleaved, Design::CoinDisabled, Design::BaseThenHead] {
        let analyses = for_seeds(0..RUNS, |seed| {
            let policy = Policy { profile, ..Policy::default() };
            // Slowing down steadily, so that it is plain what "first" and "then" do.
            let noise = Noise { steps: 0.0, drift: 0.7, ..Noise::drifting() };
            let effects = Effects::default();
            analyze(&Simulation { seed, policy, effects, noise, design, baseline: None, early: false }.run())
        });
        let cells = metrics.map(|metric| {
            let of = |e: &&Effect| e.metric == metric && e.scenario == Some(0);
            let effects: Vec<&Effect> = analyses.iter().filter_map(|a| a.effects.iter().find(of)).collect();
            let hits =
                effects.iter().filter(|e| signed_rank::p_two_sided(&e.differences).is_some_and(|p| p < 0.05)).count();
            let all: Vec<f64> = effects.iter().flat_map(|e| e.differences.iter().copied()).collect();
            let verdict = if hits > ALLOWED { "fails" } else { "ok" };
            format!("{:>22}", format!("{hits} {verdict} ({:+.2} %)", 100.0 * mean(&all).unwrap_or(f64::NAN)))
        });
        println!("{:<16} {}", format!("{design:?}"), cells.concat());
    }
    println!("(in brackets: mean of ln(head / base) over all blocks)\n");
}
