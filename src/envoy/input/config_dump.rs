//! What Envoy's admin interface answers to `/config_dump`, as static resources of a bootstrap.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::fields;
use super::gather::Gathered;
use super::resources::{count, typed};
use crate::envoy::node::Node;
use crate::yaml::{Document, Part};

/// Lists of resources: section, list, what it holds, and the fields of an item that lead to the resource.
const LISTS: [(&str, &str, &str, &[&str]); 10] = [
    ("ListenersConfigDump", "static_listeners", "Listener", &["listener"]),
    ("ListenersConfigDump", "dynamic_listeners", "Listener", &["active_state", "listener"]),
    ("ClustersConfigDump", "static_clusters", "Cluster", &["cluster"]),
    ("ClustersConfigDump", "dynamic_active_clusters", "Cluster", &["cluster"]),
    ("RoutesConfigDump", "dynamic_route_configs", "RouteConfiguration", &["route_config"]),
    ("EndpointsConfigDump", "static_endpoint_configs", "ClusterLoadAssignment", &["endpoint_config"]),
    ("EndpointsConfigDump", "dynamic_endpoint_configs", "ClusterLoadAssignment", &["endpoint_config"]),
    ("EcdsConfigDump", "ecds_filters", "TypedExtensionConfig", &["ecds_filter"]),
    ("SecretsConfigDump", "static_secrets", "Secret", &["secret"]),
    ("SecretsConfigDump", "dynamic_active_secrets", "Secret", &["secret"]),
];

/// What a running proxy writes into `node` by itself.
const NODE_OUTPUTS: [&str; 3] = ["extensions", "user_agent_name", "user_agent_build_version"];

pub(super) fn is(root: &Node) -> bool {
    let configs = root.get("configs").map(|configs| configs.items()).unwrap_or_default();
    configs.iter().any(|item| item.type_name().is_some_and(|name| name.starts_with("envoy.admin.")))
}

pub(super) fn read(document: Document, gathered: &mut Gathered) -> Part {
    let mut root = document.into_part(0);
    let mut bootstrap = root.beside(json!({}));
    let mut found = HashSet::new();
    let mut left_out = 0_usize;
    for mut section in fields::take_list(&mut root, "configs") {
        let kind = fields::kind(section.value()).unwrap_or_default().to_owned();
        if kind == "BootstrapConfigDump"
            && let Some(part) = fields::take(&mut section, "bootstrap").filter(|part| part.value().is_object())
        {
            bootstrap = part;
        }
        for (name, list, kind, way) in LISTS.iter().filter(|(name, ..)| *name == kind) {
            found.insert(*name);
            left_out += resources(&mut section, list, kind, way, gathered);
        }
        left_out += fields::take_list(&mut section, "dynamic_warming_clusters").len();
    }
    summary(gathered, left_out);
    take_over(&mut bootstrap, &found, gathered);
    redacted(&bootstrap, gathered);
    bootstrap
}

/// Adds what is in one list of a section; how many of its items have nothing in use.
fn resources(section: &mut Part, list: &str, kind: &str, way: &[&str], gathered: &mut Gathered) -> usize {
    let mut idle = 0;
    for item in fields::take_list(section, list) {
        let resource = way.iter().try_fold(item, |mut part, field| fields::take(&mut part, field));
        match resource.filter(|part| part.value().is_object()) {
            Some(resource) => gathered.add(typed(resource, kind)),
            None => idle += 1,
        }
    }
    idle
}

fn summary(gathered: &mut Gathered, left_out: usize) {
    let resources = &gathered.resources;
    let mut what = format!("read as a config dump: {}", resources.counted());
    if resources.secrets > 0 {
        what.push_str(&format!("; {} left out", count(resources.secrets, "secret")));
    }
    if left_out > 0 {
        what.push_str(&format!(
            "; {} left out, not in use (warming, draining or in error)",
            count(left_out, "resource")
        ));
    }
    gathered.note("", what);
}

/// Leaves of the bootstrap what is not told better by the sections of the dump.
fn take_over(bootstrap: &mut Part, found: &HashSet<&str>, gathered: &mut Gathered) {
    let replaced = [("ListenersConfigDump", "listeners"), ("ClustersConfigDump", "clusters")];
    fields::edit(bootstrap, "", "static_resources", |resources, _| {
        for (_, field) in replaced.iter().filter(|(section, _)| found.contains(section)) {
            fields::take(resources, field);
        }
    });
    fields::edit(bootstrap, "", "node", |node, _| NODE_OUTPUTS.iter().for_each(|field| _ = fields::take(node, field)));
    layers(bootstrap, gathered);
    let Some(dynamic) = fields::take(bootstrap, "dynamic_resources") else { return };
    let (mut named, mut used) = (HashSet::new(), HashSet::new());
    texts(dynamic.value(), &mut named);
    texts(bootstrap.value(), &mut used);
    let resources = &mut gathered.resources;
    let name = |cluster: &Part| fields::text(cluster.value(), "name").unwrap_or_default().to_owned();
    let (asked, others): (Vec<Part>, Vec<Part>) =
        std::mem::take(&mut resources.clusters).into_iter().partition(|cluster| named.contains(&name(cluster)));
    let parts = resources.routes.values().chain(resources.filters.values()).chain(&resources.listeners).chain(&others);
    parts.for_each(|part| texts(part.value(), &mut used));
    let (kept, gone): (Vec<Part>, Vec<Part>) = asked.into_iter().partition(|cluster| used.contains(&name(cluster)));
    let gone: Vec<String> = gone.iter().map(name).collect();
    resources.clusters = kept.into_iter().chain(others).collect();
    let mut what = "`dynamic_resources` left out: what they brought is written in place".to_owned();
    if !gone.is_empty() {
        what.push_str(&format!("; so is `{}`, which only they use", gone.join("`, `")));
    }
    gathered.note("", what);
}

/// Leaves out runtime layers of a service, whose values no dump shows.
fn layers(bootstrap: &mut Part, gathered: &mut Gathered) {
    fields::edit(bootstrap, "", "layered_runtime", |runtime, at| {
        let Some(list) = fields::take(runtime, "layers") else { return };
        let mut kept = list.beside(json!([]));
        for layer in list.into_children() {
            match fields::get(layer.value(), "rtds_layer") {
                Some(_) => {
                    let name = fields::text(layer.value(), "name").unwrap_or_default();
                    gathered.note(at, format!("runtime layer `{name}` left out: a dump does not show what it brought"));
                }
                None => kept.push(layer),
            }
        }
        runtime.insert("layers", kept);
    });
}

/// All texts in a value.
fn texts(value: &Value, into: &mut HashSet<String>) {
    match value {
        Value::String(text) => _ = into.insert(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(entries) => entries.values().for_each(|value| texts(value, into)),
        _ => {}
    }
}

/// Refuses what holds a secret that the dump does not show.
fn redacted(bootstrap: &Part, gathered: &mut Gathered) {
    const HELP: &str = "put a value of the same kind in its place: an example key, never the real one";
    let resources = &gathered.resources;
    let parts = [bootstrap].into_iter().chain(&resources.listeners).chain(&resources.clusters);
    let parts = parts.chain(resources.routes.values()).chain(resources.filters.values());
    let found: Vec<Part> = parts.filter_map(secret).collect();
    found.iter().for_each(|part| gathered.refuse(part, "a secret is redacted in the dump, so it cannot be used", HELP));
}

/// The first redacted text in a part.
fn secret(part: &Part) -> Option<Part> {
    match part.value() {
        // The second is the first, as `inline_bytes` write it.
        Value::String(text) => matches!(text.as_str(), "[redacted]" | "W3JlZGFjdGVkXQ==").then(|| part.clone()),
        Value::Array(_) | Value::Object(_) if hides(part.value()) => {
            part.clone().into_children().iter().find_map(secret)
        }
        _ => None,
    }
}

fn hides(value: &Value) -> bool {
    match value {
        Value::String(text) => matches!(text.as_str(), "[redacted]" | "W3JlZGFjdGVkXQ=="),
        Value::Array(items) => items.iter().any(hides),
        Value::Object(entries) => entries.values().any(hides),
        _ => false,
    }
}
