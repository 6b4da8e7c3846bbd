//! Fields of protobuf messages in parts: by proto name or JSON name, a lone message as a list of one.

use serde_json::Value;

use crate::envoy::node::is_named;
use crate::yaml::Part;

/// The field of a message; a null counts as absent.
pub(super) fn get<'v>(value: &'v Value, field: &str) -> Option<&'v Value> {
    let entries = value.as_object()?;
    entries.iter().find(|(key, value)| is_named(key, field) && !value.is_null()).map(|(_, value)| value)
}

pub(super) fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    get(value, field)?.as_str()
}

/// The last part of an `@type`, such as `Listener`.
pub(super) fn kind(value: &Value) -> Option<&str> {
    let name = value.get("@type")?.as_str()?;
    name.rsplit(['/', '.']).next()
}

/// The key a field goes by here.
fn key(value: &Value, field: &str) -> Option<String> {
    value.as_object()?.keys().find(|key| is_named(key, field)).cloned()
}

pub(super) fn take(part: &mut Part, field: &str) -> Option<Part> {
    let key = key(part.value(), field)?;
    part.remove(&key).filter(|taken| !taken.value().is_null())
}

/// The items of a list taken out of a message.
pub(super) fn take_list(part: &mut Part, field: &str) -> Vec<Part> {
    match take(part, field) {
        Some(one) if one.value().is_object() => vec![one],
        list => list.map(Part::into_children).unwrap_or_default(),
    }
}

/// Calls `change` for every message of a list, or the one in its place, with its pointer.
pub(super) fn each(part: &mut Part, pointer: &str, field: &str, mut change: impl FnMut(&mut Part, &str)) {
    let Some(key) = key(part.value(), field) else { return };
    let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    part.edit(&key, |list| match list.value() {
        Value::Object(_) => change(list, &pointer),
        Value::Array(items) => {
            for at in 0..items.len() {
                list.edit_item(at, |item| change(item, &format!("{pointer}/{at}")));
            }
        }
        _ => {}
    });
}

/// Calls `change` for the message at a field, with its pointer. Unlike `each`, nothing is done to the items of a list.
pub(super) fn edit(part: &mut Part, pointer: &str, field: &str, change: impl FnOnce(&mut Part, &str)) {
    let Some(key) = key(part.value(), field) else { return };
    let pointer = format!("{pointer}/{key}");
    part.edit(&key, |inner| {
        if inner.value().is_object() {
            change(inner, &pointer);
        }
    });
}
