//! `sidegate explain`: what each block of a config costs a request.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::cmd::gate::counting_bench::CountingBench;
use crate::cmd::gate::prepare::{self, Fit};
use crate::cmd::output::Format;
use crate::cmd::progress::Progress;
use crate::cost::{CostFailure, Counter};
use crate::envoy::ablate::{Ablation, Target};
use crate::envoy::classes;
use crate::exit::{self, Failure};
use crate::explain::{self, Subject};
use crate::files::ConfigFile;
use crate::probe;
use crate::problem::{Problem, on_one_line};
use crate::proxy::Spawner;
use crate::record::{CpuLayout, Missing, Prices, RequestClass};
use crate::report;
use crate::stop::Stop;
use crate::units;

/// Says what each filter, access log, mirror and other block of a config costs a request.
///
/// Counts the instructions of a request under valgrind with the whole config, without each block, and without all of
/// them. The price of a block is the whole minus the config without it. Two configs are counted at a time, which takes
/// about eight seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 prices were found; 2 the config cannot be measured; 4 nothing could be counted, or a signal ended it.

Examples:
  sidegate explain envoy.yaml
  sidegate explain envoy.yaml --class 'POST / 16 KiB' --format markdown >> \"$GITHUB_STEP_SUMMARY\"")]
pub struct Args {
    /// Envoy v3 bootstrap with static listeners and clusters: YAML, or JSON if its name ends in .json
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// Envoy: a version (1.40.0) or a path [default: 1.40.0]
    #[arg(long, value_name = "SPEC", env = "SIDEGATE_ENVOY")]
    pub envoy: Option<String>,
    /// No config is counted that would end after this time; blocks that usually cost most come first.
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = units::parse_duration)]
    pub budget: Duration,
    /// The kind of request, by its name; a name that does not exist lists those that do [default: a plain GET of the
    /// first route]
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    let prices = explain(args, stop)?;
    let text = match args.format {
        Format::Text => report::explain::text(&prices),
        Format::Markdown => report::explain::markdown(&prices),
        Format::Json => format!("{:#}\n", report::explain::json(&prices)),
    };
    // A reader that went away must not change the exit code.
    let _ = anstream::stdout().write_all(text.as_bytes());
    let is_known = prices.whole.count().is_some() && stop.requested().is_none();
    Ok(if is_known { exit::PASS } else { exit::INVALID })
}

/// Counts; public for the bench that holds prices against blocks added alone.
pub fn explain(args: &Args, stop: &Stop) -> Result<Prices, Failure> {
    let mut progress = Progress::default();
    let Explained { fit, spawner, counter, class } = prepared(args, stop, &mut progress)?;
    let bootstrap = &fit.setup.bootstrap;
    let subject = Subject {
        file: fit.source.file.clone(),
        proxy: format!("{} {}", fit.source.proxy.kind, fit.source.proxy.version),
        machine: Some(counter.class().clone()),
        class: class.clone(),
    };
    let ablation = Ablation::of(bootstrap, target(&fit, &class));
    progress.step(&format!("counting the config and its {} blocks under valgrind", ablation.blocks().len()));
    let mut bench = CountingBench::new(&counter, &spawner, (&fit.setup.binary, fit.setup.listener), &class, stop);
    let mut events = |event: explain::Event| {
        progress.step(&format!("{} of {} configs counted, {} s left", event.done, event.of, event.left.as_secs()));
    };
    let whole = bootstrap.document().clone();
    let prices = explain::prices(subject, &ablation, whole, &mut bench, args.budget, &mut events);
    progress.finish();
    match bench.failure() {
        Some(failure) if !matches!(failure, CostFailure::Stopped { .. }) => {
            let problem = Problem::new("", format!("instructions cannot be counted: {failure}"));
            Err(Failure::environment(problem.help("try again on a machine with less load, or with more memory")))
        }
        _ => Ok(prices),
    }
}

/// A config that is fit, and all it takes to count it.
pub struct Explained {
    pub fit: Fit,
    pub spawner: Spawner,
    pub counter: Counter,
    pub class: RequestClass,
}

pub fn prepared(args: &Args, stop: &Stop, progress: &mut Progress) -> Result<Explained, Failure> {
    let all = probe::cpus::allowed()
        .map_err(|e| Failure::environment(Problem::new("", format!("cannot read this process's CPU affinity: {e}"))))?;
    let cpus = CpuLayout { workers: all, ..CpuLayout::default() };
    let envoy = args.envoy.as_deref().unwrap_or(crate::cmd::gate::order::DEFAULT_ENVOY);
    let (fit, spawner) = prepare::one(&ConfigFile::at(&args.config), envoy, stop, progress)?;
    let counter = Counter::find(&spawner, &cpus, stop).map_err(|Missing { why, help }| {
        Failure::environment(Problem::new("", format!("instructions cannot be counted: {why}")).help(help))
    })?;
    let class = class(args, &fit)?;
    Ok(Explained { fit, spawner, counter, class })
}

/// Where the requests of a class go in a config.
pub fn target<'a>(fit: &Fit, class: &'a RequestClass) -> Target<'a> {
    let plain = class.method == "GET" && class.headers.is_empty();
    Target { listener: fit.setup.listener, plain, authority: &class.authority, path: &class.path }
}

fn class(args: &Args, fit: &Fit) -> Result<RequestClass, Failure> {
    let all = classes::derive(&[&fit.setup.bootstrap], &fit.workload.requests, usize::MAX).classes;
    let found = match &args.class {
        None => all.first(),
        Some(name) => all.iter().find(|class| class.name == *name),
    };
    found.cloned().ok_or_else(|| {
        let wanted = args.class.as_deref().unwrap_or_default();
        let names: Vec<String> = all.iter().map(|class| format!("`{}`", on_one_line(&class.name))).collect();
        let problem = Problem::new("", format!("--class: this config has no kind of request `{wanted}`"));
        problem.help(format!("there are: {}", names.join(", "))).into()
    })
}
