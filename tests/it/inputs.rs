//! Kinds of input other than a static bootstrap: read into one that the real Envoy accepts, or refused at their lines.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use serde_json::{Value, json};
use sidegate::envoy::{Bootstrap, input, workload};
use sidegate::files::ConfigFile;
use sidegate::problem::Problem;
use sidegate::yaml::Document;

use crate::common::{envoy, run, sidegate, text};

fn read(file: &str, text: &str) -> Result<Document, Vec<Problem>> {
    input::read(file, text, &input::alone)
}

/// What `sidegate rehost` says about a file, after the real Envoy accepted what it makes of it.
fn accepted(path: &Path) -> String {
    let (code, config, said) = run(sidegate().arg("rehost").arg(path).arg("--config"));
    assert_eq!(code, 0, "{said}");
    let out = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    fs::write(out.path(), config).unwrap();
    let output = Command::new(envoy()).args(["--mode", "validate", "-c"]).arg(out.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (code, told, said) = run(sidegate().arg("rehost").arg(path));
    assert_eq!(code, 0, "{said}");
    told
}

fn refused(path: &Path) -> String {
    let (code, _, said) = run(sidegate().arg("rehost").arg(path));
    assert_eq!(code, 2, "{said}");
    said.replace(&format!("{}/", path.parent().unwrap().display()), "")
}

fn written(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn manager(routes: &Value) -> Value {
    let mut manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "x",
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
    });
    manager.as_object_mut().unwrap().extend(routes.as_object().unwrap().clone());
    manager
}

fn listener(name: &str, routes: &Value) -> Value {
    json!({
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        "name": name,
        "address": {"socket_address": {"address": "0.0.0.0", "port_value": 80}},
        "filter_chains": [{"filters": [{"name": "hcm", "typed_config": manager(routes)}]}],
    })
}

fn routes(name: &str, cluster: &str) -> Value {
    json!({
        "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        "name": name,
        "virtual_hosts": [{"name": "v", "domains": ["shop.test"],
            "routes": [{"match": {"prefix": "/carts"}, "route": {"cluster": cluster}}]}],
    })
}

fn eds(name: &str, service: &str) -> Value {
    json!({
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": name, "type": "EDS", "connect_timeout": "1s",
        "eds_cluster_config": {"service_name": service, "eds_config": {"ads": {}}},
    })
}

fn endpoints(service: &str, count: usize) -> Value {
    let endpoint = |at: usize| json!({"endpoint": {"address": {"socket_address": {"address": format!("10.0.0.{at}"), "port_value": 80}}}});
    json!({
        "@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": service,
        "endpoints": [{"lb_endpoints": (1..=count).map(endpoint).collect::<Vec<_>>()}],
    })
}

fn rds(name: &str) -> Value {
    json!({"rds": {"route_config_name": name, "config_source": {"ads": {}}}})
}

/// A resource as it stands where its type is known.
fn untyped(mut resource: Value) -> Value {
    resource.as_object_mut().unwrap().remove("@type");
    resource
}

fn section(kind: &str, fields: &Value) -> Value {
    let mut section = json!({"@type": format!("type.googleapis.com/envoy.admin.v3.{kind}ConfigDump")});
    section.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    section
}

fn dump() -> Value {
    json!({"configs": [
        section("Bootstrap", &json!({"bootstrap": {
            "node": {"id": "n", "cluster": "c", "extensions": [{"name": "a"}]},
            "dynamic_resources": {"lds_config": {"ads": {}}, "cds_config": {"ads": {}}, "ads_config": {
                "api_type": "GRPC", "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}]}},
            "layered_runtime": {"layers": [
                {"name": "fixed", "static_layer": {"a": 1}},
                {"name": "served", "rtds_layer": {"name": "served", "rtds_config": {"ads": {}}}}]},
            "static_resources": {"clusters": [{"name": "xds"}], "listeners": [{"name": "twice"}]},
        }})),
        section("Clusters", &json!({
            "static_clusters": [{"cluster": {"name": "xds", "type": "STRICT_DNS"}}],
            "dynamic_active_clusters": [{"cluster": eds("cart", "cart-service")}, {"cluster": eds("lost", "")}],
            "dynamic_warming_clusters": [{"cluster": eds("warming", "")}],
        })),
        section("Endpoints", &json!({
            "dynamic_endpoint_configs": [{"endpoint_config": endpoints("cart-service", 3)}],
        })),
        section("Listeners", &json!({
            "dynamic_listeners": [
                {"name": "in", "active_state": {"version_info": "1", "listener": listener("in", &rds("carts"))}},
                {"name": "out", "draining_state": {"listener": listener("out", &rds("carts"))}},
            ],
        })),
        section("Routes", &json!({
            "dynamic_route_configs": [
                {"route_config": routes("carts", "cart")}, {"route_config": routes("carts", "cart")}],
        })),
        section("Secrets", &json!({"dynamic_active_secrets": [{"name": "s", "secret": {"name": "s"}}]})),
    ]})
}

#[test]
fn a_config_dump_becomes_a_bootstrap() {
    let dir = tempfile::tempdir().unwrap();
    let told = accepted(&written(dir.path(), "dump.json", &format!("{:#}", dump())));
    for part in [
        "read as a config dump: 1 listener, 3 clusters, 1 route configuration, 1 set of endpoints; 1 secret left out; \
         2 resources left out, not in use",
        "`dynamic_resources` left out: what they brought is written in place; so is `xds`, which only they use",
        "runtime layer `served` left out",
        "routes `carts` written in place of `rds`, with `validate_clusters: false`",
        "cluster `cart`: endpoints `cart-service` written in place, STATIC instead of EDS",
        "cluster `lost`: type EDS, whose endpoints are not here: STATIC with one endpoint",
        "1 listener port, 3 ports for the backend",
        "GET http://shop.test/carts",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    // The line of the cluster in the dump, which is not that of the resulting bootstrap.
    let line = 1 + format!("{:#}", dump()).lines().position(|line| line.contains("\"10.0.0.2\"")).unwrap();
    assert!(told.contains(&format!("    {}:", line - 1)), "{line}\n{told}");
}

#[test]
fn filters_that_are_discovered_are_written_in_place() {
    let mut dump = dump();
    let filter = json!({"name": "found", "config_discovery": {"config_source": {"ads": {}}, "type_urls": ["x"]}});
    let listener = dump.pointer_mut("/configs/3/dynamic_listeners/0/active_state/listener").unwrap();
    let filters = listener.pointer_mut("/filter_chains/0/filters/0/typed_config/http_filters").unwrap();
    filters.as_array_mut().unwrap().insert(0, filter);
    let config = json!({"@type": "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer",
        "max_request_bytes": 9});
    let ecds = section(
        "Ecds",
        &json!({"ecds_filters": [{"ecds_filter": {
        "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "found",
        "typed_config": config}}]}),
    );
    dump["configs"].as_array_mut().unwrap().push(ecds);
    let dir = tempfile::tempdir().unwrap();
    let told = accepted(&written(dir.path(), "dump.json", &dump.to_string()));
    assert!(told.contains("the config of HTTP filter `found` written in place of `config_discovery`"), "{told}");
}

#[test]
fn what_a_dump_hides_or_contradicts_is_refused_at_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let mut hidden = dump();
    hidden["configs"][1]["dynamic_active_clusters"][0]["cluster"]["metadata"] =
        json!({"filter_metadata": {"a": {"key": "[redacted]"}}});
    let text = format!("{hidden:#}");
    let line = 1 + text.lines().position(|line| line.contains("[redacted]")).unwrap();
    let said = refused(&written(dir.path(), "hidden.json", &text));
    assert!(said.contains(&format!("hidden.json:{line}:")) && said.contains("a secret is redacted"), "{said}");
    assert!(said.contains("never the real one"), "{said}");

    let mut twice = dump();
    twice["configs"][4]["dynamic_route_configs"][1]["route_config"] = routes("carts", "other");
    let said = refused(&written(dir.path(), "twice.json", &twice.to_string()));
    assert!(said.contains("two route configurations have the name `carts`, and are not the same"), "{said}");

    let none = json!({"configs": [section("Clusters", &json!({}))]});
    let said = refused(&written(dir.path(), "none.json", &none.to_string()));
    assert!(said.contains("no static listener"), "{said}");
    let old = json!({"configs": [{"@type": "type.googleapis.com/envoy.admin.v2alpha.ListenersConfigDump"}]});
    let said = refused(&written(dir.path(), "old.json", &old.to_string()));
    assert!(said.contains("v2 Envoy config"), "{said}");
}

#[test]
fn fragments_are_wrapped() {
    let dir = tempfile::tempdir().unwrap();
    let inline = json!({"route_config": untyped(routes("r", "cart"))});
    let wrapped = json!({"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "name": "in",
        "resource": listener("in", &rds("carts"))});
    let bare = untyped(listener("in", &inline));
    let camel = bare.to_string().replace("filter_chains", "filterChains").replace("typed_config", "typedConfig");
    let table = [
        ("lone.yaml", bare.to_string(), "cluster `cart` is named but not here: added"),
        ("list.yaml", format!("- {camel}\n"), "1 listener, 0 clusters"),
        (
            "response.json",
            json!({"version_info": "1", "resources": [wrapped, routes("carts", "cart")]}).to_string(),
            "`rds`",
        ),
        ("routes.yaml", routes("carts", "cart").to_string(), "a listener added for the route configuration `carts`"),
        (
            "clusters.json",
            json!([eds("cart", ""), eds("b", "")]).to_string(),
            "a listener with a route to each cluster",
        ),
        (
            "lists.json",
            json!({"listeners": [bare], "clusters": [eds("cart", "")]}).to_string(),
            "1 listener, 1 cluster\n",
        ),
        (
            "kuma.json",
            json!({"xds": {
                "type.googleapis.com/envoy.config.cluster.v3.Cluster": {"cart": {"name": "cart", "type": "STATIC"}},
                "type.googleapis.com/envoy.config.listener.v3.Listener": {"in": listener("in", &rds("carts"))},
                "type.googleapis.com/envoy.config.route.v3.RouteConfiguration": {"carts": routes("carts", "cart")},
            }})
            .to_string(),
            "1 listener, 1 cluster, 1 route configuration",
        ),
    ];
    for (name, text, part) in table {
        let told = accepted(&written(dir.path(), name, &text));
        assert!(told.contains(part) && told.contains("read as a part of a config"), "{name}\n{told}");
    }
    let said = refused(&written(dir.path(), "strange.yaml", "- filter_chains: []\n- a: 1\n"));
    assert!(said.contains("strange.yaml:2:3: this is no resource of a known type"), "{said}");
    let said = refused(&written(dir.path(), "away.yaml", &listener("in", &rds("carts")).to_string()));
    assert!(said.contains("routes come from a discovery service"), "{said}");
}

fn by_files(folder: &Path, path: &str) -> PathBuf {
    let source = |name: &str| format!("{{path_config_source: {{path: {path}/{name}}}}}");
    let text = format!(
        "node: {{id: a, cluster: b}}\ndynamic_resources:\n  lds_config: {}\n  cds_config: {{path: {path}/cds.json}}\n",
        source("lds.yaml")
    );
    let routes_by_file =
        json!({"rds": {"route_config_name": "carts", "config_source": {"path": format!("{path}/rds.json")}}});
    let mut cluster = eds("cart", "");
    cluster["eds_cluster_config"]["eds_config"] = json!({"path": format!("{path}/eds.json")});
    let response = |resource: Value| json!({"resources": [resource]}).to_string();
    written(folder, "lds.yaml", &format!("# listeners\n{:#}", json!({"resources": [listener("in", &routes_by_file)]})));
    written(folder, "cds.json", &response(cluster));
    written(folder, "rds.json", &response(routes("carts", "cart")));
    written(folder, "eds.json", &response(endpoints("cart", 2)));
    written(folder, "envoy.yaml", &text)
}

#[test]
fn files_beside_a_config_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let path = by_files(dir.path(), "/etc/envoy");
    let told = accepted(&path);
    for part in [
        "replaced by what its files hold: 1 listener, 1 cluster",
        "lds.yaml:8:9: listener `in` moved",
        "eds.json:1:",
        "routes `carts` written in place",
        "2 ports for the backend",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    // A fault in another file is told there.
    written(dir.path(), "lds.yaml", "resources:\n- '@type': x.v3.Listener\n  name: l\n  api_listener: {}\n");
    assert!(refused(&path).contains("lds.yaml:4:3: listener `l` cannot be re-hosted yet"), "{}", refused(&path));
    written(dir.path(), "lds.yaml", "resources: [\n");
    assert!(refused(&path).contains("lds.yaml:2:1: not valid YAML"), "{}", refused(&path));
}

#[test]
fn files_are_taken_from_the_folder_of_the_config_only() {
    let dir = tempfile::tempdir().unwrap();
    let secret = written(dir.path(), "secret.yaml", "top: secret\n");
    let home = dir.path().join("home");
    let path = by_files(&home, "conf.d");
    let config = ConfigFile::at(&path);
    assert!(config.beside("/any/where/lds.yaml").is_ok());
    symlink(&secret, home.join("out.yaml")).unwrap();
    symlink(dir.path(), home.join("up")).unwrap();
    symlink("lds.yaml", home.join("in.yaml")).unwrap();
    assert!(config.beside("in.yaml").is_ok());
    for (path, why) in [
        ("../secret.yaml", "leads out"),
        ("/etc/../secret.yaml", "leads out"),
        ("out.yaml", "a link leads out"),
        ("up/secret.yaml", "a link leads out"),
        ("/proc/self/environ", "no such file"),
        ("up", "a link leads out"),
        ("none.yaml", "no such file"),
        ("", "no such file"),
    ] {
        let found = config.beside(path).unwrap_err();
        assert!(found.contains(why), "{path}: {found}");
    }
    fs::remove_file(home.join("lds.yaml")).unwrap();
    symlink(&secret, home.join("lds.yaml")).unwrap();
    let said = refused(&path);
    assert!(said.contains("envoy.yaml:3:") && said.contains("a link leads out") && !said.contains("top"), "{said}");
}

const INNER: &str = "static_resources:
  listeners:
  - name: l
    address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains: [{filters: [{name: h, typed_config: MANAGER}]}]
  clusters: [{name: cart, type: STATIC}]
";

fn inner() -> String {
    INNER.replace(
        "MANAGER",
        &manager(&json!({"route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"],
        "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "cart"}}]}]}}))
        .to_string(),
    )
}

fn indented(text: &str, by: usize) -> String {
    text.lines().fold(String::new(), |mut out, line| {
        writeln!(out, "{}{line}", " ".repeat(by)).unwrap();
        out
    })
}

#[test]
fn configs_within_other_documents_are_found_at_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  other: text\n";
    let map = format!("{head}  envoy.yaml: |\n{}", indented(&inner(), 4));
    let several = format!("apiVersion: v1\nkind: Service\n---\n{map}---\nkind: X\n");
    let values = format!("image: a\nenvoy:\n  config:\n{}", indented(&inner(), 4));
    let quoted = format!("data:\n  a: {}\n", Value::from(inner()));
    for (name, text, part, place) in [
        ("map.yaml", map, "the config stands in `data/envoy.yaml` of the ConfigMap `m`, line 6", "10:19"),
        ("several.yaml", several, "of the ConfigMap `m`, line 9", "13:19"),
        ("values.yaml", values, "the config stands in `envoy/config`, line 3", "7:19"),
        ("quoted.yaml", quoted, "the config stands in `data/a`, line 2", "2:3"),
    ] {
        let told = accepted(&written(dir.path(), name, &text));
        assert!(told.contains(part) && told.contains(&format!("{place}  listener `l` moved")), "{name}\n{told}");
    }
    let broken = format!("{head}  envoy.yaml: |\n    static_resources:\n      a: [\n      b: {{{{ x }}}}\n");
    let said = refused(&written(dir.path(), "broken.yaml", &broken));
    assert!(said.contains("broken.yaml:9:10: under `envoy.yaml`: this is a Jinja or Go template"), "{said}");
    let two = format!("{head}  a.yaml: |\n{0}  b.yaml: |\n{0}", indented(&inner(), 4));
    let said = refused(&written(dir.path(), "two.yaml", &two));
    assert!(said.contains("two.yaml:13:3: the file holds 2 Envoy configs: line 6 (`data/a.yaml`"), "{said}");
    let faulty = format!("{head}  envoy.yaml: |\n{}", indented(&inner().replace("STATIC", "EDS"), 4));
    let said = refused(&written(dir.path(), "faulty.yaml", &faulty));
    assert!(said.contains("faulty.yaml:12:") && said.contains("type EDS"), "{said}");
}

#[test]
fn files_within_a_config_map_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let bootstrap = "dynamic_resources:\n  lds_config: {path: /etc/envoy/lds.yaml}\n";
    let inline = json!({"route_config": untyped(routes("", "cart"))});
    let lds = json!({"resources": [listener("in", &inline)]}).to_string();
    let bootstrap = format!("{bootstrap}static_resources: {{clusters: [{{name: cart}}]}}\n");
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  envoy.yaml: |\n{}  lds.yaml: |\n    {lds}\n",
        indented(&bootstrap, 4)
    );
    let told = accepted(&written(dir.path(), "map.yaml", &map));
    assert!(told.contains("9:") && told.contains("listener `in` moved"), "{told}");
}

#[test]
fn patches_and_objects_without_a_config_are_refused_with_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    for (text, part) in [
        ("apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nspec: {static_resources: {}}\n", "istioctl"),
        (
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n---\napiVersion: \
             gateway.envoyproxy.io/v1alpha1\nkind: EnvoyPatchPolicy\n",
            "egctl",
        ),
        ("apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n", "it holds no Envoy config"),
        ("a: 1\n---\nb: 1\n", "several YAML documents, and none is an Envoy config"),
    ] {
        let said = refused(&written(dir.path(), "t.yaml", text));
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// One value of the text replaced by another of some type.
fn mutate(value: &mut Value, at: &mut usize, with: &Value) {
    if *at == 0 {
        *value = with.clone();
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mutate(item, at, with)),
        Value::Object(entries) => entries.values_mut().for_each(|entry| mutate(entry, at, with)),
        _ => {}
    }
}

fn survives(document: Result<Document, Vec<Problem>>) {
    let problems = match document.and_then(|document| Bootstrap::read(&document)) {
        Ok(bootstrap) => {
            let _ = (bootstrap.changes(), workload::derive(&bootstrap));
            return;
        }
        Err(problems) => problems,
    };
    for problem in problems {
        assert!(problem.span.is_some() && problem.help.is_some(), "{problem}");
    }
}

#[test]
fn wrong_types_anywhere_are_survived() {
    let files = |path: &str| match path {
        "/a/lds.yaml" => Ok(("lds.yaml".to_owned(), json!({"resources": [listener("in", &rds("c"))]}).to_string())),
        _ => Err("none".to_owned()),
    };
    let by_files = json!({"dynamic_resources": {"lds_config": {"path": "/a/lds.yaml"}}});
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a.yaml": inner(), "b": {"static_resources": {}}}});
    let fragment = json!([listener("in", &rds("c")), routes("c", "d"), eds("d", "e"), endpoints("e", 1)]);
    let strange = [json!(null), json!(-1.5), json!("x"), json!([[{}]]), json!({"": 1})];
    for whole in [dump(), by_files, map, fragment] {
        for with in &strange {
            for at in 0.. {
                let (mut changed, mut left) = (whole.clone(), at);
                mutate(&mut changed, &mut left, with);
                if left < at && left < usize::MAX / 2 {
                    break;
                }
                survives(input::read("t.json", &changed.to_string(), &files));
            }
        }
    }
}

proptest! {
    #[test]
    fn no_damage_makes_the_readers_panic(at in 0_usize..9000, bytes in "[ -~\n]{0,4}", length in 0_usize..200, kind in 0..3) {
        let mut text = match kind {
            0 => format!("{:#}", dump()),
            1 => format!("apiVersion: v1\ndata:\n  a.yaml: |\n{}---\n{0}", indented(&inner(), 4)),
            _ => format!("{:#}", json!([listener("in", &rds("c")), routes("c", "d"), eds("d", "e")])),
        };
        let at = at % text.len();
        let end = (at + length).min(text.len());
        text.replace_range(at..end, &bytes);
        for file in ["t.json", "t.yaml"] {
            survives(read(file, &text));
        }
    }
}

#[test]
fn one_route_table_named_by_many_listeners_is_bounded() {
    let hosts: Vec<Value> = (0..2000).map(|at| json!({"name": at.to_string(), "domains": [at.to_string()]})).collect();
    let many: Vec<Value> = (0..200).map(|at| listener(&at.to_string(), &rds("r"))).collect();
    let table = json!({"name": "r", "virtual_hosts": hosts});
    let resources = [many, vec![table]].concat();
    let text = json!({"resources": resources}).to_string();
    let problems = read("t.json", &text).unwrap_err();
    assert!(problems[0].message.contains("more than 600000 values"), "{problems:?}");
}

/// A dump of thousands of clusters. The time is printed, not judged.
#[test]
fn large_dumps_are_read_whole() {
    let clusters: Vec<Value> =
        (0..6000).map(|at| json!({"version_info": "2026-01-01T00:00:00Z/1", "cluster": eds(&format!("outbound|80||s{at}.shop.svc.cluster.local"), &format!("s{at}"))})).collect();
    let sets: Vec<Value> = (0..6000).map(|at| json!({"endpoint_config": endpoints(&format!("s{at}"), 1)})).collect();
    let mut dump = dump();
    dump["configs"][1]["dynamic_active_clusters"].as_array_mut().unwrap().extend(clusters);
    dump["configs"][2]["dynamic_endpoint_configs"].as_array_mut().unwrap().extend(sets);
    let text = format!("{dump:#}");
    let start = std::time::Instant::now();
    let document = read("t.json", &text).unwrap();
    let bootstrap = Bootstrap::read(&document).unwrap();
    println!("{} bytes of dump read in {:?}", text.len(), start.elapsed());
    assert_eq!(bootstrap.needs().endpoints, 3);
    assert_eq!(document.value["static_resources"]["clusters"].as_array().unwrap().len(), 6002);
}
