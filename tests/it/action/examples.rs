//! GitHub's own examples of event payloads (npm `@octokit/webhooks-examples`), fetched by `tests/contract/events`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use sidegate::github::{Context, Event};

fn variables(event: &str, payload: &Value) -> BTreeMap<String, String> {
    let repository = payload.pointer("/repository/full_name").and_then(Value::as_str).unwrap_or("octo/none");
    let pairs = [("GITHUB_ACTIONS", "true"), ("GITHUB_EVENT_NAME", event), ("GITHUB_REPOSITORY", repository)];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
#[ignore = "needs a package of npm: tests/contract/events"]
fn every_example_of_github_is_read_for_what_it_is() {
    let path = std::env::var("SIDEGATE_WEBHOOK_EXAMPLES").expect("the path of the package's index.json");
    let all: Vec<Value> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut count: BTreeMap<&str, u32> = BTreeMap::new();
    for group in &all {
        let name = group["name"].as_str().unwrap();
        for payload in group["examples"].as_array().unwrap() {
            let text = |pointer: &str| payload.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let context = Context::read(&variables(name, payload), &payload.to_string());
            let kind = match (name, context) {
                ("pull_request" | "pull_request_review" | "pull_request_review_comment", context) => {
                    let context = context.unwrap();
                    let Event::PullRequest { number, head_sha } = context.event else { panic!("{name}: {payload}") };
                    assert_eq!(
                        (Some(number), head_sha.as_str()),
                        (payload["pull_request"]["number"].as_u64(), text("/pull_request/head/sha"))
                    );
                    let same = payload.pointer("/pull_request/head/repo/id") == payload.pointer("/repository/id");
                    assert_eq!(context.same_repository, same, "{payload}");
                    if same { "own pull request" } else { "fork" }
                }
                ("push", context) => {
                    let Event::Push { before, .. } = context.unwrap().event else { panic!("{payload}") };
                    assert_eq!(before.is_none(), payload["created"] == true, "{payload}");
                    if before.is_none() { "new branch" } else { "push" }
                }
                ("merge_group", context) => {
                    let base_sha = text("/merge_group/base_sha").to_owned();
                    assert_eq!(context.unwrap().event, Event::MergeGroup { base_sha });
                    "merge group"
                }
                (_, Ok(context)) => {
                    assert_eq!(context.event, Event::Other { name: name.to_owned() });
                    "other"
                }
                (_, Err(problem)) => {
                    assert!(problem.message.contains("config is code"), "{name}: {problem}");
                    "refused"
                }
            };
            *count.entry(kind).or_default() += 1;
        }
    }
    println!("{count:?}");
    // Each way through must have been gone.
    assert!(
        ["own pull request", "push", "new branch", "merge group", "other", "refused"]
            .iter()
            .all(|kind| count.contains_key(kind)),
        "{count:?}"
    );
}
