//! Pieces of a config: answers of discovery services, lists of resources, or one resource alone.

use serde_json::{Value, json};

use super::gather::Gathered;
use super::resources::typed;
use super::{fields, resources};
use crate::envoy::node::Node;
use crate::yaml::{Document, Part};

/// Lists of `static_resources`, and what they hold.
const LISTS: [(&str, &str); 2] = [("listeners", "Listener"), ("clusters", "Cluster")];
const KNOWN: [&str; 5] = ["Listener", "Cluster", "RouteConfiguration", "ClusterLoadAssignment", "Resource"];
const PREFIX: &str = "type.googleapis.com/";

pub(super) fn is(root: &Node) -> bool {
    if root.value.is_array() {
        return root.items().iter().any(is_resource);
    }
    let lists = ["resources", "listeners", "clusters"].iter();
    let mut lists = lists.filter_map(|field| root.get(field)).filter(|list| list.value.is_array());
    is_resource(root) || is_by_type(root.value) || lists.any(|list| list.items().iter().any(is_resource))
}

/// Resources by type and name, as Kuma shows them.
fn is_by_type(value: &Value) -> bool {
    let entries = fields::get(value, "xds").and_then(Value::as_object);
    entries.is_some_and(|entries| entries.keys().any(|key| key.starts_with(PREFIX)))
}

fn by_type(mut root: Part) -> Vec<Part> {
    let Some(mut types) = fields::take(&mut root, "xds") else { return Vec::new() };
    let names: Vec<String> = types.value().as_object().into_iter().flat_map(|types| types.keys().cloned()).collect();
    let resources = names.iter().filter_map(|name| Some((name, types.remove(name)?)));
    let typed = |(name, parts): (&String, Part)| {
        let kind = name.rsplit(['/', '.']).next().unwrap_or_default().to_owned();
        parts.into_children().into_iter().map(move |part| typed(part, &kind))
    };
    resources.flat_map(typed).collect()
}

fn is_resource(node: &Node) -> bool {
    match node.value.get("@type") {
        Some(_) => fields::kind(node.value).is_some_and(|kind| KNOWN.contains(&kind)),
        None => resources::guess(node.value).is_some(),
    }
}

/// The resources in a fragment or in a file of a discovery by files.
pub(super) fn resources(mut root: Part) -> Vec<Part> {
    if root.value().is_array() {
        return root.into_children();
    }
    if is_by_type(root.value()) {
        return by_type(root);
    }
    if resources::kind(root.value()).is_none_or(|kind| kind == "DiscoveryResponse") {
        let mut found = fields::take_list(&mut root, "resources");
        for (list, kind) in LISTS {
            found.extend(fields::take_list(&mut root, list).into_iter().map(|part| typed(part, kind)));
        }
        return found;
    }
    vec![root]
}

pub(super) fn read(document: Document, gathered: &mut Gathered) -> Part {
    let root = document.into_part(0);
    let bootstrap = root.beside(json!({}));
    resources(root).into_iter().for_each(|part| gathered.add(part));
    let what = format!("read as a part of a config: {}", gathered.resources.counted());
    gathered.note("", what);
    if !gathered.resources.others.is_empty() {
        let kinds: Vec<&str> = gathered.resources.others.keys().map(String::as_str).collect();
        gathered.note("", format!("resources of other types left out: {}", kinds.join(", ")));
    }
    gathered.fills_clusters = true;
    if gathered.resources.listeners.is_empty() {
        listeners(gathered);
    }
    bootstrap
}

/// A listener for each route configuration, or else one with a route to each cluster.
fn listeners(gathered: &mut Gathered) {
    let mut found: Vec<(Part, String)> = gathered
        .resources
        .routes
        .iter()
        .map(|(name, routes)| (routes.clone(), format!("a listener added for the route configuration `{name}`")))
        .collect();
    if found.is_empty()
        && let Some(first) = gathered.resources.clusters.first()
    {
        let names: Vec<&str> =
            gathered.resources.clusters.iter().filter_map(|part| fields::text(part.value(), "name")).collect();
        let routes = json!({"virtual_hosts": [{"name": "clusters", "domains": ["*"], "routes": to_each(&names)}]});
        found.push((first.beside(routes), "a listener with a route to each cluster added".to_owned()));
    }
    for (at, (routes, what)) in found.into_iter().enumerate() {
        gathered.note(&format!("/static_resources/listeners/{at}"), what);
        gathered.resources.listeners.push(listener(at, routes));
    }
}

fn to_each(clusters: &[&str]) -> Vec<Value> {
    let only = clusters.len() == 1;
    let prefix = |at: usize| if only { "/".to_owned() } else { format!("/{}/", at + 1) };
    let route = |(at, name): (usize, &&str)| json!({"match": {"prefix": prefix(at)}, "route": {"cluster": name}});
    clusters.iter().enumerate().map(route).collect()
}

/// A plain HTTP listener with these routes; Envoy's own defaults in all else.
fn listener(at: usize, routes: Part) -> Part {
    const PACKAGE: &str = "envoy.extensions.filters";
    let place = routes.beside(Value::Null);
    let new = |value: Value| place.beside(value);
    let listed = |part: Part| {
        let mut list = new(json!([]));
        list.push(part);
        list
    };
    let router = json!({"@type": format!("{PREFIX}{PACKAGE}.http.router.v3.Router")});
    let mut manager = new(json!({
        "@type": format!("{PREFIX}{PACKAGE}.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "fragment",
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
    }));
    manager.insert("route_config", routes);
    let mut filter = new(json!({"name": "envoy.filters.network.http_connection_manager"}));
    filter.insert("typed_config", manager);
    let mut chain = new(json!({}));
    chain.insert("filters", listed(filter));
    let mut listener = new(json!({
        "name": format!("fragment-{at}"),
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 80}},
    }));
    listener.insert("filter_chains", listed(chain));
    listener
}
