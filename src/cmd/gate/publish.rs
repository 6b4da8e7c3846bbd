//! The comment of a gate that ran as a step of a workflow. Nothing here changes a verdict.

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::cmd::action::input;
use crate::cmd::gate::revisions::Measured;
use crate::github::{self, CommentPolicy, Context, Event, Pace, Published, Said};
use crate::problem::{Problem, on_one_line};
use crate::report;
use crate::spec::Comment;
use crate::stop::Stop;

/// What the input `comment` says; `None` where it is empty.
pub fn policy(env: &BTreeMap<String, String>) -> Result<Option<CommentPolicy>, Problem> {
    let Some(text) = input(env, "comment") else { return Ok(None) };
    CommentPolicy::from_str(&text, false).map(Some).map_err(|_| {
        Problem::new("", format!("the input `comment` is `{}`", on_one_line(&text)))
            .help("it is `changes`, `always`, `failures` or `never`")
    })
}

/// Puts the result onto the pull request, where there is one and the token may write. `payload` is the event's text.
pub fn publish(
    env: &BTreeMap<String, String>,
    context: &Context,
    payload: &str,
    measured: &Measured,
    stop: &Stop,
) -> Published {
    let skipped = |why: &str| Published::Skipped { why: why.to_owned() };
    let policy = policy(env).ok().flatten().unwrap_or(of_spec(measured.comment));
    if !matches!(context.event, Event::PullRequest { .. }) {
        return skipped("this event is about no pull request");
    }
    if input(env, "github-token").is_none() {
        return skipped("the input `github-token` is empty; the report is in the step's summary");
    }
    if context.token_reads_only && policy != CommentPolicy::Never {
        return skipped(
            "GitHub gives pull requests from forks and of Dependabot a token that only reads; the report is in the step's \
             summary, and for comments there are two workflows (examples/workflows/forks)",
        );
    }
    let variable = |name: &str| env.get(name).cloned();
    match github::place(&Said::default(), &variable, Some(payload)) {
        Ok(place) => {
            let scope = &measured.record.scope;
            let links = report::Links { base_commit: scope.base_commit.clone(), ..place.links };
            let comment = report::comment(&measured.record, &measured.verdict, &links);
            github::publish_at(&place.to, place.head.as_ref(), &comment, policy, stop, &Pace::default())
        }
        Err(what) => Published::Failed { what },
    }
}

fn of_spec(comment: Comment) -> CommentPolicy {
    match comment {
        Comment::Changes => CommentPolicy::Changes,
        Comment::Always => CommentPolicy::Always,
        Comment::Failures => CommentPolicy::Failures,
        Comment::Never => CommentPolicy::Never,
    }
}
