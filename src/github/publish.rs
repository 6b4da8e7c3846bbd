//! Publishing a comment: where it goes, when it is written, and what came of it.

use crate::github::Token;
use crate::report::Comment;
use crate::stop::Stop;

/// The pull request that gets the comment, and the run that speaks.
#[derive(Debug, Clone)]
pub struct Destination {
    /// `https://api.github.com`, or `https://HOST/api/v3` of an Enterprise server: `GITHUB_API_URL`.
    pub api_url: String,
    pub token: Token,
    pub owner: String,
    pub repo: String,
    pub pull_number: u64,
    /// The pull request's head commit (not the test merge), 40 hexadecimal digits.
    pub head_sha: String,
    pub run_id: u64,
    pub run_attempt: u64,
    /// What tells this gate's comment from that of another gate in the same repository: workflow and config.
    pub key: String,
}

/// When there is a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum CommentPolicy {
    /// On every pull request where something was measured; one that is there is always brought up to date.
    #[default]
    Changes,
    /// On every pull request, also where nothing relevant changed.
    Always,
    /// Where the gate fails; one that is there is always brought up to date.
    Failures,
    /// Never; GitHub is not asked anything.
    Never,
}

/// What came of it. It never changes a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    Created {
        url: String,
    },
    Updated {
        url: String,
    },
    /// The comment that is there says the same already.
    Unchanged {
        url: String,
    },
    /// On purpose, with the reason.
    Skipped {
        why: String,
    },
    /// One line: what failed, and what to do about it.
    Failed {
        what: String,
    },
}

/// Creates, updates or leaves the pull request's comment. Blocks for at most 60 s, less where `stop` is asked for.
pub fn publish(to: &Destination, comment: &Comment, policy: CommentPolicy, stop: &Stop) -> Published {
    let _ = (to, comment, policy, stop);
    Published::Failed { what: "publishing is not there yet".to_owned() }
}
