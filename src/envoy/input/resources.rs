//! Resources of the discovery services, by type and, where others refer to them, by name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields;
use crate::yaml::Part;

/// `2 listeners`.
pub(super) fn count(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[derive(Debug, Default)]
pub(super) struct Resources {
    pub listeners: Vec<Part>,
    pub clusters: Vec<Part>,
    pub routes: BTreeMap<String, Part>,
    pub endpoints: BTreeMap<String, Part>,
    /// Configs of filters that are discovered by themselves.
    pub filters: BTreeMap<String, Part>,
    pub secrets: usize,
    /// Resources of other types, by type.
    pub others: BTreeMap<String, usize>,
}

/// What a message without `@type` is, by the fields it has.
pub(super) fn guess(value: &Value) -> Option<&'static str> {
    let has = |field: &str| fields::get(value, field).is_some();
    let any = |names: &[&str]| names.iter().any(|name| has(name));
    match () {
        () if any(&["filter_chains", "default_filter_chain", "api_listener", "listener_filters"]) => Some("Listener"),
        () if any(&["virtual_hosts", "vhds"]) => Some("RouteConfiguration"),
        () if has("cluster_name") && has("endpoints") => Some("ClusterLoadAssignment"),
        () if any(&["load_assignment", "connect_timeout", "eds_cluster_config", "lb_policy", "cluster_type"]) => {
            Some("Cluster")
        }
        () => None,
    }
}

/// A resource where its type is known by the place it stands in.
pub(super) fn typed(mut part: Part, kind: &str) -> Part {
    if part.value().is_object() && fields::kind(part.value()).is_none() {
        part.insert("@type", part.beside(Value::from(format!("type.googleapis.com/{kind}"))));
    }
    part
}

/// The type of a resource, by its `@type` or by its fields.
pub(super) fn kind(value: &Value) -> Option<String> {
    let named = fields::kind(value).map(str::to_owned);
    named.or_else(|| guess(value).map(str::to_owned))
}

impl Resources {
    /// What there is, in words.
    pub fn counted(&self) -> String {
        let mut counts = vec![count(self.listeners.len(), "listener"), count(self.clusters.len(), "cluster")];
        if !self.routes.is_empty() {
            counts.push(count(self.routes.len(), "route configuration"));
        }
        match self.endpoints.len() {
            0 => {}
            1 => counts.push("1 set of endpoints".to_owned()),
            sets => counts.push(format!("{sets} sets of endpoints")),
        }
        counts.join(", ")
    }

    /// Adds a resource. Errors give it back with what is wrong: another one of its name is already there.
    pub fn add(&mut self, mut part: Part) -> Result<(), Box<(Part, String)>> {
        if fields::kind(part.value()) == Some("Resource")
            && let Some(inner) = fields::take(&mut part, "resource")
        {
            part = inner;
        }
        let Some(kind) = kind(part.value()) else {
            return Err(Box::new((part, "this is no resource of a known type".to_owned())));
        };
        part.remove("@type");
        match kind.as_str() {
            "Listener" => self.listeners.push(part),
            "Cluster" => self.clusters.push(part),
            "RouteConfiguration" => return named(&mut self.routes, part, "name", "route configurations"),
            "ClusterLoadAssignment" => return named(&mut self.endpoints, part, "cluster_name", "sets of endpoints"),
            "TypedExtensionConfig" => return named(&mut self.filters, part, "name", "filter configs"),
            "Secret" => self.secrets += 1,
            _ => *self.others.entry(kind).or_default() += 1,
        }
        Ok(())
    }
}

fn named(parts: &mut BTreeMap<String, Part>, part: Part, field: &str, what: &str) -> Result<(), Box<(Part, String)>> {
    let name = fields::text(part.value(), field).unwrap_or_default().to_owned();
    if name.is_empty() && field == "cluster_name" {
        // Dumps list those of static clusters too, which need no name.
        return Ok(());
    }
    match parts.get(&name) {
        // Dumps list a resource once for each subscription to it.
        Some(known) if known.value() != part.value() => {
            let message = format!("two {what} have the name `{name}`, and are not the same");
            Err(Box::new((part, message)))
        }
        Some(_) => Ok(()),
        None => {
            parts.insert(name, part);
            Ok(())
        }
    }
}
