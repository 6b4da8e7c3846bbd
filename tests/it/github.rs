//! The pull-request comment against a GitHub of our own: see `fake`.

pub mod fake;
mod faults;
mod sticky;
pub mod world;

use std::time::Duration;

use fake::Fake;
use sidegate::github::{CommentPolicy, Destination, Pace, Published, Token, publish_at};
use sidegate::policy::{Policy, Profile};
use sidegate::record::{Record, TargetRecord};
use sidegate::report::{Comment, Links, comment};
use sidegate::simulate::{Effects, Noise, record, run};
use sidegate::stop::Stop;
use sidegate::{judge, simulate};

const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OLDER: &str = "9999999999999999999999999999999999999999";

/// A run of a change that costs so much CPU a request.
fn simulated(cpu: f64) -> TargetRecord {
    let effects = Effects { cpu, ..Effects::default() };
    let policy = Policy { profile: Profile::Quick, ..Policy::default() };
    run(11, &policy, effects, Noise::steady())
}

fn comment_on(record: &Record) -> Comment {
    comment(record, &judge::judge(record), &Links::default())
}

fn passing() -> Comment {
    comment_on(&record(11, simulated(0.0)))
}

fn failing() -> Comment {
    comment_on(&record(11, simulated(0.3)))
}

fn skipped() -> Comment {
    let mut none = simulate::record(11, simulated(0.0));
    none.targets.clear();
    comment_on(&none)
}

/// Many targets with many requests each.
fn huge() -> Comment {
    let mut all = record(11, simulated(0.3));
    for i in 0..40 {
        let mut target = simulated(if i % 3 == 0 { 0.3 } else { 0.0 });
        target.name = format!("target-{i}");
        all.targets.push(target);
    }
    comment_on(&all)
}

/// Pull request 7 at `HEAD`, and a run that speaks about it.
fn set_up(fake: &Fake) -> Destination {
    let mut world = fake.world();
    world.add_pull(7, HEAD);
    Destination {
        api_url: fake.api_url.clone(),
        token: Token::new(&fake.token).unwrap(),
        owner: world.owner.clone(),
        repo: world.repo.clone(),
        pull_number: 7,
        head_sha: HEAD.to_owned(),
        run_id: 50,
        run_attempt: 1,
        key: "gate".to_owned(),
    }
}

/// Short times: what is waited for here is scripted.
fn pace() -> Pace {
    Pace { whole: Duration::from_secs(20), call: Duration::from_secs(4), pause: Duration::from_millis(30), attempts: 4 }
}

fn send(to: &Destination, comment: &Comment) -> Published {
    send_as(to, comment, CommentPolicy::Changes)
}

fn send_as(to: &Destination, comment: &Comment, policy: CommentPolicy) -> Published {
    publish_at(to, None, comment, policy, &Stop::default(), &pace())
}

/// What failed.
fn failure(published: Published) -> String {
    match published {
        Published::Failed { what } => what,
        other => panic!("{other:?}"),
    }
}

/// Why nothing was written.
fn reason(published: Published) -> String {
    match published {
        Published::Skipped { why } => why,
        other => panic!("{other:?}"),
    }
}

fn is_created(published: &Published) -> bool {
    matches!(published, Published::Created { url } if url.contains("#issuecomment-"))
}

fn is_updated(published: &Published) -> bool {
    matches!(published, Published::Updated { url } if url.contains("#issuecomment-"))
}
