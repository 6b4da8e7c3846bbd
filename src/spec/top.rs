//! The file's own level: version, defaults, scenarios, comment, and who reads the rest.

use std::time::Duration;

use jiff::civil::Date;
use serde_json::Value;

use super::reader::{Later, Node, Reader};
use super::value::parse_duration;
use super::{Defaults, SCENARIOS, Spec, accept, target};

pub(super) const KEYS: [&str; 6] = ["version", "defaults", "targets", "scenarios", "accept", "comment"];
pub(super) const DEFAULT_KEYS: [&str; 4] = ["profile", "limits", "envoy", "budget"];
pub(super) const SCENARIO_KEYS: [&str; 1] = ["name"];

const SCENARIO_HELP: &str = "only the built-in scenarios `open` and `closed` exist: leave this key out";
const SCENARIO_LATER: [Later; 8] = [
    ("path", SCENARIO_HELP),
    ("protocol", SCENARIO_HELP),
    ("connection", SCENARIO_HELP),
    ("connections", SCENARIO_HELP),
    ("load", SCENARIO_HELP),
    ("mix", SCENARIO_HELP),
    ("response", SCENARIO_HELP),
    ("concurrency", SCENARIO_HELP),
];

pub fn read(reader: &mut Reader<'_>, value: &Value, today: Date) -> Spec {
    let root = Node::root(value);
    let Some(fields) = reader.fields(&root, "sidegate.yaml", &KEYS, &[]) else {
        return Spec::default();
    };
    if let Some(node) = reader.required(&fields, &root, "version", "sidegate.yaml", "begin the file with `version: 1`")
    {
        version(reader, &node);
    }
    let defaults = fields.get("defaults").map(|node| read_defaults(reader, node)).unwrap_or_default();
    let (targets, names) =
        fields.get("targets").map(|node| target::read(reader, node, defaults.limits)).unwrap_or_default();
    Spec {
        scenarios: fields.get("scenarios").map(|node| scenarios(reader, node)).unwrap_or_default(),
        accept: fields.get("accept").map(|node| accept::read(reader, node, &names, today)).unwrap_or_default(),
        comment: fields.get("comment").and_then(|node| reader.choice(node, "comment")).unwrap_or_default(),
        defaults,
        targets,
    }
}

fn version(reader: &mut Reader<'_>, node: &Node<'_>) {
    match node.value.as_u64() {
        Some(1) => {}
        Some(other) => {
            let help = "this sidegate reads version 1: write `version: 1`, or use the sidegate that wrote the file";
            reader.complain(&node.pointer, format!("version {other} of sidegate.yaml is not known"), help);
        }
        None => reader.wrong_type(node, "`version`", "the number 1"),
    }
}

fn read_defaults(reader: &mut Reader<'_>, node: &Node<'_>) -> Defaults {
    let Some(fields) = reader.fields(node, "`defaults`", &DEFAULT_KEYS, &[]) else {
        return Defaults::default();
    };
    Defaults {
        profile: fields.get("profile").and_then(|n| reader.choice(n, "profile")).unwrap_or_default(),
        limits: fields.get("limits").and_then(|n| reader.choice(n, "limit set")).unwrap_or_default(),
        envoy: fields.get("envoy").and_then(|n| envoy(reader, n)),
        budget: fields.get("budget").and_then(|n| budget(reader, n)),
    }
}

/// A version or a path. A bare `1.40` is a number to YAML and would lose its zero.
pub fn envoy(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<String> {
    if node.value.is_number() {
        reader.wrong_type(node, "`envoy`", "a whole version such as 1.40.0, or a path");
        return None;
    }
    reader.text(node, "`envoy`").map(str::to_owned)
}

fn budget(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Duration> {
    let parsed = node.value.as_str().and_then(parse_duration).filter(|d| !d.is_zero());
    if parsed.is_none() {
        reader.wrong_type(node, "`budget`", "a duration with its unit, such as 90s or 10m");
    }
    parsed
}

fn scenarios(reader: &mut Reader<'_>, node: &Node<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in reader.items(node, "`scenarios`") {
        let Some(fields) = reader.fields(&item, "a scenario", &SCENARIO_KEYS, &SCENARIO_LATER) else { continue };
        let Some(name) = reader.required(&fields, &item, "name", "a scenario", SCENARIO_HELP) else { continue };
        let Some(text) = reader.text(&name, "a scenario's name") else { continue };
        if !SCENARIOS.contains(&text) {
            reader.complain(&name.pointer, format!("the scenario `{text}` is not supported yet"), SCENARIO_HELP);
        } else if names.iter().any(|n| n == text) {
            reader.complain(&name.pointer, format!("the scenario `{text}` stands here twice"), "remove one of the two");
        } else {
            names.push(text.to_owned());
        }
    }
    names
}
