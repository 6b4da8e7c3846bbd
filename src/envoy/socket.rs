//! A socket address of the config. Re-hosting replaces it whole, so what is wrong in it must be found before: the proxy
//! would only see ours.

use serde_json::Value;

use super::bootstrap::Findings;
use super::node::{Node, snake};

/// `SocketAddress` of Envoy's `config.core.v3`.
const FIELDS: [&str; 7] =
    ["protocol", "address", "port_value", "named_port", "resolver_name", "ipv4_compat", "network_namespace_filepath"];

/// Refuses what the proxy itself would refuse.
pub(super) fn check(socket: &Node, findings: &mut Findings) {
    for (key, node) in socket.entries() {
        let field = snake(key);
        if !FIELDS.contains(&field.as_str()) {
            findings.refuse(&node, format!("a socket address has no field `{key}`"), "correct or remove it");
        }
        if field == "port_value" && !is_port(node.value) {
            let value: String = node.value.to_string().chars().take(40).collect();
            findings.refuse(&node, format!("`{value}` is no port"), "a port is a number from 0 to 65535");
        }
        if field == "address" && !node.value.is_string() {
            findings.refuse(&node, "an address is a text".to_owned(), "write it in quotes");
        }
    }
}

/// A number, or, as Envoy's JSON allows, a text that is one.
fn is_port(value: &Value) -> bool {
    let whole = |number: f64| number.fract() == 0.0 && (0.0..=65535.0).contains(&number);
    match value {
        Value::Number(number) => number.as_f64().is_some_and(whole),
        Value::String(text) => text.parse().is_ok_and(whole),
        Value::Null => true,
        _ => false,
    }
}

/// An address as people write it.
pub(super) fn written(socket: &Node) -> String {
    let host = socket.text("address").unwrap_or("?");
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    match socket.get("port_value").or_else(|| socket.get("named_port")).map(|port| port.value) {
        Some(Value::String(port)) => format!("{host}:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}
