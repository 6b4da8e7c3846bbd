//! What the runner is told: outputs and summary in files, annotations as lines. The runner executes what it reads, so
//! nothing here lets the text of others begin, end or join a command.

use std::fmt::Write as _;

/// The runner drops a whole summary beyond 1 MiB.
pub const SUMMARY_BUDGET: usize = 1_000_000;
/// The runner shows ten a kind and step; all of ours together stay within it.
pub const MOST_ANNOTATIONS: usize = 10;
/// The runner cuts a message at 4096 characters.
const MOST_MESSAGE: usize = 1000;
const MOST_TITLE: usize = 200;

const CUT: &str = "\n\n*The rest did not fit here; the whole report is in the results folder (`report.md`).*\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warning,
    Notice,
}

/// One note at a line of a file of the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub level: Level,
    /// Path in the repository, and line.
    pub place: Option<(String, u32)>,
    pub title: String,
    pub message: String,
}

impl Annotation {
    /// A whole line, its end included.
    pub fn command(&self) -> String {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Notice => "notice",
        };
        let mut line = format!("::{level} ");
        if let Some((file, at)) = &self.place {
            // Writing to a string cannot fail.
            let _ = write!(line, "file={},line={at},", property(file));
        }
        let (title, message) = (cut(&self.title, MOST_TITLE), cut(&self.message, MOST_MESSAGE));
        let _ = writeln!(line, "title={}::{}", property(&title), data(&message));
        line
    }
}

/// At most [`MOST_ANNOTATIONS`] lines, the gravest first; the last says how many more there are.
pub fn annotations(all: &[Annotation]) -> String {
    let mut sorted: Vec<&Annotation> = all.iter().collect();
    sorted.sort_by_key(|a| a.level);
    if sorted.len() <= MOST_ANNOTATIONS {
        return sorted.into_iter().map(Annotation::command).collect();
    }
    let shown = MOST_ANNOTATIONS - 1;
    let mut text: String = sorted[..shown].iter().map(|a| a.command()).collect();
    let more = Annotation {
        level: Level::Notice,
        place: None,
        title: "sidegate".to_owned(),
        message: format!("{} more findings are in the step's summary", sorted.len() - shown),
    };
    text.push_str(&more.command());
    text
}

/// One output as the runner's file takes it; `delimiter` is a fresh random text. `None` where it cannot be told safely.
pub fn output(name: &str, value: &str, delimiter: &str) -> Option<String> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let safe = plain(name) && plain(delimiter) && !value.contains(delimiter) && !value.contains(['\r', '\n', '\0']);
    safe.then(|| format!("{name}<<{delimiter}\n{value}\n{delimiter}\n"))
}

/// Tells the runner to take no commands from here on, until [`resume_commands`] with the same token.
pub fn stop_commands(token: &str) -> String {
    format!("::stop-commands::{token}\n")
}

pub fn resume_commands(token: &str) -> String {
    format!("::{token}::\n")
}

/// `text` as lines that are never commands: nothing but text begins a line with `::`, and `##[` stands nowhere.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_start_matches(is_skipped).starts_with("::") {
            out.push_str("| ");
        }
        out.push_str(&line.replace("##[", "## [").replace('\r', "\u{fffd}"));
    }
    out
}

/// What the runner may skip before it looks for a command, and rather more.
fn is_skipped(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}')
}

/// A report that fits into the summary: cut between blocks, never inside a fence or a folded part.
pub fn summary(report: &str, budget: usize) -> String {
    if report.len() <= budget {
        return report.to_owned();
    }
    let room = budget.saturating_sub(CUT.len());
    let (mut at, mut good, mut folds) = (0, 0, 0_usize);
    let mut fence: Option<usize> = None;
    for line in report.split_inclusive('\n') {
        if at > room {
            break;
        }
        let ticks = line.chars().take_while(|c| *c == '`').count();
        match fence {
            Some(open) if ticks >= open && line.trim_end().len() == ticks => fence = None,
            None if ticks >= 3 => fence = Some(ticks),
            None => {
                if line.trim().is_empty() && folds == 0 {
                    good = at;
                }
                folds += line.matches("<details").count();
                folds = folds.saturating_sub(line.matches("</details>").count());
            }
            Some(_) => {}
        }
        at += line.len();
    }
    format!("{}{CUT}", &report[..good])
}

/// The runner's own escapes for what follows the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A").replace("##[", "## [")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(level: Level) -> Annotation {
        Annotation {
            level,
            place: Some(("a,b:c\n.yaml".to_owned(), 3)),
            title: "t".to_owned(),
            message: "100 %\nx".to_owned(),
        }
    }

    #[test]
    fn annotations_are_escaped_and_counted() {
        assert_eq!(note(Level::Error).command(), "::error file=a%2Cb%3Ac%0A.yaml,line=3,title=t::100 %25%0Ax\n");
        let many: Vec<Annotation> =
            (0..25).map(|i| note(if i == 24 { Level::Error } else { Level::Warning })).collect();
        let text = annotations(&many);
        assert_eq!(text.lines().count(), MOST_ANNOTATIONS);
        assert!(text.starts_with("::error ") && text.contains("16 more findings"), "{text}");
    }

    #[test]
    fn outputs_hold_one_line_or_are_not_told() {
        assert_eq!(output("verdict", "pass", "d1").unwrap(), "verdict<<d1\npass\nd1\n");
        for (name, value, delimiter) in
            [("a", "x\ny", "d"), ("a", "has d1", "d1"), ("a=b", "x", "d"), ("a", "x\r", "d"), ("a", "x", "d\n")]
        {
            assert_eq!(output(name, value, delimiter), None, "{name:?} {value:?}");
        }
    }

    #[test]
    fn text_of_others_is_no_command() {
        let text = harmless("  ::error::x\nok ::y\n##[warning]z\r::set-output name=a::b");
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
        }
        assert!(text.contains("ok ::y"));
    }

    #[test]
    fn a_summary_is_cut_between_blocks() {
        let block = "<details>\n\nfolded\n\n</details>\n\n````yaml\n```\n\n````\n\n";
        let report = format!("# title\n\n{}", block.repeat(50));
        for budget in (200..report.len()).step_by(7) {
            let cut = summary(&report, budget);
            assert!(cut.len() <= budget && cut.ends_with(CUT));
            assert_eq!(cut.matches("<details>").count(), cut.matches("</details>").count());
            assert_eq!(cut.matches("````").count() % 2, 0);
        }
        assert_eq!(summary(&report, report.len()), report);
    }
}
