//! One comment, whoever else writes and however many runs there are.

use std::thread;

use sidegate::github::{BUDGET, CommentPolicy, Destination, Published};

use super::fake::Fake;
use super::world::{Account, Trouble};
use super::{HEAD, OLDER, failing, is_created, is_updated, passing, reason, send, send_as, set_up, skipped};

/// The same pull request as an earlier or later run sees it.
fn run(to: &Destination, run_id: u64, run_attempt: u64) -> Destination {
    Destination { run_id, run_attempt, ..to.clone() }
}

fn bodies(fake: &Fake) -> Vec<String> {
    fake.world().comments.iter().map(|c| c.body.clone()).collect()
}

#[test]
fn a_comment_is_created_then_edited_in_place_then_left_alone() {
    let fake = Fake::new();
    let to = set_up(&fake);
    assert!(is_created(&send(&to, &passing())));
    assert!(is_updated(&send(&run(&to, 51, 1), &failing())));
    let before = fake.calls().len();
    assert!(matches!(send(&run(&to, 51, 2), &failing()), Published::Unchanged { .. }));
    assert!(fake.calls()[before..].iter().all(|c| c.starts_with("GET")), "{:?}", fake.calls());
    let bodies = bodies(&fake);
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].starts_with("<!-- sidegate:comment:v1 key=") && bodies[0].contains(" run=51.1 -->\n"));
    assert!(fake.world().calls.iter().all(|c| c.user_agent.starts_with("sidegate/")));
}

#[test]
fn the_comment_is_found_on_the_last_of_many_pages() {
    let fake = Fake::new();
    let to = set_up(&fake);
    for i in 0..250 {
        fake.world().add_comment(7, &Account::person("someone"), &format!("remark {i}"));
    }
    assert!(is_created(&send(&to, &passing())));
    assert!(is_updated(&send(&run(&to, 51, 1), &failing())));
    assert_eq!(fake.world().comments.len(), 251);
    let pages = fake.world().calls.iter().filter(|c| c.path.contains("page=3")).count();
    assert!(pages >= 2, "{:?}", fake.calls());
}

#[test]
fn a_marker_in_a_strangers_comment_means_nothing() {
    let fake = Fake::new();
    let to = set_up(&fake);
    assert!(is_created(&send(&to, &passing())));
    let planted = fake.world().comments[0].body.replace("run=50.1", "run=999999.1");
    fake.world().comments[0].body = format!("a quote\n{planted}");
    fake.world().add_comment(7, &Account::person("mallory"), &planted);
    assert!(is_created(&send(&run(&to, 51, 1), &failing())));
    assert!(is_updated(&send(&run(&to, 52, 1), &passing())));
    let world = fake.world();
    assert_eq!(world.comments.len(), 3);
    assert_eq!(world.comments[1].body, planted);
}

#[test]
fn a_bots_comment_that_cannot_be_changed_is_passed_over_for_good() {
    // GitHub's description knows no 403 for an edit.
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    assert!(is_created(&send(&to, &passing())));
    fake.world().comments[0].login = "other[bot]".to_owned();
    assert!(is_created(&send(&run(&to, 51, 1), &failing())));
    assert!(is_updated(&send(&run(&to, 52, 1), &passing())));
    assert!(matches!(send(&run(&to, 52, 1), &passing()), Published::Unchanged { .. }));
    assert_eq!(fake.world().comments.len(), 2);
}

#[test]
fn a_persons_token_edits_what_that_person_wrote() {
    let fake = Fake::new();
    let to = set_up(&fake);
    fake.world().account = Account::person("release-team");
    assert!(is_created(&send(&to, &passing())));
    assert!(is_updated(&send(&run(&to, 51, 1), &failing())));
    assert!(fake.calls().contains(&"GET /user".to_owned()));
    assert_eq!(fake.world().comments.len(), 1);
}

#[test]
fn a_run_of_an_outdated_commit_is_silent() {
    let fake = Fake::new();
    let to = set_up(&fake);
    let old = Destination { head_sha: OLDER.to_owned(), ..to.clone() };
    assert!(reason(send(&old, &failing())).contains("newer commit"));
    assert!(is_created(&send(&to, &passing())));
    assert!(reason(send(&old, &failing())).contains("newer commit"));
    assert!(bodies(&fake)[0].contains(HEAD));
}

#[test]
fn a_push_between_the_look_and_the_write_stops_the_write() {
    let fake = Fake::new();
    let to = set_up(&fake);
    fake.world().goes_wrong("GET", "/comments", 1, Trouble::After(|world| world.pulls[0].sha = OLDER.to_owned()));
    assert!(reason(send(&to, &failing())).contains("newer commit"));
    assert!(fake.world().comments.is_empty());
}

#[test]
fn a_younger_run_is_not_overwritten() {
    let fake = Fake::new();
    let to = set_up(&fake);
    assert!(is_created(&send(&run(&to, 52, 1), &failing())));
    for (id, attempt) in [(51, 1), (51, 9)] {
        assert!(reason(send(&run(&to, id, attempt), &passing())).contains("younger run"));
    }
    assert!(is_updated(&send(&run(&to, 52, 2), &passing())));
    // A force push back to an earlier commit: that commit is the head, whatever the number of its run.
    fake.world().pulls[0].sha = OLDER.to_owned();
    assert!(is_updated(&send(&Destination { head_sha: OLDER.to_owned(), ..run(&to, 40, 1) }, &passing())));
    assert_eq!(fake.world().comments.len(), 1);
}

#[test]
fn duplicates_of_ours_are_removed_and_the_oldest_kept() {
    let fake = Fake::new();
    let to = set_up(&fake);
    assert!(is_created(&send(&to, &passing())));
    let body = bodies(&fake).remove(0);
    let other_gate = body.replace("key=", "key=0");
    for text in [&body, &other_gate, &body] {
        fake.world().add_comment(7, &Account::workflow(), text);
    }
    let oldest = fake.world().comments[0].id;
    assert!(is_updated(&send(&run(&to, 51, 1), &failing())));
    let world = fake.world();
    let left: Vec<u64> = world.comments.iter().map(|c| c.id).collect();
    assert_eq!(left, [oldest, oldest + 2]);
    assert!(world.comments[0].body.contains("run=51.1") && world.comments[1].body == other_gate);
}

#[test]
fn two_gates_of_one_repository_keep_to_their_own_comments() {
    let fake = Fake::new();
    let to = set_up(&fake);
    let other = Destination { key: "gate of the other team".to_owned(), ..to.clone() };
    assert!(is_created(&send(&to, &passing())) && is_created(&send(&other, &failing())));
    assert!(matches!(send(&to, &passing()), Published::Unchanged { .. }));
    assert_eq!(fake.world().comments.len(), 2);
}

#[test]
fn a_younger_run_that_writes_at_the_same_time_wins() {
    // Its comment appears while ours is on the way.
    for younger_first in [true, false] {
        let fake = Fake::new();
        let to = set_up(&fake);
        assert!(is_created(&send(&run(&to, 60, 1), &failing())));
        let theirs = fake.world().comments.remove(0).body;
        assert!(theirs.contains("run=60.1"));
        if younger_first {
            fake.world().goes_wrong(
                "POST",
                "/comments",
                1,
                Trouble::After(|world| {
                    let body = world.comments_to_come.remove(0);
                    world.add_comment(7, &Account::workflow(), &body);
                }),
            );
            fake.world().comments_to_come.push(theirs);
            assert!(reason(send(&to, &passing())).contains("younger run"));
            let world = fake.world();
            assert_eq!(world.comments.len(), 1, "{:?}", world.comments);
            assert!(world.comments[0].body.contains("run=60.1"));
        } else {
            assert!(is_created(&send(&to, &passing())));
            fake.world().add_comment(7, &Account::workflow(), &theirs);
            assert!(is_updated(&send(&run(&to, 60, 1), &failing())));
            let world = fake.world();
            assert_eq!(world.comments.len(), 1, "{:?}", world.comments);
            assert!(world.comments[0].body.contains("run=60.1"));
        }
    }
}

#[test]
fn many_runs_at_once_leave_one_comment() {
    for _ in 0..3 {
        let fake = Fake::new();
        let to = set_up(&fake);
        thread::scope(|scope| {
            for id in 0..4 {
                let to = run(&to, 70 + id, 1);
                scope.spawn(move || send(&to, &if id % 2 == 0 { passing() } else { failing() }));
            }
        });
        // What raced last may have left a comment over; the next run clears up.
        send(&run(&to, 80, 1), &passing());
        let world = fake.world();
        assert_eq!(world.comments.len(), 1, "{:?}", world.comments);
        assert!(world.comments[0].body.contains("run=80.1") || world.comments[0].body.contains("run=72.1"));
    }
}

#[test]
fn a_comment_deleted_meanwhile_is_written_again() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    assert!(is_created(&send(&to, &passing())));
    fake.world().goes_wrong("PATCH", "", 1, Trouble::After(|world| world.comments.clear()));
    assert!(is_created(&send(&run(&to, 51, 1), &failing())));
    assert_eq!(fake.world().comments.len(), 1);
}

#[test]
fn a_list_that_lags_does_not_make_two() {
    let fake = Fake::new();
    let to = set_up(&fake);
    fake.world().list_lags = true;
    assert!(is_created(&send(&to, &passing())));
    assert_eq!(fake.calls().iter().filter(|c| c.starts_with("POST")).count(), 1);
}

#[test]
fn the_policy_says_when_a_comment_begins_and_one_that_is_there_is_kept_true() {
    for (policy, begins) in [
        (CommentPolicy::Changes, [true, true, false]),
        (CommentPolicy::Always, [true, true, true]),
        (CommentPolicy::Failures, [false, true, false]),
        (CommentPolicy::Never, [false, false, false]),
    ] {
        for (comment, begins) in [passing(), failing(), skipped()].into_iter().zip(begins) {
            let fake = Fake::new();
            let to = set_up(&fake);
            let published = send_as(&to, &comment, policy);
            assert_eq!(is_created(&published), begins, "{policy:?} {:?}: {published:?}", comment.outcome);
            assert_eq!(fake.world().comments.len(), usize::from(begins));
            if policy == CommentPolicy::Never {
                assert!(fake.calls().is_empty());
                continue;
            }
            send_as(&to, &failing(), CommentPolicy::Always);
            let kept = send_as(&run(&to, 51, 1), &comment, policy);
            assert!(is_updated(&kept) || comment.fails, "{policy:?} {:?}: {kept:?}", comment.outcome);
        }
    }
}

#[test]
fn an_enterprise_servers_path_is_kept() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    let to = Destination { api_url: format!("{}/api/v3/", to.api_url), ..to };
    assert!(is_created(&send(&to, &passing())));
}

#[test]
fn comments_stay_within_githubs_limit() {
    let fake = Fake::new();
    let to = set_up(&fake);
    assert!(is_created(&send(&to, &super::huge())));
    let bodies = bodies(&fake);
    assert!(bodies[0].len() <= BUDGET && bodies[0].len() > BUDGET / 2, "{}", bodies[0].len());
}
