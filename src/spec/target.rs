//! `targets`: the configs under the gate.

use std::path::PathBuf;

use super::Target;
use super::reader::{Fields, Later, Node, Reader};
use super::{limits, top};
use crate::policy::LimitSet;

pub(super) const KEYS: [&str; 7] = ["name", "config", "envoy", "concurrency", "path", "workload", "limits"];

/// Worker threads beyond which a typing error is likelier than a machine.
const MAX_CONCURRENCY: u64 = 256;
const MAX_NAME: usize = 100;

const LATER: [Later; 2] = [
    ("allow", "remove it; what a config may execute is described in SECURITY.md"),
    ("render", "render the config in a step before sidegate and name the result in `config`"),
];

/// The targets that are whole, and the names of all, so that a faulty one is not called unknown elsewhere.
pub fn read(reader: &mut Reader<'_>, node: &Node<'_>, set: LimitSet) -> (Vec<Target>, Vec<String>) {
    let mut targets = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for item in reader.items(node, "`targets`") {
        let Some(fields) = reader.fields(&item, "a target", &KEYS, &LATER) else { continue };
        let name = reader
            .required(&fields, &item, "name", "a target", "name it; results and baselines are kept under that name")
            .and_then(|n| name(reader, &n));
        if let Some(name) = &name {
            if names.contains(name) {
                let message = format!("the target `{name}` stands here twice");
                reader.complain(&format!("{}/name", item.pointer), message, "give each target a name of its own");
            }
            names.push(name.clone());
        }
        targets.extend(read_one(reader, &item, &fields, name, set));
    }
    (targets, names)
}

fn read_one(
    reader: &mut Reader<'_>,
    item: &Node<'_>,
    fields: &Fields<'_>,
    name: Option<String>,
    set: LimitSet,
) -> Option<Target> {
    let config = reader
        .required(fields, item, "config", "a target", "name the proxy config's file, relative to this one")
        .and_then(|n| config(reader, &n));
    let envoy = fields.get("envoy").and_then(|n| top::envoy(reader, n));
    let concurrency = fields.get("concurrency").and_then(|n| concurrency(reader, n));
    if let Some(n) = fields.get("path") {
        only(reader, n, "path", "one");
    }
    if let Some(n) = fields.get("workload") {
        only(reader, n, "workload", "derived");
    }
    let limits = fields.get("limits").map(|n| limits::read(reader, n, set)).unwrap_or_default();
    Some(Target { name: name?, config: config?, envoy, concurrency, limits })
}

/// Names become file names and words in a comment: letters, digits, `.`, `_`, `-`.
fn name(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<String> {
    let text = reader.text(node, "a target's name")?;
    let fits = text.len() <= MAX_NAME
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        && !text.starts_with(['.', '-']);
    if !fits {
        let help = "use letters, digits, `.`, `_` and `-`, at most 100 of them, beginning with none of `.` and `-`";
        reader.complain(&node.pointer, format!("`{text}` cannot be a target's name"), help);
        return None;
    }
    Some(text.to_owned())
}

fn config(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<PathBuf> {
    let help = "name one file; write one target for each config";
    if node.value.is_array() {
        reader.complain(&node.pointer, "a list of files in `config` is not supported yet", help);
        return None;
    }
    let text = reader.text(node, "`config`")?;
    if text.contains(['*', '?', '[']) {
        reader.complain(&node.pointer, "a pattern in `config` is not supported yet", help);
        return None;
    }
    if text.ends_with('/') {
        reader.complain(&node.pointer, "a directory in `config` is not supported yet", help);
        return None;
    }
    Some(PathBuf::from(text))
}

fn concurrency(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<u32> {
    let number = node.value.as_u64().filter(|n| (1..=MAX_CONCURRENCY).contains(n)).and_then(|n| u32::try_from(n).ok());
    if number.is_none() {
        reader.wrong_type(node, "`concurrency`", "a whole number of worker threads from 1 to 256");
    }
    number
}

/// A key whose other values belong to later versions.
fn only(reader: &mut Reader<'_>, node: &Node<'_>, key: &str, word: &str) {
    if let Some(text) = reader.text(node, &format!("`{key}`"))
        && text != word
    {
        let message = format!("`{key}: {text}` is not supported yet");
        reader.complain(&node.pointer, message, format!("only `{key}: {word}` exists; leave the key out"));
    }
}
