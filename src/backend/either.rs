//! Connections whose protocol shows when they are opened: HTTP/2 or HTTP/1.1, in TLS or not.

use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either as Body, Full};
use hyper::body::Incoming;
use hyper::rt::{Executor, Read, Write};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;

use super::server::{Counters, answered};
use super::tls::Tls;
use crate::stub::{Call, Calls};

/// Connections of one port.
#[derive(Clone)]
pub(super) struct Either {
    pub counters: Arc<Counters>,
    pub answer: Rc<Response<Full<Bytes>>>,
    pub tls: Option<Tls>,
    /// gRPC calls, which are no requests to an upstream of the config's.
    pub calls: Arc<Calls>,
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
            let (counters, answer, calls) =
                (Arc::clone(&self.counters), Rc::clone(&self.answer), Arc::clone(&self.calls));
            async move {
                if Call::is_one(&request) {
                    return Ok::<_, Infallible>(Call::answer(request, &calls).map(Body::Left));
                }
                Ok(answered(request, &counters, &answer).await.map(Body::Right))
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
