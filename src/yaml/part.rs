//! A value together with its places in the text: what a document is put together from.

use std::mem;

use serde_json::Value;

use super::document::Place;
use crate::problem::Span;

/// A value, and where it and all below it stand.
#[derive(Debug, Clone)]
pub struct Part {
    pub(super) value: Value,
    pub(super) place: Place,
}

impl Part {
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Which of its document's files it stands in (0: the document's own), and where.
    pub fn place(&self) -> (u16, Span) {
        (self.place.file, self.place.span)
    }

    /// A value that stands in no text: it is told where this one stands.
    #[must_use]
    pub fn beside(&self, value: Value) -> Self {
        let place = Place { file: self.place.file, span: self.place.span, key: self.place.key, children: Vec::new() };
        Self { value, place }
    }

    /// Takes an entry out of a mapping.
    pub fn remove(&mut self, key: &str) -> Option<Self> {
        let entries = self.value.as_object_mut()?;
        let at = entries.keys().position(|entry| entry == key)?;
        let value = entries.shift_remove(key)?;
        let place = match self.place.children.len() {
            len if at < len => self.place.children.remove(at),
            _ => self.place.leaf(),
        };
        Some(Self { value, place })
    }

    /// Puts an entry into a mapping, in place of one of the same key.
    pub fn insert(&mut self, key: &str, part: Self) {
        self.remove(key);
        let Some(entries) = self.value.as_object_mut() else { return };
        let known = self.place.children.len() == entries.len();
        entries.insert(key.to_owned(), part.value);
        if known {
            self.place.children.push(part.place);
        }
    }

    /// Adds an item to a list.
    pub fn push(&mut self, part: Self) {
        let Some(items) = self.value.as_array_mut() else { return };
        let known = self.place.children.len() == items.len();
        items.push(part.value);
        if known {
            self.place.children.push(part.place);
        }
    }

    /// Changes an entry where it stands.
    pub fn edit(&mut self, key: &str, change: impl FnOnce(&mut Self)) {
        let Some(entries) = self.value.as_object_mut() else { return };
        let Some(at) = entries.keys().position(|entry| entry == key) else { return };
        let Some(value) = entries.get_mut(key) else { return };
        edit(&mut self.place, value, at, change);
    }

    /// Changes an item where it stands.
    pub fn edit_item(&mut self, at: usize, change: impl FnOnce(&mut Self)) {
        let Some(value) = self.value.as_array_mut().and_then(|items| items.get_mut(at)) else { return };
        edit(&mut self.place, value, at, change);
    }

    /// The items of a list or the values of a mapping; nothing for any other value.
    pub fn into_children(self) -> Vec<Self> {
        let items = match self.value {
            Value::Array(items) => items,
            Value::Object(entries) => entries.into_iter().map(|(_, value)| value).collect(),
            _ => return Vec::new(),
        };
        let leaf = self.place.leaf();
        let mut places = self.place.children.into_iter();
        items.into_iter().map(|value| Self { value, place: places.next().unwrap_or_else(|| leaf.clone()) }).collect()
    }
}

fn edit(parent: &mut Place, value: &mut Value, at: usize, change: impl FnOnce(&mut Part)) {
    let leaf = parent.leaf();
    let place = parent.children.get_mut(at);
    let taken = place.map_or(leaf, |place| {
        let empty = place.leaf();
        mem::replace(place, empty)
    });
    let mut part = Part { value: value.take(), place: taken };
    change(&mut part);
    *value = part.value;
    if let Some(place) = parent.children.get_mut(at) {
        *place = part.place;
    }
}
