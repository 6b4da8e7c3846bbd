//! What is wrong with a file or an argument the user gave: collected, located, each with its remedy.

use std::fmt;

/// A place in a text file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Span {
    pub line: u32,
    pub column: u32,
}

/// One fault in the user's input. Shown as `file:line:column: message` and a `help:` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file's name as the user gave it; empty where no file is involved.
    pub file: String,
    pub span: Option<Span>,
    /// What is wrong, a lower-case fragment without a final full stop.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
}

impl Problem {
    pub fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: file.into(), span: None, message: message.into(), help: None }
    }

    #[must_use]
    pub fn at(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", on_one_line(&self.file))?;
            if let Some(Span { line, column }) = self.span {
                write!(f, "{line}:{column}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&behind_bars(&self.message))?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {}", behind_bars(help))?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// `text` without control characters (newlines and tabs kept): a config must not steer the terminal or the CI log.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() || is_bidi(c) => '\u{fffd}',
            c => c,
        })
        .collect::<String>()
        // GitHub's runner takes this for a command wherever it stands in a line.
        .replace("##[", "## [")
}

/// `printable`, each line but the first behind a bar: CI systems take commands from what begins a line, blanks skipped,
/// and the text is another's.
fn behind_bars(text: &str) -> String {
    printable(text).replace('\n', "\n  | ")
}

/// `printable` without line ends.
pub fn on_one_line(text: &str) -> String {
    printable(text).replace('\n', "\u{fffd}")
}

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_problem_begins_with_the_text_of_others() {
        let problem = Problem::new("a\n::error::b", "duplicate key `k\n::error::c\r\n##[error]d`")
            .at(Some(Span { line: 2, column: 1 }))
            .help("rename\n  ::error::e");
        let lines: Vec<String> = problem.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 5);
        let starts = |line: &String| {
            ["a\u{fffd}::error::b:2:1: duplicate", "  | ", "  help: "].iter().any(|s| line.starts_with(s))
        };
        assert!(lines.iter().all(starts), "{lines:#?}");
        assert_eq!(on_one_line("a\nb\u{1b}[1m"), "a\u{fffd}b\u{fffd}[1m");
    }
}
