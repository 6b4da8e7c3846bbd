//! A parsed file: its values, and where in the text each of them stands.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{build, json, template};
use crate::problem::{Problem, Span};

/// Longest text read, in bytes. The largest real configs and dumps seen are below 1 MiB.
pub(super) const TEXT_LIMIT_BYTES: usize = 8 << 20;
/// Deepest nesting read. Envoy's own limit for JSON is 100; real configs stay below 30.
pub(super) const DEPTH_LIMIT: usize = 200;
/// Most nodes a document may expand to, aliases counted as often as they are used.
pub(super) const NODE_LIMIT: usize = 300_000;
/// Most bytes of text that aliases may copy.
pub(super) const ALIAS_LIMIT_BYTES: usize = 16 << 20;

/// Duplicate keys reported before reading stops.
pub(super) const PROBLEM_LIMIT: usize = 20;

/// One YAML or JSON document.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file's name as the user gave it.
    pub file: String,
    /// The tree as Envoy would see it.
    pub value: Value,
    /// Shared, because readers keep a copy of the document.
    place: Arc<Place>,
}

/// Where a node stands. `children` run parallel to the items or entries of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub span: Span,
    pub key: Option<Span>,
    pub children: Vec<Place>,
}

impl Document {
    /// Reads `text`. As in Envoy, a name that ends in `.json` means JSON and everything else YAML. Returns every
    /// fault found before reading had to stop.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        if text.len() > TEXT_LIMIT_BYTES {
            let message = format!("the file has more than the {TEXT_LIMIT_BYTES} bytes that are read");
            return Err(vec![Problem::new(file, message).help("split the config, or leave out what is not measured")]);
        }
        let read = if file.ends_with(".json") { json::read(file, text) } else { build::read(file, text) };
        let (value, place) = read.map_err(|problems| template::explain(file, text).map_or(problems, |p| vec![p]))?;
        Ok(Self { file: file.to_owned(), value, place: Arc::new(place) })
    }

    /// Reads a file as `parse` does.
    pub fn open(path: &Path) -> Result<Self, Vec<Problem>> {
        let file = path.display().to_string();
        let fault = |message: String, help: &str| vec![Problem::new(&file, message).help(help)];
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| {
            // One byte beyond the limit is enough to see that there are too many, even in an endless file.
            file.take(TEXT_LIMIT_BYTES as u64 + 1).read_to_end(&mut bytes)
        });
        read.map_err(|error| fault(format!("cannot be read: {error}"), "check the file's name and permissions"))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            fault(format!("not text: byte {at} is not UTF-8"), "save the file as UTF-8")
        })?;
        Self::parse(&file, &text)
    }

    /// Another tree under the same file name. Its places in the text are not known: all are told as the file's start.
    #[must_use]
    pub fn edited(&self, value: Value) -> Self {
        let place = Place { span: self.place.span, key: None, children: Vec::new() };
        Self { file: self.file.clone(), value, place: Arc::new(place) }
    }

    /// Where the value at a JSON pointer begins; that of its nearest known ancestor if there is no such value.
    pub fn span(&self, pointer: &str) -> Option<Span> {
        Some(self.nearest(pointer).span)
    }

    /// Where the mapping key that holds the value stands; the value itself in a sequence, or the nearest known
    /// ancestor's place.
    pub fn key_span(&self, pointer: &str) -> Option<Span> {
        let place = self.nearest(pointer);
        Some(place.key.unwrap_or(place.span))
    }

    /// A fault at the key of `pointer`.
    pub fn problem(&self, pointer: &str, message: impl Into<String>) -> Problem {
        Problem::new(&self.file, message).at(self.key_span(pointer))
    }

    fn nearest(&self, pointer: &str) -> &Place {
        let (mut place, mut value) = (self.place.as_ref(), &self.value);
        for token in pointer.split('/').skip(1) {
            let token: Cow<str> = match token.contains('~') {
                true => token.replace("~1", "/").replace("~0", "~").into(),
                false => token.into(),
            };
            let found = match value {
                Value::Array(items) => {
                    token.parse().ok().and_then(|at: usize| Some((items.get(at)?, place.children.get(at)?)))
                }
                Value::Object(entries) => {
                    let at = entries.keys().position(|key| *key == token);
                    at.and_then(|at| Some((entries.get(token.as_ref())?, place.children.get(at)?)))
                }
                _ => None,
            };
            let Some((next_value, next_place)) = found else { break };
            (value, place) = (next_value, next_place);
        }
        place
    }
}

/// `line` and `column` as counted by parsers (`usize`, both from 1) as a span.
pub(super) fn span(line: usize, column: usize) -> Span {
    let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span { line: clamp(line), column: clamp(column) }
}
