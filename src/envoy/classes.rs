//! Which kinds of requests have a cost of their own, by what the configs do with requests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::bootstrap::Bootstrap;
use super::node::Node;
use crate::record::{RequestClass, RequestLine};

/// By these headers a request asks the backend for an answer of its own kind.
const STATUS: &str = "x-sidegate-status";
const BYTES: &str = "x-sidegate-bytes";
const TYPE: &str = "x-sidegate-type";

/// Length of answers that are to be compressed.
const COMPRESSED_BYTES: u64 = 64 << 10;
/// Body of a request, where no filter has a limit.
const BODY_BYTES: u64 = 16 << 10;
/// How far beyond a limit a body goes.
const BEYOND: u64 = 16 << 10;
/// Longer bodies than this are not sent.
const MOST_BODY: u64 = 1 << 20;

/// What is counted, and what there is no time for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes {
    pub classes: Vec<RequestClass>,
    /// Names of classes beyond the number wanted.
    pub left_out: Vec<String>,
}

/// Something a config does with requests that only some of them see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    /// Answers are compressed this way; the type of answers, where the usual one is not.
    Compressed { coding: &'static str, content_type: Option<String> },
    /// Bodies of requests are looked at, of this length.
    Body { bytes: u64 },
    /// Failing answers are asked for again.
    Retried,
}

/// At most `most` classes (one at least), the same for all arms: what any of them asks for. First comes what only some
/// arms do, for that is what the change touches.
pub fn derive(arms: &[&Bootstrap], workload: &[RequestLine], most: usize) -> Classes {
    let (Some(first), Some(last)) = (workload.first(), workload.last()) else { return Classes::default() };
    let mut asked: BTreeMap<Ask, usize> = BTreeMap::new();
    for arm in arms {
        for ask in asks(arm) {
            *asked.entry(ask).or_default() += 1;
        }
    }
    let (shared, changed): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(_, count)| *count == arms.len());
    let kept = plain(first);
    let mut all: Vec<RequestClass> = changed.iter().map(|(ask, _)| class(first, ask)).collect();
    // However much has changed, the plainest request is always counted.
    all.insert(all.len().min(most.saturating_sub(1)), kept);
    if (&last.authority, &last.path) != (&first.authority, &first.path) {
        all.push(plain(last));
    }
    all.push(RequestClass { name: format!("{}, new connection", title(first)), new_connection: true, ..plain(first) });
    all.extend(shared.iter().map(|(ask, _)| class(first, ask)));
    let mut names = BTreeSet::new();
    all.retain(|class| names.insert(class.name.clone()));
    let left_out = all.split_off(all.len().min(most.max(1))).into_iter().map(|class| class.name).collect();
    Classes { classes: all, left_out }
}

fn title(line: &RequestLine) -> String {
    format!("{} {}", line.method, line.path)
}

fn plain(line: &RequestLine) -> RequestClass {
    RequestClass {
        name: title(line),
        method: line.method.clone(),
        authority: line.authority.clone(),
        path: line.path.clone(),
        headers: Vec::new(),
        body_bytes: 0,
        new_connection: false,
        route: line.route.clone(),
    }
}

fn class(line: &RequestLine, ask: &Ask) -> RequestClass {
    let plain = plain(line);
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    match ask {
        Ask::Compressed { coding, content_type } => {
            let mut headers = vec![header("accept-encoding", coding), header(BYTES, &COMPRESSED_BYTES.to_string())];
            headers.extend(content_type.as_ref().map(|name| header(TYPE, name)));
            RequestClass { name: format!("{}, {coding} of {}", title(line), size(COMPRESSED_BYTES)), headers, ..plain }
        }
        Ask::Body { bytes } => RequestClass {
            name: format!("POST {} {}", line.path, size(*bytes)),
            method: "POST".to_owned(),
            body_bytes: *bytes,
            ..plain
        },
        Ask::Retried => RequestClass {
            name: format!("{}, backend answers 503", title(line)),
            headers: vec![header(STATUS, "503")],
            ..plain
        },
    }
}

fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { format!("{} KiB", bytes / 1024) } else { format!("{bytes} B") }
}

fn asks(bootstrap: &Bootstrap) -> BTreeSet<Ask> {
    let mut found = BTreeSet::new();
    let listeners = bootstrap.listeners.iter().filter(|listener| listener.bound);
    let managers = listeners.flat_map(|listener| &listener.managers);
    for manager in managers.filter_map(|pointer| Node::find(&bootstrap.document, pointer)) {
        for filter in manager.list("http_filters") {
            if let Some(config) = filter.get("typed_config") {
                self::filter(&config, &mut found);
            }
        }
        if let Some(routes) = manager.get("route_config") {
            walk(&routes, &mut found);
        }
    }
    found
}

/// Retry policies, and filters that a route or a virtual host configures anew.
fn walk(node: &Node, found: &mut BTreeSet<Ask>) {
    if node.type_name().is_some() {
        filter(node, found);
        return;
    }
    if node.get("retry_policy").is_some_and(|policy| retries(&policy)) {
        found.insert(Ask::Retried);
    }
    node.children(|child| walk(&child, found));
}

/// Whether a 503 is asked for again.
fn retries(policy: &Node) -> bool {
    let on = policy.text("retry_on").unwrap_or_default();
    let listed = policy.get("retriable_status_codes").is_some_and(|codes| {
        codes.value.as_array().is_some_and(|codes| codes.iter().any(|code| code.as_u64() == Some(503)))
    });
    on.split(',')
        .map(str::trim)
        .any(|word| matches!(word, "5xx" | "gateway-error") || (word == "retriable-status-codes" && listed))
}

fn filter(config: &Node, found: &mut BTreeSet<Ask>) {
    let Some(name) = config.type_name().and_then(|name| name.strip_prefix("envoy.extensions.filters.http.")) else {
        return;
    };
    match name.split('.').next().unwrap_or_default() {
        "compressor" => found.extend(compressor(config)),
        "buffer" => found.extend(bodies(config.number("max_request_bytes"))),
        "ext_authz" => {
            if let Some(body) = config.get("with_request_body") {
                found.extend(bodies(body.number("max_request_bytes")));
            }
        }
        "ext_proc" => {
            let modes = ["NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED"];
            let mode = config.get("processing_mode").and_then(|mode| mode.choice("request_body_mode", &modes));
            if mode.is_some_and(|mode| mode != "NONE") {
                found.extend(bodies(None));
            }
        }
        "lua" if reads_body(config.value) => found.extend(bodies(None)),
        "decompressor"
        | "wasm"
        | "json_to_metadata"
        | "grpc_json_transcoder"
        | "bandwidth_limit"
        | "file_system_buffer"
        | "proto_message_extraction"
        | "golang" => found.extend(bodies(None)),
        _ => {}
    }
}

fn compressor(config: &Node) -> Option<Ask> {
    let library = config.path(&["compressor_library", "typed_config"])?;
    let coding = match library.type_name()?.split('.').nth(3)? {
        "gzip" => "gzip",
        "brotli" => "br",
        "zstd" => "zstd",
        _ => return None,
    };
    let common = config.path(&["response_direction_config", "common_config"]).unwrap_or_else(|| config.clone());
    let types: Vec<&str> = common.list("content_type").iter().filter_map(|item| item.value.as_str()).collect();
    let usual = types.is_empty() || types.contains(&"text/plain");
    let content_type = if usual { None } else { types.first().map(|name| (*name).to_owned()) };
    Some(Ask::Compressed { coding, content_type })
}

/// A body within the limit and one beyond it, or one of a usual length.
fn bodies(limit: Option<u64>) -> Vec<Ask> {
    let lengths = match limit.filter(|&limit| limit > 1) {
        None => vec![BODY_BYTES],
        Some(limit) => vec![(limit / 2).min(BODY_BYTES), limit.saturating_add(BEYOND)],
    };
    lengths.into_iter().filter(|&bytes| bytes <= MOST_BODY).map(|bytes| Ask::Body { bytes }).collect()
}

/// Whether a Lua script asks for bodies, as far as its text tells.
fn reads_body(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(":body(") || text.contains(":bodyChunks("),
        Value::Array(items) => items.iter().any(reads_body),
        Value::Object(entries) => entries.values().any(reads_body),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::Document;

    const FILTER: &str = "type.googleapis.com/envoy.extensions.filters.http";

    fn bootstrap(filters: &str, route: &str) -> Bootstrap {
        let text = format!(
            "static_resources:
  listeners:
  - address: {{socket_address: {{address: 0.0.0.0, port_value: 80}}}}
    filter_chains:
    - filters:
      - name: m
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: m
          http_filters: [{filters}]
          route_config:
            virtual_hosts:
            - name: v
              domains: ['*']
              routes:
              - {{match: {{path: /a}}, route: {{cluster: c{route}}}}}
              - {{match: {{prefix: /}}, route: {{cluster: c}}}}
  clusters: [{{name: c, type: STATIC, load_assignment: {{cluster_name: c, endpoints: []}}}}]
"
        );
        Bootstrap::read(&Document::parse("t.yaml", &text).unwrap()).unwrap()
    }

    fn names(arms: &[&Bootstrap], most: usize) -> (Vec<String>, Vec<String>) {
        let workload = crate::envoy::workload::derive(arms[0]).unwrap();
        let Classes { classes, left_out } = derive(arms, &workload.requests, most);
        (classes.into_iter().map(|class| class.name).collect(), left_out)
    }

    #[test]
    fn plain_configs_get_first_last_and_new_connection() {
        let plain = bootstrap("", "");
        let (classes, left_out) = names(&[&plain, &plain], 5);
        assert_eq!(classes, ["GET /a", "GET /", "GET /a, new connection"]);
        assert!(left_out.is_empty());
        assert_eq!(names(&[&plain], 1), (vec!["GET /a".to_owned()], classes[1..].to_vec()));
        assert_eq!(derive(&[&plain], &[], 3), Classes::default());
    }

    #[test]
    fn what_one_arm_alone_does_comes_first() {
        let buffer =
            format!("{{name: b, typed_config: {{\"@type\": {FILTER}.buffer.v3.Buffer, max_request_bytes: 8192}}}}");
        let lua = format!(
            "{{name: l, typed_config: {{\"@type\": {FILTER}.lua.v3.Lua, default_source_code: {{inline_string: 'h:body()'}}}}}}"
        );
        let (base, head) = (bootstrap(&lua, ""), bootstrap(&format!("{lua}, {buffer}"), ""));
        let (classes, left_out) = names(&[&base, &head], 3);
        assert_eq!(classes, ["POST /a 4 KiB", "POST /a 24 KiB", "GET /a"]);
        assert_eq!(left_out, ["GET /", "GET /a, new connection", "POST /a 16 KiB"]);
    }

    #[test]
    fn compression_and_retries_are_asked_for() {
        let library = "compressor_library: {name: x, typed_config: {\"@type\": \
                       type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip}}";
        let filter = format!(
            "{{name: z, typed_config: {{\"@type\": {FILTER}.compressor.v3.Compressor, {library}, \
             response_direction_config: {{common_config: {{content_type: [application/json]}}}}}}}}"
        );
        let both = bootstrap(&filter, ", retry_policy: {retry_on: 'reset, 5xx'}");
        let workload = crate::envoy::workload::derive(&both).unwrap();
        let classes = derive(&[&both], &workload.requests, 8).classes;
        let named: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        let last = ["GET /a, gzip of 64 KiB", "GET /a, backend answers 503"];
        assert_eq!(named[3..], last);
        let asked = |name: &str| classes[3].headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!(asked("accept-encoding"), Some("gzip"));
        assert_eq!(asked("x-sidegate-type"), Some("application/json"));
        let plain = bootstrap("", ", retry_policy: {retry_on: 'connect-failure,reset'}");
        assert_eq!(names(&[&plain], 8).0.len(), 3);
    }
}
