//! `sidegate report`: a record in, its report out, and onto the pull request where that is asked for.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::cmd::output::{self, Format};
use crate::exit::{self, Failure};
use crate::files;
use crate::github::{self, CommentPolicy, Pace, Published, Said};
use crate::judge;
use crate::problem::{Problem, on_one_line};
use crate::record::Record;
use crate::report::{Links, comment};
use crate::stop::Stop;

/// Larger records come from no pull request.
const MAX_BYTES: u64 = 64 << 20;
/// More is not what a gate measures, and would keep this one busy.
const MAX_TARGETS: usize = 200;
const MAX_BLOCKS: usize = 200;
const MAX_SCENARIOS: usize = 32;
const MAX_SLICES: usize = 2_000_000;
/// Characters of the name of a target, a file or a scenario.
const MAX_NAME: usize = 1024;

/// Renders a gate's record and puts it onto the pull request, apart from measuring.
///
/// The record may come from code that nobody trusts: its size and shape are checked, its verdict is computed anew, and
/// the pull request is taken from the event or the flags, never from the record. Nothing that fails at GitHub changes the
/// exit code, which is that of the verdict.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// `record.json` of a gate run.
    pub record: PathBuf,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Form,
    /// Writes the comment on the pull request; the token is read from GITHUB_TOKEN.
    #[arg(long)]
    pub publish: bool,
    /// When there is a comment.
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    pub comment: CommentPolicy,
    /// OWNER/NAME [default: GITHUB_REPOSITORY]
    #[arg(long, value_name = "OWNER/NAME")]
    pub repo: Option<String>,
    /// Number of the pull request [default: the event's]
    #[arg(long, value_name = "NUMBER")]
    pub pr: Option<u64>,
    /// Head commit of the pull request that was measured [default: the event's]
    #[arg(long, value_name = "COMMIT")]
    pub sha: Option<String>,
    /// GitHub's API [default: GITHUB_API_URL, else https://api.github.com]
    #[arg(long, value_name = "URL")]
    pub api_url: Option<String>,
    /// Tells this gate's comment from that of another gate in the same workflow.
    #[arg(long, value_name = "TEXT")]
    pub key: Option<String>,
    /// Ends 0 whatever the verdict, for a job beside the one that is the check.
    #[arg(long)]
    pub exit_zero: bool,
}

/// What goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Form {
    /// A table of 80 columns.
    #[default]
    Text,
    /// What report.md holds.
    Markdown,
    /// What verdict.json holds.
    Json,
    /// The comment.
    Comment,
}

pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    let record = read(&args.record)?;
    let verdict = judge::judge(&record);
    let place = if args.publish { Some(place(args)) } else { None };
    let links = place.as_ref().and_then(|p| p.as_ref().ok()).map_or_else(Links::default, |p| p.links.clone());
    let comment = comment(&record, &verdict, &links);
    match args.format {
        Form::Text => output::print(&record, &verdict, Format::Text),
        Form::Markdown => output::print(&record, &verdict, Format::Markdown),
        Form::Json => output::print(&record, &verdict, Format::Json),
        Form::Comment => {
            // As with the other forms: a reader that went away must not change the exit code.
            let _ = anstream::stdout().write_all(comment.fit(github::BUDGET).as_bytes());
        }
    }
    if let Some(place) = place {
        let published = match place {
            Ok(p) => github::publish_at(&p.to, p.head.as_ref(), &comment, args.comment, stop, &Pace::default()),
            Err(what) => Published::Failed { what },
        };
        tell(&published);
    }
    Ok(if args.exit_zero { exit::PASS } else { verdict.exit_code })
}

/// Reads a record that anybody may have written.
fn read(path: &Path) -> Result<Record, Failure> {
    let name = path.display().to_string();
    let help = "give the record.json that `sidegate gate --out DIR` wrote";
    let kind = path.symlink_metadata().map_err(|e| Problem::new(&name, format!("cannot read: {e}")).help(help))?;
    if !kind.is_file() {
        return Err(Problem::new(&name, "not a plain file (links are not followed)").help(help).into());
    }
    if kind.len() > MAX_BYTES {
        return Err(Problem::new(&name, format!("larger than {} MiB", MAX_BYTES >> 20)).help(help).into());
    }
    let record = files::read_record(path)?;
    match beyond(&record) {
        None => Ok(record),
        Some(what) => Err(Problem::new(&name, format!("not what a gate measures: {what}")).help(help).into()),
    }
}

/// What of a record is beyond anything that a gate writes.
fn beyond(record: &Record) -> Option<String> {
    if record.targets.len() > MAX_TARGETS {
        return Some(format!("{} targets", record.targets.len()));
    }
    let scope = &record.scope;
    if scope.unmeasured.len() > MAX_TARGETS || scope.notes.len() > MAX_TARGETS {
        return Some(format!("more than {MAX_TARGETS} targets that were not measured"));
    }
    if scope.unmeasured.iter().any(|u| u.target.chars().count() > MAX_NAME) {
        return Some(format!("a name of more than {MAX_NAME} characters"));
    }
    let mut slices = 0;
    for target in &record.targets {
        let names = target.base.iter().chain([&target.head]).map(|s| &s.file).chain([&target.name]);
        let mut names = names.chain(target.scenarios.iter().map(|s| &s.name));
        if names.any(|name| name.chars().count() > MAX_NAME) {
            return Some(format!("a name of more than {MAX_NAME} characters"));
        }
        if target.blocks.len() > MAX_BLOCKS {
            return Some(format!("{} blocks", target.blocks.len()));
        }
        if target.scenarios.len() > MAX_SCENARIOS {
            return Some(format!("{} scenarios", target.scenarios.len()));
        }
        slices += target.blocks.iter().map(|b| b.slices.len()).sum::<usize>();
    }
    (slices > MAX_SLICES).then(|| format!("{slices} slices"))
}

fn place(args: &Args) -> Result<github::Place, String> {
    let said = Said {
        repository: args.repo.clone(),
        pull_number: args.pr,
        head_sha: args.sha.clone(),
        api_url: args.api_url.clone(),
        key: args.key.clone(),
    };
    let variable = |name: &str| std::env::var(name).ok();
    let event = variable("GITHUB_EVENT_PATH").filter(|p| !p.is_empty()).map(|p| files::read_text(Path::new(&p)));
    match event.transpose() {
        Ok(event) => github::place(&said, &variable, event.as_deref()),
        Err(problem) => {
            Err(format!("the event cannot be read ({}): give --pr and --sha", on_one_line(&problem.message)))
        }
    }
}

/// One line on standard error.
pub fn tell(published: &Published) {
    let line = match published {
        Published::Created { url } => format!("comment created: {url}"),
        Published::Updated { url } => format!("comment updated: {url}"),
        Published::Unchanged { url } => format!("comment unchanged: {url}"),
        Published::Skipped { why } => format!("no comment: {why}"),
        Published::Failed { what } => format!("no comment: {what}"),
    };
    let _ = writeln!(anstream::stderr(), "sidegate: {}", on_one_line(&line));
}
