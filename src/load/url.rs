//! The URL `sidegate load` is given, and the rule that load stays on this machine.

use std::net::{SocketAddr, ToSocketAddrs as _};

use hyper::http::Uri;

use crate::exit::Failure;
use crate::problem::Problem;

/// The parts of an `http` URL that a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Host and port as given, for the `Host` header.
    pub authority: String,
    host: String,
    port: u16,
    /// Path and query.
    pub path: String,
}

impl Url {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let bad = |message: String| Problem::new("", message).help("write it as http://127.0.0.1:8080/path");
        let uri: Uri = text.parse().map_err(|e| bad(format!("`{text}` is not a URL: {e}")))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(other) => return Err(bad(format!("`{text}`: only http is spoken, not {other}"))),
            None => return Err(bad(format!("`{text}` is not a URL: it does not start with http://"))),
        }
        let authority = uri.authority().filter(|a| !a.host().is_empty());
        let authority = authority.ok_or_else(|| bad(format!("`{text}` names no host")))?;
        if authority.as_str().contains('@') {
            return Err(
                bad(format!("`{text}`: user names in URLs are not sent")).help("use --header 'authorization: …'")
            );
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.as_str().len() > authority.host().len() => {
                return Err(bad(format!("`{text}`: the port is not a number up to 65535")));
            }
            None => 80,
        };
        let path = uri.path_and_query().map_or("/", |p| p.as_str()).to_owned();
        Ok(Self { authority: authority.to_string(), host, port, path })
    }

    /// The address, if it is of this machine: a generator must not be a weapon against others.
    pub fn loopback(&self) -> Result<SocketAddr, Failure> {
        let found: Vec<SocketAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|e| Failure::environment(Problem::new("", format!("cannot resolve `{}`: {e}", self.host))))?
            .collect();
        // Servers that listen on one address only mostly take the IPv4 one.
        let local = found.iter().filter(|a| a.ip().is_loopback()).min_by_key(|a| a.is_ipv6());
        match (local, found.first()) {
            (Some(at), _) => Ok(*at),
            (None, Some(other)) => Err(Problem::new("", format!("{} is not a loopback address", other.ip()))
                .help("load is only given to this machine, for elsewhere it could be an attack; use 127.0.0.1")
                .into()),
            (None, None) => Err(Failure::environment(Problem::new("", format!("`{}` has no address", self.host)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let url = Url::parse("http://localhost:8080/a/b?c=d").unwrap();
        assert_eq!((url.authority.as_str(), url.port, url.path.as_str()), ("localhost:8080", 8080, "/a/b?c=d"));
        assert_eq!(url.loopback().unwrap(), "127.0.0.1:8080".parse().unwrap());
        let url = Url::parse("http://[::1]:81").unwrap();
        assert_eq!((url.loopback().unwrap(), url.path.as_str()), ("[::1]:81".parse().unwrap(), "/"));
        assert_eq!(Url::parse("http://127.0.0.1").unwrap().port, 80);
    }

    #[test]
    fn what_cannot_be_loaded_is_refused_with_the_reason() {
        let refused = |text: &str| Url::parse(text).unwrap_err().to_string();
        assert!(refused("https://127.0.0.1/").contains("only http is spoken, not https"));
        assert!(refused("127.0.0.1:8080").contains("does not start with http://"), "{}", refused("127.0.0.1:8080"));
        assert!(refused("http://a@127.0.0.1/").contains("user names"));
        assert!(refused("http://127.0.0.1:99999/").contains("port"));
        assert!(refused("").contains("is not a URL"));
        let elsewhere = Url::parse("http://192.0.2.1/").unwrap().loopback().unwrap_err();
        assert_eq!(elsewhere.code, crate::exit::USAGE);
        assert!(elsewhere.problems[0].to_string().contains("192.0.2.1 is not a loopback address"));
    }
}
