//! Prices of blocks and blame for changes: the arithmetic with a model of costs, and the whole with a real Envoy.

use std::fs;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sidegate::envoy::Bootstrap;
use sidegate::envoy::ablate::{Ablation, Target};
use sidegate::envoy::difference::Difference;
use sidegate::explain::{Bench, Known, Subject};
use sidegate::record::{BlockPrice, Count, Counted, Prices, RequestClass};
use sidegate::report;
use sidegate::yaml::Document;
use tempfile::TempDir;

use crate::common::{children_of, envoy, example, is_running, machine, run, sidegate, text, wait};

/// Costs by arithmetic: every filter costs what its `stat_prefix` says, and two of the first ones share work.
struct Model {
    width: usize,
    spent: Duration,
    batches: Vec<usize>,
    stop_after: usize,
}

impl Model {
    fn new(width: usize) -> Self {
        Self { width, spent: Duration::ZERO, batches: Vec::new(), stop_after: usize::MAX }
    }

    fn cost(config: &Document) -> Counted {
        let filters = config
            .value
            .pointer("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters")
            .and_then(Value::as_array)
            .unwrap();
        let names: Vec<&str> = filters.iter().filter_map(|filter| filter["name"].as_str()).collect();
        if names.contains(&"needs-a") && !names.contains(&"a") {
            return Counted::Failed { why: "the proxy rejects the config: `needs-a` without `a`".to_owned() };
        }
        let sum: f64 = filters.iter().filter_map(|filter| filter["typed_config"]["cost"].as_f64()).sum();
        let shared = if names.contains(&"a") && names.contains(&"b") { -300.0 } else { 0.0 };
        let statuses = if names.contains(&"denies") { vec![403] } else { vec![200] };
        Counted::Done(Count {
            instructions: 100_000.0 + sum + shared,
            syscalls: 9.0 + names.len() as f64,
            spread: 0.0,
            statuses,
        })
    }
}

impl Bench for Model {
    fn width(&self) -> usize {
        self.width
    }

    fn count(&mut self, configs: &[Document]) -> Vec<Counted> {
        self.spent += Duration::from_secs(8);
        self.batches.push(configs.len());
        configs.iter().map(Self::cost).collect()
    }

    fn spent(&self) -> Duration {
        self.spent
    }

    fn stopped(&self) -> Option<&'static str> {
        (self.batches.len() >= self.stop_after).then_some("SIGINT")
    }
}

fn chain(filters: &[(&str, f64)]) -> Document {
    let filter = |(name, cost): &(&str, f64)| json!({"name": name, "typed_config": {"@type": "type.googleapis.com/x.Filter", "cost": cost}});
    let mut filters: Vec<Value> = filters.iter().map(filter).collect();
    filters.push(json!({"name": "envoy.filters.http.router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}));
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"],
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}]},
        "http_filters": filters,
    });
    let value = json!({"static_resources": {
        "listeners": [{"name": "in", "address": {"socket_address": {"address": "0.0.0.0", "port_value": 80}},
            "filter_chains": [{"filters": [{"name": "m", "typed_config": manager}]}]}],
        "clusters": [{"name": "c", "type": "STATIC"}],
    }});
    Document::parse("chain.json", &format!("{value:#}")).unwrap()
}

fn class() -> RequestClass {
    RequestClass {
        name: "GET /".to_owned(),
        method: "GET".to_owned(),
        authority: "sidegate.test".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body_bytes: 0,
        new_connection: false,
        route: "v: prefix /".to_owned(),
    }
}

fn priced(filters: &[(&str, f64)], model: &mut Model, budget: u64) -> Prices {
    let document = chain(filters);
    let target = Target { listener: 0, plain: true, authority: "sidegate.test", path: "/" };
    let ablation = Ablation::of(&Bootstrap::read(&document).unwrap(), target);
    let subject =
        Subject { file: "chain.json".to_owned(), proxy: "envoy 1.40.0".to_owned(), machine: None, class: class() };
    sidegate::explain::prices(subject, &ablation, document, model, Duration::from_secs(budget), &mut |_| {})
}

fn instructions(prices: &Prices) -> Vec<Option<f64>> {
    prices.blocks.iter().map(|block| prices.price(block).map(|price| price.instructions)).collect()
}

#[test]
fn prices_are_what_each_block_adds_and_the_rest_is_interaction() {
    let mut model = Model::new(2);
    let prices = priced(&[("a", 1000.0), ("b", 500.0), ("c", 20_000.0)], &mut model, 600);
    assert_eq!(instructions(&prices), [Some(700.0), Some(200.0), Some(20_000.0)]);
    assert_eq!(prices.all().unwrap().instructions, 21_200.0);
    assert_eq!(prices.sum().unwrap().instructions, 20_900.0);
    assert_eq!(prices.interactions().unwrap().instructions, 300.0, "saved together, so paid once beyond the prices");
    assert_eq!(prices.all().unwrap().syscalls, 3.0);
    let alone: Vec<f64> = prices.blocks.iter().map(|block| prices.alone(block).unwrap().instructions).collect();
    assert_eq!(alone, [1000.0, 500.0, 20_000.0]);
    assert_eq!(model.batches, [2, 2, 2, 2], "eight configs, two at a time");
    assert_eq!(prices.ended_by, None);
    let text = report::explain::text(&prices);
    let order: Vec<usize> = ["filter c", "filter a", "filter b"].iter().map(|name| text.find(name).unwrap()).collect();
    assert!(order.is_sorted(), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in ["121 200 instructions", "20 000", "16.5 %", "████████", "interactions"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let json = report::explain::json(&prices);
    assert_eq!(json["blocks"][0]["price"]["instructions"], 20_000.0);
    assert_eq!(json["interactions"]["instructions"], 300.0);
}

#[test]
fn one_block_alone_needs_two_configs_and_none_needs_one() {
    let mut model = Model::new(2);
    let prices = priced(&[("a", 1000.0)], &mut model, 600);
    assert_eq!((instructions(&prices), model.batches), (vec![Some(1000.0)], vec![2]));
    assert_eq!(prices.interactions().unwrap().instructions, 0.0);
    let mut model = Model::new(2);
    let prices = priced(&[], &mut model, 600);
    assert_eq!(model.batches, [1]);
    let text = report::explain::text(&prices);
    assert!(text.contains("no block that could be taken away") && !text.contains("sum of"), "{text}");
}

#[test]
fn a_config_the_proxy_rejects_is_told_with_its_reason() {
    let prices = priced(&[("a", 1000.0), ("needs-a", 500.0)], &mut Model::new(1), 600);
    assert_eq!(instructions(&prices), [None, Some(500.0)]);
    assert!(prices.sum().is_none() && prices.interactions().is_none());
    let text = report::explain::text(&prices);
    assert!(text.contains("No price of HTTP filter a: without it, the proxy rejects the config"), "{text}");
    assert!(text.contains("?"), "{text}");
}

#[test]
fn another_answer_is_another_path_and_said() {
    let prices = priced(&[("a", 1000.0), ("denies", 5.0)], &mut Model::new(2), 600);
    let text = report::explain::text(&prices).replace("\n  ", " ");
    assert!(text.contains("Without HTTP filter denies requests are answered 200 instead of 403"), "{text}");
}

#[test]
fn what_does_not_fit_into_the_budget_is_untried_and_said() {
    let filters: Vec<(String, f64)> = (0..10_000).map(|at| (format!("f{at}"), 10.0)).collect();
    let filters: Vec<(&str, f64)> = filters.iter().map(|(name, cost)| (name.as_str(), *cost)).collect();
    let mut model = Model::new(2);
    let prices = priced(&filters[..100], &mut model, 30);
    assert_eq!(model.batches, [2, 2, 2], "24 s are spent, and the next two would end after 32 s");
    let known = instructions(&prices).into_iter().flatten().count();
    assert_eq!(known, 4);
    let text = report::explain::text(&prices);
    assert!(text.contains("96 of 100 blocks were not tried: ended by the budget of 30 s"), "{text}");
    // However many there are, only those that fit are made.
    let mut model = Model::new(2);
    let prices = priced(&filters, &mut model, 10);
    assert_eq!((model.batches.len(), prices.blocks.len()), (1, 10_000));
}

#[test]
fn a_signal_keeps_what_was_counted() {
    let mut model = Model { stop_after: 2, ..Model::new(2) };
    let prices = priced(&[("a", 1.0), ("c", 2.0), ("d", 3.0)], &mut model, 600);
    assert_eq!(prices.ended_by.as_deref(), Some("SIGINT"));
    assert_eq!(instructions(&prices), [Some(1.0), Some(2.0), None]);
    assert!(report::explain::text(&prices).contains("ended by SIGINT"));
}

#[test]
fn names_from_a_config_stay_names() {
    let evil = "x\u{1b}[31m|](http://e.vil) @all\n::error::<img src=x>";
    let prices = priced(&[(evil, 1000.0), ("a", 1.0)], &mut Model::new(2), 600);
    let text = report::explain::text(&prices);
    assert!(!text.contains('\u{1b}') && !text.lines().any(|line| line.trim_start().starts_with("::")), "{text}");
    let page = report::explain::markdown(&prices);
    let mut options = pulldown_cmark::Options::empty();
    options.insert(pulldown_cmark::Options::ENABLE_TABLES);
    for event in pulldown_cmark::Parser::new_ext(&page, options) {
        use pulldown_cmark::{Event, Tag};
        let is_markup = matches!(
            event,
            Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock)
        );
        assert!(!is_markup, "{event:?}\n{page}");
    }
}

#[test]
fn counts_that_say_nothing_are_shown_without_a_panic() {
    let count = |instructions| Counted::Done(Count { instructions, syscalls: 0.0, spread: 0.0, statuses: Vec::new() });
    for (whole, without) in [(0.0, 0.0), (1.0, 5.0), (1e300, 0.0)] {
        let (without, alone) = (count(without), Counted::Untried);
        let block = BlockPrice { pointer: String::new(), span: None, what: String::new(), without, alone };
        let prices = Prices {
            file: String::new(),
            proxy: String::new(),
            machine: None,
            class: class(),
            whole: count(whole),
            bare: Counted::Untried,
            blocks: vec![block],
            elsewhere: 1,
            ended_by: None,
        };
        let _ = (report::explain::text(&prices), report::explain::markdown(&prices), report::explain::json(&prices));
    }
}

fn blamed(base: &Document, head: &Document, model: &mut Model, budget: u64) -> sidegate::record::Blame {
    let of = |document| Model::cost(document).count().unwrap().instructions;
    let known = Known { class: 0, base: of(base), head: of(head) };
    sidegate::explain::blame(&Difference::between(base, head), known, model, Duration::from_secs(budget), &mut |_| {})
}

#[test]
fn a_single_change_is_to_blame_without_a_run() {
    let mut model = Model::new(2);
    let blame = blamed(&chain(&[("a", 100.0)]), &chain(&[("c", 5000.0), ("a", 100.0)]), &mut model, 60);
    assert!(model.batches.is_empty());
    assert_eq!((blame.parts.len(), blame.parts[0].instructions), (1, Some(5000.0)));
    assert_eq!(blame.parts[0].what, "HTTP filter c added");
    assert!(blame.parts[0].span.is_some());
}

#[test]
fn of_several_changes_each_gets_its_part_the_largest_first() {
    let base = chain(&[("a", 100.0), ("gone", 3000.0)]);
    let head = chain(&[("a", 100.0), ("c", 5000.0), ("needs-b", 10.0), ("d", 1.0)]);
    let mut model = Model::new(2);
    let blame = blamed(&base, &head, &mut model, 60);
    let parts: Vec<(&str, Option<f64>)> =
        blame.parts.iter().map(|part| (part.what.as_str(), part.instructions)).collect();
    assert_eq!(
        parts,
        [
            ("HTTP filter c added", Some(5000.0)),
            ("HTTP filter gone removed", Some(-3000.0)),
            ("HTTP filter needs-b added", Some(10.0)),
            ("HTTP filter d added", Some(1.0)),
        ]
    );
    assert!(blame.untried.is_empty());
    assert_eq!(blame.head - blame.base, 2011.0);
    let few = blamed(&base, &head, &mut Model::new(1), 10);
    assert_eq!((few.parts.len(), few.untried.len()), (1, 3));
    let same = blamed(&base, &base, &mut Model::new(2), 60);
    assert!(same.parts.is_empty() && same.untried.is_empty());
}

// What follows counts a real Envoy under a real valgrind.

/// Runs `sidegate explain` with the Envoy of the tests; exit code, standard output, standard error.
fn explain(config: &Path, more: &[&str]) -> (i32, String, String) {
    run(sidegate().arg("explain").arg(config).args(["--envoy", &envoy()]).args(more))
}

/// The example's chain without all but these filters.
fn chain_of(dir: &TempDir, names: &[&str]) -> PathBuf {
    let document = Document::open(&example("chain/envoy.yaml")).unwrap();
    let mut value = document.value;
    let filters = value
        .pointer_mut("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters")
        .and_then(Value::as_array_mut)
        .unwrap();
    let is_wanted = |filter: &Value| {
        let name = filter["name"].as_str().unwrap().trim_start_matches("envoy.filters.http.").to_owned();
        name == "router" || names.contains(&name.as_str())
    };
    filters.retain(is_wanted);
    assert_eq!(filters.len(), names.len() + 1);
    let path = dir.path().join(format!("{}.json", names.join("-")));
    fs::write(&path, format!("{value:#}")).unwrap();
    path
}

fn whole(json: &Value) -> f64 {
    json["whole"]["instructions"].as_f64().unwrap_or_else(|| panic!("no count: {json:#}"))
}

#[test]
fn prices_of_a_real_chain_are_what_adding_each_filter_costs() {
    let _machine = machine();
    let dir = TempDir::new().unwrap();
    // Four that share no work: see `work_that_two_filters_share_is_an_interaction`.
    let names = ["set_metadata", "lua", "header_mutation", "compressor"];
    let json = explained;
    let all = json(&chain_of(&dir, &names));
    let request = whole(&all);
    assert_eq!(all["blocks"].as_array().unwrap().len(), 4, "{all:#}");
    for name in names {
        let block = all["blocks"].as_array().unwrap().iter().find(|b| b["what"].as_str().unwrap().ends_with(name));
        let price = block.unwrap()["price"]["instructions"].as_f64().unwrap();
        // With one filter, the price is what it adds to the bare config.
        let added = json(&chain_of(&dir, &[name]))["blocks"][0]["price"]["instructions"].as_f64().unwrap();
        let allowed = (added.abs() * 0.1).max(request * 0.002);
        assert!((price - added).abs() <= allowed, "{name}: {price} taken away, {added} added\n{all:#}");
        assert!(price > request * 0.002, "{name} costs something: {price}");
    }
    let (sum, together) = (&all["sum"]["instructions"], &all["all"]["instructions"]);
    let rest = all["interactions"]["instructions"].as_f64().unwrap();
    assert!((together.as_f64().unwrap() - sum.as_f64().unwrap() - rest).abs() < 1e-6);
}

/// What explain says of a config, for programs.
fn explained(config: &Path) -> Value {
    let (code, stdout, stderr) = explain(config, &["--format", "json", "--budget", "9m"]);
    assert_eq!(code, 0, "{stdout}\n{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn work_that_two_filters_share_is_an_interaction() {
    let _machine = machine();
    let dir = TempDir::new().unwrap();
    // The first lookup of a header by a name of its own costs more than later ones; each of the two does one.
    let both = explained(&chain_of(&dir, &["header_to_metadata", "rbac"]));
    let rest = both["interactions"]["instructions"].as_f64().unwrap();
    assert!(rest > 0.005 * whole(&both), "{both:#}");
}

/// `examples/lua` with one line more.
fn with_line(dir: &TempDir, name: &str, after: &str, more: &str) -> PathBuf {
    let text = fs::read_to_string(example(&format!("lua/{name}.yaml"))).unwrap();
    assert!(text.contains(after), "{after}");
    let path = dir.path().join(format!("{name}.yaml"));
    fs::write(&path, text.replacen(after, &format!("{after}{more}"), 1)).unwrap();
    path
}

fn lua_line(head: &Path) -> u64 {
    let text = fs::read_to_string(head).unwrap();
    let at = text.lines().position(|line| line.contains("- name: envoy.filters.http.lua")).unwrap();
    at as u64 + 1
}

/// The blame in the record of a gate that only counts.
fn gate_blame(base: &Path, head: &Path, dir: &TempDir) -> Value {
    let out = dir.path().join("out");
    let mut command = sidegate();
    command.args(["gate", "--envoy", &envoy(), "--cost-only", "--profile", "quick", "--base"]).arg(base);
    let (code, stdout, stderr) = run(command.arg("--head").arg(head).arg("--out").arg(&out));
    assert_eq!(code, 1, "{stdout}\n{stderr}");
    let record: Value = serde_json::from_str(&fs::read_to_string(out.join("record.json")).unwrap()).unwrap();
    record["targets"][0]["cost"]["blame"].clone()
}

#[test]
fn blame_of_the_example_names_the_lua_filter_at_its_line() {
    let _machine = machine();
    let dir = TempDir::new().unwrap();
    let (base, head) = (example("lua/base.yaml"), example("lua/head.yaml"));
    let blame = gate_blame(&base, &head, &dir);
    assert_eq!(blame["parts"].as_array().unwrap().len(), 1, "{blame:#}");
    assert_eq!(blame["parts"][0]["what"], "HTTP filter envoy.filters.http.lua added");
    assert_eq!(blame["parts"][0]["span"]["line"], lua_line(&head), "{blame:#}");
    let difference = blame["head"].as_f64().unwrap() - blame["base"].as_f64().unwrap();
    assert!((blame["parts"][0]["instructions"].as_f64().unwrap() - difference).abs() < 1e-6 && difference > 10_000.0);
}

#[test]
fn blame_counts_several_changes_one_by_one() {
    let _machine = machine();
    let dir = TempDir::new().unwrap();
    let base = example("lua/base.yaml");
    let head = with_line(&dir, "head", "connect_timeout: 0.5s", "\n      per_connection_buffer_limit_bytes: 65536");
    let blame = gate_blame(&base, &head, &dir);
    let parts = blame["parts"].as_array().unwrap();
    assert_eq!((parts.len(), blame.get("untried")), (2, None), "{blame:#}");
    assert_eq!(parts[0]["span"]["line"], lua_line(&head), "{blame:#}");
    let difference = blame["head"].as_f64().unwrap() - blame["base"].as_f64().unwrap();
    let of = |at: usize| parts[at]["instructions"].as_f64().unwrap();
    assert!((of(0) / difference - 1.0).abs() < 0.05, "{blame:#}");
    assert!(of(1).abs() < 0.02 * blame["base"].as_f64().unwrap(), "{blame:#}");
}

#[test]
fn an_interrupt_ends_explain_with_what_it_has_and_nothing_is_left() {
    let _machine = machine();
    let mut child = sidegate()
        .arg("explain")
        .arg(example("chain/envoy.yaml"))
        .args(["--envoy", &envoy()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("configs counted")), "the first ones are counted");
    // The next ones are under way.
    std::thread::sleep(Duration::from_secs(2));
    let children = children_of(child.id());
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = wait(child, Duration::from_secs(30));
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{stdout}");
    assert!(
        stdout.contains("Without all of its blocks:") && stdout.contains(" of 10 blocks were not tried"),
        "{stdout}"
    );
    assert!(stdout.contains("SIGINT"), "{stdout}");
    assert!(children.iter().all(|&pid| !is_running(pid)));
}

#[test]
fn what_explain_cannot_do_is_said_with_a_remedy() {
    let config = example("lua/head.yaml");
    let (code, _, stderr) = explain(&config, &["--class", "GET /nowhere"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("no kind of request `GET /nowhere`") && stderr.contains("`GET /v1/orders`"), "{stderr}");
    let (code, _, stderr) = explain(Path::new("no-such.yaml"), &[]);
    assert_eq!(code, 2, "{stderr}");
    let none = TempDir::new().unwrap();
    let mut command = sidegate();
    command.env("SIDEGATE_VALGRIND", none.path()).arg("explain").arg(&config).args(["--envoy", &envoy()]);
    let (code, _, stderr) = run(&mut command);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("instructions cannot be counted") && stderr.contains("help:"), "{stderr}");
    let (code, _, stderr) = explain(&config, &["--budget", "soon"]);
    assert_eq!(code, 2, "{stderr}");
}
