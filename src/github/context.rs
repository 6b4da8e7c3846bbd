//! What a run on GitHub is about: read from the runner's variables and the event's payload, and nothing else.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::problem::{Problem, on_one_line};

/// Events that run with the base repository's rights, whoever caused them.
const PRIVILEGED: [&str; 8] = [
    "pull_request_target",
    "workflow_run",
    "issue_comment",
    "issues",
    "discussion",
    "discussion_comment",
    "fork",
    "watch",
];

/// What a name that stands for no commit looks like: `before` of a push that made a branch.
const NO_COMMIT: char = '0';

/// One run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub event: Event,
    /// `owner/name`.
    pub repository: String,
    /// Whether whoever wrote the change could as well have pushed it to this repository.
    pub same_repository: bool,
    /// Whether the token may only read, whatever the workflow asks for.
    pub token_reads_only: bool,
    /// The commit the run belongs to (the test merge on `pull_request`): `GITHUB_SHA`.
    pub sha: String,
    pub workflow: String,
    pub run_id: u64,
    pub run_attempt: u64,
    /// `https://api.github.com`, or that of an Enterprise server.
    pub api_url: String,
    /// `https://github.com`, or that of an Enterprise server.
    pub server_url: String,
    pub files: FileCommands,
}

/// What happened, with the commits it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    PullRequest {
        number: u64,
        /// The head of the branch, not the test merge.
        head_sha: String,
    },
    MergeGroup {
        base_sha: String,
    },
    Push {
        /// `None` where the push made the branch.
        before: Option<String>,
        forced: bool,
    },
    /// Any other: it names no base.
    Other {
        name: String,
    },
}

/// Files whose content the runner takes as commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileCommands {
    pub output: Option<PathBuf>,
    pub summary: Option<PathBuf>,
}

impl FileCommands {
    pub fn read(env: &BTreeMap<String, String>) -> Self {
        let path = |name: &str| variable(env, name).map(PathBuf::from);
        Self { output: path("GITHUB_OUTPUT"), summary: path("GITHUB_STEP_SUMMARY") }
    }
}

/// Whether this is a step of a workflow.
pub fn is_runner(env: &BTreeMap<String, String>) -> bool {
    variable(env, "GITHUB_ACTIONS").as_deref() == Some("true")
}

/// Refuses to measure in an event that holds rights which the change's author may not have.
pub fn refuse_privileged(env: &BTreeMap<String, String>) -> Result<(), Problem> {
    let event = variable(env, "GITHUB_EVENT_NAME").unwrap_or_default();
    if !is_runner(env) || !PRIVILEGED.contains(&event.as_str()) {
        return Ok(());
    }
    Err(Problem::new(
        "",
        format!(
            "`{event}` runs with this repository's rights, and a config is code (Lua, Wasm): nothing is measured in it"
        ),
    )
    .help(
        "run the gate `on: pull_request`; for comments on pull requests from forks let a second workflow `on: \
         workflow_run` call this action with `command: report` (examples/workflows/forks)",
    ))
}

impl Context {
    /// `env` are the process's variables, `payload` is the text of the event's file.
    pub fn read(env: &BTreeMap<String, String>, payload: &str) -> Result<Self, Problem> {
        refuse_privileged(env)?;
        let payload: Value = serde_json::from_str(payload).map_err(|e| {
            Problem::new(variable(env, "GITHUB_EVENT_PATH").unwrap_or_default(), format!("not an event of GitHub: {e}"))
        })?;
        let repository = needed(env, "GITHUB_REPOSITORY")?;
        let event = event(&needed(env, "GITHUB_EVENT_NAME")?, &payload)?;
        let pull_request = matches!(event, Event::PullRequest { .. });
        let same_repository = !pull_request || is_same_repository(&payload, &repository);
        let dependabot = variable(env, "GITHUB_ACTOR").as_deref() == Some("dependabot[bot]");
        let number = |name: &str| variable(env, name).and_then(|text| text.parse().ok());
        let or = |name: &str, default: &str| variable(env, name).unwrap_or_else(|| default.to_owned());
        Ok(Self {
            event,
            repository,
            same_repository,
            token_reads_only: !same_repository || dependabot,
            sha: or("GITHUB_SHA", ""),
            workflow: or("GITHUB_WORKFLOW", ""),
            run_id: number("GITHUB_RUN_ID").unwrap_or(0),
            run_attempt: number("GITHUB_RUN_ATTEMPT").unwrap_or(1),
            api_url: or("GITHUB_API_URL", "https://api.github.com"),
            server_url: or("GITHUB_SERVER_URL", "https://github.com"),
            files: FileCommands::read(env),
        })
    }
}

fn event(name: &str, payload: &Value) -> Result<Event, Problem> {
    match name {
        "pull_request" | "pull_request_review" | "pull_request_review_comment" => Ok(Event::PullRequest {
            number: payload
                .get("number")
                .or_else(|| payload.pointer("/pull_request/number"))
                .and_then(Value::as_u64)
                .ok_or_else(|| lacks(name, "pull_request.number"))?,
            head_sha: commit(name, payload, "/pull_request/head/sha")?,
        }),
        "merge_group" => Ok(Event::MergeGroup { base_sha: commit(name, payload, "/merge_group/base_sha")? }),
        "push" => {
            let before = commit(name, payload, "/before")?;
            let made = before.chars().all(|c| c == NO_COMMIT);
            let forced = payload.get("forced").and_then(Value::as_bool).unwrap_or(false);
            Ok(Event::Push { before: (!made).then_some(before), forced })
        }
        _ => Ok(Event::Other { name: on_one_line(name) }),
    }
}

/// A commit's name, which goes into command lines: hexadecimal digits only.
fn commit(event: &str, payload: &Value, pointer: &str) -> Result<String, Problem> {
    let text = payload.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let fits = matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if fits { Ok(text.to_ascii_lowercase()) } else { Err(lacks(event, &pointer[1..].replace('/', "."))) }
}

fn lacks(event: &str, field: &str) -> Problem {
    Problem::new("", format!("the payload of `{}` has no usable `{field}`", on_one_line(event)))
        .help("name the base commit with the input `base-ref` (or --base-rev)")
}

/// By number where both have one (names change), else by name. A fork that was deleted has no repository any more.
fn is_same_repository(payload: &Value, repository: &str) -> bool {
    let head = payload.pointer("/pull_request/head/repo");
    let id = |value: Option<&Value>| value.and_then(|v| v.get("id")).and_then(Value::as_u64);
    match (id(head), id(payload.get("repository"))) {
        (Some(head), Some(own)) => head == own,
        _ => {
            let name = head.and_then(|v| v.get("full_name")).and_then(Value::as_str);
            name.is_some_and(|name| name.eq_ignore_ascii_case(repository))
        }
    }
}

/// Unset and empty are the same to the runner.
fn variable(env: &BTreeMap<String, String>, name: &str) -> Option<String> {
    env.get(name).map(|text| text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn needed(env: &BTreeMap<String, String>, name: &str) -> Result<String, Problem> {
    variable(env, name).ok_or_else(|| {
        Problem::new("", format!("{name} is not set, which every runner of GitHub Actions sets"))
            .help("outside of a runner, name what to compare: --base and --head, or --base-rev and --head-rev")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn env(event: &str) -> BTreeMap<String, String> {
        let pairs = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", event),
            ("GITHUB_REPOSITORY", "shop/mesh"),
            ("GITHUB_RUN_ID", "77"),
            ("GITHUB_OUTPUT", "/github/file_commands/out"),
            ("GITHUB_STEP_SUMMARY", ""),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn pull(head: Value) -> String {
        let repository = json!({"id": 1, "full_name": "shop/mesh"});
        json!({"number": 5, "pull_request": {"head": {"sha": A, "repo": head}}, "repository": repository}).to_string()
    }

    #[test]
    fn a_pull_request_names_its_head_and_where_it_comes_from() {
        let context = |head: Value| Context::read(&env("pull_request"), &pull(head)).unwrap();
        let own = context(json!({"id": 1, "full_name": "shop/renamed"}));
        assert_eq!(own.event, Event::PullRequest { number: 5, head_sha: A.to_owned() });
        assert!(own.same_repository && !own.token_reads_only && own.run_id == 77 && own.run_attempt == 1);
        assert!(own.files.output.is_some() && own.files.summary.is_none());
        for fork in [json!({"id": 2, "full_name": "shop/mesh"}), Value::Null, json!({"full_name": "other/mesh"})] {
            let fork = context(fork);
            assert!(!fork.same_repository && fork.token_reads_only);
        }
        assert!(context(json!({"full_name": "Shop/Mesh"})).same_repository);
    }

    #[test]
    fn dependabot_reads_only_but_is_of_this_repository() {
        let mut env = env("pull_request");
        env.insert("GITHUB_ACTOR".to_owned(), "dependabot[bot]".to_owned());
        let context = Context::read(&env, &pull(json!({"id": 1}))).unwrap();
        assert!(context.same_repository && context.token_reads_only);
    }

    #[test]
    fn merge_groups_and_pushes_name_their_base() {
        let group = json!({"merge_group": {"base_sha": A, "head_sha": A}}).to_string();
        let context = Context::read(&env("merge_group"), &group).unwrap();
        assert_eq!(context.event, Event::MergeGroup { base_sha: A.to_owned() });
        let push = |before: &str| {
            Context::read(&env("push"), &json!({"before": before, "forced": true}).to_string()).unwrap().event
        };
        assert_eq!(push(A), Event::Push { before: Some(A.to_owned()), forced: true });
        assert_eq!(push(&"0".repeat(40)), Event::Push { before: None, forced: true });
        let other = Context::read(&env("schedule"), "{}").unwrap().event;
        assert_eq!(other, Event::Other { name: "schedule".to_owned() });
    }

    #[test]
    fn privileged_events_are_refused_with_a_way_out() {
        for event in PRIVILEGED {
            let problem = Context::read(&env(event), "{}").unwrap_err();
            assert!(problem.message.contains("config is code") && problem.message.contains(event), "{problem}");
            assert!(problem.help.unwrap().contains("pull_request"));
        }
        let mut outside = env("workflow_run");
        outside.remove("GITHUB_ACTIONS");
        assert!(refuse_privileged(&outside).is_ok());
    }

    #[test]
    fn payloads_that_lack_what_is_needed_are_told() {
        for (event, payload, said) in [
            ("pull_request", json!({"number": 5}), "pull_request.head.sha"),
            ("pull_request", json!({"pull_request": {}}), "number"),
            ("pull_request", json!({"number": 5, "pull_request": {"head": {"sha": "--upload-pack=x"}}}), "head.sha"),
            ("merge_group", json!([]), "merge_group.base_sha"),
            ("push", json!({"before": 7}), "before"),
        ] {
            let problem = Context::read(&env(event), &payload.to_string()).unwrap_err();
            assert!(problem.message.contains(said), "{problem}");
        }
        assert!(Context::read(&env("push"), "{").unwrap_err().message.contains("not an event"));
    }
}
