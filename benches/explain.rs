//! Whether the price of a block by ablation is what adding the block alone costs, on a chain of ten filters.
//!
//! `make bench-explain` prints the prices as `sidegate explain` does, then each of them beside what the same block adds
//! to the bare config, and the seconds that the prices took.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use sidegate::cmd::explain::{self, Explained};
use sidegate::cmd::gate::counting_bench::CountingBench;
use sidegate::cmd::progress::Progress;
use sidegate::envoy::ablate::Ablation;
use sidegate::explain::Bench as _;
use sidegate::record::{Counted, Prices};
use sidegate::report;
use sidegate::stop::Stop;
use sidegate::yaml::Document;

/// Prices by ablation against blocks added alone.
#[derive(Debug, Parser)]
struct Args {
    #[arg(long, default_value = "examples/chain/envoy.yaml")]
    config: PathBuf,
    #[arg(long, default_value = "1.40.0", env = "SIDEGATE_TEST_ENVOY")]
    envoy: String,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Allowed: a tenth of what adding costs, or this share of the request.
const SHARE: f64 = 0.002;

fn main() {
    let args = Args::parse();
    match run(&args) {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "explain: {message}");
            std::process::exit(4);
        }
    }
}

fn run(args: &Args) -> Result<bool, String> {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        explain: explain::Args,
    }
    let stop = Stop::on_signals().map_err(|e| e.to_string())?;
    let config = args.config.display().to_string();
    let line = Line::try_parse_from(["explain", &config, "--envoy", &args.envoy, "--budget", "20m"]);
    let line = line.map_err(|e| e.to_string())?.explain;
    let fault = |failure: sidegate::exit::Failure| {
        failure.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let began = Instant::now();
    let prices = explain::explain(&line, &stop).map_err(fault)?;
    let seconds = began.elapsed().as_secs_f64();
    let ready = explain::prepared(&line, &stop, &mut Progress::default()).map_err(fault)?;
    let added = added(&ready, &stop)?;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", report::explain::text(&prices));
    Ok(print(&mut out, &prices, &added, seconds))
}

/// Each block put on the bare config alone: instructions per request beyond it.
fn added(ready: &Explained, stop: &Stop) -> Result<Vec<Option<f64>>, String> {
    let Explained { fit, spawner, counter, class } = ready;
    let ablation = Ablation::of(&fit.setup.bootstrap, explain::target(fit, class));
    let configs: Vec<Document> =
        std::iter::once(ablation.bare()).chain((0..ablation.blocks().len()).map(|at| ablation.only(at))).collect();
    let mut bench = CountingBench::new(counter, spawner, (&fit.setup.binary, fit.setup.listener), class, stop);
    let counted = bench.count(&configs);
    if let Some(failure) = bench.failure() {
        return Err(failure.to_string());
    }
    let instructions = |counted: &Counted| counted.count().map(|count| count.instructions);
    let bare = counted.first().and_then(instructions).ok_or("the bare config was not counted")?;
    Ok(counted[1..].iter().map(|counted| Some(instructions(counted)? - bare)).collect())
}

fn print(out: &mut impl Write, prices: &Prices, added: &[Option<f64>], seconds: f64) -> bool {
    let whole = prices.whole.count().map_or(0.0, |count| count.instructions);
    let _ = writeln!(
        out,
        "alone, as explain says, against the block added by itself in other processes; instructions per request"
    );
    let _ =
        writeln!(out, "{:>12} {:>12} {:>12} {:>9} {:>10}  block", "taken away", "alone", "added", "error", "allowed");
    let mut all_within = true;
    for (block, added) in prices.blocks.iter().zip(added) {
        let (Some(price), Some(alone), Some(added)) = (prices.price(block), prices.alone(block), added) else {
            all_within = false;
            let _ = writeln!(out, "{:>59}  {}", "not counted", block.what);
            continue;
        };
        let error = alone.instructions - added;
        let allowed = (added.abs() * 0.1).max(whole * SHARE);
        let within = error.abs() <= allowed;
        all_within &= within;
        let mark = if within { "" } else { "  BEYOND" };
        let _ = writeln!(
            out,
            "{:>12.0} {:>12.0} {added:>12.0} {error:>9.0} {allowed:>10.0}  {}{mark}",
            price.instructions, alone.instructions, block.what
        );
    }
    let how = if all_within { "all within" } else { "not all within" };
    let _ = writeln!(
        out,
        "{how} 10 % of adding, or {:.1} % of the request; both prices of {} blocks took {seconds:.0} s",
        SHARE * 100.0,
        prices.blocks.len()
    );
    all_within
}
