//! A config without its secrets: each replaced by a filler of the same kind and size, so that the config still loads and
//! costs the same.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{filler, secret};

/// One place that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// JSON pointer into the config.
    pub pointer: String,
    /// What it was: the name of its field or header, or what it looked like.
    pub what: String,
    /// Its size as text.
    pub bytes: u64,
}

/// A config fit to be written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Redacted {
    pub document: Value,
    pub places: Vec<Redaction>,
}

/// Fields of a message about a header (or of an entry of a map written as a list) that hold its value.
const VALUE_FIELDS: [&str; 12] = [
    "value",
    "raw_value",
    "exact",
    "prefix",
    "suffix",
    "contains",
    "exact_match",
    "prefix_match",
    "suffix_match",
    "contains_match",
    "string_value",
    "regex",
];

/// Fields of a message that is a secret, or holds one, in which the secret itself stands.
const SOURCE_FIELDS: [&str; 5] = ["inline_string", "inline_bytes", "value", "secret", "key"];

/// Replaces what is secret by name or by its looks. The source text's comments are not part of `document`.
pub fn redact(document: &Value) -> Redacted {
    let mut walk = Walk { places: Vec::new(), path: Vec::new() };
    let mut document = document.clone();
    walk.value(&mut document, &Why::Nothing);
    Redacted { document, places: walk.places }
}

/// Why what lies below is secret.
#[derive(Debug, Clone)]
enum Why {
    Nothing,
    /// Below a field whose name says so.
    Field(String),
    /// In a message about a header or entry whose name says so.
    Header(String),
    /// The users of basic authentication, in the format of htpasswd.
    Users,
    /// In a JSON Web Key.
    Key,
}

struct Walk {
    places: Vec<Redaction>,
    path: Vec<String>,
}

impl Walk {
    fn value(&mut self, value: &mut Value, why: &Why) {
        match value {
            Value::Object(entries) => self.message(entries, why),
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.below(&at.to_string(), |walk| walk.value(item, why));
                }
            }
            // Only a whole field, never one inside of a message, is secret by its context alone.
            Value::String(text) => match why {
                Why::Field(what) | Why::Header(what) => self.text(text, Some(what)),
                Why::Nothing | Why::Users | Why::Key => self.text(text, None),
            },
            Value::Number(number) => {
                if let Why::Field(what) | Why::Header(what) = why {
                    self.note(what, number.to_string().len());
                    *value = filler::number(number);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn message(&mut self, entries: &mut Map<String, Value>, why: &Why) {
        let header = ["key", "name", "header_name", "headerName"]
            .iter()
            .find_map(|field| entries.get(*field)?.as_str().filter(|name| secret::is_secret_name(name)))
            .map(str::to_owned);
        let is_key = entries.contains_key("kty");
        let keyed = matches!(self.path.iter().rev().nth(1).map(String::as_str), Some("credentials"));
        for (field, value) in entries.iter_mut() {
            let plain = snake(field);
            let inner = match (&header, why) {
                _ if is_key && secret::is_key_member(field) => Why::Field(format!("`{field}` of a JSON Web Key")),
                _ if keyed && plain == "key" => Why::Field("key of a client".to_owned()),
                (Some(header), _) if VALUE_FIELDS.contains(&plain.as_str()) => Why::Header(header.clone()),
                (Some(header), _) if is_matcher(&plain) => Why::Header(header.clone()),
                _ if secret::is_secret_name(field) => Why::Field(field.clone()),
                _ if plain == "users" => Why::Users,
                (_, Why::Header(what)) if VALUE_FIELDS.contains(&plain.as_str()) => Why::Header(what.clone()),
                (_, Why::Field(what)) if SOURCE_FIELDS.contains(&plain.as_str()) || plain == "keys" => {
                    Why::Field(what.clone())
                }
                (_, Why::Users) => Why::Users,
                _ if is_key => Why::Key,
                _ => Why::Nothing,
            };
            // A message below a secret field tells by its own fields where the secret stands.
            let field = field.clone();
            self.below(&field, |walk| match (value, &inner) {
                (Value::String(text), Why::Users) if plain.starts_with("inline_") => walk.users(text, &plain),
                (Value::String(text), Why::Field(what)) if plain == "inline_bytes" => walk.bytes(text, what),
                (value, inner) => walk.value(value, inner),
            });
        }
    }

    /// A text: secret as a whole, or in parts.
    fn text(&mut self, text: &mut String, what: Option<&str>) {
        let hidden = |_: &&str| !text.is_empty() && !is_command(text) && !is_public(text);
        if let Some(what) = what.filter(hidden) {
            self.note(what, text.len());
            *text = filler::text(text);
            return;
        }
        if self.embedded(text) {
            return;
        }
        let found = secret::in_text(text);
        for part in found.iter().rev() {
            self.note(part.what, part.at.len());
            let instead = filler::text(&text[part.at.clone()]);
            text.replace_range(part.at.clone(), &instead);
        }
    }

    /// JSON inside of a text, such as a set of web keys.
    fn embedded(&mut self, text: &mut String) -> bool {
        if !text.trim_start().starts_with('{') {
            return false;
        }
        let Ok(mut inner) = serde_json::from_str::<Value>(text) else { return false };
        let before = self.places.len();
        self.value(&mut inner, &Why::Nothing);
        if self.places.len() > before {
            *text = inner.to_string();
        }
        true
    }

    fn bytes(&mut self, text: &mut String, what: &str) {
        if !text.is_empty() {
            self.note(what, text.len());
            *text = filler::base64(text);
        }
    }

    /// `name:{SHA}…` a line: the hash goes, the name too.
    fn users(&mut self, text: &mut String, field: &str) {
        if field == "inline_bytes" {
            return self.bytes(text, "users of basic authentication");
        }
        self.note("users of basic authentication", text.len());
        let line = |line: &str| match line.split_once(":{SHA}") {
            Some((name, hash)) => format!("{}:{{SHA}}{}", filler::text(name), filler::base64(hash)),
            None => filler::text(line),
        };
        *text = text.split('\n').map(line).collect::<Vec<_>>().join("\n");
    }

    fn note(&mut self, what: &str, bytes: usize) {
        let escaped = |step: &String| step.replace('~', "~0").replace('/', "~1");
        let pointer = self.path.iter().map(|step| format!("/{}", escaped(step))).collect();
        self.places.push(Redaction { pointer, what: what.to_owned(), bytes: bytes as u64 });
    }

    fn below(&mut self, step: &str, walk: impl FnOnce(&mut Self)) {
        self.path.push(step.to_owned());
        walk(self);
        self.path.pop();
    }
}

/// A message that matches a header's value.
fn is_matcher(field: &str) -> bool {
    ["string_match", "safe_regex", "safe_regex_match"].contains(&field)
}

/// One command operator of Envoy's formats: taken from the request, not written in the config.
fn is_command(text: &str) -> bool {
    let inner = text.strip_prefix('%').and_then(|rest| rest.strip_suffix('%'));
    inner.is_some_and(|inner| {
        !inner.contains('%') && inner.starts_with(|c: char| c.is_ascii_uppercase()) && inner.contains('(')
    })
}

/// Certificates are public, wherever they stand.
fn is_public(text: &str) -> bool {
    text.trim_start().starts_with("-----BEGIN CERTIFICATE") && !text.contains("PRIVATE KEY")
}

/// `inlineString` as `inline_string`.
fn snake(field: &str) -> String {
    let mut out = String::with_capacity(field.len() + 4);
    for c in field.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
