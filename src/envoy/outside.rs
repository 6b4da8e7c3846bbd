//! The last walk over the whole config: whatever else would reach a network, a socket or a file of the host.

use std::collections::HashMap;

use super::bootstrap::Findings;
use super::kind::visit;
use super::node::{Node, is_named};
use super::rehost::Apply;
use super::{grpc, transport};

const COPY: &str = "measure a copy without it";
const INLINE: &str = "write the content into the config: `inline_string`";

/// Fields that always reach outside, by what they are.
const REFUSED: [(&str, &str, &str); 14] = [
    ("api_config_source", "this part of the config comes from a discovery service", INLINE_RESOURCE),
    ("path_config_source", "this part of the config comes from another file", INLINE_RESOURCE),
    ("ads", "this part of the config comes from a discovery service", INLINE_RESOURCE),
    ("config_discovery", "the filter's config comes from a discovery service", INLINE_RESOURCE),
    ("sds_config", "secrets come from a discovery service", INLINE_RESOURCE),
    ("filename", "a file of the host is read", INLINE),
    ("environment_variable", "the proxy's environment is read, which is empty in the gate", INLINE),
    ("disk_layer", "runtime values are read from files of the host", "use a `static_layer`"),
    ("rtds_layer", "runtime values come from a discovery service", "use a `static_layer`"),
    ("remote_jwks", "keys are fetched from an issuer, which the backend cannot stand in for", "use `local_jwks`"),
    ("file_per_tap", "requests are written to files of the host", COPY),
    ("lrs_server", "load is reported to a service", COPY),
    ("pipe", "a unix socket of the host is used", COPY),
    ("perf_tracing_file_path", "a trace is written to a file of the host", COPY),
];
const INLINE_RESOURCE: &str = "write the resource into the config";

pub(super) fn read(root: &Node, findings: &mut Findings) {
    let clusters = root.path(&["static_resources"]).map(|node| node.list("clusters")).unwrap_or_default();
    let named = |cluster: &Node| Some((cluster.text("name")?.to_owned(), transport::carries_grpc(cluster)));
    let clusters = clusters.iter().filter_map(named).collect();
    let mut walk = Walk { findings, clusters, logs: HashMap::new() };
    walk.node(root, false);
}

/// `why` of a part that comes from a discovery service, with files in its place where the part names files only.
pub(super) fn origin(part: &Node, why: &str) -> String {
    let (mut file, mut service) = (false, false);
    visit(part, &mut |node| {
        let key = node.key();
        file |= is_named(key, "path_config_source") || (key == "path" && node.value.is_string());
        service |= ["api_config_source", "ads", "ads_config"].iter().any(|field| is_named(key, field));
    });
    if file && !service { why.replace("a discovery service", "files of the host") } else { why.to_owned() }
}

struct Walk<'f> {
    findings: &'f mut Findings,
    /// Whether each carries gRPC.
    clusters: HashMap<String, bool>,
    /// Log files by the path in the config: two logs to one file stay so.
    logs: HashMap<String, usize>,
}

impl Walk<'_> {
    /// `resolver`: inside a list of DNS servers, which nobody asks once all endpoints are addresses.
    fn node(&mut self, node: &Node, resolver: bool) {
        if self.findings.handled.contains(&node.id()) {
            return;
        }
        let field = node.key();
        if let Some((name, why, help)) = REFUSED.iter().find(|(name, ..)| is_named(field, name)) {
            if !node.value.is_null() && node.value != "/dev/null" {
                let why = origin(node, why);
                self.findings.refuse(node, format!("`{name}` cannot be re-hosted yet: {why}"), *help);
            }
            return;
        }
        if node.value.is_string() {
            return self.text(node, field);
        }
        if is_named(field, "envoy_grpc") {
            grpc::through_cluster(node, &self.clusters, self.findings);
        } else if is_named(field, "google_grpc") {
            grpc::direct(node, self.findings);
        }
        let resolver = resolver || field == "resolvers" || is_named(field, "dns_resolvers");
        if node.value.is_object() {
            self.address(node, field, resolver);
            self.uri(node);
            self.log(node);
            self.credentials(node);
        }
        node.children(|child| self.node(&child, resolver));
    }

    /// A placeholder that was never filled in.
    fn text(&mut self, node: &Node, field: &str) {
        const TYPED: [&str; 7] = ["address", "port_value", "name", "cluster", "prefix", "path", "stat_prefix"];
        let Some(text) = node.value.as_str().filter(|_| TYPED.iter().any(|typed| is_named(field, typed))) else {
            return;
        };
        let shell = text.contains("${") && text.contains('}') && !text.contains('\n');
        let mustache = text.contains("{{") && text.contains("}}");
        if shell || mustache {
            let message = format!("`{field}: {text}` is a placeholder: this is a template, not a config");
            self.findings.refuse(node, message, "render it first (for example with envsubst) and give the result");
        }
    }

    fn address(&mut self, node: &Node, field: &str, resolver: bool) {
        let Some(host) = node.text("address") else { return };
        if node.get("port_value").or_else(|| node.get("named_port")).is_none() {
            return;
        }
        let any = host.is_empty() || host == "0.0.0.0" || host == "::" || host.starts_with("127.");
        if resolver || (any && is_named(field, "source_address")) {
            return;
        }
        let message = format!("the address {} is none that is re-hosted", super::socket::written(node));
        self.findings.refuse(node, message, COPY);
    }

    /// `{uri, cluster}`: fine where the cluster is one of the config's, because that one is re-hosted.
    fn uri(&mut self, node: &Node) {
        let (Some(uri), Some(cluster)) = (node.text("uri"), node.get("cluster")) else { return };
        let name = cluster.value.as_str().unwrap_or_default();
        if node.is_below("remote") {
            let message = format!("code or data is fetched from {uri}, which the backend cannot stand in for");
            self.findings.refuse(node, message, "ship it in the config: `local: {inline_string: …}`");
        } else if !self.clusters.contains_key(name) {
            let message = format!("{uri} is called through cluster `{name}`, which the config does not define");
            self.findings.refuse(&cluster, message, "define the cluster under `static_resources`");
        }
    }

    fn log(&mut self, node: &Node) {
        let is_file_log = node.type_name().is_some_and(|name| name.ends_with(".FileAccessLog"));
        for (field, applies) in [("path", is_file_log), ("event_log_path", true)] {
            let Some(path) = node.get(field).filter(|_| applies) else { continue };
            let Some(text) = path.value.as_str() else { continue };
            if text.is_empty() || matches!(text, "/dev/stdout" | "/dev/stderr" | "/dev/null") {
                continue;
            }
            let next = self.logs.len();
            let at = *self.logs.entry(text.to_owned()).or_insert(next);
            let what = format!("log file {text} moved to a private folder, so that the host's file is left alone");
            self.findings.edit(&path, what, Apply::Log(at));
        }
    }

    /// Filters that fetch credentials from the cloud by themselves.
    fn credentials(&mut self, node: &Node) {
        let Some(name) = node.type_name() else { return };
        let found = ["aws_request_signing", "aws_lambda"].iter().any(|part| name.contains(part));
        if found {
            let message = format!("`{name}` fetches credentials from the cloud's metadata service");
            self.findings.refuse(node, message, COPY);
        }
    }
}
