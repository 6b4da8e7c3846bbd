//! The pull-request comment: the reason first, then what changed, then everything else folded; cut by whole sections.

use crate::record::Record;
use crate::verdict::{Outcome, Verdict};

/// What a comment may point at. All of it is the run's own, none of it the record's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// Page of the run: `https://github.com/OWNER/REPO/actions/runs/ID`.
    pub run: Option<String>,
    /// Page of the repository, for links to commits: `https://github.com/OWNER/REPO`.
    pub repository: Option<String>,
    /// Commits compared, 40 hexadecimal digits each.
    pub base_commit: Option<String>,
    pub head_commit: Option<String>,
    /// Whether the record comes from a run that people without write access control (a fork).
    pub untrusted: bool,
}

/// A comment in pieces, so that a size limit cuts whole ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub outcome: Outcome,
    /// Whether the run ends with a code other than 0.
    pub fails: bool,
    /// Never cut.
    head: String,
    /// The first is the most wanted.
    sections: Vec<String>,
}

impl Comment {
    /// At most `budget` bytes of Markdown.
    pub fn fit(&self, budget: usize) -> String {
        let mut out = self.head.clone();
        for section in &self.sections {
            if out.len() + section.len() <= budget {
                out.push_str(section);
            }
        }
        out
    }
}

/// The comment on a verdict.
pub fn comment(record: &Record, verdict: &Verdict, links: &Links) -> Comment {
    let _ = links;
    Comment {
        outcome: verdict.verdict,
        fails: verdict.exit_code != crate::exit::PASS,
        head: super::markdown(record, verdict),
        sections: Vec::new(),
    }
}
