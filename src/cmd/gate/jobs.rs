//! From the blobs of two commits to files that can be measured, those that changed most first.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::cmd::gate::order::Subject;
use crate::cmd::gate::targets::{Concerned, Selection};
use crate::exit::Failure;
use crate::files::ConfigFile;
use crate::git::{Entry, Repository};
use crate::problem::Problem;
use crate::record::{Unmeasured, Why};

/// Targets in the order in which they run, and the folder with their texts: private, and gone with this.
#[derive(Debug)]
pub struct Jobs {
    pub all: Vec<Job>,
    _folder: TempDir,
}

#[derive(Debug)]
pub struct Job {
    pub subject: Subject,
    /// Lines that are not the same in base and head.
    changed_lines: usize,
    /// The first of head that differs; 1 where none does.
    pub first_changed_line: u32,
}

/// Reads and lays out every concerned target. What cannot be read is moved to the unmeasured.
pub fn lay_out(repository: &Repository, selection: &mut Selection, no_base: &str) -> Result<Jobs, Failure> {
    let folder = tempfile::Builder::new().prefix("sidegate-texts-").tempdir().map_err(|e| no_room(&e))?;
    let mut all = Vec::new();
    for (at, one) in std::mem::take(&mut selection.concerned).into_iter().enumerate() {
        match lay_out_one(repository, &one, no_base, &folder.path().join(at.to_string()))? {
            Ok(job) => all.push(job),
            Err(message) => selection.unmeasured.push(Unmeasured {
                message: format!("it is {message}"),
                base: one.base.map(|(path, _)| path),
                head: Some(one.head.0),
                target: one.target,
                why: Why::Refused,
                line: None,
            }),
        }
    }
    // Stable: those that changed alike stay in the order of their names.
    all.sort_by_key(|job| std::cmp::Reverse(job.changed_lines));
    Ok(Jobs { all, _folder: folder })
}

fn lay_out_one(
    repository: &Repository,
    one: &Concerned,
    no_base: &str,
    folder: &Path,
) -> Result<Result<Job, String>, Failure> {
    let read = |entry: &Entry| repository.text(entry);
    let (path, entry) = &one.head;
    let head_text = match read(entry)? {
        Ok(text) => text,
        Err(why) => return Ok(Err(why.0)),
    };
    let (base_text, base) = match &one.base {
        None if no_base.is_empty() => (String::new(), Err("the config is new in this change".to_owned())),
        None => (String::new(), Err(no_base.to_owned())),
        Some((path, entry)) => match read(entry)? {
            Ok(text) => {
                let file = write(folder, "base", path, &text)?;
                (text, Ok(file))
            }
            Err(why) => (String::new(), Err(format!("the base is {}", why.0))),
        },
    };
    let head = write(folder, "head", path, &head_text)?;
    Ok(Ok(Job {
        subject: Subject { target: one.target.clone(), base, head },
        changed_lines: changed_lines(&base_text, &head_text),
        first_changed_line: first_changed_line(&base_text, &head_text),
    }))
}

/// The file's own name ends as in the repository: what a config is written in is told by it.
fn write(folder: &Path, arm: &str, name: &str, text: &str) -> Result<ConfigFile, Failure> {
    let kind = if Path::new(name).extension().is_some_and(|e| e == "json") { "json" } else { "yaml" };
    let path = folder.join(format!("{arm}.{kind}"));
    fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)).map_err(|e| no_room(&e))?;
    Ok(ConfigFile { name: name.to_owned(), path, is_copy: true })
}

fn no_room(error: &std::io::Error) -> Failure {
    let problem = Problem::new("", format!("cannot write configs to the temporary folder: {error}"));
    Failure::environment(problem.help("free some space there, or point TMPDIR elsewhere"))
}

/// Lines of either text that the other lacks, wherever they stand.
fn changed_lines(base: &str, head: &str) -> usize {
    let mut count: BTreeMap<&str, i64> = BTreeMap::new();
    base.lines().for_each(|line| *count.entry(line).or_default() -= 1);
    head.lines().for_each(|line| *count.entry(line).or_default() += 1);
    count.values().map(|n| usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX)).sum()
}

fn first_changed_line(base: &str, head: &str) -> u32 {
    let same = base.lines().zip(head.lines()).take_while(|(b, h)| b == h).count();
    let last = head.lines().count();
    // Equal texts differ nowhere; a text that was cut differs at its end.
    let line = if base == head { 1 } else { (same + 1).min(last.max(1)) };
    u32::try_from(line).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_and_found() {
        let base = "a\nb\nc\n";
        for (head, lines, first) in [
            ("a\nb\nc\n", 0, 1),
            ("a\nX\nc\n", 2, 2),
            ("a\nb\n", 1, 2),
            ("a\nb\nc\nd\n", 1, 4),
            ("", 3, 1),
            ("c\na\nb\n", 0, 1),
        ] {
            assert_eq!((changed_lines(base, head), first_changed_line(base, head)), (lines, first), "{head:?}");
        }
    }
}
