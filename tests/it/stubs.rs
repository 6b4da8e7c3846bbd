//! gRPC services of a config: a real Envoy asks the stubs, and they answer.
#![allow(clippy::unwrap_used, reason = "the functions tests share may fail like tests")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use sidegate::backend::{Backend, BackendSpec, ListenerSpec};
use sidegate::envoy::{Bootstrap, Ports};
use sidegate::upstream::{PortCounts, Speaks, Upstreams};
use sidegate::yaml::Document;

use crate::common::envoy;

const CONFIG: &str = r#"
static_resources:
  listeners:
  - name: in
    address: {socket_address: {address: 0.0.0.0, port_value: 8080}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          # MANAGER
          route_config:
            virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app RATE}}]}]
          http_filters:
          # FILTERS
          - {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: app
    load_assignment: {cluster_name: app, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}
  - name: helper
    type: STRICT_DNS
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}
    load_assignment: {cluster_name: helper, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: helper.internal, port_value: 9000}}}}]}]}
"#;
const AUTHORIZE: &str = r#"- {name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz, transport_api_version: V3, grpc_service: {SERVICE, timeout: 20s}}}"#;
const LIMIT: &str = r#"- {name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit, domain: d, failure_mode_deny: true, timeout: 20s, rate_limit_service: {transport_api_version: V3, grpc_service: {SERVICE}}}}"#;
const PROCESS: &str = r#"- {name: p, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor, message_timeout: 20s, grpc_service: {SERVICE}, processing_mode: {request_header_mode: SEND, response_header_mode: SEND, request_body_mode: BODY, response_body_mode: BODY, request_trailer_mode: TRAILER, response_trailer_mode: TRAILER}}}"#;
const LOG: &str = r#"access_log: [{name: g, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig, common_config: {log_name: l, transport_api_version: V3, buffer_flush_interval: 0.1s, grpc_service: {SERVICE}}}}]"#;
const TRACE: &str = r#"tracing: {provider: {name: o, typed_config: {"@type": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig, grpc_service: {SERVICE}}}}"#;
const THROUGH_CLUSTER: &str = "envoy_grpc: {cluster_name: helper}";
const DIRECT: &str = "google_grpc: {target_uri: \"helper.internal:9000\", stat_prefix: h}";

const CHECK: &str = "envoy.service.auth.v3.Authorization/Check";
const LIMITED: &str = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const PROCESSED: &str = "envoy.service.ext_proc.v3.ExternalProcessor/Process";
const LOGGED: &str = "envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";
const TRACED: &str = "opentelemetry.proto.collector.trace.v1.TraceService/Export";

fn config(manager: &str, filters: &str, service: &str) -> String {
    let limits = "rate_limits: [{actions: [{remote_address: {}}]}]";
    let rate = if filters.contains("RateLimit") { format!(", {limits}") } else { String::new() };
    let text = CONFIG.replace("# MANAGER", manager).replace("# FILTERS", filters);
    text.replace(" RATE", &rate).replace("SERVICE", service)
}

fn read(text: &str) -> Bootstrap {
    Bootstrap::read(&Document::parse("t.yaml", text).unwrap()).unwrap()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn free() -> SocketAddr {
    TcpListener::bind(loopback(0)).unwrap().local_addr().unwrap()
}

fn backend(counts: PortCounts) -> Backend {
    let listeners = counts.each().zip(0..).map(|(speaks, tag)| ListenerSpec::speaking(speaks, tag)).collect();
    Backend::start(BackendSpec { listeners, body_bytes: 1024, cpus: vec![], names: Default::default() }).unwrap()
}

struct World {
    at: SocketAddr,
    backend: Backend,
    proxy: Child,
    _dir: tempfile::TempDir,
}

impl World {
    fn start(text: &str) -> Self {
        let bootstrap = read(text);
        let counts = bootstrap.needs().upstreams;
        let backend = backend(counts);
        let upstreams = Upstreams::new(counts, (0..backend.len()).map(|at| backend.addr(at)).collect(), None);
        let dir = tempfile::tempdir().unwrap();
        let at = free();
        let ports = Ports { admin: free(), listeners: vec![at], upstreams, log_dir: dir.path().to_owned() };
        let file = dir.path().join("config.json");
        fs::write(&file, bootstrap.rehost(&ports).to_string()).unwrap();
        let mut command = Command::new(envoy());
        command.arg("-c").arg(&file).args(["--disable-hot-restart", "--concurrency", "1", "-l", "error"]);
        let proxy = command.spawn().unwrap();
        let world = Self { at, backend, proxy, _dir: dir };
        world.until(|world| TcpStream::connect(world.at).is_ok());
        world
    }

    fn until(&self, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {:?}", self.calls());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.backend.calls()
    }

    /// Status and body of the answer.
    fn post(&self, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        write!(stream, "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.proxy.kill().ok();
        self.proxy.wait().ok();
    }
}

#[test]
fn requests_are_allowed_and_each_is_asked_about_once() {
    for service in [THROUGH_CLUSTER, DIRECT] {
        let world = World::start(&config("", &format!("{AUTHORIZE}\n          {LIMIT}"), service));
        for _ in 0..5 {
            assert_eq!(world.post("x").0, 200);
        }
        assert_eq!(world.calls(), BTreeMap::from([(CHECK, 5), (LIMITED, 5)]), "{service}");
        assert_eq!(world.backend.counts(0).requests, 5);
    }
}

#[test]
fn an_external_processor_leaves_bodies_as_they_are() {
    let plain = World::start(&config("", "", "")).post("x").1;
    for (body, trailers) in [("BUFFERED", "SEND"), ("STREAMED", "SKIP"), ("FULL_DUPLEX_STREAMED", "SEND")] {
        let filter = PROCESS.replace("BODY", body).replace("TRAILER", trailers);
        let world = World::start(&config("", &filter, THROUGH_CLUSTER));
        for _ in 0..3 {
            let (status, answer) = world.post(&"many bytes ".repeat(2000));
            assert_eq!(status, 200, "{body}");
            assert!(answer.contains(&plain[..512]), "{body}: {answer}");
        }
        assert_eq!(world.calls(), BTreeMap::from([(PROCESSED, 3)]));
    }
}

#[test]
fn logs_and_traces_arrive() {
    let world = World::start(&config(&format!("{LOG}\n          {TRACE}"), "", THROUGH_CLUSTER));
    assert_eq!(world.post("x").0, 200);
    world.until(|world| [LOGGED, TRACED].iter().all(|method| world.calls().contains_key(method)));
    assert_eq!(world.calls().len(), 2);
}

#[test]
fn garbage_ends_its_connection_only() {
    let mut counts = PortCounts::default();
    counts.raise(Speaks::Http2, 1);
    let backend = backend(counts);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let garbage: Vec<u8> = (0..50_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let grpc: &[u8] = b"POST /envoy.service.ext_proc.v3.ExternalProcessor/Process HTTP/1.1\r\nhost: a\r\n\
        content-type: application/grpc\r\ncontent-length: 9\r\n\r\n\0\0\0\0\x04\xff\xff\xff\xff";
    for bytes in [&garbage[..], &[&preface[..], &garbage].concat(), grpc, &preface[..10]] {
        let mut stream = TcpStream::connect(backend.addr(0)).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.read(&mut [0; 1024]);
    }
    assert!(backend.is_alive());
    let mut stream = TcpStream::connect(backend.addr(0)).unwrap();
    stream.write_all(preface).unwrap();
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[3], 4, "a SETTINGS frame");
}

#[test]
fn rehosting_what_was_rehosted_changes_nothing() {
    for service in [THROUGH_CLUSTER, DIRECT] {
        let bootstrap = read(&config(LOG, AUTHORIZE, service));
        let counts = bootstrap.needs().upstreams;
        let upstreams =
            Upstreams::new(counts, (0..counts.total()).map(|at| loopback(20_000 + at as u16)).collect(), None);
        let ports =
            Ports { admin: loopback(9901), listeners: vec![loopback(10_000)], upstreams, log_dir: "/logs".into() };
        let once = bootstrap.rehost(&ports);
        assert!(!once.to_string().contains("\"port_value\":9000"));
        assert_eq!(read(&once.to_string()).rehost(&ports), once);
    }
}
