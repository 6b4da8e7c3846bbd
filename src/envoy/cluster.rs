//! Clusters: their endpoints go to the backend; what a plain HTTP/1.1 backend cannot stand in for is refused.

use serde_json::Value;

use super::bootstrap::Findings;
use super::node::Node;
use super::outside;
use super::rehost::Apply;
use super::socket;

/// Values of the enum `Cluster.DiscoveryType`.
const TYPES: [&str; 5] = ["STATIC", "STRICT_DNS", "LOGICAL_DNS", "EDS", "ORIGINAL_DST"];
const PLAIN: &str = "measure a copy that speaks plain HTTP/1.1 to this cluster";

pub(super) fn read(cluster: &Node, findings: &mut Findings) {
    let name = cluster.text("name").unwrap_or("?").to_owned();
    let kind = cluster.choice("type", &TYPES).unwrap_or_else(|| "STATIC".to_owned());
    supported(cluster, &name, &kind, findings);
    protocol(cluster, &name, findings);
    health(cluster, &name, findings);
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
            self::endpoint(&endpoint, &name, dns, at, findings);
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

fn protocol(cluster: &Node, name: &str, findings: &mut Findings) {
    for field in ["transport_socket", "transport_socket_matches"] {
        if let Some(node) = cluster.get(field).filter(|node| !is_raw_buffer(node)) {
            let message =
                format!("cluster `{name}`: TLS or another transport socket to the upstream is not re-hosted yet");
            findings.refuse(&node, message, PLAIN);
        }
    }
    if let Some(node) = cluster.get("http2_protocol_options") {
        findings.refuse(&node, format!("cluster `{name}`: HTTP/2 to the upstream is not re-hosted yet"), PLAIN);
    }
    let options = cluster.get("typed_extension_protocol_options").map(|node| node.entries()).unwrap_or_default();
    for (_, options) in options {
        let explicit = |field: &str| options.path(&["explicit_http_config", field]);
        let found = [
            (explicit("http2_protocol_options"), "HTTP/2 to the upstream"),
            (explicit("http3_protocol_options"), "HTTP/3 to the upstream"),
            (options.get("auto_config"), "negotiating the upstream's protocol over TLS"),
        ];
        for (node, what) in found {
            if let Some(node) = node {
                findings.refuse(&node, format!("cluster `{name}`: {what} is not re-hosted yet"), PLAIN);
            }
        }
    }
}

pub(super) fn is_raw_buffer(socket: &Node) -> bool {
    let typed = socket.get("typed_config");
    typed
        .and_then(|config| config.type_name().map(|name| name.ends_with(".RawBuffer")))
        .unwrap_or_else(|| socket.text("name").is_some_and(|name| name.ends_with("raw_buffer")))
}

fn health(cluster: &Node, name: &str, findings: &mut Findings) {
    const HELP: &str = "measure a copy with an HTTP health check, or none";
    for check in cluster.list("health_checks") {
        let receive = check.path(&["tcp_health_check"]).filter(|tcp| !tcp.list("receive").is_empty());
        let codec = check.path(&["http_health_check", "codec_client_type"]);
        let found = [
            (check.get("grpc_health_check"), "a gRPC health check has nobody to answer it"),
            (check.get("custom_health_check"), "a custom health check has nobody to answer it"),
            (receive, "a TCP health check that waits for bytes has nobody to answer it"),
            (
                codec.filter(|_| check.get("http_health_check").is_some_and(|http| !is_http1(&http))),
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

fn is_http1(check: &Node) -> bool {
    check.choice("codec_client_type", &["HTTP1", "HTTP2", "HTTP3"]).as_deref() == Some("HTTP1")
}

fn endpoint(lb_endpoint: &Node, cluster: &str, dns: bool, at: usize, findings: &mut Findings) {
    const HELP: &str = "give the endpoint as `endpoint: {address: {socket_address: {address, port_value}}}`";
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
    let to = format!("port {} of the backend", at + 1);
    socket::check(&socket, findings);
    let what = format!("cluster `{cluster}`: endpoint {} moved to {to}", socket::written(&socket));
    findings.edit(&socket, what, Apply::Endpoint(at));
    if let Some(host) = socket.text("address").filter(|_| dns && endpoint.text("hostname").unwrap_or("").is_empty()) {
        let what =
            format!("cluster `{cluster}`: host name `{host}` kept, so that rewritten Host headers stay the same");
        findings.edit(&endpoint, what, Apply::Insert("hostname", Value::from(host)));
        findings.handled.remove(&endpoint.id());
    }
    let Some(check) = endpoint.get("health_check_config") else { return };
    if let Some(port) = check.get("port_value").filter(|port| port.value != 0) {
        let what = format!("cluster `{cluster}`: health checks of this endpoint go to {to}");
        findings.edit(&port, what, Apply::EndpointPort(at));
    }
    if let Some(socket) = check.path(&["address", "socket_address"]) {
        let what = format!("cluster `{cluster}`: health checks of this endpoint go to {to}");
        findings.edit(&socket, what, Apply::Endpoint(at));
    }
}
