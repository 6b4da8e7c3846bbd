//! Answers to gRPC calls: success, with a message that every type reads, and health.

use hyper::http::{HeaderName, header};
use hyper::{Request, Response};

use super::either::Answer;

pub(super) const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// A message without fields: not compressed, of length 0.
const EMPTY: &[u8] = &[0, 0, 0, 0, 0];

/// `HealthCheckResponse {status: SERVING}`.
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 0x08, 0x01];
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// The answer, if the request is a gRPC call.
pub(super) fn answer<B>(request: &Request<B>) -> Option<Response<Answer>> {
    let kind = request.headers().get(header::CONTENT_TYPE)?.as_bytes();
    let rest = kind.strip_prefix(b"application/grpc")?;
    // `application/grpc+proto` is one, `application/grpc-web` is another protocol.
    matches!(rest.first(), None | Some(b'+' | b';')).then(|| match request.uri().path() {
        HEALTH => Answer::grpc(SERVING),
        _ => Answer::grpc(EMPTY),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_requests() {
        let is_call =
            |kind: &str| answer(&Request::builder().header(header::CONTENT_TYPE, kind).body(()).unwrap()).is_some();
        for kind in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(is_call(kind), "{kind}");
        }
        for kind in ["application/grpc-web", "application/json", ""] {
            assert!(!is_call(kind), "{kind}");
        }
        assert!(answer(&Request::new(())).is_none());
    }
}
