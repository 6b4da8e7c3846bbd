//! Listeners: plaintext HTTP ones move to loopback ports; others are refused by name.

use super::bootstrap::{Findings, Listener};
use super::node::Node;
use super::outside;
use super::rehost::Apply;
use super::socket;
use super::transport::is_raw_buffer;

const PLAIN: &str = "measure a copy whose listener takes plain HTTP";
const MANAGER: &str = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

pub(super) fn read(listener: &Node, findings: &mut Findings) {
    let name = match listener.text("name") {
        Some(name) if !name.is_empty() => format!("listener `{name}`"),
        _ => "listener".to_owned(),
    };
    let found = Listener {
        address: findings.addresses,
        bound: listener.flag("bind_to_port") != Some(false),
        managers: Vec::new(),
    };
    if !address(listener, &name, findings) {
        // One reason is enough for a listener of another kind.
        findings.handled.insert(listener.id());
        return;
    }
    if !found.bound
        && let Some(node) = listener.get("bind_to_port")
    {
        let what = format!("{name} is not bound to a port (`bind_to_port: false`): no request is sent to it directly");
        findings.edit(&node, what, Apply::Note);
    }
    listener_filters(listener, &name, findings);
    let mut managers = Vec::new();
    let mut chains = listener.list("filter_chains");
    chains.extend(listener.get("default_filter_chain"));
    for chain in &chains {
        managers.extend(self::chain(chain, &name, findings));
    }
    if chains.is_empty() {
        findings.refuse(listener, format!("{name} has no filter chain"), "give it an HTTP connection manager");
    }
    findings.listeners.push(Listener { managers, ..found });
}

/// Moves the listener's addresses; false where it is of a kind that has none to move.
fn address(listener: &Node, name: &str, findings: &mut Findings) -> bool {
    const HELP: &str = "measure a copy that listens on a TCP port";
    let kinds = [
        ("api_listener", "an API listener has no port"),
        ("internal_listener", "an internal listener has no port"),
        ("udp_listener_config", "UDP and QUIC cannot be driven yet"),
        ("filter_chain_matcher", "choosing filter chains by a matcher is not followed yet"),
    ];
    for (field, why) in kinds {
        if let Some(node) = listener.get(field) {
            findings.refuse(&node, format!("{name} cannot be re-hosted yet: {why}"), HELP);
            return false;
        }
    }
    let mut addresses: Vec<Node> = listener.get("address").into_iter().collect();
    if addresses.is_empty() {
        findings.refuse(listener, format!("{name} has no address"), HELP);
        return false;
    }
    addresses.extend(listener.list("additional_addresses").iter().filter_map(|more| more.get("address")));
    for address in addresses {
        let Some(socket) = address.get("socket_address") else {
            let what = address.entries().first().map_or("an empty address", |(key, _)| *key);
            findings.refuse(&address, format!("{name} cannot be re-hosted yet: it listens on `{what}`"), HELP);
            return false;
        };
        if socket.choice("protocol", &["TCP", "UDP"]).as_deref() == Some("UDP") {
            findings.refuse(&socket, format!("{name} cannot be re-hosted yet: UDP and QUIC cannot be driven"), HELP);
            return false;
        }
        socket::check(&socket, findings);
        let what = format!("{name} moved from {} to a loopback port of ours", socket::written(&socket));
        findings.edit(&socket, what, Apply::Listener(findings.addresses));
        findings.addresses += 1;
    }
    if let Some(node) = listener.get("transparent").filter(|node| node.value == true) {
        findings.refuse(&node, format!("{name}: a transparent socket needs privileges the gate does not give"), HELP);
    }
    true
}

fn listener_filters(listener: &Node, name: &str, findings: &mut Findings) {
    for filter in listener.list("listener_filters") {
        let proxy_protocol = filter.text("name").is_some_and(|name| name.ends_with("proxy_protocol"))
            || filter.get("typed_config").is_some_and(|c| c.type_name().is_some_and(|n| n.ends_with(".ProxyProtocol")));
        let tolerant = filter.path(&["typed_config"]).and_then(|c| c.flag("allow_requests_without_proxy_protocol"));
        if proxy_protocol && tolerant != Some(true) {
            let message = format!("{name} expects a PROXY protocol header, which the load generator does not send yet");
            findings.refuse(&filter, message, "measure a copy without the proxy_protocol listener filter");
        }
    }
    if let Some(node) = listener.get("use_proxy_proto").filter(|node| node.value == true) {
        let message = format!("{name} expects a PROXY protocol header, which the load generator does not send yet");
        findings.refuse(&node, message, "measure a copy without `use_proxy_proto`");
    }
}

/// The connection managers of one filter chain.
fn chain(chain: &Node, name: &str, findings: &mut Findings) -> Vec<String> {
    if let Some(socket) = chain.get("transport_socket").filter(|socket| !is_raw_buffer(socket)) {
        findings.refuse(&socket, format!("{name}: TLS or another transport socket is not re-hosted yet"), PLAIN);
    }
    if let Some(condition) = chain.get("filter_chain_match") {
        chain_match(&condition, name, findings);
    }
    if chain.flag("use_proxy_proto") == Some(true) {
        let message = format!("{name} expects a PROXY protocol header, which the load generator does not send yet");
        findings.refuse(chain, message, "measure a copy without `use_proxy_proto`");
    }
    let filters = chain.list("filters");
    let managers: Vec<Node> =
        filters.iter().filter_map(|filter| filter.get("typed_config")).filter(is_manager).collect();
    if managers.is_empty() {
        let (at, what) = match filters.last() {
            Some(filter) => (filter, format!("`{}`", filter.text("name").unwrap_or("?"))),
            None => (chain, "an empty filter chain".to_owned()),
        };
        findings.refuse(
            at,
            format!("{name} is not an HTTP listener: it ends in {what}, which an HTTP load generator cannot drive"),
            "measure a copy without this listener, or with an http_connection_manager",
        );
        // What such a filter refers to is its own affair: one reason is enough.
        filters.iter().for_each(|filter| _ = findings.handled.insert(filter.id()));
    }
    managers.iter().for_each(|manager| self::manager(manager, name, findings));
    managers.into_iter().map(|manager| manager.pointer()).collect()
}

fn is_manager(config: &Node) -> bool {
    config.type_name() == Some(MANAGER)
}

/// Values of the enum `FilterChainMatch.ConnectionSourceType`.
const SOURCES: [&str; 3] = ["ANY", "SAME_IP_OR_LOOPBACK", "EXTERNAL"];

/// Refuses conditions that plaintext requests from loopback to a port of our choosing cannot meet.
fn chain_match(condition: &Node, name: &str, findings: &mut Findings) {
    const HELP: &str = "measure a copy whose filter chain has no such condition";
    for (field, node) in condition.entries() {
        let met = match super::node::snake(field).as_str() {
            "transport_protocol" => node.value == "raw_buffer" || node.value == "",
            "source_type" => {
                matches!(condition.choice("source_type", &SOURCES).as_deref(), Some("ANY" | "SAME_IP_OR_LOOPBACK"))
            }
            "prefix_ranges" | "source_prefix_ranges" | "direct_source_prefix_ranges" => {
                node.items().is_empty() || node.items().iter().any(holds_loopback)
            }
            "application_protocols" => {
                node.items().is_empty() || node.items().iter().any(|item| item.value == "http/1.1")
            }
            "name" => true,
            _ => node.value.is_null() || node.value.as_array().is_some_and(Vec::is_empty),
        };
        if !met {
            let message = format!("{name}: plaintext requests from loopback never meet the condition `{field}`");
            findings.refuse(&node, message, HELP);
        }
    }
}

/// Whether a CIDR range holds 127.0.0.1.
fn holds_loopback(range: &Node) -> bool {
    let Some(Ok(prefix)) = range.text("address_prefix").map(str::parse::<std::net::Ipv4Addr>) else { return false };
    let bits = range.number("prefix_len").unwrap_or(0).min(32);
    let mask = u32::try_from((u64::from(u32::MAX) << (32 - bits)) & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    u32::from(prefix) & mask == u32::from(std::net::Ipv4Addr::LOCALHOST) & mask
}

fn manager(manager: &Node, name: &str, findings: &mut Findings) {
    const INLINE: &str = "write the routes into `route_config`";
    for field in ["rds", "scoped_routes"] {
        if let Some(node) = manager.get(field) {
            let origin = outside::origin(&node, "a discovery service");
            let message = format!("{name}: routes come from {origin} (`{field}`), which is not re-hosted yet");
            findings.refuse(&node, message, INLINE);
        }
    }
    if let Some(node) = manager.path(&["route_config", "vhds"]) {
        findings.refuse(&node, format!("{name}: virtual hosts come from a discovery service"), INLINE);
    }
    let has_routes = ["route_config", "rds", "scoped_routes"].iter().any(|field| manager.get(field).is_some());
    if !has_routes {
        findings.refuse(manager, format!("{name}: the connection manager has no routes"), INLINE);
    }
    let codec = manager.choice("codec_type", &["AUTO", "HTTP1", "HTTP2", "HTTP3"]);
    if let (Some("HTTP2" | "HTTP3"), Some(node)) = (codec.as_deref(), manager.get("codec_type")) {
        let message = format!("{name} takes no HTTP/1.1, and the load generator sends nothing else yet");
        findings.refuse(&node, message, "measure a copy with `codec_type: AUTO`");
    }
}
