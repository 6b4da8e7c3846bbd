//! A gate between two commits: every config under the gate that changed, in one record, with one verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::baseline;
use crate::cmd::gate::commits::{self, Compared};
use crate::cmd::gate::jobs::{self, Job, Jobs};
use crate::cmd::gate::measure;
use crate::cmd::gate::order::{self, Order};
use crate::cmd::gate::replay::Stored;
use crate::cmd::gate::rules::{self, Rules};
use crate::cmd::gate::runner::Runner;
use crate::cmd::gate::targets::{self, Commits, Gated, Patterns, Selection};
use crate::cmd::gate::{self, Args};
use crate::cmd::output;
use crate::cmd::progress::Progress;
use crate::exit::{self, Failure};
use crate::files::Out;
use crate::git::Repository;
use crate::judge;
use crate::problem::{Problem, on_one_line};
use crate::proxy::Spawner;
use crate::record::{Record, Scope, TargetRecord, Unmeasured, Why};
use crate::stop::Stop;
use crate::verdict::Verdict;

/// What is about to run.
struct Plan {
    jobs: Jobs,
    orders: Vec<Order>,
    scope: Scope,
    budget: Duration,
    comment: crate::spec::Comment,
}

/// What came of it.
pub struct Measured {
    pub record: Record,
    pub verdict: Verdict,
    /// The first line of head that the change touches, by target.
    pub changed_at: BTreeMap<String, u32>,
    /// When `sidegate.yaml` wants a comment.
    pub comment: crate::spec::Comment,
}

/// In a step of a workflow the runner is told what came of it, also of a failure.
pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    let runner = Runner::new(&args.out);
    let started = Instant::now();
    runner.begin();
    let outcome = run_for(&runner, args, stop, started);
    runner.end(outcome.as_ref(), stop);
    let (measured, written) = outcome?;
    written?;
    Ok(measured.map_or(exit::PASS, |m| m.verdict.exit_code))
}

/// Nothing is measured where only the plan is asked for. The second result is what came of writing the first to disk.
type Outcome = (Option<Measured>, Result<(), Failure>);

fn run_for(runner: &Runner, args: &Args, stop: &Stop, started: Instant) -> Result<Outcome, Failure> {
    let plan = plan(runner, args, stop)?;
    if args.print_plan {
        plan.orders.iter().for_each(Order::print_plan);
        return Ok((None, Ok(())));
    }
    let out = Out::open(&args.out)?;
    out.clear()?;
    let measured = measure(plan, stop, started);
    let written = gate::write(&out, &measured.record, &measured.verdict);
    runner.own();
    runner.say(&output::render(&measured.record, &measured.verdict, args.format));
    Ok((Some(measured), written))
}

/// Everything up to the first proxy: cheap, so that most pull requests end here.
fn plan(runner: &Runner, args: &Args, stop: &Stop) -> Result<Plan, Failure> {
    let context = runner.context()?;
    let spawner = Spawner::new().map_err(|e| {
        let problem = Problem::new("", format!("cannot make a folder for git: {e}"));
        Failure::environment(problem.help("free some space in the temporary folder, or point TMPDIR elsewhere"))
    })?;
    let repository = Repository::open(Path::new("."), context.is_some(), &spawner, stop)?;
    let mut compared = commits::compared(args, context.as_ref(), &repository)?;
    let base = compared.base.as_ref().ok().map(|base| repository.tree(base)).transpose()?;
    let head = repository.tree(&compared.head)?;
    let rules = rules::read(args.spec.as_deref(), &repository, &compared, base.as_ref(), &head)?;
    let commits = Commits {
        renames: match &compared.base {
            Ok(base) => repository.renames(base, &compared.head)?,
            Err(_) => BTreeMap::new(),
        },
        spec_changed: rules.changed,
        base,
        head,
    };
    let gated = gated(args, &rules)?;
    let mut selection = targets::select(&commits, &gated);
    if selection.gated == 0 {
        return Err(no_match(&gated).into());
    }
    if let Some(only) = &args.target {
        named_otherwise(only, &selection, &mut compared);
        selection.concerned.retain(|c| c.target == *only);
        selection.unmeasured.retain(|u| u.target == *only);
    }
    let notes = notes(&compared, &rules, &gated, &commits, &selection);
    let no_base = compared.base.as_ref().err().cloned().unwrap_or_default();
    let jobs = jobs::lay_out(&repository, &mut selection, &no_base)?;
    let checked = |job: &Job| Order::checked(args, &rules.spec, job.subject.clone());
    let mut orders = jobs.all.iter().map(checked).collect::<Result<Vec<_>, _>>()?;
    for order in &mut orders {
        order.baseline = match &args.baseline {
            Some(path) => Stored::find(Some(path), &order.target)?,
            None => committed_baseline(&repository, &commits, &order.target)?,
        };
    }
    let scope = Scope {
        base_commit: compared.base.ok(),
        head_commit: Some(compared.head),
        unmeasured: selection.unmeasured,
        notes,
    };
    let budget = order::budget(args, &rules.spec, &mut Vec::new());
    Ok(Plan { jobs, orders, scope, budget, comment: rules.spec.comment })
}

/// A name that no changed target has may be mistyped: what has changed is said.
fn named_otherwise(only: &str, selection: &Selection, compared: &mut Compared) {
    let changed: Vec<&str> = selection.concerned.iter().map(|c| c.target.as_str()).collect();
    if !changed.is_empty() && !changed.contains(&only) {
        let named =
            changed.iter().take(5).map(|name| format!("`{}`", on_one_line(name))).collect::<Vec<_>>().join(", ");
        compared.notes.push(format!("--target: no changed target is named `{}`; changed: {named}", on_one_line(only)));
    }
}

/// The baseline by which a target is judged: what the base commit holds, so that a change cannot move its own bar; a
/// baseline that is new with the change counts from the start.
fn committed_baseline(repository: &Repository, commits: &Commits, target: &str) -> Result<Option<Stored>, Failure> {
    let path = format!("{}/{target}.json", baseline::FOLDER);
    let entry = commits.base.as_ref().and_then(|base| base.get(&path)).or_else(|| commits.head.get(&path));
    let Some(entry) = entry else { return Ok(None) };
    match repository.text(entry)? {
        Ok(text) => Ok(Some(Stored::committed(&path, &text, target)?)),
        Err(why) => Err(Problem::new(&path, format!("it is {}", why.0)).into()),
    }
}

/// Patterns of the command line, or else the targets of `sidegate.yaml`.
fn gated<'r>(args: &Args, rules: &'r Rules) -> Result<Gated<'r>, Failure> {
    if !args.config.is_empty() {
        return Ok(Gated::Patterns(Patterns::new(&args.config).map_err(Failure::usage)?));
    }
    if rules.list_targets() {
        let (folder, file) = (rules.folder(), rules.file.clone());
        return Ok(Gated::Listed { base: &rules.base, head: &rules.head, folder, file });
    }
    Err(Problem::new("", "which configs are under the gate is not said")
        .help(format!(
            "give patterns (the input `config`, or --config 'envoy/*.yaml'), or list `targets` in {}",
            on_one_line(&rules.file)
        ))
        .into())
}

fn no_match(gated: &Gated<'_>) -> Problem {
    let patterns = match gated {
        Gated::Patterns(patterns) => patterns.texts(),
        Gated::Listed { .. } => "nothing".to_owned(),
    };
    Problem::new("", format!("no file of either commit matches {patterns}: nothing would ever be gated"))
        .help("patterns match whole paths from the repository's root; `*` stays within a folder, `**` does not")
}

fn notes(
    compared: &Compared,
    rules: &Rules,
    gated: &Gated<'_>,
    commits: &Commits,
    selection: &Selection,
) -> Vec<String> {
    let mut notes = compared.notes.clone();
    notes.extend(rules.notes.iter().cloned());
    for one in selection.concerned.iter().filter(|c| commits.edits_baseline(&c.target)) {
        notes.push(format!(
            "this change edits the stored baseline of `{}`; it is judged by the one in base",
            one.target
        ));
    }
    if selection.concerned.is_empty() && selection.unmeasured.is_empty() {
        let which = match gated {
            Gated::Patterns(patterns) => format!("no config that matches {} changed", patterns.texts()),
            Gated::Listed { file, .. } => format!("no config of a target in {} changed", on_one_line(file)),
        };
        notes.push(format!("{which} ({} under the gate)", selection.gated));
    }
    notes
}

/// One target after the other, within the time of all.
fn measure(plan: Plan, stop: &Stop, started: Instant) -> Measured {
    let started_at = jiff::Timestamp::now().to_string();
    let changed_at = plan.jobs.all.iter().map(|job| (job.subject.target.clone(), job.first_changed_line)).collect();
    let mut progress = Progress::default();
    let mut scope = plan.scope;
    let mut records: Vec<TargetRecord> = Vec::new();
    let seed = plan.orders.first().map_or(0, |order| order.seed);
    let count = plan.orders.len();
    for (at, mut order) in plan.orders.into_iter().enumerate() {
        let left = plan.budget.saturating_sub(started.elapsed());
        if let Some((why, message)) = turned_away(&order, at, left, plan.budget, stop) {
            progress.note(&format!("{}: {message}", order.target));
            scope.unmeasured.push(unmeasured(&order, why, message, None));
            continue;
        }
        if count > 1 {
            progress.note(&format!("target {} of {count}: {}", at + 1, order.target));
        }
        (order.budget, order.seed) = (left, seed);
        match measure::measure(&order, stop, &mut progress) {
            Ok(record) => records.push(record),
            Err(failure) => {
                let why = why_failed(&failure, stop);
                failure.problems.iter().for_each(|problem| progress.note(&problem.to_string()));
                scope.unmeasured.push(failed(&order, why, &failure));
            }
        }
    }
    progress.finish();
    let record = gate::record(seed, started_at, scope, records);
    let verdict = judge::judge(&record);
    Measured { record, verdict, changed_at, comment: plan.comment }
}

/// Why a target does not get its turn. The first always does: it has all the time there is.
fn turned_away(order: &Order, at: usize, left: Duration, budget: Duration, stop: &Stop) -> Option<(Why, String)> {
    if let Some(signal) = stop.requested() {
        return Some((Why::Interrupted, format!("{signal} came before its turn")));
    }
    if at == 0 || order.longest() <= left {
        return None;
    }
    let (needs, has) = (order.longest().as_secs(), left.as_secs());
    let message = format!("did not fit: it needs about {needs} s and {has} s of {} s were left", budget.as_secs());
    Some((Why::DidNotFit, message))
}

fn why_failed(failure: &Failure, stop: &Stop) -> Why {
    match (stop.requested(), failure.code) {
        (Some(_), _) => Why::Interrupted,
        (None, exit::USAGE) => Why::Refused,
        (None, _) => Why::Environment,
    }
}

fn failed(order: &Order, why: Why, failure: &Failure) -> Unmeasured {
    let whole = |problem: &Problem| {
        let told = Problem { help: None, ..problem.clone() }.to_string().replace('\n', " ");
        problem.help.as_ref().map_or(told.clone(), |help| format!("{told} ({})", on_one_line(help)))
    };
    let message = failure.problems.iter().map(whole).collect::<Vec<_>>().join("; ");
    let first = failure.problems.first().filter(|p| p.file == order.head.name).and_then(|p| p.span);
    unmeasured(order, why, message, first.map(|span| span.line))
}

fn unmeasured(order: &Order, why: Why, message: String, line: Option<u32>) -> Unmeasured {
    Unmeasured {
        target: order.target.clone(),
        base: order.base.as_ref().ok().map(|file| file.name.clone()),
        head: Some(order.head.name.clone()),
        why,
        message,
        line,
    }
}
