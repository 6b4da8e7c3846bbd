//! Where a report goes: from what the user says, the runner's variables, and the event that GitHub wrote. Never from the
//! record, which a stranger's code may have made.

use serde_json::Value;

use crate::github::{Destination, Head, Token};
use crate::report::Links;

/// What the command line says; the rest comes from the environment.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// `OWNER/NAME`.
    pub repository: Option<String>,
    pub pull_number: Option<u64>,
    pub head_sha: Option<String>,
    pub api_url: Option<String>,
    pub key: Option<String>,
}

/// A pull request, known by its number or by its head.
#[derive(Debug, Clone)]
pub struct Place {
    pub to: Destination,
    /// Where the number must be asked for.
    pub head: Option<Head>,
    pub links: Links,
}

/// The place, or one line that says why there is none. `variable` reads the environment, `event` is the text of
/// `GITHUB_EVENT_PATH`.
pub fn place(said: &Said, variable: &dyn Fn(&str) -> Option<String>, event: Option<&str>) -> Result<Place, String> {
    let variable = |name: &str| variable(name).filter(|v| !v.trim().is_empty());
    let event: Value = event.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let token = variable("INPUT_GITHUB-TOKEN").or_else(|| variable("GITHUB_TOKEN"));
    let token = token.ok_or("there is no token: set GITHUB_TOKEN or the input `github-token`")?;
    let token = Token::new(&token).ok_or("the token holds characters that no token has: set GITHUB_TOKEN anew")?;
    let repository = said.repository.clone().or_else(|| variable("GITHUB_REPOSITORY"));
    let repository = repository.ok_or("there is no repository: give --repo OWNER/NAME")?;
    let (owner, repo) = repository.split_once('/').ok_or("the repository has no owner: give --repo OWNER/NAME")?;
    let about = About::read(said, &event)?;
    let number = |name: &str| variable(name).and_then(|v| v.parse().ok());
    let workflow = about.workflow.or_else(|| variable("GITHUB_WORKFLOW")).unwrap_or_default();
    let run_id = about.run.map(|r| r.0).or_else(|| number("GITHUB_RUN_ID")).unwrap_or(0);
    let to = Destination {
        api_url: said
            .api_url
            .clone()
            .or_else(|| variable("GITHUB_API_URL"))
            .unwrap_or_else(|| "https://api.github.com".to_owned()),
        token,
        owner: owner.to_owned(),
        repo: repo.to_owned(),
        pull_number: about.number.unwrap_or(0),
        head_sha: about.sha.clone(),
        run_id,
        run_attempt: about.run.map(|r| r.1).or_else(|| number("GITHUB_RUN_ATTEMPT")).unwrap_or(1),
        // A space of its own between both: no name of a workflow can be taken for another with a key.
        key: format!("{workflow}\n{}", said.key.as_deref().unwrap_or_default()),
    };
    let server = variable("GITHUB_SERVER_URL").unwrap_or_else(|| "https://github.com".to_owned());
    let home = format!("{}/{repository}", server.trim_end_matches('/'));
    let links = Links {
        run: (run_id > 0).then(|| format!("{home}/actions/runs/{run_id}")),
        repository: Some(home),
        base_commit: None,
        head_commit: Some(about.sha),
        untrusted: about.fork,
    };
    Ok(Place { to, head: about.head, links })
}

/// What the report is about.
struct About {
    number: Option<u64>,
    sha: String,
    head: Option<Head>,
    run: Option<(u64, u64)>,
    workflow: Option<String>,
    fork: bool,
}

impl About {
    fn read(said: &Said, event: &Value) -> Result<Self, String> {
        let mut about = match (event.get("workflow_run"), event.get("pull_request")) {
            (Some(run), _) if run.is_object() => Self::of_run(run, event)?,
            (_, Some(pull)) if pull.is_object() => Self::of_pull(pull),
            _ => Self { number: None, sha: String::new(), head: None, run: None, workflow: None, fork: false },
        };
        if let Some(number) = said.pull_number {
            about.number = Some(number);
            about.head = None;
        }
        if let Some(sha) = &said.head_sha {
            about.sha.clone_from(sha);
        }
        if about.number.is_none() && about.head.is_none() {
            return Err("this event is about no pull request: give --pr NUMBER and --sha COMMIT".to_owned());
        }
        if about.sha.is_empty() {
            return Err("the commit that was measured is not known: give --sha COMMIT".to_owned());
        }
        Ok(about)
    }

    /// The payload of `pull_request`.
    fn of_pull(pull: &Value) -> Self {
        let id = |side: &str| pull.pointer(&format!("/{side}/repo/id")).and_then(Value::as_u64);
        Self {
            number: pull.get("number").and_then(Value::as_u64),
            sha: text(pull, "/head/sha"),
            head: None,
            run: None,
            workflow: None,
            fork: id("head").is_none() || id("head") != id("base"),
        }
    }

    /// The payload of `workflow_run`: its list of pull requests is empty for forks, so that its head is all there is.
    fn of_run(run: &Value, event: &Value) -> Result<Self, String> {
        if text(run, "/event") != "pull_request" {
            return Err(format!("the finished run was started by `{}`, not by a pull request", text(run, "/event")));
        }
        let id = |of: &Value, pointer: &str| of.pointer(pointer).and_then(Value::as_u64);
        let head = Head {
            owner: text(run, "/head_repository/owner/login"),
            branch: text(run, "/head_branch"),
            sha: text(run, "/head_sha"),
            // The repository of a fork may be deleted by now; then no pull request has it as its head.
            repository_id: id(run, "/head_repository/id").unwrap_or(0),
        };
        let attempt = id(run, "/run_attempt").unwrap_or(1);
        Ok(Self {
            number: None,
            sha: head.sha.clone(),
            run: id(run, "/id").map(|id| (id, attempt)),
            workflow: Some(text(run, "/name")),
            fork: Some(head.repository_id) != id(event, "/repository/id"),
            head: Some(head),
        })
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(name: &str) -> Option<String> {
        Some(
            match name {
                "GITHUB_TOKEN" => "ghs_x",
                "GITHUB_REPOSITORY" => "octo/shop",
                "GITHUB_API_URL" => "https://ghe.example/api/v3",
                "GITHUB_SERVER_URL" => "https://ghe.example",
                "GITHUB_RUN_ID" => "9",
                "GITHUB_RUN_ATTEMPT" => "2",
                "GITHUB_WORKFLOW" => "report",
                "INPUT_GITHUB-TOKEN" => "",
                _ => return None,
            }
            .to_owned(),
        )
    }

    const PULL: &str =
        r#"{"pull_request": {"number": 7, "head": {"sha": "abc", "repo": {"id": 1}}, "base": {"repo": {"id": 1}}}}"#;
    const RUN: &str = r#"{"repository": {"id": 1}, "workflow_run": {"id": 5, "run_attempt": 3, "name": "gate",
        "event": "pull_request", "head_branch": "fix", "head_sha": "def", "pull_requests": [{"number": 99}],
        "head_repository": {"id": 2, "owner": {"login": "eve"}}}}"#;

    #[test]
    fn a_pull_request_event_names_all() {
        let place = place(&Said::default(), &runner, Some(PULL)).unwrap();
        assert_eq!((place.to.pull_number, place.to.head_sha.as_str()), (7, "abc"));
        assert_eq!((place.to.run_id, place.to.run_attempt), (9, 2));
        assert_eq!(place.to.api_url, "https://ghe.example/api/v3");
        assert_eq!(place.links.run.as_deref(), Some("https://ghe.example/octo/shop/actions/runs/9"));
        assert!(place.head.is_none() && !place.links.untrusted);
    }

    #[test]
    fn a_finished_run_is_known_by_its_head_alone() {
        let place = place(&Said::default(), &runner, Some(RUN)).unwrap();
        let head = Head { owner: "eve".to_owned(), branch: "fix".to_owned(), sha: "def".to_owned(), repository_id: 2 };
        assert_eq!(place.head, Some(head));
        assert_eq!((place.to.run_id, place.to.run_attempt, place.to.key.as_str()), (5, 3, "gate\n"));
        assert!(place.links.untrusted && place.links.run.unwrap().ends_with("/runs/5"));
    }

    #[test]
    fn what_is_said_comes_first_and_what_is_missing_is_named() {
        let said = Said { pull_number: Some(3), head_sha: Some("123".to_owned()), ..Said::default() };
        let place_of = |said: &Said, event| place(said, &runner, event);
        let place = place_of(&said, Some(RUN)).unwrap();
        assert_eq!((place.to.pull_number, place.to.head_sha.as_str(), place.head), (3, "123", None));
        assert!(place_of(&Said::default(), None).unwrap_err().contains("--pr"));
        assert!(place_of(&Said { pull_number: Some(3), ..Said::default() }, None).unwrap_err().contains("--sha"));
        let push = RUN.replace("\"pull_request\"", "\"push\"");
        assert!(place_of(&Said::default(), Some(&push)).unwrap_err().contains("`push`"));
        for broken in ["", "[", "7", "{\"workflow_run\": 1, \"pull_request\": []}"] {
            assert!(place_of(&Said::default(), Some(broken)).is_err(), "{broken}");
        }
        assert!(super::place(&said, &|_| None, None).unwrap_err().contains("no token"));
    }
}
