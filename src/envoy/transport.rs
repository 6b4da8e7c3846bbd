//! What a cluster speaks to its upstream: HTTP/1.1 or HTTP/2, in TLS or not. It is kept, and the backend answers it.

use super::bootstrap::Findings;
use super::node::Node;
use super::rehost::Apply;
use super::tls;
use crate::upstream::Speaks;

const PLAIN: &str = "measure a copy that speaks HTTP/1.1 or HTTP/2 to this cluster, in TLS or not";

/// What the backend's ports for this cluster must speak.
pub(super) fn read(cluster: &Node, name: &str, findings: &mut Findings) -> Speaks {
    let http2 = protocol(cluster, name, findings);
    if let Some(node) = cluster.get("transport_socket_matches").filter(|list| !list.items().iter().all(is_plain_match))
    {
        let message = format!(
            "cluster `{name}`: a transport socket for each endpoint (`transport_socket_matches`) is not re-hosted yet"
        );
        findings.refuse(&node, message, "give the cluster one `transport_socket`");
    }
    let Some(socket) = cluster.get("transport_socket").filter(|node| !is_raw_buffer(node)) else {
        return if http2 { Speaks::Http2 } else { Speaks::Http1 };
    };
    match socket.get("typed_config").filter(|config| of_type(config, "UpstreamTlsContext")) {
        Some(config) => {
            tell(&socket, name, findings);
            let client = tls::read(&config, name, findings);
            if client { Speaks::MutualTls } else { Speaks::Tls }
        }
        None => {
            let kind = socket.get("typed_config").and_then(|config| config.type_name());
            let kind = kind.or(socket.text("name")).unwrap_or("?");
            let message =
                format!("cluster `{name}`: the transport socket `{kind}` to the upstream is not re-hosted yet");
            findings.refuse(&socket, message, PLAIN);
            Speaks::Http1
        }
    }
}

fn tell(socket: &Node, name: &str, findings: &mut Findings) {
    let what = format!(
        "cluster `{name}`: TLS kept; the backend answers it with a certificate of this run (ECDSA P-256: what key the real \
         server has is not in the config)"
    );
    findings.edit(socket, what, Apply::Note);
    // What is inside of it is looked at all the same.
    findings.handled.remove(&socket.id());
}

/// Whether gRPC can be spoken to the cluster: over HTTP/2, by its options or by what ALPN chooses.
pub(super) fn carries_grpc(cluster: &Node) -> bool {
    let in_tls = || cluster.get("transport_socket").is_some_and(|socket| !is_raw_buffer(&socket));
    let negotiated = |options: &Node| options.get("auto_config").is_some();
    is_http2(cluster) || (in_tls() && protocol_options(cluster).iter().any(negotiated))
}

/// Whether HTTP/2 is spoken with prior knowledge. (Which of both ALPN chooses, the backend need not be told.)
fn is_http2(cluster: &Node) -> bool {
    let explicit = |options: &Node| options.path(&["explicit_http_config", "http2_protocol_options"]).is_some();
    cluster.get("http2_protocol_options").is_some() || protocol_options(cluster).iter().any(explicit)
}

/// The values of a map that has one message an extension.
fn protocol_options<'c>(cluster: &Node<'c>) -> Vec<Node<'c>> {
    let map = cluster.get("typed_extension_protocol_options");
    map.iter().flat_map(Node::entries).map(|(_, options)| options).collect()
}

fn protocol(cluster: &Node, name: &str, findings: &mut Findings) -> bool {
    for options in protocol_options(cluster) {
        for holder in ["explicit_http_config", "auto_config"] {
            if let Some(node) = options.path(&[holder, "http3_protocol_options"]) {
                findings.refuse(&node, format!("cluster `{name}`: HTTP/3 to the upstream is not re-hosted yet"), PLAIN);
            }
        }
    }
    is_http2(cluster)
}

fn is_plain_match(entry: &Node) -> bool {
    entry.get("transport_socket").is_none_or(|socket| is_raw_buffer(&socket))
}

pub(super) fn is_raw_buffer(socket: &Node) -> bool {
    match socket.get("typed_config") {
        Some(config) if config.type_name().is_some() => of_type(&config, "RawBuffer"),
        _ => socket.text("name").is_some_and(|name| name.ends_with("raw_buffer")),
    }
}

fn of_type(config: &Node, short: &str) -> bool {
    config.type_name().and_then(|name| name.rsplit('.').next()) == Some(short)
}
