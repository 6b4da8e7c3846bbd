//! YAML events to a tree. Iterative, and bounded in depth, nodes and copied bytes, so that no text can exhaust the
//! stack or the memory.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Range, Tag};
use serde_json::{Map, Value};

use super::document::{ALIAS_LIMIT_BYTES, DEPTH_LIMIT, DOCUMENT_LIMIT, NODE_LIMIT, PROBLEM_LIMIT, Place, span};
use super::scalar::{self, Style};
use crate::problem::{Problem, Span};

/// The tree of the only document in `text`.
pub(super) fn read(file: &str, text: &str) -> Result<(Value, Place), Vec<Problem>> {
    let only = documents(file, text, 1)?.into_iter().next();
    only.ok_or_else(|| vec![Problem::new(file, "the file is empty").help("give a proxy config: YAML or JSON")])
}

/// The trees of all documents in `text`, at least one.
pub(super) fn read_all(file: &str, text: &str) -> Result<Vec<(Value, Place)>, Vec<Problem>> {
    let mut all = documents(file, text, DOCUMENT_LIMIT)?;
    // A mark at the beginning or the end makes an empty document, which says nothing.
    if all.len() > 1 {
        let first = all.first().cloned();
        all.retain(|(value, _)| !value.is_null());
        all.extend(first.filter(|_| all.is_empty()));
    }
    match all.is_empty() {
        true => Err(vec![Problem::new(file, "the file is empty").help("give a proxy config: YAML or JSON")]),
        false => Ok(all),
    }
}

fn documents(file: &str, text: &str, most: usize) -> Result<Vec<(Value, Place)>, Vec<Problem>> {
    // Envoy's parser skips a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder { file, most, ..Builder::default() };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, range)) => builder.event(event, range),
            Err(error) => Err(Box::new(syntax(file, text, &error))),
        };
        if let Err(problem) = step {
            builder.problems.push(*problem);
            return Err(builder.problems);
        }
    }
    match builder.problems.is_empty() {
        false => Err(builder.problems),
        true => Ok(builder.roots.into_iter().map(|root| (root.value, root.place)).collect()),
    }
}

fn syntax(file: &str, text: &str, error: &saphyr_parser::ScanError) -> Problem {
    let mark = error.marker();
    let at = span(mark.line(), mark.col() + 1);
    let line = text.lines().nth(mark.line().saturating_sub(1)).unwrap_or_default();
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    let problem = Problem::new(file, format!("not valid YAML: {}", error.info())).at(Some(at));
    if line.get(..indent).is_some_and(|indent| indent.contains('\t')) {
        return problem.help("indent with spaces, YAML does not allow tabs there");
    }
    if error.info().contains("indentation") {
        return problem
            .help("indent continued lines further than the key they belong to; Envoy's parser is laxer here");
    }
    problem.help("correct the text at or just before this place")
}

/// A finished node.
#[derive(Debug, Clone)]
struct Node {
    value: Value,
    place: Place,
    /// Nodes and bytes of text in it, what an alias to it costs.
    nodes: usize,
    bytes: usize,
    /// Levels below it.
    height: usize,
}

/// A collection that is still open.
#[derive(Debug)]
struct Open {
    node: Node,
    anchor: usize,
    /// In a mapping: the key whose value comes next.
    key: Option<Key>,
}

#[derive(Debug)]
struct Key {
    text: String,
    span: Span,
    /// `!ignore` keys only hold anchors; Envoy drops them.
    ignored: bool,
}

#[derive(Debug, Default)]
struct Builder<'a> {
    file: &'a str,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    roots: Vec<Node>,
    documents: usize,
    /// Most documents read.
    most: usize,
    nodes: usize,
    alias_bytes: usize,
    problems: Vec<Problem>,
}

type Step = Result<(), Box<Problem>>;

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, range: Range) -> Step {
        let at = span(range.start.line(), range.start.col() + 1);
        match event {
            Event::DocumentStart(_) => self.document(at),
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), at),
            Event::SequenceStart(anchor, _) => self.begin(Value::Array(Vec::new()), anchor, at),
            Event::MappingStart(anchor, _) => self.begin(Value::Object(Map::new()), anchor, at),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn refuse<T>(&self, at: Span, message: impl Into<String>, help: &str) -> Result<T, Box<Problem>> {
        Err(Box::new(Problem::new(self.file, message).at(Some(at)).help(help)))
    }

    fn document(&mut self, at: Span) -> Step {
        self.documents += 1;
        if self.documents > self.most {
            let help = "keep one config per file; Envoy itself reads the first document and ignores the rest";
            let what = if self.most > 1 { format!("more than {}", self.most) } else { "several".to_owned() };
            return self.refuse(at, format!("the file holds {what} YAML documents"), help);
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, at: Span) -> Step {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODE_LIMIT {
            let message = format!("the document expands to more than {NODE_LIMIT} values");
            return self.refuse(at, message, "write fewer aliases, or split the config");
        }
        Ok(())
    }

    fn copy(&mut self, nodes: usize, bytes: usize, at: Span) -> Step {
        self.count(nodes, at)?;
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        if self.alias_bytes > ALIAS_LIMIT_BYTES {
            let message = format!("anchors and aliases copy more than {ALIAS_LIMIT_BYTES} bytes");
            return self.refuse(at, message, "write fewer aliases");
        }
        Ok(())
    }

    /// Whether the next node is a mapping's key.
    fn expects_key(&self) -> bool {
        self.open.last().is_some_and(|open| open.node.value.is_object() && open.key.is_none())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Option<&Tag>, at: Span) -> Step {
        self.count(1, at)?;
        let plain = style == ScalarStyle::Plain;
        let style = match tag {
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Style::String,
            Some(tag) if tag.handle == "!" && tag.suffix.is_empty() => Style::String,
            Some(_) => Style::Tagged,
            None if plain => Style::Plain,
            None => Style::String,
        };
        if self.expects_key() {
            let ignored = tag.is_some_and(is_ignore);
            let text = if style == Style::Plain && scalar::is_null(text) { "null" } else { text };
            if anchor > 0 {
                self.anchors.insert(anchor, leaf(scalar::value(text, style), at));
            }
            return self.key(text, at, ignored);
        }
        let node = leaf(scalar::value(text, style), at);
        self.finish(node, anchor)
    }

    fn key(&mut self, text: &str, at: Span, ignored: bool) -> Step {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if let Some(entries) = open.node.value.as_object().filter(|entries| entries.contains_key(text) && !ignored) {
            let first = entries.keys().position(|key| key == text).and_then(|at| open.node.place.children.get(at));
            let line = first.and_then(|place| place.key).map_or(0, |key| key.line);
            let message = format!("duplicate key `{text}`: line {} repeats line {line}", at.line);
            let help = "remove one of the two; only the last would count";
            let problem = Problem::new(self.file, message).at(Some(at)).help(help);
            if self.problems.len() + 1 >= PROBLEM_LIMIT {
                return Err(Box::new(problem));
            }
            self.problems.push(problem);
        }
        open.key = Some(Key { text: text.to_owned(), span: at, ignored });
        Ok(())
    }

    fn begin(&mut self, value: Value, anchor: usize, at: Span) -> Step {
        self.count(1, at)?;
        if self.expects_key() {
            let help = "use a plain word as the key; placeholders such as `{{ x }}` must be rendered or quoted first";
            return self.refuse(at, "a list or mapping stands where a key is expected", help);
        }
        if self.open.len() >= DEPTH_LIMIT {
            return self.refuse(at, format!("nested deeper than {DEPTH_LIMIT} levels"), "flatten the config");
        }
        let node = Node { nodes: 1, ..leaf(value, at) };
        self.open.push(Open { node, anchor, key: None });
        Ok(())
    }

    fn end(&mut self) -> Step {
        match self.open.pop() {
            Some(open) => self.finish(open.node, open.anchor),
            None => Ok(()),
        }
    }

    fn alias(&mut self, anchor: usize, at: Span) -> Step {
        let Some(node) = self.anchors.get(&anchor) else {
            return self.refuse(at, "an alias inside its own anchor never ends", "write the value out here");
        };
        let (nodes, bytes, height) = (node.nodes, node.bytes, node.height);
        if self.expects_key() {
            let text = match &node.value {
                Value::String(text) => text.clone(),
                Value::Null => "null".to_owned(),
                Value::Bool(_) | Value::Number(_) => node.value.to_string(),
                _ => return self.refuse(at, "a list or mapping stands where a key is expected", "name the key"),
            };
            return self.key(&text, at, false);
        }
        self.copy(nodes, bytes, at)?;
        if self.open.len() + height >= DEPTH_LIMIT {
            return self.refuse(at, format!("nested deeper than {DEPTH_LIMIT} levels"), "flatten the config");
        }
        let Some(mut node) = self.anchors.get(&anchor).cloned() else { return Ok(()) };
        node.place.span = at;
        self.finish(node, 0)
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, node: Node, anchor: usize) -> Step {
        if anchor > 0 {
            // The copy an anchor keeps is bounded like the copies its aliases make.
            self.copy(node.nodes, node.bytes, node.place.span)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.roots.push(node);
            return Ok(());
        };
        let Node { value, mut place, nodes, bytes, height } = node;
        let parent = &mut open.node;
        match &mut parent.value {
            Value::Array(items) => items.push(value),
            Value::Object(entries) => {
                let Some(key) = open.key.take() else { return Ok(()) };
                if key.ignored {
                    return Ok(());
                }
                place.key = Some(key.span);
                parent.bytes += key.text.len();
                if entries.insert(key.text, value).is_some() {
                    return Ok(());
                }
            }
            _ => return Ok(()),
        }
        parent.place.children.push(place);
        parent.nodes += nodes;
        parent.bytes += bytes;
        parent.height = parent.height.max(height + 1);
        Ok(())
    }
}

fn leaf(value: Value, span: Span) -> Node {
    let bytes = value.as_str().map_or(0, str::len);
    Node { value, place: Place::at(span), nodes: 1, bytes, height: 1 }
}

fn is_ignore(tag: &Tag) -> bool {
    format!("{}{}", tag.handle, tag.suffix) == "!ignore"
}
