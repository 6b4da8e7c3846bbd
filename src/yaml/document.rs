//! A parsed file: its values, and where in the text each of them stands.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::part::Part;
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

/// Most YAML documents read from one text.
pub(super) const DOCUMENT_LIMIT: usize = 1000;

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
    /// Other files that parts of the tree come from.
    others: Arc<Vec<String>>,
    notes: Arc<Vec<Note>>,
}

/// Something that was done to a text to make this tree of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// JSON pointer to what it is about; empty for the whole.
    pub pointer: String,
    pub what: String,
}

/// Where a node stands. `children` run parallel to the items or entries of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// 0 is the document's own file, `n` the `n`th of its others.
    pub file: u16,
    pub span: Span,
    pub key: Option<Span>,
    pub children: Vec<Place>,
}

impl Place {
    pub(super) fn at(span: Span) -> Self {
        Self { file: 0, span, key: None, children: Vec::new() }
    }

    /// This place, nothing known of what is below.
    pub(super) fn leaf(&self) -> Self {
        Self { file: self.file, key: self.key, ..Self::at(self.span) }
    }

    fn each(&mut self, change: &impl Fn(&mut Self)) {
        change(self);
        self.children.iter_mut().for_each(|child| child.each(change));
    }
}

impl Document {
    /// Reads `text`. As in Envoy, a name that ends in `.json` means JSON and everything else YAML. Returns every
    /// fault found before reading had to stop.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        Self::read(file, text, |file, text| match file.ends_with(".json") {
            true => json::read(file, text),
            false => build::read(file, text),
        })
        .map(|(value, place)| Self::new(file, value, place))
    }

    /// Reads a text that may hold several YAML documents, as `parse` does; at least one.
    pub fn parse_all(file: &str, text: &str) -> Result<Vec<Self>, Vec<Problem>> {
        if file.ends_with(".json") {
            return Ok(vec![Self::parse(file, text)?]);
        }
        let all = Self::read(file, text, build::read_all)?;
        Ok(all.into_iter().map(|(value, place)| Self::new(file, value, place)).collect())
    }

    fn read<T>(
        file: &str,
        text: &str,
        reader: impl Fn(&str, &str) -> Result<T, Vec<Problem>>,
    ) -> Result<T, Vec<Problem>> {
        if text.len() > TEXT_LIMIT_BYTES {
            let message = format!("the file has more than the {TEXT_LIMIT_BYTES} bytes that are read");
            return Err(vec![Problem::new(file, message).help("split the config, or leave out what is not measured")]);
        }
        reader(file, text).map_err(|problems| template::explain(file, text).map_or(problems, |p| vec![p]))
    }

    fn new(file: &str, value: Value, place: Place) -> Self {
        Self { file: file.to_owned(), value, place: Arc::new(place), others: Arc::default(), notes: Arc::default() }
    }

    /// What a document is put together from: its whole tree, as one that stands in file number `file`.
    pub fn into_part(self, file: u16) -> Part {
        let mut place = Arc::unwrap_or_clone(self.place);
        place.each(&|place| place.file = file);
        Part { value: self.value, place }
    }

    /// The part a JSON pointer leads to.
    pub fn part(&self, pointer: &str) -> Option<Part> {
        let value = self.value.pointer(pointer)?.clone();
        Some(Part { value, place: self.nearest(pointer).clone() })
    }

    /// A document made of parts of `file` (number 0) and of `others` (from 1 on).
    pub fn assembled(file: &str, others: Vec<String>, root: Part, notes: Vec<Note>) -> Self {
        Self { others: Arc::new(others), notes: Arc::new(notes), ..Self::new(file, root.value, root.place) }
    }

    /// The same document as a part of another text, so many lines and characters further on.
    #[must_use]
    pub fn moved(self, lines: u32, columns: u32) -> Self {
        let mut place = Arc::unwrap_or_clone(self.place);
        place.each(&|place| {
            place.span = moved(place.span, lines, columns);
            place.key = place.key.map(|key| moved(key, lines, columns));
        });
        Self { place: Arc::new(place), ..self }
    }

    /// The same document under the name of another file.
    #[must_use]
    pub fn named(self, file: &str) -> Self {
        Self { file: file.to_owned(), ..self }
    }

    /// The same document, all of it told as standing at one place.
    #[must_use]
    pub fn standing_at(self, span: Span) -> Self {
        Self { place: Arc::new(Place::at(span)), ..self }
    }

    /// What was done to the text to make this tree.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The file a value stands in, as a number (0: the document's own) and by name, and where.
    pub fn position(&self, pointer: &str) -> (u16, &str, Span) {
        let place = self.nearest(pointer);
        let file = match place.file {
            0 => Some(&self.file),
            at => self.others.get(usize::from(at) - 1),
        };
        (place.file, file.unwrap_or(&self.file), place.key.unwrap_or(place.span))
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
        Self::new(&self.file, value, self.place.leaf())
    }

    /// Where the value at a JSON pointer begins in the document's own file; that of its nearest known ancestor if there
    /// is no such value.
    pub fn span(&self, pointer: &str) -> Option<Span> {
        let place = self.nearest(pointer);
        (place.file == 0).then_some(place.span)
    }

    /// Where the mapping key that holds the value stands; the value itself in a sequence, or the nearest known
    /// ancestor's place. Nothing where that is in another file.
    pub fn key_span(&self, pointer: &str) -> Option<Span> {
        let (file, _, span) = self.position(pointer);
        (file == 0).then_some(span)
    }

    /// A fault at the key of `pointer`.
    pub fn problem(&self, pointer: &str, message: impl Into<String>) -> Problem {
        let (_, file, span) = self.position(pointer);
        Problem::new(file, message).at(Some(span))
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

/// A place so many lines and characters further on.
pub fn moved(span: Span, lines: u32, columns: u32) -> Span {
    Span { line: span.line.saturating_add(lines), column: span.column.saturating_add(columns) }
}

/// `line` and `column` as counted by parsers (`usize`, both from 1) as a span.
pub(super) fn span(line: usize, column: usize) -> Span {
    let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span { line: clamp(line), column: clamp(column) }
}
