//! Clusters: their endpoints go to the backend; what it cannot stand in for is refused.

use serde_json::Value;

use super::bootstrap::Findings;
use super::node::Node;
use super::outside;
use super::rehost::Apply;
use super::socket;
use super::transport;
use crate::upstream::Speaks;

/// Values of the enum `Cluster.DiscoveryType`.
const TYPES: [&str; 5] = ["STATIC", "STRICT_DNS", "LOGICAL_DNS", "EDS", "ORIGINAL_DST"];

pub(super) fn read(cluster: &Node, findings: &mut Findings) {
    let name = cluster.text("name").unwrap_or("?").to_owned();
    let kind = cluster.choice("type", &TYPES).unwrap_or_else(|| "STATIC".to_owned());
    supported(cluster, &name, &kind, findings);
    let speaks = transport::read(cluster, &name, findings);
    health(cluster, &name, speaks, findings);
    let dns = kind != "STATIC";
    let family = cluster.choice("dns_lookup_family", &["AUTO", "V4_ONLY", "V6_ONLY"]);
    if let (true, Some("V6_ONLY"), Some(node)) = (dns, family.as_deref(), cluster.get("dns_lookup_family")) {
        let what = format!("cluster `{name}`: IPv4 instead of IPv6, because the backend listens on 127.0.0.1");
        findings.edit(&node, what, Apply::Set(Value::from("V4_ONLY")));
    }
    let mut at = 0;
    let localities = cluster.path(&["load_assignment"]).map(|node| node.list("endpoints")).unwrap_or_default();
    for locality in localities {
        for field in ["load_balancer_endpoints", "leds_cluster_locality_config"] {
            if let Some(node) = locality.get(field) {
                let help = "list the endpoints in `lb_endpoints`";
                findings.refuse(&node, format!("cluster `{name}`: `{field}` cannot be re-hosted yet"), help);
            }
        }
        for endpoint in locality.list("lb_endpoints") {
            let place = Place { cluster: &name, dns, speaks, at };
            self::endpoint(&endpoint, &place, findings);
            at += 1;
        }
    }
}

/// Refuses clusters whose endpoints do not stand in the file.
fn supported(cluster: &Node, name: &str, kind: &str, findings: &mut Findings) {
    const EDS: &str = "its endpoints come from a discovery service";
    const STATIC: &str = "replace it by a STATIC or STRICT_DNS cluster with its endpoints listed";
    if let Some(node) = cluster.get("cluster_type") {
        let extension = node.text("name").unwrap_or("?");
        let message = format!("cluster `{name}`: cluster type `{extension}` cannot be re-hosted yet");
        findings.refuse(&node, message, STATIC);
        return;
    }
    if !matches!(kind, "STATIC" | "STRICT_DNS" | "LOGICAL_DNS") {
        let why = match kind {
            "EDS" => cluster.get("eds_cluster_config").map_or(EDS.to_owned(), |config| outside::origin(&config, EDS)),
            "ORIGINAL_DST" => "it sends wherever the redirected connection was going".to_owned(),
            _ => "only STATIC, STRICT_DNS and LOGICAL_DNS are known".to_owned(),
        };
        let node = cluster.get("type").unwrap_or_else(|| cluster.clone());
        findings.refuse(&node, format!("cluster `{name}`: type {kind} cannot be re-hosted yet: {why}"), STATIC);
        if let Some(config) = cluster.get("eds_cluster_config") {
            findings.handled.insert(config.id());
        }
    }
}

/// Checks that speak HTTP/2 find someone to answer them wherever the cluster is not one of plain HTTP/1.1.
fn health(cluster: &Node, name: &str, speaks: Speaks, findings: &mut Findings) {
    const HELP: &str = "measure a copy with an HTTP health check, or none";
    let plain = speaks == Speaks::Http1;
    for check in cluster.list("health_checks") {
        let receive = check.path(&["tcp_health_check"]).filter(|tcp| !tcp.list("receive").is_empty());
        let codec = check.path(&["http_health_check", "codec_client_type"]);
        let found = [
            (check.get("grpc_health_check").filter(|_| plain), "a gRPC health check has nobody to answer it"),
            (check.get("custom_health_check"), "a custom health check has nobody to answer it"),
            (receive, "a TCP health check that waits for bytes has nobody to answer it"),
            (
                codec.filter(|_| check.get("http_health_check").is_some_and(|http| !answered(&http, plain))),
                "a health check over HTTP/2 or HTTP/3 has nobody to answer it",
            ),
        ];
        for (node, why) in found {
            if let Some(node) = node {
                findings.refuse(&node, format!("cluster `{name}`: {why}"), HELP);
            }
        }
    }
}

fn answered(check: &Node, plain: bool) -> bool {
    match check.choice("codec_client_type", &["HTTP1", "HTTP2", "HTTP3"]).as_deref() {
        Some("HTTP1") => true,
        Some("HTTP2") => !plain,
        _ => false,
    }
}

/// Where an endpoint stands, and what it becomes.
struct Place<'p> {
    cluster: &'p str,
    dns: bool,
    speaks: Speaks,
    /// Its number in the cluster.
    at: usize,
}

fn endpoint(lb_endpoint: &Node, place: &Place, findings: &mut Findings) {
    const HELP: &str = "give the endpoint as `endpoint: {address: {socket_address: {address, port_value}}}`";
    let &Place { cluster, dns, speaks, at } = place;
    let Some(endpoint) = lb_endpoint.get("endpoint") else {
        findings.refuse(lb_endpoint, format!("cluster `{cluster}`: the endpoint has no address in place"), HELP);
        return;
    };
    let Some(address) = endpoint.get("address") else {
        findings.refuse(&endpoint, format!("cluster `{cluster}`: the endpoint has no address"), HELP);
        return;
    };
    let Some(socket) = address.get("socket_address") else {
        let what = match address.entries().first() {
            Some((key, _)) => format!("`{key}`"),
            None => "an empty address".to_owned(),
        };
        findings.refuse(&address, format!("cluster `{cluster}`: {what} as an endpoint cannot be re-hosted yet"), HELP);
        return;
    };
    if socket.choice("protocol", &["TCP", "UDP"]).as_deref() == Some("UDP") {
        findings.refuse(&socket, format!("cluster `{cluster}`: a UDP endpoint cannot be re-hosted"), HELP);
        return;
    }
    if let Some(more) = endpoint.get("additional_addresses") {
        let message = format!("cluster `{cluster}`: a second address of one endpoint cannot be re-hosted yet");
        findings.refuse(&more, message, "list it as an endpoint of its own, or leave it out");
    }
    let kind = match speaks {
        Speaks::Http1 => "",
        Speaks::Http2 => " for HTTP/2",
        Speaks::Tls => " for TLS",
        Speaks::MutualTls => " for TLS with client certificates",
    };
    let to = format!("port {} of the backend{kind}", at + 1);
    socket::check(&socket, findings);
    let what = format!("cluster `{cluster}`: endpoint {} moved to {to}", socket::written(&socket));
    findings.edit(&socket, what, Apply::Endpoint(speaks, at));
    if let Some(host) = socket.text("address").filter(|_| dns && endpoint.text("hostname").unwrap_or("").is_empty()) {
        let what =
            format!("cluster `{cluster}`: host name `{host}` kept, so that rewritten Host headers stay the same");
        findings.edit(&endpoint, what, Apply::Insert("hostname", Value::from(host)));
        findings.handled.remove(&endpoint.id());
    }
    let Some(check) = endpoint.get("health_check_config") else { return };
    if let Some(port) = check.get("port_value").filter(|port| port.value != 0) {
        let what = format!("cluster `{cluster}`: health checks of this endpoint go to {to}");
        findings.edit(&port, what, Apply::EndpointPort(speaks, at));
    }
    if let Some(socket) = check.path(&["address", "socket_address"]) {
        let what = format!("cluster `{cluster}`: health checks of this endpoint go to {to}");
        findings.edit(&socket, what, Apply::Endpoint(speaks, at));
    }
}
