//! What a step says on its pull request, against a GitHub of our own.

use serde_json::json;

use super::events::{CONFIG, pull_request, test_merge};
use super::runner::Step;
use crate::git::Sandbox;
use crate::github::fake::Fake;
use crate::github::world::{Account, REPOSITORY, Trouble};

/// A pull request that changes no config, as a step that may comment on it.
fn step<'s>(sandbox: &'s Sandbox, tip: &str, fake: &Fake, fork: bool) -> Step<'s> {
    let mut world = fake.world();
    world.add_pull(5, tip);
    let repository = format!("{}/{}", world.owner, world.repo);
    Step::new(sandbox, "pull_request", pull_request(tip, fork))
        .input("config", CONFIG)
        .input("comment", "always")
        .input("github-token", &fake.token)
        .variable("GITHUB_API_URL", &fake.api_url)
        .variable("GITHUB_REPOSITORY", &repository)
}

fn unrelated() -> (Sandbox, String) {
    test_merge(&[("envoy/a.yaml", "a: 1\n"), ("code.rs", "x")], &[("code.rs", "y")])
}

#[test]
fn a_result_is_put_onto_the_pull_request_and_brought_up_to_date() {
    let ((sandbox, tip), fake) = (unrelated(), Fake::new());
    let step = step(&sandbox, &tip, &fake, false);
    for said in ["comment created: ", "comment unchanged: "] {
        let done = step.run();
        assert_eq!((done.code, done.output("verdict")), (0, "skipped"), "{}", done.log);
        assert!(done.log.contains(said), "{}", done.log);
        assert!(!done.log.contains(&fake.token), "{}", done.log);
    }
    let world = fake.world();
    assert_eq!((world.comments.len(), world.comments[0].issue), (1, 5));
    assert!(world.comments[0].body.contains("kipped"), "{}", world.comments[0].body);
}

#[test]
fn forks_and_missing_tokens_ask_github_nothing() {
    let (sandbox, tip) = unrelated();
    for (fork, token, said) in [(true, true, "a token that only reads"), (false, false, "`github-token` is empty")] {
        let fake = Fake::new();
        let mut step = step(&sandbox, &tip, &fake, fork);
        if !token {
            step = step.input("github-token", "");
        }
        let done = step.run();
        assert!(done.code == 0 && done.log.contains(said), "{}", done.log);
        assert_eq!(fake.calls(), Vec::<String>::new());
    }
}

#[test]
fn a_comment_that_cannot_be_written_changes_no_verdict() {
    let ((sandbox, tip), fake) = (unrelated(), Fake::unjudged());
    fake.world().account = Account::read_only();
    let answer = (403, vec![], r#"{"message": "Resource not accessible by integration"}"#.to_owned());
    fake.world().goes_wrong("GET", "/comments", 9, Trouble::Answer(answer.0, answer.1, answer.2));
    let done = step(&sandbox, &tip, &fake, false).run();
    assert_eq!((done.code, done.output("verdict")), (0, "skipped"), "{}", done.log);
    assert!(done.log.contains("no comment: "), "{}", done.log);
    done.gave_only_annotations();
}

#[test]
fn a_wrong_policy_is_told_before_anything_runs() {
    let ((sandbox, tip), fake) = (unrelated(), Fake::new());
    let done = step(&sandbox, &tip, &fake, false).input("comment", "sometimes").run();
    assert!(done.code == 2 && done.log.contains("the input `comment` is `sometimes`"), "{}", done.log);
}

/// The second of two workflows: no checkout, another event, the record of the first.
#[test]
fn the_second_workflow_reports_what_the_first_measured() {
    let ((sandbox, tip), fake) = (unrelated(), Fake::new());
    let first = Step::new(&sandbox, "pull_request", pull_request(&tip, true)).input("config", CONFIG).run();
    assert_eq!(first.code, 0, "{}", first.log);
    let owner = fake.world().owner.clone();
    let repo = fake.world().repo.clone();
    fake.world().add_pull(5, &tip);
    let repository = format!("{owner}/{repo}");
    let owner = json!({"login": owner});
    let run = json!({"id": 7, "run_attempt": 1, "name": "sidegate", "event": "pull_request", "head_branch": "change",
        "head_sha": tip, "pull_requests": [], "head_repository": {"id": REPOSITORY, "owner": owner}});
    let elsewhere = Sandbox::new();
    let second = Step::new(&elsewhere, "workflow_run", json!({"workflow_run": run, "repository": {"id": REPOSITORY}}))
        .input("command", "report")
        .input("comment", "always")
        .input("out", &sandbox.at.join("sidegate-out").display().to_string())
        .input("github-token", &fake.token)
        .variable("GITHUB_API_URL", &fake.api_url)
        .variable("GITHUB_REPOSITORY", &repository)
        .run();
    assert!(second.code == 0 && second.log.contains("comment created"), "{}", second.log);
    assert_eq!(fake.world().comments.len(), 1);
}
