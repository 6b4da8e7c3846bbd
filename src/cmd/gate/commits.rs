//! Which two commits are compared: by the command line, or by what happened on GitHub.

use crate::cmd::gate::Args;
use crate::exit::Failure;
use crate::git::Repository;
use crate::github::{Context, Event};
use crate::problem::{Problem, on_one_line};

/// The commits, by their full names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Or why there is none.
    pub base: Result<String, String>,
    pub head: String,
    /// Whether head's author may decide what is accepted.
    pub trusted: bool,
    pub notes: Vec<String>,
}

/// Finds both commits; what is missing is told with the setting that brings it.
pub fn compared(args: &Args, context: Option<&Context>, repository: &Repository) -> Result<Compared, Failure> {
    let name = args.head_rev.as_deref().unwrap_or("HEAD");
    let Some(head) = repository.commit(name)? else {
        return Err(missing(repository, name, "the head commit", FULL)?.into());
    };
    let trusted = context.is_none_or(|c| c.same_repository);
    let mut compared = Compared { base: Err(String::new()), head, trusted, notes: Vec::new() };
    compared.base = match (&args.base_rev, context.map(|c| &c.event)) {
        (Some(name), _) => match repository.commit(name)? {
            Some(base) => Ok(base),
            None => return Err(missing(repository, name, "the base commit", FULL)?.into()),
        },
        (None, _) if args.head_rev.is_some() => return Err(no_base("--head-rev is given without a base").into()),
        (None, None) => return Err(nothing_named().into()),
        (None, Some(Event::PullRequest { number, head_sha })) => {
            Ok(first_parent(repository, &compared.head, *number, head_sha)?)
        }
        (None, Some(Event::MergeGroup { base_sha })) => match repository.commit(base_sha)? {
            Some(base) => Ok(base),
            None => return Err(missing(repository, base_sha, "the base of the merge group", FULL)?.into()),
        },
        (None, Some(Event::Push { before: None, .. })) => Err("the push made this branch".to_owned()),
        (None, Some(Event::Push { before: Some(before), forced })) => match repository.commit(before)? {
            Some(base) => Ok(base),
            None if *forced => {
                compared.notes.push(format!(
                    "the push replaced history, and commit {before}, which it replaced, is not here: nothing is compared"
                ));
                Err("the push replaced the commit before it".to_owned())
            }
            None => return Err(missing(repository, before, "the commit before the push", FULL)?.into()),
        },
        (None, Some(Event::Other { name })) => {
            return Err(no_base(&format!("the event `{}` names no base commit", on_one_line(name))).into());
        }
    };
    Ok(compared)
}

const TWO: &str = "give actions/checkout `fetch-depth: 2`";
const FULL: &str = "give actions/checkout `fetch-depth: 0`";

/// The base of a pull request is the first parent of its test merge, which is what actions/checkout checks out. Merge
/// bases are of no use: where history is cut off, they are wrong without a word.
fn first_parent(repository: &Repository, head: &str, number: u64, head_sha: &str) -> Result<String, Failure> {
    let parents = repository.parents(head)?;
    let [base, merged, ..] = parents.as_slice() else { return Err(not_the_merge(head, number).into()) };
    if merged != head_sha {
        return Err(not_the_merge(head, number).into());
    }
    match repository.commit(base)? {
        Some(base) => Ok(base),
        None => Err(missing(repository, "HEAD^1", "the base of the pull request", TWO)?.into()),
    }
}

fn not_the_merge(head: &str, number: u64) -> Problem {
    Problem::new("", format!("HEAD ({head}) is not the merge of pull request {number} into its base"))
        .help("let actions/checkout take its own default: remove `ref:`, and keep `fetch-depth: 2`")
}

fn missing(repository: &Repository, name: &str, what: &str, help: &str) -> Result<Problem, Failure> {
    let name = on_one_line(name);
    if repository.is_shallow()? {
        let message = format!("{what} ({name}) is not here: history was cut off when this repository was cloned");
        return Ok(Problem::new("", message).help(help));
    }
    Ok(Problem::new("", format!("{what} ({name}) is not in this repository"))
        .help("check its spelling, or fetch it first"))
}

fn no_base(why: &str) -> Problem {
    Problem::new("", why)
        .help("name the commit to compare with: the input `base-ref` (--base-rev), for example origin/main")
}

fn nothing_named() -> Problem {
    Problem::new("", "nothing to compare was named")
        .help("name files (--base FILE --head FILE) or commits (--base-rev REV [--head-rev REV] --config GLOB)")
}
