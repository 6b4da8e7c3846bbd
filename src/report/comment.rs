//! The pull-request comment: the reason first, then what changed and what to do, then everything else folded. It is made
//! of sections, so that GitHub's limit cuts whole ones.

use super::clean::{cell_code, cell_sentence, code, line, sentence};
use super::{details, findings_of, is_unmeasured, markdown};
use crate::record::Record;
use crate::verdict::{Finding, Outcome, TargetVerdict, Verdict};

/// What a comment may point at, and what its reader should know about the run. All of it comes from the run that
/// publishes, none of it from the record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// Page of the run that measured: `https://github.com/OWNER/REPO/actions/runs/ID`.
    pub run: Option<String>,
    /// Page of the repository, for links to commits: `https://github.com/OWNER/REPO`.
    pub repository: Option<String>,
    /// Commits compared, 40 hexadecimal digits each.
    pub base_commit: Option<String>,
    pub head_commit: Option<String>,
    /// Whether the record comes from code that people without write access control (a fork).
    pub untrusted: bool,
}

/// A comment in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub outcome: Outcome,
    /// Whether the run ends with a code other than 0.
    pub fails: bool,
    /// Never cut; short whatever the record holds.
    head: String,
    /// In the order in which they are read.
    sections: Vec<Section>,
    /// Said where a section had to go.
    cut: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    text: String,
    /// The smallest stay longest.
    rank: usize,
}

/// Targets named in the table at the top.
const MOST_ROWS: usize = 40;
/// Notes on the whole run, and characters of each.
const MOST_NOTES: usize = 10;
const LONGEST_NOTE: usize = 400;
/// Characters of a reason in that table.
const SHORT_REASON: usize = 160;

impl Comment {
    /// At most `budget` bytes of Markdown: whole sections only, those of low rank first, each in its place.
    pub fn fit(&self, budget: usize) -> String {
        let whole: usize = self.head.len() + self.sections.iter().map(|s| s.text.len()).sum::<usize>();
        let kept = if whole <= budget { vec![true; self.sections.len()] } else { self.chosen(budget) };
        let mut out = self.head.clone();
        for (section, _) in self.sections.iter().zip(&kept).filter(|(_, kept)| **kept) {
            out.push_str(&section.text);
        }
        if kept.contains(&false) {
            out.push_str(&self.cut);
        }
        out
    }

    fn chosen(&self, budget: usize) -> Vec<bool> {
        let mut room = budget.saturating_sub(self.head.len() + self.cut.len());
        let mut kept = vec![false; self.sections.len()];
        let mut order: Vec<usize> = (0..self.sections.len()).collect();
        order.sort_by_key(|&i| (self.sections[i].rank, i));
        for i in order {
            if self.sections[i].text.len() <= room {
                room -= self.sections[i].text.len();
                kept[i] = true;
            }
        }
        kept
    }
}

/// The comment on a verdict. Text from configs stands in code spans only.
pub fn comment(record: &Record, verdict: &Verdict, links: &Links) -> Comment {
    let mut targets: Vec<&TargetVerdict> = verdict.targets.iter().collect();
    // Stable: of equals the first stays first.
    targets.sort_by_key(|t| std::cmp::Reverse(t.verdict));
    let several = targets.len() > 1;
    let mut head = heading(verdict, targets.first().copied());
    head.push_str(&about(record, verdict, links));
    let notes: Vec<String> = verdict.notes.iter().take(MOST_NOTES).map(|note| line(note, LONGEST_NOTE)).collect();
    head.push_str(&markdown::list("About this run", &notes));
    if several {
        head.push_str(&overview(&targets));
    }
    let mut sections = Vec::new();
    for target in &targets {
        sections.extend(of_target(record, verdict, target, several));
    }
    Comment {
        outcome: verdict.verdict,
        fails: verdict.exit_code != crate::exit::PASS,
        head,
        sections,
        cut: format!("_This comment was cut to GitHub's limit; all of it is in `report.md`{}._\n", of_run(links)),
    }
}

/// `### ❌ Regression: CPU per request +7.9 % (+5.6 … +10.1 %), limit 5 %`.
fn heading(verdict: &Verdict, worst: Option<&TargetVerdict>) -> String {
    let reason = worst.and_then(|t| t.reasons.first()).map(|reason| sentence(without_scenario(verdict, reason)));
    let reason = reason.unwrap_or_else(|| markdown::meaning(verdict.verdict).to_owned());
    format!("### {} {}: {reason}\n\n", sign(verdict.verdict), markdown::title(verdict.verdict))
}

/// The reason without the name of the scenario in front, which says nothing to who does not know them.
fn without_scenario<'a>(verdict: &Verdict, reason: &'a str) -> &'a str {
    let named = verdict.findings.iter().filter(|f| f.reason == reason && !f.scenario.is_empty());
    let rest = named.filter_map(|f| reason.strip_prefix(f.scenario.as_str())?.strip_prefix(": ")).next();
    rest.unwrap_or(reason)
}

fn sign(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Skipped => "➖",
        Outcome::Pass | Outcome::Improved => "✅",
        Outcome::Inconclusive | Outcome::Invalid => "⚠️",
        Outcome::Regression => "❌",
    }
}

/// Commits, profile, machine, run: one line. And who says all this, where that matters.
fn about(record: &Record, verdict: &Verdict, links: &Links) -> String {
    let mut facts = Vec::new();
    let commits = (shown(links, links.base_commit.as_deref()), shown(links, links.head_commit.as_deref()));
    match commits {
        (Some(base), Some(head)) => facts.push(format!("{base} → {head}")),
        (None, Some(head)) => facts.push(head),
        _ => {}
    }
    if !verdict.targets.is_empty() {
        facts.push(format!("profile {}, limits {}", verdict.profile.name(), verdict.limits.name()));
        let host = &record.host;
        let cpus = if host.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", host.cpus) };
        facts.push(if host.cpu_model.is_empty() { cpus } else { format!("{cpus} of {}", code(&host.cpu_model)) });
    }
    if let Some(run) = links.run.as_deref().filter(|url| is_url(url)) {
        facts.push(format!("[run]({run})"));
    }
    let mut out = if facts.is_empty() { String::new() } else { format!("{}\n\n", facts.join(" · ")) };
    if links.untrusted {
        out.push_str(
            "> The figures come from a run of this pull request's own code, in another repository: they are worth what \
             that code is worth.\n\n",
        );
    }
    out
}

/// A commit as people know it, linked where the repository is known.
fn shown(links: &Links, commit: Option<&str>) -> Option<String> {
    let commit = commit.filter(|c| c.len() >= 40 && c.chars().all(|c| c.is_ascii_hexdigit()))?;
    let short = format!("`{}`", &commit[..7]);
    Some(match links.repository.as_deref().filter(|url| is_url(url)) {
        Some(repository) => format!("[{short}]({repository}/commit/{commit})"),
        None => short,
    })
}

/// Whether a text is an address that a link of Markdown takes whole.
fn is_url(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/%".contains(c);
    text.starts_with("https://") && text.len() < 300 && text.chars().all(plain)
}

fn of_run(links: &Links) -> String {
    match links.run.as_deref().filter(|url| is_url(url)) {
        Some(run) => format!(" of the [run]({run})"),
        None => String::new(),
    }
}

/// All targets, the worst first.
fn overview(targets: &[&TargetVerdict]) -> String {
    let mut out = String::from("| target | result | reason |\n|---|---|---|\n");
    for target in targets.iter().take(MOST_ROWS) {
        let reason = target.reasons.first().map(|r| cell_sentence(&line(r, SHORT_REASON))).unwrap_or_default();
        let result = format!("{} {}", sign(target.verdict), target.verdict.name());
        out.push_str(&format!("| {} | {result} | {reason} |\n", cell_code(&target.target)));
    }
    out.push('\n');
    if targets.len() > MOST_ROWS {
        out.push_str(&format!("… and {} more targets, none of them worse.\n\n", targets.len() - MOST_ROWS));
    }
    out
}

/// What is said of one target, then its folds.
fn of_target(record: &Record, verdict: &Verdict, target: &TargetVerdict, several: bool) -> Vec<Section> {
    let findings: Vec<&Finding> = findings_of(verdict, target).collect();
    let mut text = String::new();
    if several {
        text.push_str(&format!("#### {} {}\n\n", sign(target.verdict), code(&target.target)));
    }
    // The heading, or the table of targets, has said the first reason; the table below says those of metrics.
    let in_table = |reason: &String| findings.iter().any(|f| f.gated && f.reason == *reason);
    let more: Vec<String> = target.reasons.iter().skip(1).filter(|r| !in_table(r)).cloned().collect();
    text.push_str(&markdown::list("Also", &more));
    if is_unmeasured(record, target) {
        text.push_str(&markdown::list("Next steps", &target.next_steps));
        return vec![Section { text, rank: 0 }];
    }
    text.push_str(&markdown::above(record, target, &findings));
    let folds = details::folds(record, verdict, target, &findings);
    let folds = folds.into_iter().enumerate().map(|(i, text)| Section { text, rank: i + 1 });
    std::iter::once(Section { text, rank: 0 }).chain(folds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(letter: &str, length: usize, rank: usize) -> Section {
        Section { text: letter.repeat(length), rank }
    }

    #[test]
    fn whole_sections_are_cut_the_least_wanted_first() {
        let comment = Comment {
            outcome: Outcome::Pass,
            fails: false,
            head: "H".to_owned(),
            sections: vec![section("a", 5, 0), section("b", 9, 1), section("c", 5, 0), section("d", 3, 2)],
            cut: "!".to_owned(),
        };
        assert_eq!(comment.fit(23), "Haaaaabbbbbbbbbcccccddd");
        assert_eq!(comment.fit(22), "Haaaaabbbbbbbbbccccc!");
        assert_eq!(comment.fit(16), "Haaaaacccccddd!");
        assert_eq!(comment.fit(8), "Haaaaa!");
        assert_eq!(comment.fit(0), "H!");
    }

    #[test]
    fn links_are_ours_or_none() {
        for bad in ["http://a", "https://a/)b", "https://a b", "https://a\n", "javascript:x", "https://a?x", "[x"] {
            assert!(!is_url(bad), "{bad}");
        }
        let links = Links { repository: Some("https://git.example/o/r".to_owned()), ..Links::default() };
        assert_eq!(shown(&links, Some("abc")), None);
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let link = format!("[`0123456`](https://git.example/o/r/commit/{commit})");
        assert_eq!(shown(&links, Some(commit)), Some(link));
    }
}
