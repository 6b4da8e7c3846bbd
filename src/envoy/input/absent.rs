//! Clusters that a fragment's listeners name and that it does not have.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::fields;
use super::gather::Gathered;
use super::join::one_endpoint;
use crate::envoy::node::is_named;
use crate::yaml::Part;

/// Where words of the user's own stand, not names of clusters.
const FREE_TEXT: [&str; 6] =
    ["metadata", "filter_metadata", "typed_filter_metadata", "json_format", "typed_json_format", "load_assignment"];

/// Names of clusters, and whether one is called by gRPC.
type Names = BTreeMap<String, bool>;

impl Gathered<'_> {
    /// Adds the clusters that are named and missing, each with one endpoint.
    pub(super) fn fill_clusters(&mut self, resources: &mut Part) {
        let mut named = Names::new();
        let listeners = fields::get(resources.value(), "listeners");
        listeners.into_iter().for_each(|listeners| names(listeners, "", false, &mut named));
        let clusters = fields::get(resources.value(), "clusters").and_then(Value::as_array);
        let clusters = clusters.map(Vec::as_slice).unwrap_or_default();
        let present: HashSet<String> =
            clusters.iter().filter_map(|cluster| fields::text(cluster, "name")).map(str::to_owned).collect();
        let mut at = clusters.len();
        named.retain(|name, _| !present.contains(name));
        resources.edit("clusters", |list| {
            for (name, grpc) in named {
                list.push(list.beside(cluster(&name, grpc)));
                let what = format!("cluster `{name}` is named but not here: added, STATIC with one endpoint");
                self.note(&format!("/static_resources/clusters/{at}"), what);
                at += 1;
            }
        });
    }
}

fn cluster(name: &str, grpc: bool) -> Value {
    let mut cluster = json!({"name": name, "type": "STATIC", "load_assignment": one_endpoint(name)});
    if let Some(entries) = cluster.as_object_mut().filter(|_| grpc) {
        let options = json!({"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {}},
        }});
        entries.insert("typed_extension_protocol_options".to_owned(), options);
    }
    cluster
}

/// Collects the names of clusters in a value that stands under `field`.
fn names(value: &Value, field: &str, grpc: bool, into: &mut Names) {
    match value {
        Value::String(text) => {
            let is_name = ["cluster", "cluster_name", "collector_cluster"].iter().any(|name| is_named(field, name));
            if is_name && !text.is_empty() && !text.contains('%') {
                *into.entry(text.clone()).or_default() |= grpc;
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, field, grpc, into)),
        Value::Object(entries) => {
            if is_named(field, "clusters")
                && let Some(name) = fields::text(value, "name")
            {
                into.entry(name.to_owned()).or_default();
            }
            for (key, value) in entries {
                if !FREE_TEXT.iter().any(|field| is_named(key, field)) {
                    names(value, key, is_named(key, "envoy_grpc"), into);
                }
            }
        }
        _ => {}
    }
}
