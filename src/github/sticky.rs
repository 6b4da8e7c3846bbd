//! Our own comments on a pull request: finding them, and deciding what to do with them.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::github::client::{Client, Page};
use crate::github::fault::Fault;
use crate::github::marker::{Marker, text_of};

/// Pages of a hundred comments read at most.
const MOST_PAGES: usize = 100;

/// A comment as the API gives it: the fields we read.
#[derive(Debug, Clone, Deserialize)]
pub struct Found {
    pub id: u64,
    #[serde(default)]
    pub html_url: String,
    pub body: Option<String>,
    /// `null` for accounts that no longer exist.
    user: Option<User>,
}

#[derive(Debug, Clone, Deserialize)]
struct User {
    login: String,
    #[serde(rename = "type")]
    kind: String,
}

/// A comment that this gate wrote earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    pub id: u64,
    pub url: String,
    pub marker: Marker,
    pub text: String,
}

/// All comments with our key that a bot wrote, or whom the token belongs to; the oldest first. A marker in anyone else's
/// comment means nothing.
pub async fn own_comments(client: &Client, issue: &str, key: &str) -> Result<Vec<Own>, Fault> {
    let mut own = Vec::new();
    let mut me: Option<Option<String>> = None;
    for found in all(client, &format!("{issue}/comments")).await? {
        let body = found.body.unwrap_or_default();
        let (Some(marker), Some(user)) = (Marker::of(&body), found.user) else { continue };
        if marker.key != key {
            continue;
        }
        if user.kind != "Bot" {
            if me.is_none() {
                me = Some(login(client).await?);
            }
            if me.as_ref() != Some(&Some(user.login)) {
                continue;
            }
        }
        own.push(Own { id: found.id, url: found.html_url, marker, text: text_of(&body) });
    }
    own.sort_by_key(|c| c.id);
    Ok(own)
}

async fn all(client: &Client, route: &str) -> Result<Vec<Found>, Fault> {
    let mut found = Vec::new();
    let mut query = Some("per_page=100".to_owned());
    for _ in 0..MOST_PAGES {
        let Some(page) = query else { break };
        let Page { items, next } = client.page::<Found>(&format!("{route}?{page}")).await?;
        found.extend(items);
        query = next;
    }
    Ok(found)
}

/// Whose token it is; `None` where the token may not ask that (a workflow's own token), and then it is a bot's.
async fn login(client: &Client) -> Result<Option<String>, Fault> {
    match client.get::<User>("/user").await {
        Ok(user) => Ok(Some(user.login)),
        Err(fault) if fault.passes() || matches!(fault, Fault::Late { .. } | Fault::Stopped { .. }) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A younger run has spoken about this commit.
    Younger,
    /// The comment that is there says the same.
    Same(Own),
    Update(Own),
    Create,
}

/// Looks at our comments, the oldest first, without those that we may not change.
pub fn decide(own: &[Own], refused: &BTreeSet<u64>, me: &Marker, text: &str) -> Step {
    let mut ours = own.iter().filter(|c| !refused.contains(&c.id));
    if ours.clone().any(|c| c.marker.head == me.head && c.marker.run > me.run) {
        return Step::Younger;
    }
    match ours.next() {
        None => Step::Create,
        Some(oldest) if oldest.text == text.trim() && oldest.marker.head == me.head => Step::Same(oldest.clone()),
        Some(oldest) => Step::Update(oldest.clone()),
    }
}

/// Comments of ours beside the one that stays. A younger run's stays too: that run removes what is left over.
pub fn duplicates<'a>(own: &'a [Own], kept: u64, refused: &'a BTreeSet<u64>) -> impl Iterator<Item = u64> + 'a {
    own.iter().map(|c| c.id).filter(move |id| *id != kept && !refused.contains(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(id: u64, head: &str, run: (u64, u64), text: &str) -> Own {
        Own { id, url: format!("u{id}"), marker: Marker::new("k", head, run), text: text.to_owned() }
    }

    #[test]
    fn the_oldest_is_kept_and_younger_runs_win() {
        let me = Marker::new("k", "aa", (5, 1));
        let none = BTreeSet::new();
        let old = own(1, "99", (9, 1), "x");
        assert_eq!(decide(&[], &none, &me, "x"), Step::Create);
        // Of another commit: whatever its run was, this commit is the head now.
        assert_eq!(decide(std::slice::from_ref(&old), &none, &me, "x"), Step::Update(old.clone()));
        let same = own(2, "aa", (4, 3), "x");
        assert_eq!(decide(std::slice::from_ref(&same), &none, &me, "x\n"), Step::Same(same.clone()));
        assert_eq!(decide(&[same.clone(), own(3, "aa", (5, 2), "y")], &none, &me, "x"), Step::Younger);
        // Someone else's that looks like ours: passed over once it was refused.
        let refused = BTreeSet::from([1]);
        assert_eq!(decide(std::slice::from_ref(&old), &refused, &me, "x"), Step::Create);
        assert_eq!(decide(&[old.clone(), same.clone()], &refused, &me, "z"), Step::Update(same.clone()));
        assert_eq!(duplicates(&[old, same.clone(), own(7, "aa", (1, 1), "")], 2, &refused).collect::<Vec<_>>(), [7]);
    }
}
