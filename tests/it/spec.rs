//! `sidegate.yaml`: what is read from it, and what is said about what is wrong with it.

use std::time::Duration;

use serde_json::{Value, json};
use sidegate::metric::Metric;
use sidegate::policy::{LimitSet, OnInconclusive, Profile};
use sidegate::problem::{Problem, Span};
use sidegate::spec::{Comment, Overrides, Spec, schema};
use sidegate::yaml::Document;

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 12, 1);

/// Reads a value as if every node stood on a line of its own, in order.
fn read(value: &Value) -> Result<Spec, Vec<Problem>> {
    let mut pointers = Vec::new();
    number(value, String::new(), &mut pointers);
    let span = |pointer: &str| {
        let at = pointers.iter().position(|p| p == pointer)?;
        Some(Span { line: u32::try_from(at).unwrap() + 1, column: 1 })
    };
    Spec::read(value, &span, "sidegate.yaml", TODAY)
}

fn number(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    pointers.push(pointer.clone());
    for (key, child) in children {
        number(child, format!("{pointer}/{key}"), pointers);
    }
}

fn complaints(value: &Value) -> String {
    let problems = read(value).expect_err("this file is wrong");
    problems.iter().map(|p| format!("{p}\n")).collect()
}

fn full() -> Value {
    json!({
        "version": 1,
        "defaults": {"profile": "quick", "limits": "strict", "envoy": "1.40.0", "budget": "10m"},
        "targets": [
            {"name": "checkout", "config": "envoy/checkout.yaml", "envoy": "1.39.3", "concurrency": 2, "path": "one",
             "workload": "derived",
             "limits": {"cpu_ns_per_request": {"limit": "8%"}, "added_latency_p99_ns": {"max": "500us"},
                        "rss_bytes": {"max": "80MiB"}, "retries_per_request": {"limit": 0.1, "rule_out": 0.3},
                        "slow_share": {"limit": "0.1%"}, "startup_ms": {"max": "1.5s"}}},
            {"name": "plain", "config": "envoy/plain.yaml"}
        ],
        "scenarios": [{"name": "open"}],
        "accept": [
            {"target": "checkout", "metric": "latency_p99_ns", "up_to": "12%", "until": "2027-01-31", "reason": "JWT"},
            {"target": "plain", "metric": "overflow_per_request", "up_to": 0.5, "until": "2026-01-31", "reason": "old"}
        ],
        "comment": "failures"
    })
}

#[test]
fn a_full_file_is_read_into_checked_values() {
    let spec = read(&full()).unwrap();
    assert_eq!(spec.defaults.profile, Profile::Quick);
    assert_eq!(spec.defaults.budget, Some(Duration::from_secs(600)));
    assert_eq!(spec.defaults.envoy.as_deref(), Some("1.40.0"));
    assert_eq!(spec.scenarios, ["open"]);
    assert_eq!(spec.comment, Comment::Failures);
    let checkout = spec.target("checkout").unwrap();
    assert_eq!((checkout.envoy.as_deref(), checkout.concurrency), (Some("1.39.3"), Some(2)));
    assert_eq!(checkout.config.to_str(), Some("envoy/checkout.yaml"));
    assert!(spec.target("nobody").is_none());
}

#[test]
fn the_policy_of_a_target_is_command_line_over_target_over_defaults() {
    let spec = read(&full()).unwrap();
    let own = spec.policy_for("checkout", Overrides::default());
    assert_eq!((own.profile, own.limits), (Profile::Quick, LimitSet::Strict));
    assert_eq!(own.overrides[&Metric::CpuNsPerRequest].limit, Some(0.08));
    assert_eq!(own.overrides[&Metric::SlowShare].limit, Some(0.001));
    assert_eq!(own.overrides[&Metric::RetriesPerRequest].rule_out, Some(0.3));
    assert_eq!(own.added_max[&Metric::LatencyP99Ns], 500_000.0);
    assert_eq!(own.max[&Metric::RssBytes], 80.0 * 1024.0 * 1024.0);
    assert_eq!(own.max[&Metric::StartupMs], 1500.0);
    assert_eq!(own.accept.len(), 1);
    assert_eq!((own.accept[0].up_to, own.accept[0].until.as_str()), (0.12, "2027-01-31"));

    let cli = Overrides {
        profile: Some(Profile::Deep),
        limits: Some(LimitSet::Lenient),
        on_inconclusive: OnInconclusive::Fail,
    };
    let other = spec.policy_for("not listed", cli);
    assert_eq!((other.profile, other.limits), (Profile::Deep, LimitSet::Lenient));
    assert_eq!(other.on_inconclusive, OnInconclusive::Fail);
    assert!(other.overrides.is_empty() && other.accept.is_empty());
}

#[test]
fn the_smallest_file_has_all_defaults() {
    let spec = read(&json!({"version": 1, "targets": null})).unwrap();
    assert_eq!(spec, Spec::default());
}

#[test]
fn every_fault_is_told_at_once_with_its_line_and_remedy() {
    let said = complaints(&json!({
        "version": 2,
        "default": {},
        "defaults": {"profile": "standrad", "limits": 8, "envoy": 1.4, "budget": "10", "colour": true},
        "targets": [
            {"name": "a b", "config": "x.yaml"},
            {"name": "twice", "config": "x.yaml", "concurrency": 0},
            {"name": "twice", "config": "", "concurrency": "2"},
            {"config": ["a.yaml", "b.yaml"]},
            "checkout.yaml",
            {"name": "m", "config": "x.yaml", "limits": {
                "cpu_ns_per_requets": {"limit": "8%"},
                "cpu_ns_per_request": {"limit": "8%", "rule_out": "8%", "notice": "9%"},
                "latency_p50_ns": {"limit": 0.08, "max": "3"},
                "latency_p99_ns": {"rule_out": "5%", "foo": 1},
                "retries_per_request": {"limit": "5%"},
                "rss_bytes": {"notice": "1%", "max": "80"},
                "throughput_rps": {"max": 10},
                "added_latency_p99_ns": {"limit": "8%"},
                "added_rss_bytes": {"max": "80MiB"}
            }}
        ],
        "accept": [
            {"target": "twcie", "metric": "nothing_like_it", "up_to": 0.12, "until": "tomorrow", "reason": ""},
            {"target": "twice", "metric": "latency_p50_ns", "up_to": 12, "until": "2027-08-01", "reason": "r"},
            {"target": "twice"},
            {"target": "twice", "metric": "latency_p90_ns", "up_to": "3%", "until": "2027-05-30", "reason": "r"},
            {"target": "twice", "metric": "latency_p90_ns", "up_to": "4%", "until": "2027-05-30", "reason": "r"}
        ],
        "comment": "sometimes"
    }));
    insta::assert_snapshot!(said);
}

#[test]
fn keys_of_later_versions_are_refused_by_name() {
    let said = complaints(&json!({
        "version": 1,
        "targets": [
            {"name": "a", "config": "envoy/*.yaml", "render": "helm template", "allow": ["lua"]},
            {"name": "b", "config": "envoy/", "path": "two-mtls", "workload": "requests.yaml"}
        ],
        "scenarios": [
            {"name": "api", "protocol": "http1"},
            {"name": "open", "load": {"open": {"rate": "auto"}}, "connections": 32, "response": "1KiB"},
            {"name": "closed"}, {"name": "closed"}
        ]
    }));
    insta::assert_snapshot!(said);
}

#[test]
fn a_file_that_is_no_mapping_is_one_complaint() {
    for value in [json!([]), json!(null), json!("version: 1"), json!(7)] {
        assert_eq!(read(&value).unwrap_err().len(), 1, "{value}");
    }
}

#[test]
fn an_acceptance_holds_at_most_180_days() {
    let mut file = json!({"version": 1, "accept": [
        {"target": "t", "metric": "latency_p99_ns", "up_to": "12%", "until": "2027-05-30", "reason": "r"}]});
    assert_eq!(read(&file).unwrap().accepts("t").len(), 1);
    file["accept"][0]["until"] = json!("2027-05-31");
    assert!(complaints(&file).contains("180 days"));
}

/// `UPDATE_SCHEMA=1 cargo test --release schema` writes it anew.
#[test]
fn the_published_schema_is_the_one_generated() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/sidegate.schema.json");
    let generated = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(published == generated, "schema/sidegate.schema.json is stale: run UPDATE_SCHEMA=1 cargo test schema");
}

proptest::proptest! {
    /// Any JSON value ends as a spec or as complaints, never as a panic.
    #[test]
    fn any_tree_is_read_or_refused(seed in proptest::collection::vec(0_u8..=255, 0..200)) {
        let value = grow(&mut seed.into_iter(), 0);
        let _ = read(&value);
    }
}

/// A tree of the file's own words and of misplaced values.
fn grow(bytes: &mut impl Iterator<Item = u8>, depth: usize) -> Value {
    const WORDS: [&str; 16] = [
        "version",
        "defaults",
        "targets",
        "scenarios",
        "accept",
        "comment",
        "name",
        "config",
        "limits",
        "metric",
        "until",
        "up_to",
        "cpu_ns_per_request",
        "max",
        "limit",
        "~/\u{202e}",
    ];
    let kind = bytes.next().unwrap_or(0);
    match kind % 8 {
        0..=2 if depth < 6 => {
            let mut map = serde_json::Map::new();
            for _ in 0..kind / 32 {
                let word = WORDS[usize::from(bytes.next().unwrap_or(0)) % WORDS.len()];
                map.insert(word.to_owned(), grow(bytes, depth + 1));
            }
            Value::Object(map)
        }
        3 if depth < 6 => (0..kind / 32).map(|_| grow(bytes, depth + 1)).collect(),
        4 => Value::Null,
        5 => json!(f64::from(kind) - 100.5),
        6 => json!(["8%", "10m", "9999999999999999999999h", "2027-01-31", "-262144-01-01", ""][usize::from(kind) % 6]),
        _ => json!(kind.is_multiple_of(2)),
    }
}

/// What a report tells to paste must be read: fractions of counts are text in the tree.
#[test]
fn accepted_costs_of_every_metric_are_read_from_real_yaml() {
    for metric in Metric::ALL {
        let up_to = match metric.unit() {
            "1/request" if metric != Metric::ContextSwitchesPerRequest => "0.98",
            "bytes" if metric == Metric::HeapBytesPerRequest => "98B",
            _ => "12.5%",
        };
        let text = format!(
            "version: 1\naccept:\n- {{target: a, metric: {}, up_to: {up_to}, until: 2026-12-31, reason: \"x\"}}\n",
            metric.name()
        );
        let document = Document::parse("sidegate.yaml", &text).unwrap();
        let spec = Spec::read(&document.value, &|p| document.span(p), "sidegate.yaml", TODAY);
        let accepted = spec.unwrap_or_else(|problems| panic!("{metric:?}: {problems:?}")).accept;
        let expected = match up_to {
            "0.98" => 0.98,
            "98B" => 98.0,
            _ => 0.125,
        };
        assert!((accepted[0].up_to - expected).abs() < 1e-9, "{metric:?}");
    }
}

/// Fractions of absolute limits are text in the tree, too.
#[test]
fn absolute_limits_of_every_metric_are_read_from_real_yaml() {
    for metric in Metric::ALL.into_iter().filter(|m| !m.higher_is_better()) {
        let (max, expected) = match metric.unit() {
            "ns" => ("1.5us", 1500.0),
            "ms" => ("1.5s", 1500.0),
            "bytes" => ("1.5KiB", 1536.0),
            "share" => ("0.5%", 0.005),
            _ => ("0.5", 0.5),
        };
        let text = format!(
            "version: 1\ntargets:\n- name: a\n  config: a.yaml\n  limits: {{{}: {{max: {max}}}}}\n",
            metric.name()
        );
        let document = Document::parse("sidegate.yaml", &text).unwrap();
        let spec = Spec::read(&document.value, &|p| document.span(p), "sidegate.yaml", TODAY);
        let limits = spec.unwrap_or_else(|problems| panic!("{metric:?}: {problems:?}")).targets[0].limits.clone();
        assert!(limits.max.get(&metric).is_some_and(|m| (m - expected).abs() < 1e-9), "{metric:?}: {limits:?}");
    }
}
