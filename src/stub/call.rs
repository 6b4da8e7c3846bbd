//! One gRPC call: its messages come in, its answers go out, its status ends it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::http::{HeaderMap, HeaderName, HeaderValue, header};
use hyper::{Request, Response};

use super::frame::{Frames, framed};
use super::processor::Processor;
use super::service::{Calls, Method, find};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// How a call ends (gRPC's status codes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok = 0,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
}

/// The answering side of a call, as the body of its response.
#[derive(Debug)]
pub struct Call<B> {
    body: B,
    frames: Frames,
    method: Method,
    processor: Processor,
    answers: VecDeque<Bytes>,
    /// Set once nothing more is read.
    status: Option<Status>,
    ended: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Call<B> {
    /// Whether the request is a gRPC call.
    pub fn is_one(request: &Request<B>) -> bool {
        let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
        // `application/grpc+proto` is one, `application/grpc-web` is another protocol.
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
    }

    /// Answers the call while it is read.
    pub fn answer(request: Request<B>, calls: &Calls) -> Response<Self> {
        let (name, method) = find(request.uri().path());
        calls.count(name);
        let mut response = Response::new(Self {
            body: request.into_body(),
            frames: Frames::default(),
            method,
            processor: Processor::default(),
            answers: VecDeque::new(),
            status: (method == Method::Unknown).then_some(Status::Unimplemented),
            ended: false,
        });
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        response
    }

    /// Takes the messages that are whole.
    fn take(&mut self) -> Result<(), Status> {
        while let Some(message) = self.frames.next()? {
            match self.method {
                Method::Once(answer) => {
                    self.answers.push_back(framed(answer));
                    self.status = Some(Status::Ok);
                    return Ok(());
                }
                Method::Process => {
                    let answer = self.processor.answer(&message)?;
                    self.answers.extend(answer.as_deref().map(framed));
                }
                Method::Sink | Method::Silent | Method::Unknown => {}
            }
        }
        Ok(())
    }

    /// The status of a call whose messages have ended.
    fn end(&mut self) -> Status {
        match self.method {
            _ if self.frames.is_cut() => Status::Internal,
            // A call that has to have a message, and has none.
            Method::Once(_) => Status::Internal,
            Method::Sink => {
                self.answers.push_back(framed(&[]));
                Status::Ok
            }
            Method::Silent | Method::Process | Method::Unknown => Status::Ok,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Call<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(answer))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(status) = self.status {
                self.ended = true;
                let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from(status as u16))]);
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.frames.push(&data);
                        if let Err(status) = self.take() {
                            self.status = Some(status);
                        }
                    }
                }
                // The caller went away: nobody reads what follows.
                Poll::Ready(Some(Err(_))) => self.status = Some(Status::Internal),
                Poll::Ready(None) => {
                    let status = self.end();
                    self.status = Some(status);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_requests() {
        let is_call = |kind: &str| {
            let body = http_body_util::Full::new(Bytes::new());
            Call::is_one(&Request::builder().header(header::CONTENT_TYPE, kind).body(body).unwrap())
        };
        for kind in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(is_call(kind), "{kind}");
        }
        for kind in ["application/grpc-web", "application/json", ""] {
            assert!(!is_call(kind), "{kind}");
        }
    }
}
