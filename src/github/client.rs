//! Calls to GitHub's API through octocrab: raw routes, small answers, our own times and repetitions.
//!
//! octocrab's typed calls are not used: their models have many mandatory fields, and one that is missing turns a comment
//! that was written into an error. Its retries are off (they would repeat a POST), its missing timeouts are ours.

use http_body_util::{BodyExt, Limited};
use hyper::header::{ACCEPT, HeaderMap, USER_AGENT};
use hyper::{Method, Uri};
use octocrab::Octocrab;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::github::Token;
use crate::github::fault::{Fault, said};
use crate::github::limit;
use crate::github::pace::Patience;

/// Longest answer read: a hundred comments of full length, every character escaped.
const MAX_ANSWER: usize = 64 << 20;

pub struct Client {
    octocrab: Octocrab,
    token: Token,
    pub patience: Patience,
}

/// A page of a list and the query of the next one.
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    /// Must be made, used and dropped inside of a tokio runtime. `api_url` is https, or http on loopback.
    pub fn new(api_url: &str, token: &Token, patience: Patience) -> Result<Self, Fault> {
        let base = address(api_url)?;
        let user_agent = concat!("sidegate/", env!("CARGO_PKG_VERSION")).to_owned();
        let octocrab = Octocrab::builder()
            .base_uri(base.clone())
            // The token goes to the hosts of both addresses: the second must not stay GitHub's own.
            .and_then(|b| b.upload_uri(base))
            .and_then(|b| {
                b.personal_token(token.secret().to_owned())
                    .add_header(USER_AGENT, user_agent)
                    .add_header(ACCEPT, "application/vnd.github+json".to_owned())
                    .build()
            })
            .map_err(|e| Fault::Unreachable { why: chain(token, &e) })?;
        Ok(Self { octocrab, token: token.clone(), patience })
    }

    /// Repeated while faults pass.
    pub async fn get<T: DeserializeOwned>(&self, route: &str) -> Result<T, Fault> {
        self.repeat(async || read(&self.send(Method::GET, route, None::<&()>).await?)).await
    }

    /// One page of a list, repeated while faults pass.
    pub async fn page<T: DeserializeOwned>(&self, route: &str) -> Result<Page<T>, Fault> {
        self.repeat(async || {
            let answer = self.send(Method::GET, route, None::<&()>).await?;
            Ok(Page { items: read(&answer)?, next: next_query(&answer.headers) })
        })
        .await
    }

    /// Once: what came of a POST whose answer is lost only a look can tell.
    pub async fn post<B: Serialize, T: DeserializeOwned>(&self, route: &str, body: &B) -> Result<T, Fault> {
        read(&self.send(Method::POST, route, Some(body)).await?)
    }

    /// Once: before it is repeated, the caller looks again whether it should be.
    pub async fn patch<B: Serialize, T: DeserializeOwned>(&self, route: &str, body: &B) -> Result<T, Fault> {
        read(&self.send(Method::PATCH, route, Some(body)).await?)
    }

    /// Repeated while faults pass; what is gone already is fine.
    pub async fn delete(&self, route: &str) -> Result<(), Fault> {
        match self.repeat(async || self.send(Method::DELETE, route, None::<&()>).await).await {
            Ok(_) | Err(Fault::NotFound | Fault::Gone) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    async fn repeat<T>(&self, call: impl AsyncFn() -> Result<T, Fault>) -> Result<T, Fault> {
        let mut attempt = 0;
        loop {
            match call().await {
                Ok(done) => return Ok(done),
                Err(fault) => {
                    attempt += 1;
                    self.patience.pause(attempt, fault).await?;
                }
            }
        }
    }

    /// One call; an answer that is no success is a fault.
    async fn send<B: Serialize>(&self, method: Method, route: &str, body: Option<&B>) -> Result<Answer, Fault> {
        let answer = self
            .patience
            .call(async {
                let request = self
                    .octocrab
                    .build_request(hyper::Request::builder().method(method).uri(route), body)
                    .map_err(|e| Fault::Address { why: chain(&self.token, &e) })?;
                let response = self
                    .octocrab
                    .execute(request)
                    .await
                    .map_err(|e| Fault::Unreachable { why: chain(&self.token, &e) })?;
                let (parts, body) = response.into_parts();
                let body = Limited::new(body, MAX_ANSWER)
                    .collect()
                    .await
                    .map_err(|e| Fault::Unreachable { why: chain(&self.token, e.as_ref()) })?;
                Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes().to_vec() })
            })
            .await?;
        match self.fault_of(&answer) {
            Some(fault) => Err(fault),
            None => Ok(answer),
        }
    }

    fn fault_of(&self, answer: &Answer) -> Option<Fault> {
        let status = answer.status;
        if (200..300).contains(&status) {
            return None;
        }
        let message = self.token.redact(&message(&answer.body));
        if let Some(wait) = limit::of(status, &answer.headers, &message) {
            return Some(Fault::Limited { wait });
        }
        let needs = answer.headers.get("x-accepted-github-permissions").and_then(|v| v.to_str().ok()).map(said);
        Some(match status {
            300..400 => Fault::Moved,
            401 => Fault::Unauthorized,
            403 => Fault::Forbidden { said: said(&message), needs },
            404 => Fault::NotFound,
            410 => Fault::Gone,
            400 | 422 => Fault::Rejected { said: said(&message) },
            500..600 => Fault::Server { status },
            _ => Fault::Status { status, said: said(&message) },
        })
    }
}

/// The API's address if a token may be sent there.
fn address(api_url: &str) -> Result<Uri, Fault> {
    let wrong = |why: &str| Fault::Address { why: format!("{}: {why}", said(api_url)) };
    let uri: Uri = api_url.trim_end_matches('/').parse().map_err(|_| wrong("no URL"))?;
    let host = uri.host().unwrap_or_default().to_owned();
    let loopback = ["localhost", "127.0.0.1", "[::1]"].contains(&host.as_str());
    match uri.scheme_str() {
        _ if host.is_empty() => Err(wrong("it has no host")),
        _ if uri.query().is_some() => Err(wrong("it has a query")),
        _ if uri.authority().is_some_and(|a| a.as_str().contains('@')) => Err(wrong("it holds a user name")),
        Some("https") => Ok(uri),
        Some("http") if loopback => Ok(uri),
        _ => Err(wrong("a token is sent by https only")),
    }
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Fault> {
    serde_json::from_slice(&answer.body).map_err(|e| Fault::Garbled { why: said(&e.to_string()) })
}

/// GitHub's own words in an answer that is no success.
fn message(body: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let mut words = value.get("message").and_then(|m| m.as_str()).unwrap_or_default().to_owned();
    for error in value.get("errors").and_then(|e| e.as_array()).into_iter().flatten().take(3) {
        if let Some(more) = error.get("message").or(Some(error)).and_then(|m| m.as_str()) {
            words.push_str(&format!("; {more}"));
        }
    }
    words
}

/// The query of the page that a `Link` header calls next. Its host is not believed: the token stays where it was.
fn next_query(headers: &HeaderMap) -> Option<String> {
    let links = headers.get("link")?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let url = next.split_once('<')?.1.split_once('>')?.0;
    let query = url.split_once('?')?.1;
    query.chars().all(|c| c.is_ascii_graphic()).then(|| query.to_owned())
}

/// An error and its causes, each once, without the token.
fn chain(token: &Token, error: &dyn std::error::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Outer errors of libraries repeat their causes.
        words.retain(|w| !w.contains(&text) && !text.contains(w.as_str()));
        words.push(text);
        next = error.source();
    }
    said(&token.redact(&words.join(": ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_by_https_or_to_this_machine() {
        for good in ["https://api.github.com", "https://ghe.example/api/v3/", "http://127.0.0.1:8080"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in
            ["", "api.github.com", "http://api.github.com", "https://", "ftp://x", "https://u:p@x", "https://x?y=1"]
        {
            assert!(matches!(address(bad), Err(Fault::Address { .. })), "{bad}");
        }
    }

    #[test]
    fn the_next_page_is_a_query_without_its_host() {
        let mut headers = HeaderMap::new();
        assert_eq!(next_query(&headers), None);
        let link =
            "<https://evil.example/x?page=1>; rel=\"prev\", <https://evil.example/x?per_page=100&page=3>; rel=\"next\"";
        headers.insert("link", link.parse().unwrap());
        assert_eq!(next_query(&headers).as_deref(), Some("per_page=100&page=3"));
    }
}
