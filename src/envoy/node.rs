//! One value of a document together with its pointer: how the readers walk a config.

use serde_json::Value;

use crate::problem::Problem;
use crate::yaml::Document;

#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub document: &'a Document,
    pub value: &'a Value,
    pub pointer: String,
}

impl<'a> Node<'a> {
    pub fn root(document: &'a Document) -> Self {
        Self { document, value: &document.value, pointer: String::new() }
    }

    /// The field of a message by its proto name; the JSON name (`loadAssignment`) is accepted as Envoy does. A null
    /// counts as absent.
    pub fn get(&self, field: &str) -> Option<Node<'a>> {
        let entries = self.value.as_object()?;
        let (key, value) = entries.get_key_value(field).or_else(|| {
            let camel = camel(field);
            entries.get_key_value(camel.as_str())
        })?;
        (!value.is_null()).then(|| self.child(key, value))
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
        items.iter().enumerate().map(|(at, value)| self.child(&at.to_string(), value)).collect()
    }

    pub fn entries(&self) -> Vec<(&'a str, Node<'a>)> {
        let Some(entries) = self.value.as_object() else { return Vec::new() };
        entries.iter().map(|(key, value)| (key.as_str(), self.child(key, value))).collect()
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
        self.document.problem(&self.pointer, message)
    }

    fn child(&self, key: &str, value: &'a Value) -> Node<'a> {
        let token = key.replace('~', "~0").replace('/', "~1");
        Node { document: self.document, value, pointer: format!("{}/{token}", self.pointer) }
    }
}

/// `load_assignment` as `loadAssignment`.
pub(super) fn camel(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut upper = false;
    for c in field.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                out.extend(c.to_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
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
