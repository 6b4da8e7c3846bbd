//! Standard output of the commands that end in a verdict: the one place that prints results.

use std::io::{IsTerminal, Write};

use crate::record::Record;
use crate::report;
use crate::verdict::Verdict;

/// What goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// A table of 80 columns.
    #[default]
    Text,
    /// What report.md holds.
    Markdown,
    /// What verdict.json holds.
    Json,
}

pub fn print(record: &Record, verdict: &Verdict, format: Format) {
    say(&render(record, verdict, format));
}

pub fn render(record: &Record, verdict: &Verdict, format: Format) -> String {
    match format {
        Format::Text => report::text(record, verdict, std::io::stdout().is_terminal()),
        Format::Markdown => report::markdown(record, verdict),
        Format::Json => report::json(verdict),
    }
}

/// The exit code carries the verdict; a reader that went away must not change it.
pub fn say(text: &str) {
    let mut out = anstream::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
