//! Connections whose protocol shows when they are opened: HTTP/2 or HTTP/1.1, in TLS or not.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::http::{HeaderMap, HeaderValue, header};
use hyper::rt::{Executor, Read, Write};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;

use super::grpc;
use super::server::{Counters, asked, drain};
use super::tls::Tls;

/// Connections of one port.
#[derive(Clone)]
pub(super) struct Either {
    pub counters: Arc<Counters>,
    pub answer: Rc<Response<Full<Bytes>>>,
    pub tls: Option<Tls>,
}

impl Either {
    /// Serves one connection to its end. A client that goes away, or whose handshake fails, is no concern of the
    /// server's: the proxy tells of it.
    pub async fn serve(self, stream: TcpStream) {
        match &self.tls {
            None => self.speak(TokioIo::new(stream)).await,
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    self.speak(TokioIo::new(stream)).await;
                }
            }
        }
    }

    async fn speak(&self, io: impl Read + Write + Unpin + 'static) {
        let mut http = auto::Builder::new(OnThisThread);
        http.http1().auto_date_header(false).keep_alive(true);
        http.http2().auto_date_header(false);
        let service = service_fn(|request: Request<Incoming>| {
            let (counters, answer) = (Arc::clone(&self.counters), Rc::clone(&self.answer));
            async move {
                let grpc = grpc::answer(&request);
                let asked = asked(request.headers());
                drain(request.into_body()).await;
                counters.requests.fetch_add(1, Ordering::Relaxed);
                let plain = || asked.unwrap_or_else(|| (*answer).clone()).map(Answer::plain);
                Ok::<_, Infallible>(grpc.unwrap_or_else(plain))
            }
        });
        let _ = http.serve_connection(io, service).await;
    }
}

/// HTTP/2 answers several requests at a time: each is a task of the one thread.
#[derive(Clone, Copy)]
struct OnThisThread;

impl<F: Future<Output = ()> + 'static> Executor<F> for OnThisThread {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

/// A body in one piece, with trailers behind it or not.
#[derive(Debug)]
pub(super) struct Answer {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Answer {
    fn plain(body: Full<Bytes>) -> Self {
        let mut body = body;
        let frame = Pin::new(&mut body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
        let data = match frame {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            _ => None,
        };
        Self { data, trailers: None }
    }

    /// One message of a call that succeeds.
    pub fn grpc(message: &'static [u8]) -> Response<Self> {
        let trailers = HeaderMap::from_iter([(grpc::STATUS, HeaderValue::from_static("0"))]);
        let mut answer = Response::new(Self { data: Some(Bytes::from_static(message)), trailers: Some(trailers) });
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        answer
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().map(Frame::data);
        Poll::Ready(data.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}
