//! Instruction counts of identical configs: how far they differ, over which windows, what does not change them, and how
//! long counting takes. `make bench-cost` prints it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use sidegate::cmd::gate::order::Order;
use sidegate::cmd::gate::prepare::{Prepared, prepare};
use sidegate::cmd::{gate, progress::Progress};
use sidegate::cost::{Candidate, Counter, Effort};
use sidegate::envoy::{Bootstrap, classes};
use sidegate::record::{ClassCost, RequestClass};
use sidegate::stats::location;
use sidegate::stop::Stop;
use sidegate::yaml::Document;

/// How exact instruction counts are on this machine.
#[derive(Debug, Parser)]
struct Args {
    /// Config to count against itself.
    #[arg(long, default_value = "examples/basic/envoy.yaml")]
    config: PathBuf,
    #[arg(long, default_value = "1.40.0", env = "SIDEGATE_TEST_ENVOY")]
    envoy: String,
    /// Windows of 1 000 requests in the first part, too.
    #[arg(long)]
    long: bool,
    /// Only these parts: same, length, place, time, clusters.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Repeats of the first part.
const REPEATS: usize = 20;
const LENGTHS: [usize; 5] = [20, 50, 100, 200, 500];
const CLUSTERS: usize = 1500;

struct Bench {
    prepared: Prepared,
    counter: Counter,
    classes: Vec<RequestClass>,
}

fn main() {
    let args = Args::parse();
    if let Err(message) = run(&args) {
        let _ = writeln!(std::io::stderr(), "cost: {message}");
        std::process::exit(4);
    }
}

fn run(args: &Args) -> Result<(), String> {
    let stop = Stop::on_signals().map_err(|e| e.to_string())?;
    let prepared = prepared(args, &stop)?;
    let setup = &prepared.setup;
    let counter = Counter::find(&setup.spawner, &setup.cpus, &stop).map_err(|m| format!("{}; {}", m.why, m.help))?;
    let classes = classes::derive(&[&setup.arms[0].bootstrap], &setup.requests, 3).classes;
    say(&format!("{:?}", counter.class()));
    let bench = Bench { counter, classes, prepared };
    let wanted = |part: &str| args.only.is_empty() || args.only.iter().any(|only| only == part);
    if wanted("same") {
        same(&bench, &Effort::default(), "as in the gate")?;
        if args.long {
            same(&bench, &fixed(1000, 3), "of 1000 requests")?;
        }
    }
    if wanted("length") {
        length(&bench)?;
    }
    if wanted("place") {
        place(&bench)?;
    }
    if wanted("time") {
        time(&bench)?;
    }
    if wanted("clusters") {
        clusters(&bench)?;
    }
    Ok(())
}

fn prepared(args: &Args, stop: &Stop) -> Result<Prepared, String> {
    #[derive(Parser)]
    struct Gate {
        #[command(flatten)]
        gate: gate::Args,
    }
    let config = args.config.display().to_string();
    let line = ["cost", "--head", &config, "--envoy", &args.envoy, "--cost-only"];
    let gate = Gate::try_parse_from(line).map_err(|e| e.to_string())?.gate;
    let fault = |failure: sidegate::exit::Failure| {
        failure.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let order = Order::alone(&gate, &args.config).map_err(fault)?;
    prepare(&order, stop, &mut Progress::default()).map_err(fault)
}

/// Windows of exactly so many requests.
fn fixed(requests: u32, windows: u32) -> Effort {
    let hour = Duration::from_secs(3600);
    let effort = Effort {
        windows,
        more_windows: 0,
        instructions: u64::MAX,
        fewest: requests,
        most: requests,
        ..Effort::default()
    };
    Effort { window: hour, deadline: hour, ..effort }
}

impl Bench {
    fn candidate(&self) -> Candidate<'_> {
        let arm = &self.prepared.setup.arms[0];
        Candidate { binary: &arm.binary, bootstrap: &arm.bootstrap, listener: arm.listener }
    }

    fn count(
        &self,
        counter: &Counter,
        copies: usize,
        classes: usize,
        effort: &Effort,
    ) -> Result<Vec<ClassCost>, String> {
        let candidates = vec![self.candidate(); copies];
        let classes = &self.classes[..classes.min(self.classes.len())];
        let costs = counter.count(&candidates, classes, effort, &mut |_| {}).map_err(|e| e.to_string())?;
        let costs: Vec<ClassCost> = costs.into_iter().flatten().collect();
        match costs.iter().find_map(|cost| cost.failed.clone()) {
            Some(why) => Err(why),
            None => Ok(costs),
        }
    }
}

fn each(cost: &ClassCost) -> Vec<f64> {
    cost.windows.iter().map(|window| window.instructions as f64 / window.requests as f64).collect()
}

/// As the gate takes it.
fn middle(cost: &ClassCost) -> f64 {
    location::typical(&each(cost)).unwrap_or(f64::NAN)
}

fn calls(cost: &ClassCost) -> f64 {
    let all: Vec<f64> = cost.windows.iter().map(|w| w.syscalls as f64 / w.requests as f64).collect();
    location::typical(&all).unwrap_or(f64::NAN)
}

/// Largest over smallest, less one, in percent.
fn range(values: &[f64]) -> f64 {
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &x| (l.min(x), h.max(x)));
    100.0 * (high / low - 1.0)
}

/// Fresh processes of one config, while another program keeps a CPU busy.
fn same(bench: &Bench, effort: &Effort, what: &str) -> Result<(), String> {
    let over = Arc::new(AtomicBool::new(false));
    let neighbour = {
        let over = Arc::clone(&over);
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    };
    let costs = bench.count(&bench.counter, REPEATS, 1, effort);
    over.store(true, Ordering::Relaxed);
    let _ = neighbour.join();
    let costs = costs?;
    let middles: Vec<f64> = costs.iter().map(middle).collect();
    let sizes: Vec<u64> = costs.iter().flat_map(|cost| &cost.windows).map(|window| window.requests).collect();
    say(&format!(
        "\nsame config, {REPEATS} processes, a busy neighbour, windows {what} ({} to {} requests): {}\n\
         instructions per request {:.0} to {:.0}, largest difference {:.3} %; system calls per request {:.2} to {:.2}",
        sizes.iter().min().unwrap_or(&0),
        sizes.iter().max().unwrap_or(&0),
        bench.classes[0].name,
        middles.iter().copied().fold(f64::INFINITY, f64::min),
        middles.iter().copied().fold(0.0, f64::max),
        range(&middles),
        costs.iter().map(calls).fold(f64::INFINITY, f64::min),
        costs.iter().map(calls).fold(0.0, f64::max),
    ));
    Ok(())
}

/// Adjacent short windows of two processes, joined to longer ones.
fn length(bench: &Bench) -> Result<(), String> {
    const SHORTEST: usize = 10;
    const WINDOWS: u32 = 250;
    let costs = bench.count(&bench.counter, 2, 1, &fixed(SHORTEST as u32, WINDOWS))?;
    say("\nrequests of a window   sd of instructions per request   range   range of medians of three");
    for length in LENGTHS {
        let (mut sds, mut ranges, mut medians) = (Vec::new(), Vec::new(), Vec::new());
        for cost in &costs {
            let all = each(cost);
            let joined: Vec<f64> =
                all.chunks_exact(length / SHORTEST).map(|w| w.iter().sum::<f64>() / w.len() as f64).collect();
            let mean = joined.iter().sum::<f64>() / joined.len() as f64;
            sds.push(100.0 * location::sd(&joined).unwrap_or(f64::NAN) / mean);
            ranges.push(range(&joined));
            let threes: Vec<f64> = joined
                .chunks_exact(3)
                .map(|three| {
                    let mut three = three.to_vec();
                    three.sort_by(f64::total_cmp);
                    three[1]
                })
                .collect();
            medians.push(range(&threes));
        }
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        say(&format!("{length:>20} {:>30.3} % {:>7.3} % {:>25.3} %", most(&sds), most(&ranges), most(&medians)));
    }
    Ok(())
}

/// What must not change the counts.
fn place(bench: &Bench) -> Result<(), String> {
    let effort = Effort::default();
    let both = bench.count(&bench.counter, 2, 1, &effort)?;
    let one = bench.count(&bench.counter.clone().on_one_cpu(), 1, 1, &effort)?;
    let random = bench.count(&bench.counter.clone().with_random_addresses(), 2, 1, &effort)?;
    let reference = middle(&both[0]);
    say("\nwhere                                   instructions per request   difference   system calls");
    let line = |what: &str, cost: &ClassCost| {
        let count = middle(cost);
        say(&format!("{what:<40} {count:>23.0} {:>10.3} % {:>14.2}", 100.0 * (count / reference - 1.0), calls(cost)));
    };
    line("two at a time, first user", &both[0]);
    line("two at a time, second user", &both[1]);
    line("alone, all on one CPU", &one[0]);
    line("addresses left to chance, first user", &random[0]);
    line("addresses left to chance, second user", &random[1]);
    Ok(())
}

fn time(bench: &Bench) -> Result<(), String> {
    say("");
    for classes in [1, bench.classes.len()] {
        let began = Instant::now();
        bench.count(&bench.counter, 2, classes, &Effort::default())?;
        say(&format!("a pair, {classes} classes: {:.1} s", began.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// The same config with many clusters more.
fn clusters(bench: &Bench) -> Result<(), String> {
    let arm = &bench.prepared.setup.arms[0];
    let text = std::fs::read_to_string(arm_file(bench)).map_err(|e| e.to_string())?;
    let mut more = String::new();
    for i in 0..CLUSTERS {
        more.push_str(&format!(
            "    - {{name: more{i}, type: STATIC, load_assignment: {{cluster_name: more{i}, endpoints: [{{lb_endpoints: \
             [{{endpoint: {{address: {{socket_address: {{address: 10.0.0.1, port_value: 80}}}}}}}}]}}]}}}}\n"
        ));
    }
    let text = text.replacen("  clusters:\n", &format!("  clusters:\n{more}"), 1);
    let document = Document::parse("clusters.yaml", &text).map_err(|p| format!("{p:?}"))?;
    let bootstrap = Bootstrap::read(&document).map_err(|p| format!("{p:?}"))?;
    let candidate = Candidate { binary: &arm.binary, bootstrap: &bootstrap, listener: arm.listener };
    let began = Instant::now();
    let costs = bench
        .counter
        .count(&[candidate, candidate], &bench.classes[..1], &Effort::default(), &mut |_| {})
        .map_err(|e| e.to_string())?;
    let cost = &costs[0][0];
    match &cost.failed {
        Some(why) => Err(why.clone()),
        None => {
            say(&format!(
                "a pair with {CLUSTERS} clusters more, 1 class: {:.1} s, {:.0} instructions per request",
                began.elapsed().as_secs_f64(),
                middle(cost)
            ));
            Ok(())
        }
    }
}

fn arm_file(bench: &Bench) -> String {
    bench.prepared.target.head.file.clone()
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}
