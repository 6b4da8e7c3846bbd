//! Blocks of a config: taken out one by one, and what a change consists of.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use serde_json::{Value, json};
use sidegate::envoy::ablate::{Ablation, Target};
use sidegate::envoy::block::Kind;
use sidegate::envoy::difference::Difference;
use sidegate::envoy::{Bootstrap, Ports, workload};
use sidegate::yaml::Document;

use crate::common::{envoy, text};

const TARGET: Target = Target { listener: 0, plain: true, authority: "orders.example.com", path: "/v1/orders" };

fn typed(name: &str, kind: &str) -> Value {
    json!({"name": name, "typed_config": {"@type": format!("type.googleapis.com/{kind}")}})
}

fn filter(name: &str, more: &Value) -> Value {
    let mut filter = typed(name, "envoy.extensions.filters.http.lua.v3.Lua");
    filter["typed_config"]["stat_prefix"] = more.clone();
    filter
}

fn route(prefix: &str) -> Value {
    json!({"match": {"prefix": prefix}, "route": {"cluster": "orders"}})
}

/// A bootstrap with these filters before the router, these routes and further fields of the connection manager.
fn config(filters: &[Value], routes: &[Value], manager: &Value) -> Value {
    let mut filters = filters.to_vec();
    filters.push(typed("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router"));
    let mut config = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {"virtual_hosts": [{"name": "orders", "domains": ["orders.example.com"], "routes": routes}]},
        "http_filters": filters,
    });
    for (key, value) in manager.as_object().unwrap() {
        config[key] = value.clone();
    }
    json!({"static_resources": {
        "listeners": [{
            "name": "ingress",
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": 8080}},
            "filter_chains": [{"filters": [{"name": "manager", "typed_config": config}]}],
        }],
        "clusters": [cluster("orders")],
    }})
}

fn cluster(name: &str) -> Value {
    json!({"name": name, "connect_timeout": "1s", "type": "STATIC", "load_assignment": {"cluster_name": name,
        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address":
            {"address": "10.0.0.1", "port_value": 80}}}}]}]}})
}

fn document(name: &str, value: &Value) -> Document {
    Document::parse(name, &format!("{value:#}")).unwrap()
}

fn ablation(value: &Value) -> Ablation {
    Ablation::of(&Bootstrap::read(&document("c.json", value)).unwrap(), TARGET)
}

fn named(ablation: &Ablation) -> Vec<&str> {
    ablation.blocks().iter().map(|block| block.what.as_str()).collect()
}

fn changes(base: &Value, head: &Value) -> Vec<String> {
    let difference = Difference::between(&document("b.json", base), &document("h.json", head));
    difference.changes().iter().map(|change| change.what.clone()).collect()
}

fn manager(config: &mut Value) -> &mut Value {
    config.pointer_mut("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config").unwrap()
}

#[test]
fn blocks_are_what_a_request_may_pay_for() {
    let log = typed("envoy.access_loggers.stdout", "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog");
    let mut mirrored = route("/v1");
    mirrored["route"]["request_mirror_policies"] = json!([{"cluster": "audit"}]);
    mirrored["typed_per_filter_config"] = json!({"lua": {"@type": "x"}});
    let retried = |prefix: &str| {
        let mut route = route(prefix);
        route["route"]["retry_policy"] = json!({"retry_on": "5xx"});
        route
    };
    let routes = [retried("/a"), retried("/b"), mirrored];
    let more = json!({"access_log": [log], "tracing": {}, "normalize_path": true, "merge_slashes": true,
        "generate_request_id": true});
    let ablation = ablation(&config(&[filter("lua", &json!(1))], &routes, &more));
    let mut found = named(&ablation);
    found.sort_unstable();
    let mut expected = vec![
        "route table: 2 routes that the request does not need",
        "retry_policy of 2 routes of virtual host orders",
        "mirroring to cluster audit of a route of virtual host orders",
        "setting for filter lua of a route of virtual host orders",
        "HTTP filter lua",
        "access log envoy.access_loggers.stdout",
        "path normalisation of listener ingress",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected, "`tracing: {{}}` holds nothing, and `generate_request_id` is no block");
    let bare = ablation.bare();
    let rest = config(&[], &[route("/v1")], &json!({"access_log": [], "generate_request_id": true}));
    let mut rest = rest;
    let host = &mut manager(&mut rest)["route_config"]["virtual_hosts"][0];
    host["routes"][0]["route"]["request_mirror_policies"] = json!([]);
    host["routes"][0]["typed_per_filter_config"] = json!({});
    assert_eq!(manager(&mut bare.value.clone())["http_filters"], manager(&mut rest)["http_filters"]);
    let mut bare_manager = manager(&mut bare.value.clone()).clone();
    bare_manager.as_object_mut().unwrap().shift_remove("tracing");
    assert_eq!(&bare_manager, manager(&mut rest));
    let at = ablation.blocks().iter().position(|block| block.kind == Kind::HttpFilter).unwrap();
    let only = ablation.only(at);
    assert_eq!(manager(&mut only.value.clone())["http_filters"].as_array().unwrap().len(), 2);
    assert!(ablation.blocks().iter().all(|block| block.span.is_some_and(|span| span.line > 1)), "{ablation:?}");
}

#[test]
fn other_listeners_and_routers_are_no_blocks() {
    let mut value = config(&[filter("a", &json!(1))], &[route("/")], &json!({}));
    let mut second = value["static_resources"]["listeners"][0].clone();
    second["name"] = json!("second");
    value["static_resources"]["listeners"].as_array_mut().unwrap().push(second);
    let ablation = ablation(&value);
    assert_eq!(named(&ablation), ["HTTP filter a"]);
    assert_eq!(ablation.elsewhere(), 1);
}

#[test]
fn names_by_both_spellings_are_understood() {
    let camel = |value: &Value| {
        let mut text = value.to_string();
        for (snake, camel) in [
            ("\"http_filters\"", "\"httpFilters\""),
            ("normalize_path", "normalizePath"),
            ("filter_chains", "filterChains"),
            ("static_resources", "staticResources"),
            ("typed_config", "typedConfig"),
        ] {
            text = text.replace(snake, camel);
        }
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let more = json!({"normalize_path": true});
    let value = config(&[filter("lua", &json!(1))], &[route("/v1")], &more);
    assert_eq!(
        named(&ablation(&camel(&value))),
        ["HTTP filter lua", "path normalisation of listener ingress"],
        "in the order of the file"
    );
    let plain = config(&[], &[route("/v1")], &more);
    let spelled = camel(&plain);
    let difference = Difference::between(&document("b.json", &plain), &document("h.json", &spelled));
    assert!(difference.changes().is_empty(), "a spelling is no change: {:?}", difference.changes());
}

#[test]
fn yaml_and_json_give_the_same_blocks() {
    let value = config(&[filter("lua", &json!(1))], &[route("/v1"), route("/")], &json!({}));
    // JSON is YAML: the same text read by the other parser.
    let yaml = Document::parse("c.yaml", &format!("{value:#}")).unwrap();
    let from_yaml = Ablation::of(&Bootstrap::read(&yaml).unwrap(), TARGET);
    let from_json = ablation(&value);
    assert_eq!(from_yaml.blocks(), from_json.blocks());
    assert_eq!(from_yaml.bare().value, from_json.bare().value);
}

#[test]
fn an_inserted_filter_is_one_change_whatever_stands_around_it() {
    let chain = |names: &[(&str, u32)]| {
        let filters: Vec<Value> = names.iter().map(|(name, more)| filter(name, &json!(more))).collect();
        config(&filters, &[route("/")], &json!({}))
    };
    let base = chain(&[("lua", 1), ("lua", 2), ("lua", 3)]);
    assert_eq!(changes(&base, &chain(&[("lua", 1), ("lua", 9), ("lua", 2), ("lua", 3)])), ["HTTP filter lua added"]);
    assert_eq!(changes(&base, &chain(&[("lua", 9), ("lua", 1), ("lua", 2), ("lua", 3)])), ["HTTP filter lua added"]);
    assert_eq!(changes(&base, &chain(&[("lua", 1), ("lua", 3)])), ["HTTP filter lua removed"]);
    assert_eq!(changes(&base, &chain(&[("lua", 1), ("lua", 7), ("lua", 3)])), ["HTTP filter lua changed"]);
    let other = chain(&[("a", 1), ("b", 1), ("c", 1)]);
    assert_eq!(changes(&other, &chain(&[("c", 1), ("a", 1), ("b", 1)])), ["HTTP filter c moved"]);
    assert_eq!(
        changes(&other, &chain(&[("a", 2), ("b", 1), ("new", 1), ("c", 1)])),
        ["HTTP filter a changed", "HTTP filter new added"]
    );
}

#[test]
fn changes_name_their_place_in_head() {
    let base = config(&[], &[route("/")], &json!({}));
    let head = config(&[filter("lua", &json!(1))], &[route("/")], &json!({}));
    let head = document("h.json", &head);
    let difference = Difference::between(&document("b.json", &base), &head);
    let [change] = difference.changes() else { panic!("{:?}", difference.changes()) };
    assert_eq!(change.pointer, "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0");
    let line = format!("{:#}", head.value).lines().position(|line| line.contains("\"lua\"")).unwrap();
    assert_eq!(change.span.unwrap().line as usize, line, "the bracket stands on the line before the name");
    let back = Difference::between(&head, &document("b.json", &base));
    assert_eq!((back.changes()[0].span, back.changes()[0].what.as_str()), (None, "HTTP filter lua removed"));
}

#[test]
fn tables_change_as_a_whole_and_fields_by_themselves() {
    let base = config(&[], &[route("/a"), route("/b")], &json!({}));
    let routes: Vec<Value> = (0..300).map(|at| route(&format!("/r{at}"))).chain([route("/a"), route("/b")]).collect();
    assert_eq!(changes(&base, &config(&[], &routes, &json!({}))), ["300 routes of virtual host orders added"]);
    assert_eq!(changes(&config(&[], &routes, &json!({})), &base), ["300 routes of virtual host orders removed"]);
    assert_eq!(changes(&base, &config(&[], &[route("/b")], &json!({}))), ["a route of virtual host orders removed"]);
    let mut head = base.clone();
    head["static_resources"]["clusters"][0]["connect_timeout"] = json!("2s");
    head["static_resources"]["clusters"].as_array_mut().unwrap().push(cluster("audit"));
    head["layered_runtime"] = json!({"layers": []});
    assert_eq!(
        changes(&base, &head),
        ["connect_timeout of cluster orders changed", "cluster audit added", "layered_runtime added"]
    );
}

#[test]
fn a_change_brings_the_clusters_it_names() {
    let base = config(&[], &[route("/")], &json!({}));
    let mut mirrored = route("/");
    mirrored["route"]["request_mirror_policies"] = json!([{"cluster": "audit"}]);
    let mut head = config(&[filter("lua", &json!(1))], &[mirrored], &json!({}));
    head["static_resources"]["clusters"].as_array_mut().unwrap().push(cluster("audit"));
    let difference = Difference::between(&document("b.json", &base), &document("h.json", &head));
    let at = |what: &str| difference.changes().iter().position(|change| change.what.starts_with(what)).unwrap();
    let clusters = |change: usize| {
        let value = difference.alone(change).value;
        value["static_resources"]["clusters"].as_array().unwrap().len()
    };
    assert_eq!((clusters(at("mirroring to")), clusters(at("HTTP filter")), clusters(at("cluster audit"))), (2, 1, 2));
}

#[test]
fn hostile_names_and_sizes_are_bounded() {
    // Work that grew with the square of the blocks would not end here.
    let filters: Vec<Value> = (0..10_000).map(|at| filter(&format!("f\u{1b}[31m\n::error::{at}"), &json!(1))).collect();
    let value = config(&filters, &[route("/v1")], &json!({}));
    let ablation = ablation(&value);
    assert_eq!(ablation.blocks().len(), 10_000);
    assert!(ablation.blocks().iter().all(|block| !block.what.contains(char::is_control)));
    assert_eq!(manager(&mut ablation.bare().value.clone())["http_filters"].as_array().unwrap().len(), 1);
    let reversed: Vec<Value> = filters.iter().rev().cloned().collect();
    let found = changes(&value, &config(&reversed, &[route("/v1")], &json!({})));
    assert!(!found.is_empty() && found.len() < 10_000);
    let other: Vec<Value> = (0..10_000).map(|at| filter(&format!("g{at}"), &json!(2))).collect();
    assert_eq!(changes(&value, &config(&other, &[route("/v1")], &json!({}))).len(), 20_000);
}

/// Every config of this repository, and those of the folder `SIDEGATE_CORPUS` if it is given.
fn configs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = [
        "examples/basic/envoy.yaml",
        "examples/chain/envoy.yaml",
        "examples/lua/head.yaml",
        "tests/data/rehost/many.yaml",
    ]
    .iter()
    .map(|file| root.join(file))
    .collect();
    if let Some(corpus) = std::env::var_os("SIDEGATE_CORPUS").map(PathBuf::from) {
        let list = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        files.extend(list(corpus.join("configs")).into_iter().filter(|path| path.is_file()));
        files.extend(list(corpus.join("pairs")).iter().flat_map(|dir| [dir.join("base.yaml"), dir.join("head.yaml")]));
    }
    files
}

/// Why the real Envoy rejects the re-hosted form of a config, if it does.
fn rejected(bootstrap: &Bootstrap, dir: &Path) -> Option<String> {
    let needs = bootstrap.needs();
    let at = |port: usize| SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap_or(u16::MAX)));
    let ports = Ports {
        admin: at(9000),
        listeners: (0..needs.listeners).map(|i| at(10_000 + i)).collect(),
        upstreams: (0..needs.endpoints).map(|i| at(20_000 + i)).collect::<Vec<_>>().into(),
        log_dir: dir.to_owned(),
    };
    let file = dir.join("config.json");
    fs::write(&file, bootstrap.rehost(&ports).to_string()).unwrap();
    let output = Command::new(envoy()).args(["--mode", "validate", "-c"]).arg(&file).output().unwrap();
    (!output.status.success()).then(|| text(&output.stderr))
}

#[test]
fn configs_without_a_block_are_still_configs() {
    let dir = tempfile::tempdir().unwrap();
    let (mut blocks, mut rejections) = (0, 0);
    for path in configs() {
        let Ok(document) = Document::open(&path) else { continue };
        let Ok(bootstrap) = Bootstrap::read(&document) else { continue };
        let Ok(workload) = workload::derive(&bootstrap) else { continue };
        if rejected(&bootstrap, dir.path()).is_some() {
            continue;
        }
        let request = &workload.requests[0];
        let (authority, route) = (request.authority.as_str(), request.path.as_str());
        let target = Target { listener: workload.listener, plain: true, authority, path: route };
        let ablation = Ablation::of(&bootstrap, target);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        println!("{}/{name}: {} elsewhere", path.parent().unwrap().display(), ablation.elsewhere());
        let mut every = vec![("everything".to_owned(), ablation.bare())];
        every.extend(ablation.blocks().iter().enumerate().map(|(at, b)| (b.what.clone(), ablation.without(&[at]))));
        for (what, config) in every {
            blocks += 1;
            let why = match Bootstrap::read(&config) {
                Ok(less) => {
                    let same = workload::derive(&less).is_ok_and(|less| less.requests.contains(request));
                    assert!(same, "{name} without {what} no longer has the route of {request:?}");
                    rejected(&less, dir.path())
                }
                Err(problems) => Some(problems[0].to_string()),
            };
            rejections += usize::from(why.is_some());
            println!("   {what}{}", why.map(|why| format!(": REJECTED {why}")).unwrap_or_default());
        }
    }
    println!("{blocks} configs made, {rejections} rejected");
    // Most blocks can really be taken away, of these configs all.
    assert!(blocks >= 15 && rejections * 20 <= blocks, "{rejections} of {blocks}");
}

/// Small configs that share names, so that pairs of them differ in every way.
fn any_config() -> impl Strategy<Value = Value> {
    let filters = prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]), 0_u32..3), 0..5);
    let routes = prop::collection::vec((prop::sample::select(vec!["/a", "/b", "/v1"]), 0_u32..3), 0..5);
    let logs = prop::option::of(prop::collection::vec(prop::sample::select(vec!["l", "m"]), 0..3));
    let clusters = prop::collection::vec(prop::sample::select(vec!["orders", "x", "y"]), 0..4);
    (filters, routes, logs, clusters, any::<bool>()).prop_map(|(filters, routes, logs, clusters, normal)| {
        let filters: Vec<Value> = filters.into_iter().map(|(name, more)| filter(name, &json!(more))).collect();
        let route = |(prefix, more): (&str, u32)| {
            let mut route = route(prefix);
            match more {
                1 => route["route"]["retry_policy"] = json!({"retry_on": "5xx"}),
                2 => route["typed_per_filter_config"] = json!({"a": {"@type": "t"}}),
                _ => {}
            }
            route
        };
        let routes: Vec<Value> = routes.into_iter().map(route).collect();
        let mut more = json!({});
        if let Some(logs) = logs {
            more["access_log"] = logs.into_iter().map(|name| typed(name, "t.Log")).collect();
        }
        if normal {
            more["normalize_path"] = json!(true);
        }
        let mut value = config(&filters, &routes, &more);
        value["static_resources"]["clusters"] = clusters.into_iter().map(cluster).collect();
        value
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_is_base_and_all_changes_are_head(base in any_config(), head in any_config()) {
        let difference = Difference::between(&document("b.json", &base), &document("h.json", &head));
        prop_assert_eq!(&difference.apply(&[]).value, &base);
        let all: Vec<usize> = (0..difference.changes().len()).collect();
        prop_assert_eq!(&difference.apply(&all).value, &head);
        prop_assert_eq!(difference.changes().is_empty(), base == head);
        for at in all {
            prop_assert!(difference.apply(&[at]).value != base, "{}", difference.changes()[at].what);
        }
    }

    #[test]
    fn what_is_taken_out_is_gone_and_the_rest_stays(value in any_config()) {
        let document = document("c.json", &value);
        let Ok(bootstrap) = Bootstrap::read(&document) else { return Ok(()) };
        let ablation = Ablation::of(&bootstrap, TARGET);
        prop_assert_eq!(&ablation.without(&[]).value, &value);
        for at in 0..ablation.blocks().len() {
            let less = ablation.without(&[at]);
            prop_assert!(less.value != value);
            // Still a config that can be re-hosted, and one block fewer.
            let again = Bootstrap::read(&less);
            prop_assert!(again.is_ok(), "{:?}", again.err());
            let again = Ablation::of(&again.unwrap(), TARGET);
            prop_assert!(again.blocks().len() < ablation.blocks().len());
        }
        let bare = Bootstrap::read(&ablation.bare());
        prop_assert!(bare.is_ok_and(|bare| Ablation::of(&bare, TARGET).blocks().is_empty()));
    }
}
