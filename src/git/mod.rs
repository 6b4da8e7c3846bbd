//! Commits, trees and blobs of the repository, read by the real `git` from its objects; never from the working tree.
//!
//! Only plumbing is used, with the environment and every setting that could run a program taken away: a checkout of a
//! stranger's change decides nothing here but the bytes of its files.

mod parse;
mod process;

use std::collections::BTreeMap;
use std::path::Path;

pub use parse::{Commit, Entry, Kind, Tree};

use crate::exit::Failure;
use crate::git::process::{Git, Output};
use crate::problem::{Problem, on_one_line};
use crate::proxy::Spawner;
use crate::stop::Stop;

/// Larger files are no configs.
pub const MAX_BLOB_BYTES: u64 = 16 << 20;
/// Listing of a tree: some millions of files.
const MAX_LISTING_BYTES: u64 = 256 << 20;
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// One repository.
#[derive(Debug)]
pub struct Repository {
    git: Git,
}

/// Why a blob is not read as a config: a fragment that follows the file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReadable(pub String);

impl Repository {
    /// The repository that holds `folder`. `trusted`: whoever owns its files, as in a container whose workspace belongs
    /// to another user; the user's own settings are then left out too.
    pub fn open(folder: &Path, trusted: bool, spawner: &Spawner, stop: &Stop) -> Result<Self, Failure> {
        let git = Git::new(folder, trusted, spawner.clone(), stop.clone());
        let output = git.run(&["rev-parse", "--is-inside-work-tree"], MAX_ANSWER_BYTES)?;
        if output.succeeded() {
            return Ok(Self { git });
        }
        let said = output.said();
        let problem = Problem::new("", format!("{} is not in a git repository: {said}", folder.display()));
        Err(problem.help("check the repository out first (actions/checkout), and run in its folder").into())
    }

    /// The commit that `revision` names; `None` where this repository does not hold it.
    pub fn commit(&self, revision: &str) -> Result<Option<String>, Failure> {
        if revision.is_empty() || revision.starts_with('-') || revision.contains(['\0', '\n']) {
            let problem = Problem::new("", format!("`{}` is not a revision", on_one_line(revision)));
            return Err(problem.help("give a branch, a tag, a commit, or such as HEAD^1").into());
        }
        let name = format!("{revision}^{{commit}}");
        let output =
            self.git.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name], MAX_ANSWER_BYTES)?;
        let id = output.text().trim().to_owned();
        Ok((output.succeeded() && parse::is_id(&id)).then_some(id))
    }

    /// Whether history was cut off when this was cloned.
    pub fn is_shallow(&self) -> Result<bool, Failure> {
        let output = self.git.run(&["rev-parse", "--is-shallow-repository"], MAX_ANSWER_BYTES)?;
        Ok(output.text().trim() == "true")
    }

    /// The parents that a commit names, whether or not they are here.
    pub fn parents(&self, commit: &str) -> Result<Vec<String>, Failure> {
        let output = self.good(&["cat-file", "commit", commit], MAX_ANSWER_BYTES)?;
        Ok(parse::commit(&output.stdout).parents)
    }

    /// Every file of a commit.
    pub fn tree(&self, commit: &str) -> Result<Tree, Failure> {
        let output = self.good(&["ls-tree", "-r", "-z", "--full-tree", commit], MAX_LISTING_BYTES)?;
        parse::tree(&output.stdout).ok_or_else(|| strange("ls-tree").into())
    }

    /// Renames from `base` to `head`: old path by new path.
    pub fn renames(&self, base: &str, head: &str) -> Result<BTreeMap<String, String>, Failure> {
        let arguments = ["diff-tree", "-r", "-z", "-M", "-l4000", "--name-status", "--diff-filter=R", "--no-ext-diff"];
        let arguments = [&arguments[..], &["--no-textconv", base, head]].concat();
        let output = self.good(&arguments, MAX_LISTING_BYTES)?;
        parse::renames(&output.stdout).ok_or_else(|| strange("diff-tree").into())
    }

    /// The text of a file as it was committed, line ends untouched.
    pub fn text(&self, entry: &Entry) -> Result<Result<String, NotReadable>, Failure> {
        let refused = |why: String| Ok(Err(NotReadable(why)));
        match entry.kind {
            Kind::File => {}
            Kind::Link => {
                return refused("a symbolic link: where it leads depends on the machine; commit the file".to_owned());
            }
            Kind::Submodule => return refused("a submodule: its files are in another repository".to_owned()),
        }
        let size = self.good(&["cat-file", "-s", &entry.id], MAX_ANSWER_BYTES)?;
        let size: u64 = size.text().trim().parse().map_err(|_| strange("cat-file"))?;
        if size > MAX_BLOB_BYTES {
            return refused(format!("larger than {} MiB", MAX_BLOB_BYTES >> 20));
        }
        let blob = self.good(&["cat-file", "blob", &entry.id], MAX_BLOB_BYTES)?.stdout;
        if blob.starts_with(b"version https://git-lfs.github.com/spec/") {
            return refused("a pointer of Git LFS: the config itself is not in the repository".to_owned());
        }
        match String::from_utf8(blob) {
            Ok(text) => Ok(Ok(text)),
            Err(e) => refused(format!("not UTF-8 text (byte {})", e.utf8_error().valid_up_to())),
        }
    }

    /// What `git` must be able to do.
    fn good(&self, arguments: &[&str], most: u64) -> Result<Output, Failure> {
        let output = self.git.run(arguments, most)?;
        if output.succeeded() {
            return Ok(output);
        }
        let what = arguments.first().copied().unwrap_or_default();
        let problem = Problem::new("", format!("git {what} failed: {}", output.said()));
        Err(Failure::environment(problem.help(
            "the repository is damaged, or objects were left out when it was cloned: check it out again without `filter`",
        )))
    }
}

fn strange(command: &str) -> Problem {
    Problem::new("", format!("git {command} answered what this sidegate cannot read")).help("use git 2.30 or newer")
}
