//! Resources of the discovery services, by type and, where others refer to them, by name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields;
use crate::yaml::Part;

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

/// The type of a resource, by its `@type` or by its fields.
pub(super) fn kind(value: &Value) -> Option<String> {
    let named = fields::kind(value).map(str::to_owned);
    named.or_else(|| guess(value).map(str::to_owned))
}

impl Resources {
    /// Adds a resource. Errors give it back with what is wrong: another one of its name is already there.
    pub fn add(&mut self, mut part: Part) -> Result<(), (Part, String)> {
        if fields::kind(part.value()) == Some("Resource")
            && let Some(inner) = fields::take(&mut part, "resource")
        {
            part = inner;
        }
        let Some(kind) = kind(part.value()) else {
            return Err((part, "this is no resource of a known type".to_owned()));
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

fn named(parts: &mut BTreeMap<String, Part>, part: Part, field: &str, what: &str) -> Result<(), (Part, String)> {
    let name = fields::text(part.value(), field).unwrap_or_default().to_owned();
    match parts.get(&name) {
        // Dumps list a resource once for each subscription to it.
        Some(known) if known.value() != part.value() => {
            let message = format!("two {what} have the name `{name}`, and are not the same");
            Err((part, message))
        }
        Some(_) => Ok(()),
        None => {
            parts.insert(name, part);
            Ok(())
        }
    }
}
