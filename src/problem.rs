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
            write!(f, "{}:", printable(&self.file))?;
            if let Some(Span { line, column }) = self.span {
                write!(f, "{line}:{column}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&printable(&self.message))?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {}", printable(help))?;
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
        .collect()
}

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
