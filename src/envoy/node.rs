//! One value of a document together with its pointer: how the readers walk a config.

use std::rc::Rc;

use serde_json::Value;

use crate::problem::Problem;
use crate::yaml::Document;

#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub document: &'a Document,
    pub value: &'a Value,
    at: Option<Rc<At<'a>>>,
}

/// The way from the root, shared between siblings: large configs are walked without building their pointers.
#[derive(Debug)]
struct At<'a> {
    parent: Option<Rc<At<'a>>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

impl<'a> Node<'a> {
    pub fn root(document: &'a Document) -> Self {
        Self { document, value: &document.value, at: None }
    }

    /// The node a JSON pointer leads to.
    pub fn find(document: &'a Document, pointer: &str) -> Option<Self> {
        pointer.split('/').skip(1).try_fold(Self::root(document), |node, token| match node.value {
            Value::Array(items) => {
                let at = token.parse().ok()?;
                Some(node.child(Step::Item(at), items.get(at)?))
            }
            Value::Object(entries) => {
                let (key, value) = entries.get_key_value(&token.replace("~1", "/").replace("~0", "~"))?;
                Some(node.child(Step::Field(key), value))
            }
            _ => None,
        })
    }

    /// The JSON pointer of this node.
    pub fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut at = self.at.as_ref();
        while let Some(here) = at {
            steps.push(here.step);
            at = here.parent.as_ref();
        }
        let mut pointer = String::with_capacity(16 * steps.len());
        for step in steps.iter().rev() {
            pointer.push('/');
            match step {
                Step::Field(key) if key.contains(['~', '/']) => {
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
                Step::Field(key) => pointer.push_str(key),
                Step::Item(at) => pointer.push_str(&at.to_string()),
            }
        }
        pointer
    }

    /// Tells this node from all others of its document.
    pub fn id(&self) -> *const Value {
        self.value
    }

    /// The key that holds this node; empty for the root and in lists.
    pub fn key(&self) -> &'a str {
        key(self.at.as_ref())
    }

    /// The key of the list this node's message is an item of.
    pub fn list_key(&self) -> &'a str {
        let item = self.at.as_ref().and_then(|at| at.parent.as_ref());
        key(item.and_then(|at| at.parent.as_ref()))
    }

    /// Whether one of the keys on the way here is this one.
    pub fn is_below(&self, field: &str) -> bool {
        let mut at = self.at.as_ref();
        while let Some(here) = at {
            if matches!(here.step, Step::Field(key) if key == field) {
                return true;
            }
            at = here.parent.as_ref();
        }
        false
    }

    /// The field of a message by its proto name; the JSON name (`loadAssignment`) is accepted as Envoy does. A null
    /// counts as absent.
    pub fn get(&self, field: &str) -> Option<Node<'a>> {
        let entries = self.value.as_object()?;
        let by_name = entries.get_key_value(field);
        let (key, value) = match by_name {
            None if field.contains('_') => entries.iter().find(|(key, _)| is_named(key, field)),
            by_name => by_name,
        }?;
        (!value.is_null()).then(|| self.child(Step::Field(key), value))
    }

    /// `get` along several fields.
    pub fn path(&self, fields: &[&str]) -> Option<Node<'a>> {
        fields.iter().try_fold(self.clone(), |node, field| node.get(field))
    }

    /// The items of the list at `field`; nothing if there is none. A message in place of a list is, as in Envoy, a
    /// list of one.
    pub fn list(&self, field: &str) -> Vec<Node<'a>> {
        match self.get(field) {
            Some(one) if one.value.is_object() => vec![one],
            list => list.map(|list| list.items()).unwrap_or_default(),
        }
    }

    pub fn items(&self) -> Vec<Node<'a>> {
        let Some(items) = self.value.as_array() else { return Vec::new() };
        items.iter().enumerate().map(|(at, value)| self.child(Step::Item(at), value)).collect()
    }

    pub fn entries(&self) -> Vec<(&'a str, Node<'a>)> {
        let Some(entries) = self.value.as_object() else { return Vec::new() };
        entries.iter().map(|(key, value)| (key.as_str(), self.child(Step::Field(key), value))).collect()
    }

    /// Calls `each` for every entry or item.
    pub fn children(&self, mut each: impl FnMut(Node<'a>)) {
        match self.value {
            Value::Object(entries) => {
                entries.iter().for_each(|(key, value)| each(self.child(Step::Field(key), value)));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, value)| each(self.child(Step::Item(at), value)));
            }
            _ => {}
        }
    }

    pub fn text(&self, field: &str) -> Option<&'a str> {
        self.get(field).and_then(|node| node.value.as_str())
    }

    pub fn flag(&self, field: &str) -> Option<bool> {
        let node = self.get(field)?;
        node.value.as_bool().or_else(|| node.value.as_str()?.parse().ok())
    }

    /// A number, or a number in quotes.
    pub fn number(&self, field: &str) -> Option<u64> {
        let node = self.get(field)?;
        node.value.as_u64().or_else(|| node.value.as_str()?.parse().ok())
    }

    /// The name of an enum given by name, in any case as Envoy takes it, or by number.
    pub fn choice(&self, field: &str, names: &[&'static str]) -> Option<String> {
        let node = self.get(field)?;
        match node.value.as_u64().and_then(|at| names.get(usize::try_from(at).ok()?)) {
            Some(name) => Some((*name).to_owned()),
            None => Some(node.value.as_str().map_or_else(|| node.value.to_string(), str::to_uppercase)),
        }
    }

    /// The last part of a typed config's `@type`, such as `HttpConnectionManager`, with its package.
    pub fn type_name(&self) -> Option<&'a str> {
        let full = self.value.as_object()?.get("@type")?.as_str()?;
        Some(full.rsplit('/').next().unwrap_or(full))
    }

    pub fn problem(&self, message: impl Into<String>) -> Problem {
        self.document.problem(&self.pointer(), message)
    }

    fn child(&self, step: Step<'a>, value: &'a Value) -> Node<'a> {
        let at = Some(Rc::new(At { parent: self.at.clone(), step }));
        Node { document: self.document, value, at }
    }
}

fn key<'a>(at: Option<&Rc<At<'a>>>) -> &'a str {
    match at.map(|at| at.step) {
        Some(Step::Field(key)) => key,
        _ => "",
    }
}

/// Whether a key is this field, by proto or by JSON name.
pub(super) fn is_named(key: &str, field: &str) -> bool {
    if key == field {
        return true;
    }
    let mut wanted = field.bytes();
    let mut key = key.bytes();
    loop {
        let next = match wanted.next() {
            Some(b'_') => wanted.next().map(|byte| byte.to_ascii_uppercase()),
            next => next,
        };
        match (next, key.next()) {
            (None, None) => return true,
            (next, found) if next == found => {}
            _ => return false,
        }
    }
}

/// `loadAssignment` as `load_assignment`.
pub(super) fn snake(field: &str) -> String {
    let mut out = String::with_capacity(field.len() + 4);
    for c in field.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
            out.push(c.to_ascii_lowercase());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_go_by_both_names() {
        assert!(is_named("loadAssignment", "load_assignment") && is_named("load_assignment", "load_assignment"));
        assert!(is_named("name", "name"));
        for other in ["loadassignment", "load", "loadAssignments", "LoadAssignment", ""] {
            assert!(!is_named(other, "load_assignment"), "{other}");
        }
    }

    #[test]
    fn pointers_lead_back() {
        let document = Document::parse("t.yaml", "a/b: [{c~d: 1}]").unwrap();
        let node = Node::root(&document).entries()[0].1.items()[0].entries()[0].1.clone();
        assert_eq!(node.pointer(), "/a~1b/0/c~0d");
        assert_eq!(Node::find(&document, &node.pointer()).unwrap().id(), node.id());
        assert_eq!((node.key(), node.list_key()), ("c~d", "a/b"));
    }
}
