//! Whatever a config calls its parts, the comment is made of the same elements, and fits.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use sidegate::judge;
use sidegate::metric::Metric;
use sidegate::policy::Accept;
use sidegate::record::{Change, Record, RequestLine};
use sidegate::report::{Comment, Links, comment};
use sidegate::simulate::record;

use super::{COST, HEAD, OLDER, comment_on, simulated};
use crate::report::{name, skeleton};

/// A real record with `name` wherever a config, its owner or a stranger's runner has a say.
fn named(name: &str) -> Record {
    let mut whole = record(11, simulated(COST));
    let target = &mut whole.targets[0];
    let own = || name.to_owned();
    target.name = own();
    target.head.file = own();
    target.head.proxy.kind = own();
    target.head.changes = vec![Change { pointer: own(), span: None, what: own() }];
    if let Some(base) = &mut target.base {
        base.file = own();
        base.proxy.version = own();
    }
    target.workload = vec![RequestLine { method: own(), authority: own(), path: own(), route: own() }];
    for scenario in &mut target.scenarios {
        (scenario.path, scenario.protocol) = (own(), own());
    }
    target.scenarios[0].name = own();
    target.blocks[0].slices[0].errors = BTreeMap::from([(own(), 1)]);
    target.blocks[1].void = Some(own());
    let metric = Metric::LatencyP50Ns;
    target.policy.accept = vec![Accept { target: own(), metric, up_to: 0.5, until: own(), reason: own() }];
    let mut second = target.clone();
    second.name = format!("{name}2");
    second.base = None;
    second.no_base = Some(own());
    whole.targets.push(second);
    (whole.tool, whole.host.cpu_model, whole.host.os) = (own(), own(), own());
    whole.host.cpu_quota = Some(own());
    whole
}

fn links() -> Links {
    Links {
        run: Some("https://git.example/octo/shop/actions/runs/5".to_owned()),
        repository: Some("https://git.example/octo/shop".to_owned()),
        base_commit: Some(OLDER.to_owned()),
        head_commit: Some(HEAD.to_owned()),
        untrusted: true,
    }
}

fn written(name: &str) -> String {
    let record = named(name);
    comment(&record, &judge::judge(&record), &links()).fit(usize::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_name_changes_what_the_comment_is_made_of(name in name()) {
        static PLAIN: LazyLock<String> = LazyLock::new(|| written("lua"));
        let (plain, hostile) = (&*PLAIN, written(&name));
        prop_assert_eq!(skeleton(&hostile), skeleton(plain), "{}", hostile);
        let hidden = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        prop_assert!(!hostile.chars().any(hidden), "{:?}", hostile);
        let mut inside = false;
        for event in Parser::new_ext(&hostile, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => inside = true,
                Event::End(pulldown_cmark::TagEnd::CodeBlock) => inside = false,
                Event::Text(text) if !inside => {
                    for sign in ["://", "www.", "@", "#", "<", "&"] {
                        prop_assert!(!text.contains(sign), "{sign} in plain text: {text:?}");
                    }
                }
                Event::Start(Tag::Link { dest_url, .. }) => {
                    prop_assert!(dest_url.starts_with("https://git.example/octo/shop/"), "{}", dest_url);
                }
                _ => {}
            }
        }
    }
}

fn many(count: usize) -> Comment {
    let mut all = record(11, simulated(COST));
    all.targets = (0..count)
        .map(|i| {
            let mut target = simulated(if i % 3 == 1 { COST } else { 0.0 });
            target.name = format!("target-{i}-{}", "`x".repeat(400));
            target
        })
        .collect();
    comment_on(&all)
}

#[test]
fn comments_of_many_targets_fit_and_are_cut_by_whole_sections() {
    let comment = many(12);
    for budget in [60_000, 30_000, 20_000] {
        let text = comment.fit(budget);
        assert!(text.len() <= budget && text.len() > budget / 2, "{} of {budget}", text.len());
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        assert!(text.contains("was cut to GitHub's limit"));
        let parsed = skeleton(&text);
        assert!(!parsed.iter().any(|e| e.contains("html") && e.contains("target-")));
    }
    assert!(!many(1).fit(60_000).contains("was cut"));
}

#[test]
fn the_worst_target_comes_first() {
    let text = many(4).fit(60_000);
    let at = |name: &str| text.find(name).unwrap();
    assert!(at("target-1-") < at("target-0-") && text.starts_with("### ❌ Regression: "), "{text}");
}

#[test]
fn the_reason_comes_first_in_plain_words() {
    for (cpu, opening) in [(COST, "### ❌ Regression: throughput -2"), (0.0, "### ✅ Pass: no metric got worse")] {
        let text = comment_on(&record(11, simulated(cpu))).fit(60_000);
        assert!(text.starts_with(opening), "{text}");
        let above = text.split("<details>").next().unwrap().to_lowercase();
        for word in ["p-value", "signed-rank", "wilcoxon", "hodges", "alpha", "family", "mde", "null hypothesis"] {
            assert!(!above.contains(word), "{word} in:\n{above}");
        }
        assert!(above.contains("19 times in 20") && above.len() < 6000, "{}:\n{above}", above.len());
        assert_eq!(above.contains("metric: cpu_ns_per_request, up_to: "), cpu > 0.0);
    }
}

#[test]
fn commits_run_and_doubtful_origin_are_told() {
    let record = record(11, simulated(0.0));
    let text = comment(&record, &judge::judge(&record), &links()).fit(60_000);
    let line =
        "[`9999999`](https://git.example/octo/shop/commit/9999999999999999999999999999999999999999) → [`aaaaaaa`]";
    assert!(text.contains(line) && text.contains("[run](https://git.example/octo/shop/actions/runs/5)"), "{text}");
    assert!(text.contains("> The figures come from a run of this pull request's own code"));
}
