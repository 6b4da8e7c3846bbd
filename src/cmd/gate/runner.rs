//! The runner of GitHub Actions around a gate: where it says what is compared, and what it is told at the end. Outside of
//! one, all of this does nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use crate::cmd::gate::publish;
use crate::cmd::gate::revisions::Measured;
use crate::cmd::output;
use crate::exit::Failure;
use crate::files;
use crate::github::commands::{self, Annotation, Level, SUMMARY_BUDGET};
use crate::github::{self, Context, FileCommands};
use crate::problem::{Problem, on_one_line};
use crate::report;
use crate::stop::Stop;
use crate::verdict::{Call, Finding, Outcome, TargetVerdict};

/// Results, relative to the folder of `--out`.
const RESULT: &str = "verdict.json";
const REPORT: &str = "report.md";

/// All variables that are text. Variables that are not are of no interest here.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// What the runner and its steps are told of a gate.
pub struct Runner {
    /// `None` outside of a workflow.
    env: Option<BTreeMap<String, String>>,
    files: FileCommands,
    /// Nobody who writes a config can know it.
    token: String,
    /// The folder of the results.
    out: PathBuf,
}

/// The event, and the text it was read from.
fn event(env: &BTreeMap<String, String>) -> Result<(Context, String), Failure> {
    github::refuse_privileged(env)?;
    let path = env.get("GITHUB_EVENT_PATH").map(String::as_str).unwrap_or_default();
    let payload = files::read_text(Path::new(path))?;
    Ok((Context::read(env, &payload)?, payload))
}

/// Tells the runner of a failure that came before anything else.
pub fn fail(failure: &Failure) {
    Runner::new(Path::new("")).tell_failure(failure);
}

impl Runner {
    pub fn new(out: &Path) -> Self {
        let env = Some(environment()).filter(github::is_runner);
        let files = env.as_ref().map(FileCommands::read).unwrap_or_default();
        Self { env, files, token: random_word(), out: out.to_owned() }
    }

    /// What the run is about; `None` outside of a workflow.
    pub fn context(&self) -> Result<Option<Context>, Failure> {
        let Some(env) = &self.env else { return Ok(None) };
        publish::policy(env)?;
        let (context, _) = event(env)?;
        Ok(Some(context))
    }

    /// From here on nothing that is printed is a command.
    pub fn begin(&self) {
        if self.env.is_some() {
            output::say(&commands::stop_commands(&self.token));
        }
    }

    /// Results on standard output.
    pub fn say(&self, text: &str) {
        match self.env {
            Some(_) => output::say(&commands::harmless(text)),
            None => output::say(text),
        }
    }

    /// Results belong to whoever owns the workspace: as root's they would be in the way of its next checkout.
    pub fn own(&self) {
        if self.env.is_none() || !nix_is_root() {
            return;
        }
        let Ok(owner) = std::fs::metadata(".") else { return };
        let files = std::fs::read_dir(&self.out).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        for path in files.chain([self.out.clone()]) {
            // Where it fails they stay root's, and only the next checkout minds.
            let _ = chown(path, Some(owner.uid()), Some(owner.gid()));
        }
    }

    /// Outputs, summary and annotations, of a result or of a failure. What cannot be told changes no verdict.
    pub fn end(&self, outcome: Result<&(Option<Measured>, Result<(), Failure>), &Failure>, stop: &Stop) {
        let Some(env) = &self.env else { return };
        output::say(&commands::resume_commands(&self.token));
        match outcome {
            Ok((None, _)) => {}
            Ok((Some(measured), written)) => {
                self.tell(measured);
                if let Err(failure) = written {
                    output::say(&commands::annotations(&annotations_of_failure(failure)));
                }
                if let Ok((context, payload)) = event(env) {
                    crate::cmd::report::tell(&publish::publish(env, &context, &payload, measured, stop));
                }
            }
            Err(failure) => self.tell_failure(failure),
        }
    }

    fn tell(&self, measured: &Measured) {
        let verdict = &measured.verdict;
        let regressions = verdict.findings.iter().filter(|f| f.verdict == Call::Regression).count();
        self.set_outputs(verdict.verdict, regressions, true);
        self.summarise(&report::markdown(&measured.record, verdict));
        output::say(&commands::annotations(&annotations(measured)));
    }

    fn tell_failure(&self, failure: &Failure) {
        if self.env.is_none() {
            return;
        }
        self.set_outputs(Outcome::Invalid, 0, false);
        let mut text = "# sidegate: invalid\n\nNothing was measured.\n\n".to_owned();
        for problem in &failure.problems {
            text.push_str(&report::code_block(&problem.to_string()));
        }
        self.summarise(&text);
        output::say(&commands::annotations(&annotations_of_failure(failure)));
    }

    fn set_outputs(&self, verdict: Outcome, regressions: usize, files: bool) {
        let path = |name: &str| if files { self.in_workspace(name) } else { String::new() };
        let values = [
            ("verdict", verdict.name().to_owned()),
            ("regressions", regressions.to_string()),
            ("result-path", path(RESULT)),
            ("report-path", path(REPORT)),
        ];
        let told = values.iter().filter(|(_, value)| !value.is_empty());
        let text: String = told.filter_map(|(name, value)| commands::output(name, value, &random_word())).collect();
        append(self.files.output.as_deref(), &text, "outputs");
    }

    /// A result's path for the steps that follow: relative to the workspace, which has another name outside of the
    /// container.
    fn in_workspace(&self, name: &str) -> String {
        let whole = self.out.join(name);
        let relative = std::env::current_dir().ok().and_then(|here| Some(whole.strip_prefix(here).ok()?.to_owned()));
        relative.unwrap_or(whole).to_string_lossy().into_owned()
    }

    fn summarise(&self, report: &str) {
        let there = self.files.summary.as_deref().and_then(|path| std::fs::metadata(path).ok()).map_or(0, |m| m.len());
        let room = SUMMARY_BUDGET.saturating_sub(usize::try_from(there).unwrap_or(usize::MAX));
        append(self.files.summary.as_deref(), &commands::summary(report, room), "the summary");
    }
}

fn nix_is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// 32 hexadecimal digits that the system's randomness went into.
fn random_word() -> String {
    let half = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", half(), half())
}

/// The runner's files are appended to. A failure is told and costs no verdict.
fn append(path: Option<&Path>, text: &str, what: &str) {
    let Some(path) = path else { return };
    let put = File::options().append(true).create(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    if let Err(e) = put {
        let _ = writeln!(anstream::stderr(), "sidegate: cannot write {what} for the runner: {e}");
    }
}

/// One for each place and kind, of every target that does not pass.
fn annotations(measured: &Measured) -> Vec<Annotation> {
    let mut notes = Vec::new();
    for target in &measured.verdict.targets {
        let level = match target.verdict {
            Outcome::Regression | Outcome::Invalid => Level::Error,
            Outcome::Inconclusive => Level::Warning,
            Outcome::Skipped if did_not_fit(measured, target) => Level::Warning,
            Outcome::Skipped | Outcome::Pass | Outcome::Improved => continue,
        };
        let title = format!("sidegate: {} ({})", target.verdict.name(), on_one_line(&target.target));
        let note =
            |place, message: &str| Annotation { level, place, title: title.clone(), message: message.to_owned() };
        let reason = target.reasons.first().map_or(target.verdict.name(), String::as_str);
        notes.push(note(place_of(measured, target), reason));
        let of_target = measured.verdict.findings.iter().filter(|f| f.target == target.target);
        for finding in of_target.filter(|f| f.verdict == Call::Regression) {
            let place = found_at(finding);
            if place.is_some() && notes.iter().all(|n: &Annotation| n.place != place) {
                notes.push(note(place, &finding.reason));
            }
        }
    }
    notes
}

fn did_not_fit(measured: &Measured, target: &TargetVerdict) -> bool {
    let unmeasured = &measured.record.scope.unmeasured;
    unmeasured.iter().any(|u| u.target == target.target && u.why == crate::record::Why::DidNotFit)
}

/// Where the first finding points, else where a fault is, else where the change begins.
fn place_of(measured: &Measured, target: &TargetVerdict) -> Option<(String, u32)> {
    if target.head.is_empty() {
        return None;
    }
    let mut regressions =
        measured.verdict.findings.iter().filter(|f| f.target == target.target && f.verdict == Call::Regression);
    let fault = measured.record.scope.unmeasured.iter().find(|u| u.target == target.target).and_then(|u| u.line);
    let line = fault.or_else(|| measured.changed_at.get(&target.target).copied()).unwrap_or(1);
    regressions.find_map(found_at).or(Some((target.head.clone(), line)))
}

fn found_at(finding: &Finding) -> Option<(String, u32)> {
    Some((finding.file.clone()?, finding.line?))
}

fn annotations_of_failure(failure: &Failure) -> Vec<Annotation> {
    let note = |problem: &Problem| Annotation {
        level: Level::Error,
        place: problem.span.filter(|_| !problem.file.is_empty()).map(|span| (problem.file.clone(), span.line)),
        title: "sidegate".to_owned(),
        // Without a line there is no place to say the file.
        message: match problem.span {
            Some(_) => Problem { file: String::new(), span: None, ..problem.clone() }.to_string(),
            None => problem.to_string(),
        },
    };
    failure.problems.iter().map(note).collect()
}
