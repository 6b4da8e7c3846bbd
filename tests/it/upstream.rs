//! Upstreams that speak HTTP/2 or TLS: the real Envoy talks to the real backend, and Envoy's own counters tell how.
#![allow(clippy::unwrap_used, reason = "the functions tests share may fail like tests")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use sidegate::backend::{Authority, Backend, BackendSpec, ListenerSpec};
use sidegate::envoy::{Bootstrap, Ports, workload};
use sidegate::upstream::{San, Speaks, Upstreams};
use sidegate::yaml::Document;

use crate::rehost::{Proxy, admin_file, free_ports, get, loopback, patiently, validate};

const TLS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
const HTTP: &str = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

fn cluster(name: &str, more: Value) -> Value {
    let endpoint =
        |port: u16| json!({"endpoint": {"address": {"socket_address": {"address": "up.example", "port_value": port}}}});
    let mut cluster = json!({
        "name": name, "type": "STRICT_DNS", "connect_timeout": "5s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint(1), endpoint(2)]}]}
    });
    cluster.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cluster
}

fn tls(context: Value) -> Value {
    let mut config = json!({"@type": TLS});
    config.as_object_mut().unwrap().extend(context.as_object().unwrap().clone());
    json!({"name": "envoy.transport_sockets.tls", "typed_config": config})
}

fn http(options: Value) -> Value {
    let mut config = json!({"@type": HTTP});
    config.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    json!({"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": config})
}

fn file(path: &str) -> Value {
    json!({"filename": path})
}

fn sds(name: &str) -> Value {
    json!({"name": name, "sds_config": {"api_config_source": {"api_type": "GRPC", "grpc_services": [
        {"envoy_grpc": {"cluster_name": "sds"}}]}}})
}

/// One listener whose routes lead to clusters of every kind.
fn config() -> Value {
    let spiffe = json!([{"san_type": "URI", "matcher": {"exact": "spiffe://td/ns/a/sa/b"}}]);
    let both = json!({"http_protocol_options": {}, "http2_protocol_options": {}});
    let clusters = [
        cluster("plain", json!({})),
        cluster(
            "tls",
            json!({"transport_socket": tls(json!({"sni": "shop.example", "common_tls_context": {
            "validation_context": {"trusted_ca": file("/none/ca.pem"), "match_typed_subject_alt_names": spiffe}}}))}),
        ),
        cluster(
            "h2c",
            json!({
            "typed_extension_protocol_options": http(json!({"explicit_http_config": {"http2_protocol_options": {}}})),
            "health_checks": [{"timeout": "5s", "interval": "1s", "unhealthy_threshold": 1, "healthy_threshold": 1,
                "grpc_health_check": {}}]}),
        ),
        cluster(
            "auto",
            json!({
            "typed_extension_protocol_options": http(json!({"auto_config": both,
                "upstream_http_protocol_options": {"auto_sni": true, "auto_san_validation": true}})),
            "transport_socket": tls(json!({"common_tls_context": {
                "tls_params": {"tls_minimum_protocol_version": "TLSv1_3", "tls_maximum_protocol_version": "TLSv1_3"},
                "validation_context": {"trusted_ca": file("/none/ca.pem")}}}))}),
        ),
        cluster(
            "grpcs",
            json!({
            "typed_extension_protocol_options": http(json!({"explicit_http_config": {"http2_protocol_options": {}}})),
            "transport_socket": tls(json!({"sni": "grpc.example", "common_tls_context": {"alpn_protocols": ["istio"]}}))}),
        ),
        cluster(
            "mtls",
            json!({"transport_socket": tls(json!({"sni": "m.example", "common_tls_context": {
            "alpn_protocols": ["http/1.1"],
            "tls_certificates": [{"certificate_chain": file("/none/c.pem"), "private_key": file("/none/k.pem")}],
            "combined_validation_context": {
                "default_validation_context": {"match_typed_subject_alt_names": [
                    {"san_type": "DNS", "matcher": {"suffix": ".td.example"}}]},
                "validation_context_sds_secret_config": sds("ROOTCA")}}}))}),
        ),
        cluster(
            "sds",
            json!({"transport_socket": tls(json!({"common_tls_context": {
            "tls_certificate_sds_secret_configs": [sds("default")],
            "validation_context_sds_secret_config": sds("ROOTCA")}}))}),
        ),
    ];
    let route = |cluster: &Value| {
        json!({"match": {"prefix": format!("/{}", cluster["name"].as_str().unwrap())},
        "route": {"cluster": cluster["name"]}})
    };
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"],
            "routes": clusters.iter().map(route).collect::<Vec<_>>()}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config":
            {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]
    });
    json!({"static_resources": {
        "listeners": [{"name": "l", "address": {"socket_address": {"address": "0.0.0.0", "port_value": 80}},
            "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}],
        "clusters": clusters
    }})
}

fn read(config: &Value) -> Result<Bootstrap, String> {
    let document = Document::parse("c.json", &config.to_string()).unwrap();
    Bootstrap::read(&document).map_err(|problems| problems.iter().map(|p| format!("{p}\n")).collect())
}

/// A backend such as a gate starts for this config, and the ports to re-host it with.
fn backend(bootstrap: &Bootstrap) -> (Backend, Ports) {
    let needs = bootstrap.needs();
    let listeners: Vec<ListenerSpec> =
        needs.upstreams.each().zip(0..).map(|(speaks, tag)| ListenerSpec::speaking(speaks, tag)).collect();
    let names = bootstrap.names().clone();
    let backend = Backend::start(BackendSpec { listeners, body_bytes: 1024, cpus: vec![], names }).unwrap();
    let at: Vec<SocketAddr> = (0..backend.len()).map(|index| backend.addr(index)).collect();
    let trust = Authority::trust_for(needs.upstreams).unwrap();
    let free = free_ports(1 + needs.listeners);
    let upstreams = Upstreams::new(needs.upstreams, at, trust);
    (backend, Ports { admin: free[0], listeners: free[1..].to_vec(), upstreams, log_dir: ".".into() })
}

#[test]
fn the_real_envoy_speaks_tls_and_http2_to_the_backend() {
    let dir = tempfile::tempdir().unwrap();
    let bootstrap = read(&config()).unwrap();
    let (backend, ports) = backend(&bootstrap);
    let path = dir.path().join("config.json");
    fs::write(&path, bootstrap.rehost(&ports).to_string()).unwrap();
    let _proxy = Proxy::start(&path);
    let listener = ports.listeners[0].to_string();
    let names = ["plain", "tls", "h2c", "auto", "grpcs", "mtls", "sds"];
    for name in names {
        let body = patiently(|| get(&listener, "front.example", &format!("/{name}")));
        assert_eq!(body.len(), 1024, "{name}");
    }
    let admin = fs::read_to_string(admin_file(&path)).unwrap();
    let stat = |name: &str| -> u64 {
        let text = get(&admin, "admin", &format!("/stats?filter=^{name}$")).unwrap();
        text.trim().rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    for name in names {
        let encrypted = !matches!(name, "plain" | "h2c");
        let http2 = matches!(name, "h2c" | "auto" | "grpcs");
        assert_eq!(stat(&format!("cluster.{name}.ssl.handshake")) > 0, encrypted, "{name}");
        assert_eq!(stat(&format!("cluster.{name}.upstream_cx_http2_total")) > 0, http2, "{name}");
        assert_eq!(stat(&format!("cluster.{name}.ssl.connection_error")), 0, "{name}");
        assert_eq!(stat(&format!("cluster.{name}.membership_healthy")), 2, "{name}");
    }
    // The health check, a gRPC call, was answered.
    patiently(|| (stat("cluster.h2c.health_check.success") > 0).then_some(()));
    assert_eq!(stat("cluster.h2c.health_check.failure"), 0);
    // The backend has counted requests of each kind.
    let seen = |speaks: Speaks| {
        let of_kind = bootstrap.needs().upstreams.each().zip(0..).filter(|(kind, _)| *kind == speaks);
        of_kind.map(|(_, index)| backend.counts(index).requests).sum::<u64>()
    };
    assert_eq!((seen(Speaks::Http1), seen(Speaks::Tls), seen(Speaks::MutualTls)), (1, 3, 2));
    // Calls of gRPC, as the health checks are, are counted by their methods.
    assert!(seen(Speaks::Http2) >= 1);
}

#[test]
fn a_wrong_name_or_authority_is_still_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let bootstrap = read(&config()).unwrap();
    let (_backend, ports) = backend(&bootstrap);
    let mut hosted = bootstrap.rehost(&ports);
    let context = "/static_resources/clusters/1/transport_socket/typed_config/common_tls_context/validation_context";
    let name = hosted.pointer_mut(&format!("{context}/match_typed_subject_alt_names/0/matcher/exact")).unwrap();
    *name = json!("spiffe://td/ns/a/sa/other");
    let path = dir.path().join("config.json");
    fs::write(&path, hosted.to_string()).unwrap();
    let _proxy = Proxy::start(&path);
    let listener = ports.listeners[0].to_string();
    patiently(|| get(&listener, "front.example", "/plain"));
    assert_eq!(get(&listener, "front.example", "/tls"), None);
    let admin = fs::read_to_string(admin_file(&path)).unwrap();
    let stats = get(&admin, "admin", "/stats?filter=cluster.tls.ssl.fail_verify_san").unwrap();
    assert!(!stats.trim().ends_with(": 0"), "{stats}");
}

#[test]
fn what_is_replaced_is_listed_and_the_rest_stays() {
    let original = config();
    let bootstrap = read(&original).unwrap();
    let needs = bootstrap.needs();
    let count = |speaks| needs.upstreams.of(speaks);
    assert_eq!(Speaks::ALL.map(count), [2, 2, 2, 2]);
    let names: Vec<&San> = bootstrap.names().iter().collect();
    assert_eq!(names, [&San::Dns(".td.example".to_owned()), &San::Uri("spiffe://td/ns/a/sa/b".to_owned())]);
    let changes: Vec<String> = bootstrap.changes().into_iter().map(|change| change.what).collect();
    for part in [
        "cluster `tls`: TLS kept",
        "cluster `tls`: the authority it trusts becomes that of this run",
        "cluster `mtls`: its client certificate, which is not in the config, replaced",
        "cluster `mtls`: what it trusts comes in part from a service",
        "cluster `sds`: its client certificate, which comes from a service",
        "cluster `sds`: what it trusts comes from a service",
        "cluster `h2c`: endpoint up.example:1 moved to port 1 of the backend for HTTP/2",
    ] {
        assert!(changes.iter().any(|what| what.starts_with(part)), "{part}: {changes:#?}");
    }
    let (_backend, ports) = backend(&bootstrap);
    let hosted = bootstrap.rehost(&ports);
    let context = |at: usize| format!("/static_resources/clusters/{at}/transport_socket/typed_config");
    // Byte for byte: versions, ALPN, SNI.
    for pointer in [
        format!("{}/common_tls_context/tls_params", context(3)),
        format!("{}/common_tls_context/alpn_protocols", context(4)),
        format!("{}/sni", context(1)),
        "/static_resources/clusters/3/typed_extension_protocol_options".to_owned(),
    ] {
        assert_eq!(hosted.pointer(&pointer).unwrap(), original.pointer(&pointer).unwrap(), "{pointer}");
    }
    let text = hosted.to_string();
    assert!(!text.contains("/none/") && !text.contains("sds_config"), "{text}");
    assert_eq!(workload::derive(&bootstrap).unwrap().drivable, 7);
}

#[test]
fn a_key_in_the_config_stays_and_a_struck_out_one_does_not() {
    let trust = Authority::of_the_run().unwrap().trust().clone();
    let hosted = |key: &str| {
        let mut value = config();
        let certificate = json!({"certificate_chain": {"inline_string": "-----BEGIN CERTIFICATE-----\nown"},
            "private_key": {"inline_string": key}});
        let context = "/static_resources/clusters/5/transport_socket/typed_config/common_tls_context/tls_certificates";
        *value.pointer_mut(context).unwrap() = json!([certificate]);
        let bootstrap = read(&value).unwrap();
        let (_backend, ports) = backend(&bootstrap);
        bootstrap.rehost(&ports).pointer(&format!("{context}/0/private_key/inline_string")).unwrap().clone()
    };
    let own = "-----BEGIN PRIVATE KEY-----\nMIIE";
    assert_eq!(hosted(own), own);
    assert_eq!(hosted("-----BEGIN PRIVATE KEY-----\nredactedred"), trust.client_key);
}

#[test]
fn what_no_certificate_can_fit_is_refused_with_its_name() {
    let with = |context: Value| {
        let mut value = config();
        value["static_resources"]["clusters"][1]["transport_socket"] = tls(json!({"common_tls_context": context}));
        read(&value).unwrap_err()
    };
    let validation = |context: Value| with(json!({"validation_context": context}));
    let regex = json!([{"san_type": "DNS", "matcher": {"safe_regex": {"regex": "a.*"}}}]);
    for (found, part) in [
        (
            validation(json!({"match_typed_subject_alt_names": regex})),
            "`matcher` cannot be re-hosted yet: no certificate",
        ),
        (validation(json!({"verify_certificate_spki": ["a"]})), "`verify_certificate_spki`"),
        (validation(json!({"crl": {"filename": "x"}})), "`crl`"),
        (with(json!({"tls_params": {"cipher_suites": ["ECDHE-RSA-AES128-GCM-SHA256"]}})), "`cipher_suites`"),
        (with(json!({"tls_params": {"ecdh_curves": ["P-521"]}})), "`ecdh_curves`"),
        (with(json!({"tls_params": {"tls_maximum_protocol_version": "TLSv1_1"}})), "TLS 1.2 and 1.3 only"),
        (with(json!({"tls_certificates": [{"private_key_provider": {}}]})), "`private_key_provider`"),
    ] {
        assert!(found.contains(part) && found.contains("cluster `tls`"), "{part}: {found}");
    }
    let mut value = config();
    value["static_resources"]["clusters"][0]["transport_socket"] = json!({"name": "envoy.transport_sockets.alts"});
    assert!(read(&value).unwrap_err().contains("the transport socket `envoy.transport_sockets.alts`"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rehosting_twice_is_rehosting_once(mask in 1_u8..128) {
        let mut value = config();
        let clusters = value["static_resources"]["clusters"].as_array_mut().unwrap();
        let mut at = 0;
        clusters.retain(|_| { at += 1; mask & (1 << (at - 1)) != 0 });
        let names: Vec<Value> = clusters.iter().map(|cluster| cluster["name"].clone()).collect();
        let manager = value.pointer_mut("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config").unwrap();
        let routes = manager["route_config"]["virtual_hosts"][0]["routes"].as_array_mut().unwrap();
        routes.retain(|route| names.contains(&route["route"]["cluster"]));
        let bootstrap = read(&value).unwrap();
        let needs = bootstrap.needs();
        let at = (0..needs.endpoints).map(|k| loopback(20_000 + u16::try_from(k).unwrap())).collect();
        let upstreams = Upstreams::new(needs.upstreams, at, Authority::trust_for(needs.upstreams).unwrap());
        let ports = Ports { admin: loopback(9901), listeners: vec![loopback(10_000)], upstreams, log_dir: "/logs".into() };
        let once = bootstrap.rehost(&ports);
        let again = read(&once).unwrap();
        prop_assert_eq!(again.needs(), needs);
        prop_assert_eq!(again.rehost(&ports), once);
    }
}

#[test]
fn the_rehosted_config_passes_the_real_envoys_own_check() {
    let dir = tempfile::tempdir().unwrap();
    let bootstrap = read(&config()).unwrap();
    let (_backend, ports) = backend(&bootstrap);
    assert_eq!(validate(&bootstrap.rehost(&ports), dir.path()), Ok(()));
}

#[test]
fn bytes_that_are_no_protocol_leave_the_backend_serving() {
    let bootstrap = read(&config()).unwrap();
    let (backend, _) = backend(&bootstrap);
    let garbage: [&[u8]; 5] =
        [b"", b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM", b"\0\xff\xfe\x80", b"GET"];
    for index in 0..backend.len() {
        for bytes in garbage {
            let mut stream = TcpStream::connect(backend.addr(index)).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            stream.write_all(bytes).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read(&mut [0; 64]);
        }
    }
    assert!(backend.is_alive());
    for (speaks, index) in bootstrap.needs().upstreams.each().zip(0..) {
        assert!(backend.counts(index).connections >= 5);
        // Ports for HTTP/2 answer HTTP/1.1 too: health checks speak it.
        let body = get(&backend.addr(index).to_string(), "a", "/").map(|body| body.len());
        assert_eq!(body, (!speaks.is_tls()).then_some(1024), "{speaks:?}");
    }
}
