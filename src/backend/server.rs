//! Listeners, connections, counters.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::http::{HeaderMap, HeaderValue, header};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::backend::either::Either;
use crate::backend::text::{records, text};
use crate::backend::tls::Tls;
use crate::stub::Calls;
use crate::thread;
use crate::upstream::{Names, Speaks};

/// Bodies up to this length are copied behind their head and written in one piece, which is cheaper than two pieces.
const COPIED_BYTES: usize = 8 * 1024;

/// What to serve.
#[derive(Debug, Clone)]
pub struct BackendSpec {
    pub listeners: Vec<ListenerSpec>,
    /// Length of the answer's body.
    pub body_bytes: usize,
    /// Where the thread runs; an empty list leaves it to the scheduler.
    pub cpus: Vec<u32>,
    /// What the certificates of TLS listeners must carry beside the host that is asked for.
    pub names: Names,
}

/// One port, with its own counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerSpec {
    /// The caller's number for it (a slot); not interpreted.
    pub tag: usize,
    /// Port 0: the kernel chooses.
    pub at: SocketAddr,
    pub speaks: Speaks,
}

impl ListenerSpec {
    /// Any free port on 127.0.0.1, for HTTP/1.1.
    pub fn loopback(tag: usize) -> Self {
        Self::speaking(Speaks::Http1, tag)
    }

    /// Any free port on 127.0.0.1.
    pub fn speaking(speaks: Speaks, tag: usize) -> Self {
        Self { tag, at: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), speaks }
    }
}

/// What one listener has seen since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackendCounts {
    /// Connections accepted.
    pub connections: u64,
    /// Requests answered.
    pub requests: u64,
}

/// A running server. Dropping it closes everything and waits for its thread.
pub struct Backend {
    listeners: Vec<Listening>,
    calls: Arc<Calls>,
    thread_id: i32,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Listening {
    tag: usize,
    at: SocketAddr,
    speaks: Speaks,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    connections: AtomicU64,
    requests: AtomicU64,
}

impl Backend {
    /// Binds every listener, then serves. An address in use is an error before anything is served.
    pub fn start(spec: BackendSpec) -> io::Result<Self> {
        thread::raise_open_files();
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = sync_channel(1);
        let BackendSpec { listeners, body_bytes, cpus, names } = spec;
        let tls = Certificates::for_listeners(&listeners, &names)?;
        let calls = Arc::new(Calls::default());
        let serving = Arc::clone(&calls);
        let thread = std::thread::Builder::new().name("sidegate-back".to_owned()).spawn(move || {
            let prepared = thread::pin(&cpus)
                .and_then(|()| thread::exact_timers())
                .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build());
            let runtime = match prepared {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(error))),
            };
            LocalSet::new().block_on(&runtime, async move {
                let (listeners, sockets) = match bind(&listeners).await {
                    Ok(bound) => bound,
                    Err(error) => return drop(ready.send(Err(error))),
                };
                let answer = Rc::new(fixed_answer(body_bytes));
                for (listening, socket) in listeners.iter().zip(sockets) {
                    let (counters, answer) = (Arc::clone(&listening.counters), Rc::clone(&answer));
                    if listening.speaks == Speaks::Http1 {
                        tokio::task::spawn_local(accept(socket, counters, answer, body_bytes));
                    } else {
                        let (tls, calls) = (tls.of(listening.speaks), Arc::clone(&serving));
                        let either = Either { counters, answer, tls, calls };
                        tokio::task::spawn_local(accept_either(socket, either));
                    }
                }
                let _ = ready.send(Ok((listeners, thread::own_id())));
                let _ = stopped.await;
            });
        })?;
        let (listeners, thread_id) = started.recv().map_err(io::Error::other)??;
        Ok(Self { listeners, calls, thread_id, stop: Some(stop), thread: Some(thread) })
    }

    /// Address of the `index`-th listener of the specification.
    ///
    /// # Panics
    /// When there is no such listener.
    pub fn addr(&self, index: usize) -> SocketAddr {
        self.listeners[index].at
    }

    /// The caller's number for the `index`-th listener.
    ///
    /// # Panics
    /// When there is no such listener.
    pub fn tag(&self, index: usize) -> usize {
        self.listeners[index].tag
    }

    /// Counters of the `index`-th listener.
    ///
    /// # Panics
    /// When there is no such listener.
    pub fn counts(&self, index: usize) -> BackendCounts {
        let counters = &self.listeners[index].counters;
        BackendCounts {
            connections: counters.connections.load(Ordering::Relaxed),
            requests: counters.requests.load(Ordering::Relaxed),
        }
    }

    /// gRPC calls begun on all listeners, by `package.Service/Method`. They are not among the requests.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.calls.counts()
    }

    /// Number of listeners.
    pub fn len(&self) -> usize {
        self.listeners.len()
    }

    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// The kernel's id of the thread, for `/proc/self/task/<id>`.
    pub fn thread_id(&self) -> i32 {
        self.thread_id
    }

    /// Whether the thread still serves.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Made before the thread starts: without them nothing is served.
#[derive(Default)]
struct Certificates {
    tls: Option<Tls>,
    mutual: Option<Tls>,
}

impl Certificates {
    fn for_listeners(listeners: &[ListenerSpec], names: &Names) -> io::Result<Self> {
        let wanted = |speaks: Speaks| listeners.iter().any(|listener| listener.speaks == speaks);
        let make = |speaks: Speaks| wanted(speaks).then(|| Tls::new(names, speaks == Speaks::MutualTls)).transpose();
        Ok(Self { tls: make(Speaks::Tls)?, mutual: make(Speaks::MutualTls)? })
    }

    fn of(&self, speaks: Speaks) -> Option<Tls> {
        match speaks {
            Speaks::Http1 | Speaks::Http2 => None,
            Speaks::Tls => self.tls.clone(),
            Speaks::MutualTls => self.mutual.clone(),
        }
    }
}

async fn bind(specs: &[ListenerSpec]) -> io::Result<(Vec<Listening>, Vec<TcpListener>)> {
    let mut listeners = Vec::new();
    let mut sockets = Vec::new();
    for spec in specs {
        let socket = TcpListener::bind(spec.at)
            .await
            .map_err(|e| io::Error::new(e.kind(), format!("cannot listen on {}: {e}", spec.at)))?;
        thread::never_pace(&socket);
        let at = socket.local_addr()?;
        listeners.push(Listening { tag: spec.tag, at, speaks: spec.speaks, counters: Arc::default() });
        sockets.push(socket);
    }
    Ok((listeners, sockets))
}

fn fixed_answer(body_bytes: usize) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text(body_bytes)));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}

/// By these headers a request asks for an answer of its own kind: a status, a length of compressible text, a type.
const STATUS: &str = "x-sidegate-status";
const BYTES: &str = "x-sidegate-bytes";
const TYPE: &str = "x-sidegate-type";
const MOST_BYTES: usize = 16 << 20;

/// Reads a request to its end and counts it: the answer it asks for, else the fixed one.
pub(super) async fn answered(
    request: Request<Incoming>,
    counters: &Counters,
    fixed: &Response<Full<Bytes>>,
) -> Response<Full<Bytes>> {
    let asked = asked(request.headers());
    drain(request.into_body()).await;
    counters.requests.fetch_add(1, Ordering::Relaxed);
    asked.unwrap_or_else(|| fixed.clone())
}

fn asked(headers: &HeaderMap) -> Option<Response<Full<Bytes>>> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (status, bytes, kind) = (text(STATUS), text(BYTES), headers.get(TYPE));
    if status.is_none() && bytes.is_none() && kind.is_none() {
        return None;
    }
    let length = bytes.and_then(|text| text.parse().ok()).unwrap_or(0).min(MOST_BYTES);
    let mut answer = Response::new(Full::new(records(length)));
    if let Some(status) = status.and_then(|text| text.parse().ok()) {
        *answer.status_mut() = status;
    }
    let kind = kind.cloned().unwrap_or(HeaderValue::from_static("text/plain"));
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    Some(answer)
}

async fn accept(socket: TcpListener, counters: Arc<Counters>, answer: Rc<Response<Full<Bytes>>>, body_bytes: usize) {
    let mut http = http1::Builder::new();
    // The date would cost a clock reading and changes nothing that is measured.
    http.auto_date_header(false).keep_alive(true).writev(body_bytes > COPIED_BYTES);
    loop {
        let stream = next(&socket, &counters).await;
        let (counters, answer) = (Arc::clone(&counters), Rc::clone(&answer));
        let service = service_fn(move |request: Request<Incoming>| {
            let (counters, answer) = (Arc::clone(&counters), Rc::clone(&answer));
            async move { Ok::<_, Infallible>(answered(request, &counters, &answer).await) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::task::spawn_local(async move {
            // A client that goes away in mid-request is no concern of the server's.
            let _ = connection.await;
        });
    }
}

/// The same for ports that speak something else: nothing of it is in the way of the plain ones.
async fn accept_either(socket: TcpListener, either: Either) {
    loop {
        let stream = next(&socket, &either.counters).await;
        tokio::task::spawn_local(either.clone().serve(stream));
    }
}

/// The next connection, counted.
async fn next(socket: &TcpListener, counters: &Counters) -> TcpStream {
    loop {
        if let Ok((stream, _)) = socket.accept().await {
            counters.connections.fetch_add(1, Ordering::Relaxed);
            let _ = stream.set_nodelay(true);
            return stream;
        }
        // Out of descriptors, most likely: wait for some connection to close.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn drain(mut body: Incoming) {
    while !body.is_end_stream() {
        if !matches!(body.frame().await, Some(Ok(_))) {
            return;
        }
    }
}
