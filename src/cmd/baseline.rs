//! `sidegate baseline`: records one accepted config alone, shows what a baseline holds, checks baselines.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;

use crate::analysis;
use crate::baseline::{self, Baseline, FOLDER, Redacted, StoredConfig, redact};
use crate::cmd::baseline_text;
use crate::cmd::gate;
use crate::cmd::gate::measure;
use crate::cmd::gate::order::Order;
use crate::cmd::gate::replay::{Stored, rehosted};
use crate::cmd::input;
use crate::cmd::progress::Progress;
use crate::envoy::Bootstrap;
use crate::exit::{self, Failure};
use crate::files::{self, ConfigFile};
use crate::judge;
use crate::policy::Profile;
use crate::probe;
use crate::problem::{Problem, on_one_line};
use crate::record::{End, Record, Scope, TargetRecord};
use crate::stop::Stop;
use crate::verdict::Outcome;
use crate::yaml::Document;

/// Stored baselines: what an accepted config costs, kept in the repository, so that many small steps cannot add up unseen.
///
/// `sidegate gate` replays a target's baseline as a third arm beside base and head, and holds head against it.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Record(RecordArgs),
    /// Says in words what a baseline holds.
    Show {
        file: PathBuf,
    },
    /// Whether baselines are whole, who made them, and what they are worth on this machine and for the configs here.
    ///
    /// Exit codes: 0 all are whole, 2 one is not.
    Check {
        /// [default: all in the folder baselines]
        files: Vec<PathBuf>,
    },
}

/// Measures a config alone and writes the baseline of its target. Secrets in the config are replaced first.
///
/// Example: sidegate baseline record --config envoy/checkout.yaml --target envoy__checkout
#[derive(Debug, clap::Args)]
struct RecordArgs {
    /// The accepted config.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The target as `sidegate gate` names it.
    #[arg(long, value_name = "NAME")]
    target: String,
    /// Where to write [default: baselines/<target>.json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite even a file that is not a whole baseline.
    #[arg(long)]
    force: bool,
    /// How long to measure [default: standard]
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Envoy: a version (1.40.0) or a path [default: 1.40.0]
    #[arg(long, value_name = "SPEC", env = "SIDEGATE_ENVOY")]
    envoy: Option<String>,
    /// Count instructions under valgrind and measure nothing else: a baseline in seconds, which `gate` replays all the
    /// same.
    #[arg(long)]
    cost_only: bool,
    /// Count no instructions.
    #[arg(long, conflicts_with = "cost_only")]
    no_cost: bool,
    /// Settings [default: sidegate.yaml, if it is there]
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Seed of all draws [default: drawn from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    match &args.action {
        Action::Record(args) => record(args, stop),
        Action::Show { file } => {
            say(&baseline_text::show(&Stored::open(file)?));
            Ok(exit::PASS)
        }
        Action::Check { files } => check(files),
    }
}

fn record(args: &RecordArgs, stop: &Stop) -> Result<u8, Failure> {
    baseline::fit_name(&args.target)?;
    let place = Place::open(args)?;
    let (document, _) = input::read(&ConfigFile::at(&args.config))?;
    Bootstrap::read(&document).map_err(Failure::usage)?;
    let redacted = redact(&document.value);
    let mut progress = Progress::default();
    let (record, target) = measured(args, &redacted, stop, &mut progress)?;
    progress.finish();
    refuse_unfit(&record, &target, stop)?;
    let config = StoredConfig {
        file: args.config.display().to_string(),
        redacted: redacted.places,
        document: redacted.document,
    };
    let baseline = Baseline::of(&record, &target, &analysis::analyze(&target), config);
    let text = baseline.to_text()?;
    // What cannot be read back must not be written.
    let baseline = Baseline::read(&place.name(), &text, env!("CARGO_PKG_VERSION"))?;
    place.write(&text)?;
    let stored = Stored { file: place.name(), baseline };
    say(&format!("{}written: {}\n", baseline_text::show(&stored), on_one_line(&place.name())));
    Ok(exit::PASS)
}

/// Where the file goes: found fit before anything is measured.
struct Place {
    path: PathBuf,
}

impl Place {
    fn open(args: &RecordArgs) -> Result<Self, Failure> {
        let default = || baseline::default_path(&args.target).unwrap_or_default();
        let place = Self { path: args.out.clone().unwrap_or_else(default) };
        let guarded = place.path.symlink_metadata().is_ok() && !args.force;
        if let Some(problem) = guarded.then(|| Stored::open(&place.path).err()).flatten() {
            let help = "nothing was overwritten; choose another file with --out, or overwrite it with --force";
            return Err(Problem::new(&problem.file, problem.message).at(problem.span).help(help).into());
        }
        if place.path.is_dir() {
            return Err(Problem::new(place.name(), "is a folder").help("name a file with --out").into());
        }
        let dir = place.dir();
        std::fs::create_dir_all(dir)
            .and_then(|()| tempfile::NamedTempFile::new_in(dir))
            .map_err(|e| place.cannot_write(&e))?;
        Ok(place)
    }

    fn dir(&self) -> &Path {
        self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        files::replace(&self.path, text.as_bytes()).map_err(|e| self.cannot_write(&e))
    }

    fn cannot_write(&self, error: &std::io::Error) -> Failure {
        let help = "free some space, or choose another place with --out FILE; what was there before is still there";
        Failure::environment(Problem::new(self.name(), format!("cannot write: {error}")).help(help))
    }
}

/// Measures the very config that will be stored: the one without its secrets.
fn measured(
    args: &RecordArgs,
    redacted: &Redacted,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<(Record, TargetRecord), Failure> {
    let folder = tempfile::tempdir()
        .map_err(|e| Failure::environment(Problem::new("", format!("cannot make a temporary folder: {e}"))))?;
    // Without secrets the user's own file is measured, so that everything about it is told with its own lines.
    let path = match redacted.places.is_empty() {
        true => args.config.clone(),
        false => written(folder.path(), &redacted.document)?,
    };
    let order = order(args, &path)?;
    let started_at = jiff::Timestamp::now().to_string();
    let mut target =
        measure::measure(&order, stop, progress).map_err(|failure| of_redacted(args, redacted, failure))?;
    target.head.file = args.config.display().to_string();
    let record = gate::record(order.seed, started_at, Scope::default(), vec![target.clone()]);
    Ok((record, target))
}

fn written(folder: &Path, document: &Value) -> Result<PathBuf, Failure> {
    let path = folder.join("without-secrets.json");
    files::replace(&path, document.to_string().as_bytes())
        .map_err(|e| Failure::environment(Problem::new("", format!("cannot write a temporary file: {e}"))))?;
    Ok(path)
}

/// The order of a gate without base and without a stored baseline.
fn order(args: &RecordArgs, config: &Path) -> Result<Order, Failure> {
    #[derive(Parser)]
    struct Gate {
        #[command(flatten)]
        gate: gate::Args,
    }
    let mut line = vec!["gate".into(), "--head".into(), config.as_os_str().to_owned()];
    line.extend(["--target".into(), args.target.clone().into()]);
    for (flag, set) in [("--cost-only", args.cost_only), ("--no-cost", args.no_cost)] {
        line.extend(set.then(|| flag.into()));
    }
    let mut flag = |name: &str, value: Option<std::ffi::OsString>| {
        line.extend(value.into_iter().flat_map(|value| [name.into(), value]));
    };
    flag("--profile", args.profile.map(|p| p.name().into()));
    flag("--envoy", args.envoy.clone().map(Into::into));
    flag("--spec", args.spec.as_ref().map(|p| p.as_os_str().to_owned()));
    flag("--seed", args.seed.map(|n| n.to_string().into()));
    let gate = Gate::try_parse_from(line).map_err(|e| Problem::new("", e.to_string()))?.gate;
    // A target's old baseline may be broken: recording it anew is the remedy.
    Order::alone(&gate, config)
}

/// A config that cannot run without its secrets cannot be stored.
fn of_redacted(args: &RecordArgs, redacted: &Redacted, failure: Failure) -> Failure {
    if redacted.places.is_empty() || failure.code != exit::USAGE {
        return failure;
    }
    let file = args.config.display().to_string();
    let places: Vec<String> = redacted.places.iter().take(5).map(|p| format!("{} ({})", p.pointer, p.what)).collect();
    let why: Vec<String> = failure.problems.iter().map(|p| p.message.clone()).collect();
    let message = format!(
        "cannot be stored: without its {} secrets it can no longer be measured: {}; replaced were {}",
        redacted.places.len(),
        why.join("; "),
        places.join(", ")
    );
    Problem::new(file, message).help("record a copy in which they are replaced by others that Envoy accepts").into()
}

/// What must not become the measure of later changes.
fn refuse_unfit(record: &Record, target: &TargetRecord, stop: &Stop) -> Result<(), Failure> {
    let why = match &target.end {
        End::Complete | End::Early => {
            let verdict = judge::judge(record);
            let unfit = matches!(verdict.verdict, Outcome::Invalid | Outcome::Inconclusive);
            let reasons = verdict.targets.iter().flat_map(|t| &t.reasons).cloned().collect::<Vec<_>>().join("; ");
            unfit.then_some(reasons)
        }
        End::Interrupted { by } => Some(format!("interrupted by {by}")),
        End::Failed { message, .. } => Some(message.clone()),
    };
    let why = why.or_else(|| stop.requested().map(|by| format!("interrupted by {by}")));
    why.map_or(Ok(()), |why| {
        let help = "nothing was written, and what was there before is still there; remove the cause and record again";
        Err(Failure::environment(Problem::new(&target.head.file, format!("not recorded: {why}")).help(help)))
    })
}

fn check(given: &[PathBuf]) -> Result<u8, Failure> {
    let found = if given.is_empty() { in_folder()? } else { given.to_vec() };
    if found.is_empty() {
        say(&format!("no baselines in {FOLDER}/\n"));
        return Ok(exit::PASS);
    }
    let here = probe::host();
    let mut problems = Vec::new();
    for path in found {
        match Stored::open(&path) {
            Ok(stored) => say(&baseline_text::checked(&stored, &here, &today(&stored))),
            Err(problem) => problems.push(problem),
        }
    }
    match problems.is_empty() {
        true => Ok(exit::PASS),
        false => Err(Failure::usage(problems)),
    }
}

fn in_folder() -> Result<Vec<PathBuf>, Failure> {
    let entries = match std::fs::read_dir(FOLDER) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| Problem::new(FOLDER, format!("cannot read: {e}")))?,
    };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|e| e == "json"));
    found.sort();
    Ok(found)
}

/// How the stored config stands to the file it was recorded from, in words.
fn today(stored: &Stored) -> String {
    let file = &stored.baseline.config.file;
    let path = Path::new(file);
    if !path.exists() {
        return format!("{file} is not here any more");
    }
    let bootstrap = |document: Result<Document, Vec<Problem>>| document.and_then(|d| Bootstrap::read(&d));
    let here = input::read(&ConfigFile::at(path)).map(|(document, _)| document).map_err(|failure| failure.problems);
    match (bootstrap(stored.document()), bootstrap(here)) {
        (Ok(stored), Ok(here)) if rehosted(&stored) == rehosted(&here) => format!("{file} is still the same"),
        (Ok(_), Ok(_)) => format!("{file} has changed since: the gate replays what is stored"),
        (Err(problems), _) => format!("it can no longer be re-hosted: {}", first(&problems)),
        (_, Err(problems)) => format!("{file} cannot be read today: {}", first(&problems)),
    }
}

fn first(problems: &[Problem]) -> String {
    problems.first().map_or_else(String::new, |p| p.message.clone())
}

/// A reader that went away early (`| head`) is no fault.
fn say(text: &str) {
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
