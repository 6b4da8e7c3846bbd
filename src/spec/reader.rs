//! Walks a parsed file and collects every fault with its place: what is readable is read, the rest is complained about.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde_json::Value;

use super::nearest::nearest;
use crate::problem::{Problem, Span};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node<'v> {
    pub value: &'v Value,
    /// JSON pointer from the root.
    pub pointer: String,
}

impl Node<'_> {
    pub fn root(value: &Value) -> Node<'_> {
        Node { value, pointer: String::new() }
    }
}

impl<'v> Node<'v> {
    /// The entry `key` of this mapping, which holds `value`.
    pub fn entry(&self, key: &str, value: &'v Value) -> Node<'v> {
        Node { value, pointer: format!("{}/{}", self.pointer, escape(key)) }
    }
}

pub type Fields<'v> = BTreeMap<&'v str, Node<'v>>;

/// A key that other versions or later ones know, and what to write instead.
pub type Later = (&'static str, &'static str);

pub struct Reader<'f> {
    file: &'f str,
    span: &'f dyn Fn(&str) -> Option<Span>,
    problems: Vec<Problem>,
}

impl<'f> Reader<'f> {
    pub fn new(file: &'f str, span: &'f dyn Fn(&str) -> Option<Span>) -> Self {
        Self { file, span, problems: Vec::new() }
    }

    /// All faults, in the order of their lines.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|p| p.span);
        self.problems
    }

    pub fn complain(&mut self, pointer: &str, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::new(self.file, message).at((self.span)(pointer)).help(help));
    }

    /// The entries of a mapping; keys that are neither known nor `null`-valued are complained about.
    pub fn fields<'v>(&mut self, node: &Node<'v>, what: &str, known: &[&str], later: &[Later]) -> Option<Fields<'v>> {
        let Value::Object(map) = node.value else {
            self.wrong_type(node, what, "a mapping of keys to values");
            return None;
        };
        let mut fields = Fields::new();
        for (key, value) in map {
            let child = node.entry(key, value);
            if !known.contains(&key.as_str()) {
                self.unknown_key(&child.pointer, key, what, known, later);
            } else if !value.is_null() {
                fields.insert(key, child);
            }
        }
        Some(fields)
    }

    fn unknown_key(&mut self, pointer: &str, key: &str, what: &str, known: &[&str], later: &[Later]) {
        if let Some((_, instead)) = later.iter().find(|(name, _)| *name == key) {
            self.complain(pointer, format!("`{key}` is not supported yet"), *instead);
            return;
        }
        let help = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.complain(pointer, format!("unknown key `{key}` in {what}"), help);
    }

    /// The entries of a list.
    pub fn items<'v>(&mut self, node: &Node<'v>, what: &str) -> Vec<Node<'v>> {
        let Value::Array(items) = node.value else {
            self.wrong_type(node, what, "a list");
            return Vec::new();
        };
        items.iter().enumerate().map(|(i, value)| Node { value, pointer: format!("{}/{i}", node.pointer) }).collect()
    }

    /// Text that is not empty.
    pub fn text<'v>(&mut self, node: &Node<'v>, what: &str) -> Option<&'v str> {
        match node.value {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            Value::String(_) => {
                self.complain(&node.pointer, format!("{what} is empty"), "write it out, or remove the key");
                None
            }
            _ => {
                self.wrong_type(node, what, "text");
                None
            }
        }
    }

    /// A required entry; its absence is reported at the mapping's own place.
    pub fn required<'v>(
        &mut self,
        fields: &Fields<'v>,
        parent: &Node<'_>,
        key: &str,
        what: &str,
        help: &str,
    ) -> Option<Node<'v>> {
        let found = fields.get(key).cloned();
        if found.is_none() {
            self.complain(&parent.pointer, format!("{what} has no `{key}`"), help);
        }
        found
    }

    /// One of a fixed set of words.
    pub fn choice<T: ValueEnum + Clone>(&mut self, node: &Node<'_>, what: &str) -> Option<T> {
        let names: Vec<String> =
            T::value_variants().iter().filter_map(|v| Some(v.to_possible_value()?.get_name().to_owned())).collect();
        let Value::String(text) = node.value else {
            self.wrong_type(node, what, &format!("one of {}", names.join(", ")));
            return None;
        };
        let found = T::from_str(text, false).ok();
        if found.is_none() {
            let help = match nearest(text, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`? known: {}", names.join(", ")),
                None => format!("known: {}", names.join(", ")),
            };
            self.complain(&node.pointer, format!("unknown {what} `{text}`"), help);
        }
        found
    }

    pub fn wrong_type(&mut self, node: &Node<'_>, what: &str, wanted: &str) {
        let found = match node.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(b) => format!("the truth value {b}"),
            Value::Number(n) => format!("the number {n}"),
            Value::String(s) => format!("the text `{s}`"),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a mapping".to_owned(),
        };
        self.complain(&node.pointer, format!("{what} is {found}"), format!("it should be {wanted}"));
    }
}

/// A key as a JSON pointer writes it (RFC 6901).
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
