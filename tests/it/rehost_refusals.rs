//! What cannot be re-hosted, cannot be read, or is rejected by Envoy: each with its place and a remedy.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the functions tests share may fail and show like tests")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use sidegate::envoy::{Bootstrap, rejection, workload};
use sidegate::problem::{Problem, Span};
use sidegate::yaml::Document;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rehost").join(name)
}

fn problems(text: &str) -> Vec<Problem> {
    named("t.yaml", text)
}

fn named(file: &str, text: &str) -> Vec<Problem> {
    let read = Document::parse(file, text).and_then(|document| Bootstrap::read(&document));
    read.map(|_| ()).unwrap_err()
}

/// The line, column and message of the only problem of a text.
fn only(text: &str) -> (u32, u32, String) {
    let problems = problems(text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let Span { line, column } = problems[0].span.unwrap();
    assert!(problems[0].help.is_some());
    (line, column, problems[0].message.clone())
}

#[test]
fn broken_yaml() {
    let table = [
        ("a: 1\nb: 2\na: 3\n", (3, 1), "duplicate key `a`: line 3 repeats line 1"),
        ("a: {b: 1, b: 2}", (1, 11), "duplicate key `b`"),
        ("a:\n\tb: 1\n", (2, 2), "not valid YAML"),
        ("a: 1\n---\nb: 1\n", (2, 1), "several YAML documents"),
        ("a: [1, 2\n", (2, 1), "not valid YAML"),
        ("a: *nothing\n", (1, 4), "not valid YAML"),
        ("a: &x [1, *x]\n", (1, 11), "an alias inside its own anchor"),
        ("? [a]\n: 1\n", (1, 3), "a list or mapping stands where a key is expected"),
        ("x: 1\na: {{ .Values.a }}\n", (2, 4), "this is a Go (Helm) template"),
        ("{% if a %}\na: 1\n{% endif %}\n", (1, 1), "this is a Jinja template"),
    ];
    for (text, (line, column), message) in table {
        let found = only(text);
        assert!(found.2.starts_with(message) || found.2.contains(message), "{text}: {found:?}");
        assert_eq!((found.0, found.1), (line, column), "{text}: {found:?}");
    }
    for empty in ["", "\n", "# nothing\n", "\u{feff}"] {
        assert_eq!(problems(empty)[0].message, "the file is empty", "{empty:?}");
        assert_eq!(named("t.json", " ")[0].message, "the file is empty");
    }
}

#[test]
fn all_duplicate_keys_are_named_at_once_up_to_a_limit() {
    assert_eq!(problems("a: 1\na: 2\nb: 1\nb: 2\n").len(), 2);
    assert_eq!(problems(&"a: 1\n".repeat(100_000)).len(), 20);
}

#[test]
fn broken_json() {
    let first = |text: &str| named("t.json", text)[0].clone();
    assert_eq!(first("{\"a\": 1,\n \"a\": 2}").span, Some(Span { line: 2, column: 2 }));
    assert!(first("{\"a\": 1,\n \"a\": 2}").message.contains("line 2 repeats line 1"));
    assert_eq!(first("{\"é\": tru}").span, Some(Span { line: 1, column: 10 }));
    assert!(first("\u{feff}{}").message.contains("byte order mark"));
    assert!(first("static_resources:\n").help.unwrap().contains(".yaml"));
}

#[test]
fn byte_order_marks_and_carriage_returns_are_read() {
    let document = Document::parse("t.yaml", "\u{feff}a: 1\r\nb:\r\n  c: x\r\n").unwrap();
    assert_eq!(document.value, json!({"a": 1, "b": {"c": "x"}}));
    assert_eq!(document.span("/b/c"), Some(Span { line: 3, column: 6 }));
    assert_eq!(document.key_span("/b/c"), Some(Span { line: 3, column: 3 }));
    assert_eq!(document.key_span("/b/c/unknown/below"), Some(Span { line: 3, column: 3 }));
}

/// Texts made to exhaust a parser. Each ends in a problem; the test ends because they do.
#[test]
fn hostile_texts_end_in_a_problem() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for at in 1..30 {
        let before = format!("*a{}, ", at - 1).repeat(10);
        writeln!(laughs, "a{at}: &a{at} [{}]", before.trim_end_matches(", ")).unwrap();
    }
    let big = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(10_000));
    let mut nested = String::new();
    (0..1000).for_each(|depth| writeln!(nested, "{}a:", " ".repeat(depth)).unwrap());
    let anchors = format!("a: {}{}", (0..150).map(|at| format!("&a{at} [")).collect::<String>(), "x".repeat(1 << 20));
    let deep = ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "? ".repeat(100_000), nested];
    for text in deep.iter().chain(&[laughs, big, anchors, "a: 1\n".repeat(3 << 20), "- a\n".repeat(1 << 20)]) {
        assert!(!problems(text).is_empty(), "{}", &text[..20]);
    }
    let json = ["[".repeat(100_000), format!("[{}1]", "1,".repeat(1 << 19)), "{\"a\":".repeat(1000)];
    json.iter().for_each(|text| assert!(!named("t.json", text).is_empty()));
}

proptest! {
    #[test]
    fn no_text_makes_the_readers_panic(text in "[\\[\\]{}:,&*!|>'\"%@`#?~ \t\r\n\\-.a-c0-9é\u{feff}\u{0}]{0,80}") {
        for file in ["t.yaml", "t.json"] {
            if let Ok(document) = Document::parse(file, &text) {
                let _ = Bootstrap::read(&document);
            }
        }
    }

    #[test]
    fn a_damaged_config_never_makes_the_readers_panic(at in 0_usize..6000, bytes in "[ -~\n]{0,3}", length in 0_usize..200) {
        let mut text = fs::read_to_string(data("many.yaml")).unwrap();
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let end = (at..=(at + length).min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        text.replace_range(at..end, &bytes);
        if let Ok(bootstrap) = Document::parse("t.yaml", &text).and_then(|document| Bootstrap::read(&document)) {
            let _ = workload::derive(&bootstrap);
            let _ = bootstrap.changes();
        }
    }

    /// JSON means the same read as JSON and, numbers and escapes aside, as YAML.
    #[test]
    fn pretty_json_is_read_the_same_both_ways(keys in prop::collection::btree_set("[a-z]{1,6}", 0..6), flag: bool, number: i32) {
        let value: Value = keys.into_iter().map(|key| (key, json!({"x": [flag, number, "text", null, {}]}))).collect();
        let text = format!("{value:#}");
        let read = |file| Document::parse(file, &text).unwrap();
        prop_assert_eq!(&read("t.json").value, &value);
        prop_assert_eq!(&read("t.yaml").value, &value);
        prop_assert_eq!(read("t.json").span(""), read("t.yaml").span(""));
    }
}

const LISTENER: &str = "static_resources:
  listeners:
    - name: l
      address: {socket_address: {address: 0.0.0.0, port_value: 80}}
      filter_chains:
        - filters:
            - name: hcm
              typed_config:
                '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: x
                route_config: {virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: c}}]}]}
                http_filters: [HTTP_FILTERS]
          # CHAIN
      # LISTENER
  clusters:
    - name: c
      connect_timeout: 1s
      # CLUSTER
      load_assignment:
        cluster_name: c
        endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]
# TOP
";

/// `LISTENER` with one line put in place of a mark, and the line number of that mark.
fn with(mark: &str, line: &str) -> (String, u32) {
    let at = LISTENER.lines().position(|line| line.contains(mark)).unwrap();
    (LISTENER.replace(mark, line), u32::try_from(at + 1).unwrap())
}

#[test]
fn what_cannot_be_rehosted_is_refused_at_its_line() {
    let table = [
        ("# TOP", "dynamic_resources: {lds_config: {ads: {}}}", "dynamic_resources"),
        (
            "# TOP",
            "dynamic_resources: {cds_config: {path_config_source: {path: /c.yaml}}}",
            "come from files of the host",
        ),
        (
            "# TOP",
            "dynamic_resources: {lds_config: {path: /l.yaml}, cds_config: {ads: {}}}",
            "from a discovery service",
        ),
        ("# TOP", "hds_config: {api_type: GRPC}", "hds_config"),
        ("# TOP", "stats_sinks: [{name: envoy.stat_sinks.statsd}]", "stats_sinks"),
        ("# TOP", "layered_runtime: {layers: [{name: d, disk_layer: {symlink_root: /srv}}]}", "disk_layer"),
        ("# LISTENER", "udp_listener_config: {}", "UDP"),
        ("# LISTENER", "transparent: true", "privileges"),
        ("# LISTENER", "listener_filters: [{name: envoy.filters.listener.proxy_protocol}]", "PROXY protocol"),
        ("# CHAIN", "transport_socket: {name: envoy.transport_sockets.tls}", "TLS"),
        ("# CHAIN", "filter_chain_match: {server_names: [a.com]}", "server_names"),
        ("# CHAIN", "filter_chain_match: {transport_protocol: tls}", "transport_protocol"),
        (
            "# CHAIN",
            "filter_chain_match: {source_prefix_ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}]}",
            "source",
        ),
        ("0.0.0.0, port_value: 80", "0.0.0.0, port_value: -1", "`-1` is no port"),
        ("10.0.0.1, port_value: 80", "10.0.0.1, port_value: 1e308", "is no port"),
        ("10.0.0.1, port_value: 80", "10.0.0.1, port_valeu: 80", "no field `port_valeu`"),
        ("# CLUSTER", "type: EDS", "type EDS"),
        ("# CLUSTER", "type: EDS\n      eds_cluster_config: {eds_config: {path: /e.yaml}}", "from files of the host"),
        ("# CLUSTER", "type: 4", "type ORIGINAL_DST"),
        ("# CLUSTER", "cluster_type: {name: envoy.clusters.dynamic_forward_proxy}", "dynamic_forward_proxy"),
        ("# CLUSTER", "transport_socket: {name: envoy.transport_sockets.tls}", "transport socket"),
        ("# CLUSTER", "health_checks: [{grpc_health_check: {}}]", "gRPC health check"),
        (
            "HTTP_FILTERS",
            "{name: a, typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}}",
            "not speak HTTP/2",
        ),
        (
            "HTTP_FILTERS",
            "{name: a, typed_config: {x: {google_grpc: {target_uri: a.com, call_credentials: []}}}}",
            "google_grpc",
        ),
        ("HTTP_FILTERS", "{name: a, typed_config: {server_uri: {uri: http://a, cluster: other}}}", "cluster `other`"),
        ("HTTP_FILTERS", "{name: a, typed_config: {default_source_code: {filename: /a.lua}}}", "filename"),
        ("HTTP_FILTERS", "{name: a, typed_config: {x: {environment_variable: HOME}}}", "environment_variable"),
        ("HTTP_FILTERS", "{name: a, typed_config: {x: {address: 10.0.0.1, port_value: 1}}}", "10.0.0.1:1"),
        ("HTTP_FILTERS", "{name: a, typed_config: {x: {pipe: {path: /a.sock}}}}", "pipe"),
        ("HTTP_FILTERS", "{name: a, config_discovery: {config_source: {ads: {}}}}", "config_discovery"),
        (
            "HTTP_FILTERS",
            "{name: a, typed_config: {sds_config: {path: /s.yaml}}}",
            "secrets come from files of the host",
        ),
        ("HTTP_FILTERS", "{name: a, typed_config: {sds_config: {ads: {}}}}", "secrets come from a discovery service"),
        ("HTTP_FILTERS", "{name: '${FILTER}'}", "placeholder"),
        ("route_config:", "rds: {route_config_name: r} #", "rds"),
        ("route_config:", "rds: {config_source: {path: /r.yaml}} #", "routes come from files of the host"),
        ("port_value: 80}}\n      filter_chains", "port_value: 80, protocol: UDP}}\n      filter_chains", "UDP"),
    ];
    for (mark, line, message) in table {
        let first = mark.lines().next().unwrap();
        let (_, number) = with(first, "");
        let text = LISTENER.replace(mark, line);
        let found = only(&text);
        assert!(found.2.contains(message), "{line}: {found:?}");
        assert_eq!(found.0, number, "{line}: {found:?}");
    }
}

#[test]
fn what_plain_loopback_traffic_can_do_is_accepted() {
    let table = [
        (
            "# CHAIN",
            "filter_chain_match: {transport_protocol: raw_buffer, source_prefix_ranges: [{address_prefix: 127.0.0.0, prefix_len: 8}]}",
        ),
        ("# CHAIN", "transport_socket: {name: envoy.transport_sockets.raw_buffer}"),
        ("# LISTENER", "listener_filters: [{name: envoy.filters.listener.http_inspector}]"),
        ("# CLUSTER", "type: logical_dns"),
        ("# CLUSTER", "http2_protocol_options: {}"),
        ("# CLUSTER", "typed_extension_protocol_options: {a: {explicit_http_config: {http2_protocol_options: {}}}}"),
        ("# CLUSTER", "upstream_bind_config: {source_address: {address: 0.0.0.0, port_value: 0}}"),
        ("HTTP_FILTERS", "{name: a, typed_config: {server_uri: {uri: http://a, cluster: c}}}"),
    ];
    for (mark, line) in table {
        let (text, _) = with(mark, line);
        let document = Document::parse("t.yaml", &text).unwrap();
        assert!(Bootstrap::read(&document).is_ok(), "{line}: {:?}", Bootstrap::read(&document).err());
    }
}

#[test]
fn routes_whose_cluster_a_script_chooses_are_driven() {
    let plugin = "{inline_cluster_specifier_plugin: {extension: {name: x}}}";
    let derived = |action: &str| {
        let text = LISTENER.replace("{cluster: c}", action);
        workload::derive(&Bootstrap::read(&Document::parse("t.yaml", &text).unwrap()).unwrap())
    };
    assert_eq!(derived(plugin).unwrap().requests[0].path, "/");
    let header = derived("{cluster_header: x-cluster}").unwrap_err();
    assert!(header.message.contains("chooses its cluster at run time"), "{header}");
}

#[test]
fn listeners_without_load_are_told() {
    let (before, listener) = LISTENER.split_once("    - name: l\n").unwrap();
    let (listener, after) = listener.split_once("  clusters:\n").unwrap();
    let text = format!("{before}    - name: l\n{listener}    - name: m\n{listener}  clusters:\n{after}");
    let bootstrap = Bootstrap::read(&Document::parse("t.yaml", &text).unwrap()).unwrap();
    let workload = workload::derive(&bootstrap).unwrap();
    assert_eq!((workload.listener, workload.requests.len()), (0, 1));
    assert_eq!(workload.skipped["belong to another listener, which gets no load"], 1);
}

#[test]
fn other_kinds_of_file_are_named() {
    let table = [
        ("apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\n", "Kubernetes object of kind EnvoyFilter"),
        ("configs: [{'@type': type.googleapis.com/envoy.admin.v3.BootstrapConfigDump}]", "config_dump"),
        ("resources: []", "discovery (xDS) response"),
        ("listeners: []\ncluster_manager: {clusters: []}\n", "v1 Envoy config"),
        ("static_resources: {clusters: [{name: a, hosts: []}]}", "v2 Envoy config"),
        ("- a\n", "a list"),
        ("a: 1\n", "its first key is `a`"),
        ("admin: {}\n", "no static listener"),
    ];
    for (text, message) in table {
        assert!(only(text).2.contains(message), "{text}: {:?}", only(text));
    }
}

#[test]
fn all_problems_come_at_once_in_the_order_of_the_file() {
    let text = LISTENER.replace("# CHAIN", "transport_socket: {name: tls}").replace("# TOP", "stats_sinks: [{}]");
    let text = text.replace("# CLUSTER", "type: EDS");
    let lines: Vec<u32> = problems(&text).iter().map(|problem| problem.span.unwrap().line).collect();
    assert_eq!(lines, [13, 18, 22]);
}

/// Samples of what Envoy 1.40.0 said about broken configs, and the place each belongs to.
#[test]
fn rejections_are_brought_back_to_their_place() {
    const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let manager = |rest: &str| format!("{MANAGER}{rest}");
    let cluster = |rest: &str| format!("/static_resources/clusters/0{rest}");
    let route = "/route_config/virtual_hosts/0/routes/0";
    let table = [
        ("unknown-field-top", "/foo".to_owned(), "no such field: 'foo'"),
        ("unknown-field-cluster", cluster("/connect_timout"), "static_resources.clusters[0]: no such field"),
        ("unknown-field-second-cluster", "/static_resources/clusters/1/bar".to_owned(), "no such field: 'bar'"),
        ("unknown-field-hcm", manager("/stat_prefx"), "no such field: 'stat_prefx'"),
        ("unknown-field-lua", manager("/http_filters/0/typed_config/inline"), "no such field: 'inline'"),
        ("unknown-field-route", manager(&format!("{route}/route/clster")), "no such field: 'clster'"),
        ("bad-enum", cluster("/lb_policy"), "unknown enum value: 'ROUND'"),
        ("bad-duration", cluster("/connect_timeout"), "duration must end with a single 's'"),
        ("string-for-number", cluster("/per_connection_buffer_limit_bytes"), "invalid number: 'abc'"),
        ("list-for-message", cluster("/load_assignment"), "unexpected character: '['"),
        ("constraint-name", cluster("/name"), "Cluster.Name: value length must be at least 1 characters"),
        ("constraint-hcm", manager("/stat_prefix"), "HttpConnectionManager.StatPrefix"),
        ("constraint-route", manager(&format!("{route}/match")), "\"path_specifier\", reason: is required"),
        ("unknown-cluster", manager(&format!("{route}/route/cluster")), "route: unknown cluster 'nope'"),
        ("unknown-type", manager("/http_filters/0/typed_config/@type"), "could not find @type"),
        ("no-typed-config", manager("/http_filters/0/name"), "registered implementation for 'x.y'"),
        ("lua-syntax", manager("/http_filters/0/typed_config/default_source_code/inline_string"), "unexpected symbol"),
        ("router-not-last", manager("/http_filters/0/name"), "terminal filter named envoy.filters.http.router"),
        ("duplicate-cluster", "/static_resources/clusters/1/name".to_owned(), "duplicate cluster 'app'"),
        ("bad-regex", manager(&format!("{route}/match/safe_regex/regex")), "missing ]: ["),
        (
            "static-dns-name",
            cluster("/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/address"),
            "malformed IP address: db.local",
        ),
        ("oneof-two", manager(&format!("{route}/redirect")), "'redirect' has already been set"),
        ("header-op", manager(&format!("{route}/request_headers_to_add/0/header/value")), "StreamInfo: FOO"),
    ];
    for (name, pointer, message) in table {
        let document = Document::open(&data(&format!("rejections/{name}.json"))).unwrap();
        let stderr = fs::read_to_string(data(&format!("rejections/{name}.txt"))).unwrap();
        let problem = rejection::problem(&document, &stderr);
        assert!(document.value.pointer(&pointer).is_some(), "{name}: the expected place exists");
        assert_eq!(problem.span, document.key_span(&pointer), "{name}: {problem}");
        assert!(problem.message.contains(message), "{name}: {problem}");
        assert!(problem.message.len() < 600 && !problem.message.contains("goo.gle"), "{name}: {problem}");
    }
}

#[test]
fn every_sample_of_a_rejection_gives_one_clear_sentence() {
    for entry in fs::read_dir(data("rejections")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let document = Document::open(&path.with_extension("json")).unwrap();
            let problem = rejection::problem(&document, &fs::read_to_string(&path).unwrap());
            assert!(problem.message.len() > "the proxy rejects the config: ".len() + 10, "{problem}");
            assert!(!problem.message.contains("[info]") && !problem.message.contains('\n'), "{problem}");
        }
    }
}

#[test]
fn unknown_fields_are_told() {
    let stderr = |name: &str| fs::read_to_string(data(&format!("rejections/{name}.txt"))).unwrap();
    assert_eq!(rejection::unknown_field(&stderr("unknown-field-hcm")).as_deref(), Some("stat_prefx"));
    assert_eq!(rejection::unknown_field(&stderr("unknown-cluster")), None);
    assert_eq!(rejection::unknown_field(""), None);
}

#[test]
fn large_configs_are_read_whole() {
    let mut text = LISTENER.replace("HTTP_FILTERS", "");
    for at in 0..5000 {
        let endpoint = "{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}";
        writeln!(
            text,
            "    - {{name: c{at}, type: STRICT_DNS, load_assignment: {{endpoints: [{{lb_endpoints: [{endpoint}]}}]}}}}"
        )
        .unwrap();
    }
    let text = text.replace("# TOP\n", "");
    let start = std::time::Instant::now();
    let document = Document::parse("t.yaml", &text).unwrap();
    let parsed = start.elapsed();
    let bootstrap = Bootstrap::read(&document).unwrap();
    let read = start.elapsed() - parsed;
    let hosted = bootstrap.rehost(&sidegate::envoy::Ports {
        admin: ([127, 0, 0, 1], 1).into(),
        listeners: vec![([127, 0, 0, 1], 2).into()],
        upstreams: vec![([127, 0, 0, 1], 3).into()].into(),
        log_dir: PathBuf::new(),
    });
    assert!(!hosted.to_string().contains("\"address\":\"10.0.0.1\""));
    println!("5000 clusters: parsed in {parsed:?}, read in {read:?}, all in {:?}", start.elapsed());
    assert_eq!(bootstrap.changes().len(), 1 + 1 + 1 + 2 * 5000);
}
