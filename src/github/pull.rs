//! The pull request as GitHub has it now, and the one that belongs to a finished run.

use serde::Deserialize;

use crate::github::client::Client;
use crate::github::fault::Fault;

/// What we read of a pull request.
#[derive(Debug, Clone, Deserialize)]
pub struct Pull {
    pub number: u64,
    pub head: Side,
    pub base: Side,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Side {
    pub sha: String,
    /// `null` once a fork is deleted.
    pub repo: Option<Repository>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Repository {
    pub id: u64,
}

impl Pull {
    pub fn is_at(&self, sha: &str) -> bool {
        self.head.sha.eq_ignore_ascii_case(sha)
    }

    /// Whether its commits come from another repository, or from one that is gone.
    pub fn is_fork(&self) -> bool {
        let id = |side: &Side| side.repo.as_ref().map(|r| r.id);
        id(&self.head).is_none() || id(&self.head) != id(&self.base)
    }
}

pub async fn get(client: &Client, owner: &str, repo: &str, number: u64) -> Result<Pull, Fault> {
    client.get(&format!("/repos/{owner}/{repo}/pulls/{number}")).await
}

/// The open pull requests whose head is this commit of this branch of this repository. What a run of someone else's
/// code says about its pull request is not asked.
pub async fn of_head(client: &Client, owner: &str, repo: &str, head: &Head) -> Result<Vec<u64>, Fault> {
    let branch = percent_encoded(&format!("{}:{}", head.owner, head.branch));
    let route = format!("/repos/{owner}/{repo}/pulls?state=open&per_page=100&head={branch}");
    let pulls: Vec<Pull> = client.get(&route).await?;
    let same = |p: &&Pull| p.is_at(&head.sha) && p.head.repo.as_ref().is_some_and(|r| r.id == head.repository_id);
    Ok(pulls.iter().filter(same).map(|p| p.number).collect())
}

/// The commit that a run measured, from the event that GitHub itself wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Owner of the repository the commit is in.
    pub owner: String,
    pub branch: String,
    pub sha: String,
    pub repository_id: u64,
}

/// A value of a query: everything but letters, digits and `-._~` as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_cannot_leave_the_query() {
        assert_eq!(percent_encoded("o:fix/ü&x=1#"), "o%3Afix%2F%C3%BC%26x%3D1%23");
    }

    #[test]
    fn a_deleted_fork_is_a_fork() {
        let pull = |head: &str| -> Pull {
            serde_json::from_str(&format!(
                r#"{{"number":1,"head":{{"sha":"AB","repo":{head}}},"base":{{"sha":"c","repo":{{"id":7}}}}}}"#
            ))
            .unwrap()
        };
        assert!(pull("null").is_fork() && pull(r#"{"id":8}"#).is_fork() && !pull(r#"{"id":7}"#).is_fork());
        assert!(pull("null").is_at("ab"));
    }
}
