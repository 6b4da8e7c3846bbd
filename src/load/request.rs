//! One request of a workload, built once and sent many times, with the answer it expects.

use bytes::Bytes;
use http_body_util::Full;
use hyper::http::{self, HeaderName, HeaderValue, Method, Uri, header};

/// A request and its expected answer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Request {
    head: http::Request<()>,
    body: Bytes,
    expected_status: u16,
    expected_bytes: Option<u64>,
}

/// Why a request cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    #[error("`{0}` is not a request path; it must start with `/` and hold no spaces")]
    Path(String),
    #[error("`{0}` cannot be sent as a header")]
    Header(String),
}

impl Request {
    /// `path` in origin form (`/a?b=c`), `authority` as the `Host` header says it. Expects status 200 and, but for
    /// what `content-length` promises, any length.
    pub fn new(method: &str, authority: &str, path: &str) -> Result<Self, RequestError> {
        let bad_path = || RequestError::Path(path.to_owned());
        if !path.starts_with('/') && path != "*" {
            return Err(bad_path());
        }
        let host = HeaderValue::from_str(authority).map_err(|_| RequestError::Header(format!("host: {authority}")))?;
        let mut head = http::Request::new(());
        *head.method_mut() =
            Method::from_bytes(method.as_bytes()).map_err(|_| RequestError::Method(method.to_owned()))?;
        *head.uri_mut() = path.parse::<Uri>().map_err(|_| bad_path())?;
        head.headers_mut().insert(header::HOST, host);
        Ok(Self { head, body: Bytes::new(), expected_status: 200, expected_bytes: None })
    }

    /// Adds a header; `host` replaces the authority.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, RequestError> {
        let bad = || RequestError::Header(format!("{name}: {value}"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let value = HeaderValue::from_str(value).map_err(|_| bad())?;
        if key == header::HOST {
            self.head.headers_mut().insert(key, value);
        } else {
            self.head.headers_mut().append(key, value);
        }
        Ok(self)
    }

    #[must_use]
    pub fn body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// Status and body length the answer must have; a length of `None` accepts any.
    #[must_use]
    pub fn expect(mut self, status: u16, body_bytes: Option<u64>) -> Self {
        self.expected_status = status;
        self.expected_bytes = body_bytes;
        self
    }

    pub fn expected_status(&self) -> u16 {
        self.expected_status
    }

    /// Body bytes the answer must have, if that matters. Nothing follows the head of an answer to `HEAD`.
    pub(super) fn expected_bytes(&self) -> Option<u64> {
        if self.head.method() == Method::HEAD { Some(0) } else { self.expected_bytes }
    }

    pub(super) fn build(&self) -> http::Request<Full<Bytes>> {
        self.head.clone().map(|()| Full::new(self.body.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_parts_are_named() {
        assert_eq!(Request::new("G T", "a", "/").unwrap_err(), RequestError::Method("G T".to_owned()));
        assert_eq!(Request::new("GET", "a", "a").unwrap_err(), RequestError::Path("a".to_owned()));
        assert_eq!(Request::new("GET", "a", "/ b").unwrap_err(), RequestError::Path("/ b".to_owned()));
        let request = Request::new("GET", "a", "/").unwrap();
        assert!(matches!(request.clone().header("x y", "1"), Err(RequestError::Header(_))));
        assert!(matches!(request.header("x", "1\n2"), Err(RequestError::Header(_))));
    }

    #[test]
    fn a_host_header_replaces_the_authority() {
        let request = Request::new("GET", "a", "/").unwrap().header("Host", "b").unwrap().header("x", "1").unwrap();
        let built = request.build();
        assert_eq!(built.headers().get_all("host").iter().count(), 1);
        assert_eq!(built.headers()["host"], "b");
        assert_eq!(built.headers()["x"], "1");
    }
}
