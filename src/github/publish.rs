//! Publishing a comment: where it goes, when it is written, and what came of it.

use std::collections::BTreeSet;
use std::thread;

use serde::Serialize;

use crate::github::Token;
use crate::github::client::Client;
use crate::github::fault::Fault;
use crate::github::marker::Marker;
use crate::github::pace::{Pace, Patience};
use crate::github::pull::{self, Head};
use crate::github::sticky::{Found, Own, Step, decide, duplicates, own_comments};
use crate::report::Comment;
use crate::stop::Stop;
use crate::verdict::Outcome;

/// Bytes of a comment, marker included. GitHub takes 65 536 characters.
pub const BUDGET: usize = 60_000;

/// The pull request that gets the comment, and the run that speaks.
#[derive(Debug, Clone)]
pub struct Destination {
    /// `https://api.github.com`, or `https://HOST/api/v3` of an Enterprise server: `GITHUB_API_URL`.
    pub api_url: String,
    pub token: Token,
    pub owner: String,
    pub repo: String,
    pub pull_number: u64,
    /// The pull request's head commit (not the test merge), 40 hexadecimal digits.
    pub head_sha: String,
    pub run_id: u64,
    pub run_attempt: u64,
    /// What tells this gate's comment from that of another gate in the same repository: workflow and config.
    pub key: String,
}

/// When there is a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum CommentPolicy {
    /// On every pull request where something was measured; one that is there is always brought up to date.
    #[default]
    Changes,
    /// On every pull request, also where nothing relevant changed.
    Always,
    /// Where the gate fails; one that is there is always brought up to date.
    Failures,
    /// Never; GitHub is not asked anything.
    Never,
}

impl CommentPolicy {
    /// Why no comment is begun for this result; `None` where one is.
    fn silence(self, comment: &Comment) -> Option<&'static str> {
        match self {
            CommentPolicy::Changes if comment.outcome == Outcome::Skipped => Some("nothing was measured"),
            CommentPolicy::Failures if !comment.fails => Some("nothing failed"),
            _ => None,
        }
    }
}

/// What came of it. It never changes a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    Created {
        url: String,
    },
    Updated {
        url: String,
    },
    /// The comment that is there says the same already.
    Unchanged {
        url: String,
    },
    /// On purpose, with the reason.
    Skipped {
        why: String,
    },
    /// One line: what failed, and what to do about it.
    Failed {
        what: String,
    },
}

/// Creates, updates or leaves the pull request's comment. Blocks for at most 60 s, less where `stop` is asked for.
pub fn publish(to: &Destination, comment: &Comment, policy: CommentPolicy, stop: &Stop) -> Published {
    publish_at(to, None, comment, policy, stop, &Pace::default())
}

/// The same at another pace, and for a run whose pull request is not known but by its head: then the open pull request
/// with that head takes the place of `to.pull_number`.
pub fn publish_at(
    to: &Destination,
    head: Option<&Head>,
    comment: &Comment,
    policy: CommentPolicy,
    stop: &Stop,
    pace: &Pace,
) -> Published {
    if policy == CommentPolicy::Never {
        return Published::Skipped { why: "comments are switched off".to_owned() };
    }
    if let Some(what) = unfit(to) {
        return Published::Failed { what };
    }
    let marker = Marker::new(&to.key, &to.head_sha, (to.run_id, to.run_attempt));
    let line = marker.line();
    let text = comment.fit(BUDGET - line.len() - 1);
    let work = Work { to: to.clone(), head: head.cloned(), marker, text, silence: policy.silence(comment) };
    let patience = Patience::start(pace, stop);
    // A thread of its own: a panic in a library ends it and nothing else.
    let done = thread::Builder::new().name("github".to_owned()).spawn(move || work.run(patience));
    let joined = done.map(thread::JoinHandle::join);
    match joined {
        Ok(Ok(published)) => published,
        Ok(Err(_)) => {
            let what = "publishing broke off: this is a bug; please report it with the lines above".to_owned();
            Published::Failed { what }
        }
        Err(e) => Published::Failed { what: format!("cannot start a thread: {e}; run the job again") },
    }
}

/// What cannot be a part of a route.
fn unfit(to: &Destination) -> Option<String> {
    let name = |text: &str| {
        let ok = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !text.is_empty() && text.len() <= 100 && text.chars().all(ok) && !text.chars().all(|c| c == '.')
    };
    if !name(&to.owner) || !name(&to.repo) {
        return Some("no repository to write to: give OWNER/NAME with GITHUB_REPOSITORY or --repo".to_owned());
    }
    let hex = to.head_sha.len() >= 40 && to.head_sha.len() <= 64 && to.head_sha.chars().all(|c| c.is_ascii_hexdigit());
    (!hex).then(|| "the head commit is no full hash: give all 40 digits with --sha".to_owned())
}

struct Work {
    to: Destination,
    head: Option<Head>,
    marker: Marker,
    text: String,
    silence: Option<&'static str>,
}

/// What is known while attempts are made.
#[derive(Default)]
struct State {
    number: u64,
    fork: Option<bool>,
    /// Comments that look like ours and may not be changed.
    refused: BTreeSet<u64>,
    /// A write was sent: what it was to be.
    sent: Option<Sent>,
    /// The address in the answer to a POST, if that came.
    created: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Post,
    Patch,
}

#[derive(Serialize)]
struct Body {
    body: String,
}

impl Work {
    fn run(self, patience: Patience) -> Published {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(e) => return Published::Failed { what: format!("cannot open sockets: {e}; run the job again") },
        };
        let mut state = State { number: self.to.pull_number, ..State::default() };
        let done = runtime.block_on(async {
            let client = Client::new(&self.to.api_url, &self.to.token, patience)?;
            self.attempts(&client, &mut state).await
        });
        // A name that does not resolve may still keep a thread busy.
        runtime.shutdown_background();
        done.unwrap_or_else(|fault| Published::Failed { what: fault.line(state.fork) })
    }

    /// Looks, decides, writes once; after a fault that passes, the same again from the look on.
    async fn attempts(&self, client: &Client, state: &mut State) -> Result<Published, Fault> {
        if let Some(head) = &self.head {
            let found = pull::of_head(client, &self.to.owner, &self.to.repo, head).await?;
            match found.as_slice() {
                [number] => state.number = *number,
                [] => return Ok(skipped("no open pull request has the measured commit as its head any more")),
                _ => {
                    return Ok(skipped("several open pull requests have the measured commit as their head: give --pr"));
                }
            }
        }
        let mut attempt = 0;
        loop {
            match self.round(client, state).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                Err(fault) => {
                    attempt += 1;
                    client.patience.pause(attempt, fault).await?;
                }
            }
        }
    }

    /// `None`: look again at once.
    async fn round(&self, client: &Client, state: &mut State) -> Result<Option<Published>, Fault> {
        if let Some(left) = self.left_behind(client, state).await? {
            return Ok(Some(left));
        }
        let own = own_comments(client, &self.issue(state), &self.marker.key).await?;
        match decide(&own, &state.refused, &self.marker, &self.text) {
            Step::Younger => {
                self.withdraw(client, state, &own).await;
                Ok(Some(skipped("a younger run has commented on this commit already")))
            }
            Step::Same(kept) => {
                self.tidy(client, state, &own, kept.id).await;
                let url = kept.url;
                Ok(Some(match state.sent.filter(|_| kept.marker.run == self.marker.run) {
                    Some(Sent::Post) => Published::Created { url },
                    Some(Sent::Patch) => Published::Updated { url },
                    None => Published::Unchanged { url },
                }))
            }
            Step::Update(kept) => self.update(client, state, &own, kept).await,
            Step::Create => self.create(client, state).await,
        }
    }

    /// Whether the pull request has moved on since the run began.
    async fn left_behind(&self, client: &Client, state: &mut State) -> Result<Option<Published>, Fault> {
        let pull = pull::get(client, &self.to.owner, &self.to.repo, state.number).await?;
        state.fork = Some(pull.is_fork());
        Ok((!pull.is_at(&self.to.head_sha)).then(|| skipped("the pull request has a newer commit")))
    }

    async fn update(
        &self,
        client: &Client,
        state: &mut State,
        own: &[Own],
        kept: Own,
    ) -> Result<Option<Published>, Fault> {
        if let Some(left) = self.left_behind(client, state).await? {
            return Ok(Some(left));
        }
        state.sent.get_or_insert(Sent::Patch);
        match client.patch::<_, Found>(&format!("{}/{}", self.comments(), kept.id), &self.body()).await {
            Ok(found) => {
                self.tidy(client, state, own, kept.id).await;
                let url = if found.html_url.is_empty() { kept.url } else { found.html_url };
                Ok(Some(Published::Updated { url }))
            }
            // Someone else's after all, or deleted meanwhile: as if it were not there.
            Err(Fault::Forbidden { .. } | Fault::NotFound | Fault::Gone) => {
                state.refused.insert(kept.id);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn create(&self, client: &Client, state: &mut State) -> Result<Option<Published>, Fault> {
        if let Some(url) = state.created.take() {
            // Written, and the list does not show it yet: writing again would make two.
            return Ok(Some(Published::Created { url }));
        }
        if let Some(why) = self.silence {
            return Ok(Some(skipped(why)));
        }
        if let Some(left) = self.left_behind(client, state).await? {
            return Ok(Some(left));
        }
        state.sent = Some(Sent::Post);
        let found: Found = client.post(&format!("{}/comments", self.issue(state)), &self.body()).await?;
        state.created = Some(found.html_url);
        // Another run may have done the same at the same time: look again, and keep one.
        Ok(None)
    }

    /// Removes our other comments; what cannot be removed now is removed by the next run.
    async fn tidy(&self, client: &Client, state: &State, own: &[Own], kept: u64) {
        for id in duplicates(own, kept, &state.refused) {
            let _ = client.delete(&format!("{}/{id}", self.comments())).await;
        }
    }

    /// Removes what this run wrote while a younger one did the same, unless it is the oldest, which the younger run takes
    /// over.
    async fn withdraw(&self, client: &Client, state: &State, own: &[Own]) {
        let mine = own.iter().skip(1).filter(|c| state.sent.is_some() && c.marker.run == self.marker.run);
        for comment in mine {
            let _ = client.delete(&format!("{}/{}", self.comments(), comment.id)).await;
        }
    }

    fn body(&self) -> Body {
        Body { body: format!("{}\n{}", self.marker.line(), self.text) }
    }

    fn issue(&self, state: &State) -> String {
        format!("/repos/{}/{}/issues/{}", self.to.owner, self.to.repo, state.number)
    }

    fn comments(&self) -> String {
        format!("/repos/{}/{}/issues/comments", self.to.owner, self.to.repo)
    }
}

fn skipped(why: &str) -> Published {
    Published::Skipped { why: why.to_owned() }
}
