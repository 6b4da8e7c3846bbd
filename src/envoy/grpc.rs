//! gRPC services that a config calls: stubs answer them, on the ports of the backend that speak HTTP/2.

use std::collections::HashMap;

use super::bootstrap::Findings;
use super::node::Node;
use super::rehost::Apply;

/// `envoy_grpc`: the cluster is one of the config's and moves with all others. `clusters`: which of them carry gRPC.
pub(super) fn through_cluster(service: &Node, clusters: &HashMap<String, bool>, findings: &mut Findings) {
    let Some(cluster) = service.get("cluster_name") else {
        findings.refuse(service, "`envoy_grpc` names no cluster", "give its `cluster_name`");
        return;
    };
    let name = cluster.value.as_str().unwrap_or_default();
    match clusters.get(name) {
        Some(true) => {
            findings.edit(&cluster, format!("gRPC service behind cluster `{name}`: a stub answers it"), Apply::Note);
        }
        Some(false) => {
            let message = format!("a gRPC service is called through cluster `{name}`, which does not speak HTTP/2");
            findings.refuse(&cluster, message, "give the cluster `explicit_http_config: {http2_protocol_options: {}}`");
        }
        None => {
            let message =
                format!("a gRPC service is called through cluster `{name}`, which the config does not define");
            findings.refuse(&cluster, message, "define the cluster under `static_resources`");
        }
    }
}

/// `google_grpc`: the target is an address of its own, which becomes that of a port without TLS.
pub(super) fn direct(service: &Node, findings: &mut Findings) {
    const HELP: &str = "measure a copy with `envoy_grpc`, or without credentials";
    let Some(target) = service.get("target_uri") else {
        findings.refuse(service, "`google_grpc` has no target", "give its `target_uri`");
        return;
    };
    let secured = ["ssl_credentials", "google_default", "local_credentials"];
    let channel = service.get("channel_credentials");
    let found = secured.iter().filter_map(|field| channel.as_ref()?.get(field)).next();
    let plugins =
        ["call_credentials", "credentials_factory_name", "channel_credentials_plugin", "call_credentials_plugin"];
    if let Some(node) = found.or_else(|| plugins.iter().find_map(|field| service.get(field))) {
        let message =
            format!("`google_grpc` with `{}` cannot be re-hosted yet: the stub has no TLS of its kind", node.key());
        findings.refuse(&node, message, HELP);
        // One reason is enough: files of keys below it are not read.
        findings.handled.insert(service.id());
        return;
    }
    let written = target.value.as_str().unwrap_or_default();
    findings.edit(&target, format!("gRPC service {written} moved to a stub on a loopback port"), Apply::GrpcTarget);
}
