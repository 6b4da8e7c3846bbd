//! `sidegate gate`: base against head, verdict, reports, exit code.

pub mod blame;
pub mod commits;
pub mod count;
pub mod counting_bench;
pub mod jobs;
pub mod measure;
pub mod order;
pub mod prepare;
pub mod publish;
pub mod replay;
pub mod revisions;
pub mod rules;
pub mod runner;
mod stored_counts;
pub mod targets;

use std::path::{Path, PathBuf};

use crate::cmd::gate::order::Order;
use crate::cmd::output::{self, Format};
use crate::cmd::progress::Progress;
use crate::exit::Failure;
use crate::files::Out;
use crate::github;
use crate::judge;
use crate::policy::{LimitSet, OnInconclusive, Profile};
use crate::probe;
use crate::record::{Record, SCHEMA, Scope, TargetRecord};
use crate::stop::Stop;
use crate::verdict::Verdict;

/// Measures a config before and after a change, side by side, and says whether the change is a regression.
///
/// Examples: sidegate gate --base examples/lua/base.yaml --head examples/lua/head.yaml
///
/// sidegate gate --base-rev main --config 'envoy/*.yaml'
///
/// Both configs are re-hosted on loopback ports, validated by Envoy, and loaded in alternating slices of milliseconds.
/// Results go to the folder of --out: record.json (everything measured), verdict.json, report.md.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The config before the change. Without it head is measured alone, against absolute limits only.
    #[arg(long, value_name = "FILE", requires = "head", conflicts_with_all = ["base_rev", "head_rev", "config"])]
    pub base: Option<PathBuf>,
    /// The config after the change.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["base_rev", "head_rev", "config"])]
    pub head: Option<PathBuf>,
    /// The commit before the change, instead of files; configs are read from git [default: what the event of GitHub says]
    #[arg(long, value_name = "REV")]
    pub base_rev: Option<String>,
    /// The commit after the change [default: HEAD]
    #[arg(long, value_name = "REV")]
    pub head_rev: Option<String>,
    /// Paths in the repository that are under the gate, such as 'envoy/*.yaml'; those that changed are measured
    /// [default: the targets of sidegate.yaml]
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub config: Vec<String>,
    /// Name of the target [default: head's path, `/` as `__`, without extension]; with revisions: only this target
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// The stored baseline to hold head against too [default: baselines/<target>.json, if it is there]
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Settings, limits and accepted costs [default: sidegate.yaml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// How long to measure: quick about 60 s, standard about 100 s, deep about 200 s [default: standard]
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
    /// Set of margins: which change is reported, which fails [default: default]
    #[arg(long, value_enum)]
    pub limits: Option<LimitSet>,
    /// Envoy for both arms: a version (1.40.0) or a path [default: 1.40.0]
    #[arg(long, value_name = "SPEC", env = "SIDEGATE_ENVOY")]
    pub envoy: Option<String>,
    /// Envoy for base alone: measures an upgrade.
    #[arg(long, value_name = "SPEC")]
    pub base_envoy: Option<String>,
    /// Envoy for head alone.
    #[arg(long, value_name = "SPEC")]
    pub head_envoy: Option<String>,
    /// Worker threads of the proxy [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub concurrency: Option<u32>,
    /// Run only these scenarios: open (at a rate), closed (as fast as it goes) [default: both]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub scenario: Vec<String>,
    /// Count no instructions.
    #[arg(long, conflicts_with_all = ["cost_only", "require_cost"])]
    pub no_cost: bool,
    /// Count instructions and nothing else: half a minute, and no quiet machine needed.
    #[arg(long)]
    pub cost_only: bool,
    /// End 4 where instructions cannot be counted, instead of saying so and measuring the rest.
    #[arg(long)]
    pub require_cost: bool,
    /// Show what would run, and end.
    #[arg(long)]
    pub print_plan: bool,
    /// No block starts after this time [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Seed of all draws; the one used is in the record [default: drawn from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Whether an inconclusive verdict passes (with a warning) or ends 3.
    #[arg(long, value_enum, default_value_t)]
    pub on_inconclusive: OnInconclusive,
    /// Folder for record.json, verdict.json and report.md.
    #[arg(long, value_name = "DIR", default_value = "sidegate-out")]
    pub out: PathBuf,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    match &args.head {
        Some(head) => {
            github::refuse_privileged(&runner::environment())?;
            run_files(args, head, stop)
        }
        None => revisions::run(args, stop),
    }
}

fn run_files(args: &Args, head: &Path, stop: &Stop) -> Result<u8, Failure> {
    let order = Order::of_files(args, head)?;
    if args.print_plan {
        order.print_plan();
        return Ok(crate::exit::PASS);
    }
    let out = Out::open(&args.out)?;
    out.clear()?;
    let mut progress = Progress::default();
    let started_at = jiff::Timestamp::now().to_string();
    let target = measure::measure(&order, stop, &mut progress)?;
    let record = record(order.seed, started_at, Scope::default(), vec![target]);
    progress.finish();
    let verdict = judge::judge(&record);
    let written = write(&out, &record, &verdict);
    output::print(&record, &verdict, args.format);
    // What was measured is on the screen; a disk that filled up meanwhile is told after it.
    written?;
    Ok(verdict.exit_code)
}

/// What was measured of all targets, with the machine it was measured on.
pub fn record(seed: u64, started_at: String, scope: Scope, targets: Vec<TargetRecord>) -> Record {
    Record {
        schema: SCHEMA,
        tool: concat!("sidegate ", env!("CARGO_PKG_VERSION")).to_owned(),
        started_at,
        host: probe::host(),
        seed,
        scope,
        targets,
    }
}

pub fn write(out: &Out, record: &Record, verdict: &Verdict) -> Result<(), Failure> {
    // Each is tried: where a disk has no room for the record, the verdict may still fit.
    let small = out.write_verdict(record, verdict);
    out.write_record(record).and(small)
}
