//! Whatever GitHub or the network does: one line, never two comments, never the token.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use sidegate::github::{CommentPolicy, Destination, Pace, Published, Token, publish_at};
use sidegate::stop::Stop;

use super::fake::Fake;
use super::world::{Account, Trouble};
use super::{failing, failure, is_created, is_updated, passing, send, set_up};

fn says(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "`{word}` is not in: {line}");
    }
    assert!(!line.contains("ghs_secret") && !line.contains('\n'), "{line}");
}

fn answer(status: u16, headers: &[(&'static str, &str)], message: &str) -> Trouble {
    let headers = headers.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
    Trouble::Answer(status, headers, serde_json::json!({ "message": message }).to_string())
}

#[test]
fn a_token_that_github_does_not_know() {
    let fake = Fake::unjudged();
    let to = Destination { token: Token::new("ghs_secret_expired").unwrap(), ..set_up(&fake) };
    says(&failure(send(&to, &passing())), &["401", "github-token"]);
}

#[test]
fn a_token_that_may_only_read_names_the_permission_or_the_way_for_forks() {
    let fake = Fake::new();
    let to = set_up(&fake);
    fake.world().account = Account::read_only();
    let line = failure(send(&to, &failing()));
    says(&line, &["403", "Resource not accessible by integration", "pull-requests: write"]);
    fake.world().pulls[0].head_repository = Some(1);
    says(&failure(send(&to, &failing())), &["fork", "step summary", "workflow_run", "examples/workflows"]);
    assert_eq!(fake.calls().iter().filter(|c| c.starts_with("POST")).count(), 2, "a refusal is not repeated");
}

#[test]
fn a_deleted_fork_is_still_a_fork() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    fake.world().account = Account::read_only();
    fake.world().pulls[0].head_repository = None;
    says(&failure(send(&to, &failing())), &["fork"]);
}

#[test]
fn what_is_not_there_gone_locked_or_moved() {
    let fake = Fake::new();
    let to = set_up(&fake);
    says(&failure(send(&Destination { pull_number: 8, ..to.clone() }, &passing())), &["404", "pull-requests: write"]);
    fake.world().goes_wrong("GET", "/comments", 1, answer(410, &[], "This issue was deleted"));
    says(&failure(send(&to, &passing())), &["410", "comment: never"]);
    fake.world().pulls[0].locked = true;
    says(&failure(send(&to, &passing())), &["locked", "unlock"]);
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    fake.world().goes_wrong("GET", "/7", 1, answer(301, &[("location", "https://x.example/y")], "Moved Permanently"));
    says(&failure(send(&to, &passing())), &["moved", "present name"]);
}

#[test]
fn a_rejected_comment_is_told_with_githubs_words_but_without_the_token() {
    let fake = Fake::new();
    let to = set_up(&fake);
    let echo = format!("Validation Failed for {}\n::error::x", fake.token);
    fake.world().goes_wrong("POST", "/comments", 1, answer(422, &[], &echo));
    says(&failure(send(&to, &passing())), &["422", "Validation Failed for ***"]);
}

#[test]
fn limits_are_waited_for_as_long_as_github_says() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    fake.world().goes_wrong("GET", "/7", 1, answer(429, &[("retry-after", "1")], "slow down"));
    let secondary = "You have exceeded a secondary rate limit";
    fake.world().goes_wrong("POST", "/comments", 1, answer(403, &[("retry-after", "1")], secondary));
    let started = Instant::now();
    assert!(is_created(&send(&to, &passing())));
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(fake.world().comments.len(), 1);
}

#[test]
fn limits_that_end_too_late_are_told_at_once() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    let reset = (jiff::Timestamp::now().as_second() + 1800).to_string();
    let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset.as_str())];
    fake.world().goes_wrong("GET", "/comments", 9, answer(403, &headers, "API rate limit exceeded"));
    let started = Instant::now();
    says(&failure(send(&to, &passing())), &["rate limit", "1801 s", "again later"]);
    fake.world().script.clear();
    fake.world().goes_wrong("POST", "/comments", 9, answer(403, &[], "You have exceeded a secondary rate limit"));
    says(&failure(send(&to, &passing())), &["rate limit"]);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[test]
fn faults_of_the_server_pass_or_are_told() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    for path in ["/7", "/comments"] {
        fake.world().goes_wrong("GET", path, 2, answer(503, &[], "unavailable"));
    }
    fake.world().goes_wrong("POST", "/comments", 2, answer(500, &[], "oops"));
    assert!(is_created(&send(&to, &passing())));
    fake.world().goes_wrong("PATCH", "", 2, answer(502, &[], "bad gateway"));
    assert!(is_updated(&send(&to, &failing())));
    fake.world().goes_wrong("GET", "/7", 99, answer(502, &[("content-type", "text/html")], "<html>"));
    says(&failure(send(&to, &passing())), &["502", "githubstatus"]);
    assert_eq!(fake.world().comments.len(), 1);
}

#[test]
fn an_answer_that_is_lost_never_makes_a_second_comment() {
    for trouble in [Trouble::Lost, Trouble::Cut, Trouble::DoneBut(502), Trouble::DoneBut(504)] {
        let fake = Fake::new();
        let to = set_up(&fake);
        fake.world().goes_wrong("POST", "/comments", 1, trouble.clone());
        assert!(is_created(&send(&to, &passing())));
        fake.world().goes_wrong("PATCH", "", 1, trouble);
        assert!(is_updated(&send(&to, &failing())));
        let world = fake.world();
        assert_eq!(world.comments.len(), 1);
        assert_eq!(world.calls.iter().filter(|c| c.method == "POST").count(), 1);
    }
}

#[test]
fn connections_that_break_are_made_again() {
    for trouble in [Trouble::Dropped, Trouble::Noise, Trouble::Cut] {
        let fake = Fake::unjudged();
        let to = set_up(&fake);
        for (method, path) in [("GET", "/7"), ("GET", "/comments"), ("POST", "/comments")] {
            fake.world().goes_wrong(method, path, 1, trouble.clone());
        }
        assert!(is_created(&send(&to, &passing())));
        assert_eq!(fake.world().comments.len(), 1);
    }
}

#[test]
fn silence_ends_when_the_time_is_over() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    let pace = Pace { whole: Duration::from_secs(2), call: Duration::from_millis(600), ..super::pace() };
    let quick = |to: &Destination| publish_at(to, None, &passing(), CommentPolicy::Always, &Stop::default(), &pace);
    fake.world().goes_wrong("GET", "/comments", 99, Trouble::Silent(Duration::from_secs(8)));
    let started = Instant::now();
    says(&failure(quick(&to)), &["gave up", "in time"]);
    // Somebody accepts and says nothing; nobody accepts.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = |port: u16| Destination { api_url: format!("http://127.0.0.1:{port}"), ..to.clone() };
    says(&failure(quick(&at(mute.local_addr().unwrap().port()))), &["in time"]);
    assert!(started.elapsed() < Duration::from_secs(7), "{:?}", started.elapsed());
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    says(&failure(quick(&at(closed))), &["cannot be reached", "refused", "network"]);
}

#[test]
fn what_answers_in_githubs_place_is_told() {
    let fake = Fake::unjudged();
    let to = set_up(&fake);
    let page = Trouble::Answer(200, vec![("content-type", "text/html".to_owned())], "<html>log in</html>".to_owned());
    fake.world().goes_wrong("GET", "/7", 99, page);
    says(&failure(send(&to, &passing())), &["not GitHub's API", "proxy"]);
    fake.world().script.clear();
    fake.world().goes_wrong("GET", "/comments", 99, Trouble::Answer(200, Vec::new(), "{\"id\": 1}".to_owned()));
    says(&failure(send(&to, &passing())), &["not GitHub's API"]);
    fake.world().script.clear();
    fake.world().goes_wrong("GET", "/7", 99, answer(418, &[], "tea"));
    says(&failure(send(&to, &passing())), &["418", "tea"]);
    let tls = Destination { api_url: to.api_url.replace("http:", "https:"), ..to };
    says(&failure(send(&tls, &passing())), &["cannot be reached", "certificates"]);
}

#[test]
fn addresses_and_names_that_cannot_be_right() {
    let fake = Fake::new();
    let to = set_up(&fake);
    for api_url in ["", "api.github.com", "http://api.example", "https://", "ftp://127.0.0.1", "https://a b", "\n"] {
        let line = failure(send(&Destination { api_url: api_url.to_owned(), ..to.clone() }, &passing()));
        says(&line, &["GITHUB_API_URL"]);
    }
    for (owner, repo) in [("", "x"), ("a/b", "x"), ("..", "x"), ("o", ".."), ("o", "x?y=1"), ("o", "x#"), ("o", "ü")] {
        let line =
            failure(send(&Destination { owner: owner.to_owned(), repo: repo.to_owned(), ..to.clone() }, &passing()));
        says(&line, &["OWNER/NAME"]);
    }
    for sha in ["", "abc", "zz", &"g".repeat(40)] {
        says(&failure(send(&Destination { head_sha: sha.to_owned(), ..to.clone() }, &passing())), &["40 digits"]);
    }
    assert!(fake.calls().is_empty());
}

#[test]
fn the_token_is_shown_nowhere() {
    let fake = Fake::new();
    let to = set_up(&fake);
    let published = send(&to, &passing());
    let shown = format!("{to:?} {published:?}");
    assert!(!shown.contains(&fake.token) && shown.contains("Token(***)"), "{shown}");
    assert!(matches!(published, Published::Created { .. }));
}
