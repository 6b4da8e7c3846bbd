//! What can go wrong at GitHub's API, and the one line about each that says what to do.

use std::time::Duration;

use crate::problem::on_one_line;

/// Why a call came to nothing. Texts of others are short, on one line, and without the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The address of the API cannot be used.
    Address { why: String },
    /// 401.
    Unauthorized,
    /// 403 that is no limit; `needs` is what GitHub's header says the token lacks.
    Forbidden { said: String, needs: Option<String> },
    /// 404: not there, or not to be seen with this token.
    NotFound,
    /// 410.
    Gone,
    /// 422 and 400.
    Rejected { said: String },
    /// 3xx.
    Moved,
    /// 429, or 403 with the headers or words of a limit; `wait` is what GitHub asks for.
    Limited { wait: Option<Duration> },
    /// 5xx.
    Server { status: u16 },
    /// No connection, or one that broke.
    Unreachable { why: String },
    /// No whole answer in time.
    Silent,
    /// A success whose text is not what the API describes.
    Garbled { why: String },
    /// Any other status.
    Status { status: u16, said: String },
    /// The time for everything is over; `last` is the fault it was spent on.
    Late { last: Option<Box<Fault>> },
    /// A signal asked us to end.
    Stopped { by: &'static str },
}

/// Longest text of others that is repeated.
const SAID: usize = 200;

impl Fault {
    /// Whether the same call may succeed a moment later.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Fault::Limited { .. }
                | Fault::Server { .. }
                | Fault::Unreachable { .. }
                | Fault::Silent
                | Fault::Garbled { .. }
        )
    }

    /// One line: what happened and what to do. `fork`: whether the pull request comes from another repository, where
    /// that is known.
    pub fn line(&self, fork: Option<bool>) -> String {
        match self {
            Fault::Forbidden { said, .. } if said.to_ascii_lowercase().contains("locked") => {
                "the conversation of the pull request is locked: unlock it, or set `comment: never`".to_owned()
            }
            Fault::Forbidden { said, needs } => forbidden(said, needs.as_deref(), fork),
            Fault::Late { last: Some(last) } => format!("gave up after a minute: {}", last.line(fork)),
            _ => on_one_line(&format!("{}: {}", self.what(), self.help())),
        }
    }

    fn what(&self) -> String {
        match self {
            Fault::Address { why } => format!("the address of GitHub's API cannot be used ({why})"),
            Fault::Unauthorized => "GitHub does not know the token (401)".to_owned(),
            Fault::Forbidden { said, .. } => format!("GitHub refused (403: {said})"),
            Fault::NotFound => "GitHub does not find the pull request with this token (404)".to_owned(),
            Fault::Gone => "GitHub says the pull request's conversation is gone (410)".to_owned(),
            Fault::Rejected { said } => format!("GitHub rejected the request (422: {said})"),
            Fault::Moved => "GitHub says the repository has moved (3xx)".to_owned(),
            Fault::Limited { wait: Some(wait) } => {
                format!("GitHub's rate limit is used up and ends in {} s", wait.as_secs())
            }
            Fault::Limited { wait: None } => "GitHub's rate limit is used up".to_owned(),
            Fault::Server { status } => format!("GitHub has a fault of its own ({status})"),
            Fault::Unreachable { why } => format!("GitHub's API cannot be reached ({why})"),
            Fault::Silent => "GitHub's API gave no whole answer in time".to_owned(),
            Fault::Garbled { why } => format!("what answered is not GitHub's API ({why})"),
            Fault::Status { status, said } => format!("GitHub answered {status} ({said})"),
            Fault::Late { .. } => "the time for publishing is over".to_owned(),
            Fault::Stopped { by } => format!("stopped by {by}"),
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Fault::Address { .. } => "set GITHUB_API_URL or --api-url to https://HOST or https://HOST/api/v3",
            Fault::Unauthorized => "pass `github-token: ${{ github.token }}`, or a token that has not expired",
            Fault::NotFound => {
                "check the repository and the number, and give the job `permissions: {pull-requests: write}`"
            }
            Fault::Gone => "comments are switched off there; set `comment: never`",
            Fault::Rejected { .. } => "this is a fault of sidegate; please report it with this line",
            Fault::Moved => "use the repository's present name",
            Fault::Limited { .. } => "run the job again later; fewer runs at a time help",
            Fault::Server { .. } => "see https://www.githubstatus.com and run the job again",
            Fault::Unreachable { .. } | Fault::Silent => {
                "check the runner's network, its CA certificates, and GITHUB_API_URL; then run the job again"
            }
            Fault::Garbled { .. } => "check GITHUB_API_URL and whether a proxy answers in GitHub's place",
            Fault::Forbidden { .. } | Fault::Status { .. } | Fault::Late { .. } | Fault::Stopped { .. } => {
                "run the job again"
            }
        }
    }
}

fn forbidden(said: &str, needs: Option<&str>, fork: Option<bool>) -> String {
    let needs = needs.map(|n| format!("; it asks for {n}")).unwrap_or_default();
    let two = "the result is in the step summary; for a comment use the two workflows of examples/workflows, where \
               `workflow_run` publishes what `pull_request` measured";
    let line = match fork {
        Some(true) => format!(
            "GitHub refused (403: {said}): for a pull request from a fork the token may only read, whatever \
             `permissions` says; {two}"
        ),
        Some(false) => {
            format!("GitHub refused (403: {said}{needs}): give the job `permissions: {{pull-requests: write}}`")
        }
        None => format!(
            "GitHub refused (403: {said}{needs}): give the job `permissions: {{pull-requests: write}}`; for pull requests \
             from forks that is not enough: {two}"
        ),
    };
    on_one_line(&line)
}

/// What others said, fit to be repeated.
pub fn said(text: &str) -> String {
    let line = on_one_line(text.trim());
    let mut short: String = line.chars().take(SAID).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    if short.is_empty() { "no reason given".to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_one_line_that_says_what_to_do() {
        let faults = [
            Fault::Address { why: "x".to_owned() },
            Fault::Unauthorized,
            Fault::Forbidden { said: said("Resource not\naccessible"), needs: Some("issues=write".to_owned()) },
            Fault::NotFound,
            Fault::Gone,
            Fault::Rejected { said: said("") },
            Fault::Moved,
            Fault::Limited { wait: Some(Duration::from_secs(90)) },
            Fault::Limited { wait: None },
            Fault::Server { status: 502 },
            Fault::Unreachable { why: "refused".to_owned() },
            Fault::Silent,
            Fault::Garbled { why: "x".to_owned() },
            Fault::Status { status: 418, said: said("tea") },
            Fault::Late { last: Some(Box::new(Fault::Silent)) },
            Fault::Late { last: None },
            Fault::Stopped { by: "SIGTERM" },
        ];
        for fault in &faults {
            for fork in [None, Some(true), Some(false)] {
                let line = fault.line(fork);
                assert!(!line.contains('\n') && line.contains(": ") && line.len() < 600, "{line}");
            }
        }
        assert!(faults[2].line(Some(true)).contains("workflow_run"));
        assert!(faults[2].line(Some(false)).contains("issues=write"));
    }
}
