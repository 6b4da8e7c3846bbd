//! One HTTP/1.1 connection. Requests and the connection's own work run in the same task, so that an exchange costs
//! no switch between tasks.

use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::load::Request;
use crate::load::mute::Mute;
use crate::thread::{never_pace, now_ns};

type Body = Full<Bytes>;
type Conn = Pin<Box<Connection<TokioIo<TcpStream>, Body>>>;

/// A connection that is opened again when it is needed and closed.
pub(super) struct Wire {
    to: SocketAddr,
    link: Option<Link>,
    mute: Mute,
    /// Connections opened after the first.
    pub connects: u64,
}

struct Link {
    sender: SendRequest<Body>,
    /// `None` once the connection is over.
    conn: Option<Conn>,
}

/// A complete answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub sent_ns: u64,
    pub done_ns: u64,
    pub status: u16,
    pub bytes: u64,
}

/// Why there is no complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody listens.
    Refused,
    /// Any other failure to connect.
    Connect,
    /// The connection ended before the answer began.
    Reset,
    /// The connection ended within the answer's body.
    ShortBody,
    /// What came is not HTTP/1.1.
    Protocol,
    /// Given up from outside.
    GivenUp,
}

impl Wire {
    pub async fn open(to: SocketAddr) -> io::Result<Self> {
        let link = Link::open(to).await?;
        Ok(Self { to, link: Some(link), mute: Mute::new(), connects: 0 })
    }

    /// Waits for something else while the connection does its own work (it notices that the peer closed it).
    pub async fn idle_until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        poll_fn(|cx| {
            if let Poll::Ready(out) = event.as_mut().poll(cx) {
                return Poll::Ready(out);
            }
            let mut own = self.mute.context(cx);
            if let Some(link) = &mut self.link
                && link.conn.as_mut().is_none_or(|conn| conn.as_mut().poll(&mut own).is_ready())
            {
                self.link = None;
            }
            Poll::Pending
        })
        .await
    }

    /// Sends `request` and reads its answer to the end; opens the connection first where there is none. `give_up` is
    /// asked whenever the task is woken. After any fault the connection is closed.
    pub async fn exchange(&mut self, request: &Request, give_up: &impl Fn() -> bool) -> Result<Answer, Fault> {
        let result = self.try_exchange(request, give_up).await;
        if result.is_err() {
            self.link = None;
        }
        result
    }

    async fn try_exchange(&mut self, request: &Request, give_up: &impl Fn() -> bool) -> Result<Answer, Fault> {
        for _ in 0..2 {
            self.make_ready(give_up).await?;
            let Some(Link { sender, conn }) = &mut self.link else { continue };
            let mut drive = Drive { conn, mute: &self.mute, give_up };
            let message = request.build();
            let sent_ns = now_ns();
            // The call itself wakes the connection; within the block that happens quietly.
            let response = match drive.until(async { sender.try_send_request(message).await }).await? {
                Ok(response) => response,
                // An unsent message comes back: the peer had closed the connection and never saw the request.
                Err(mut error) => match error.take_message() {
                    Some(_) => {
                        self.link = None;
                        continue;
                    }
                    None => return Err(classify(error.error(), Fault::Reset)),
                },
            };
            let status = response.status().as_u16();
            let bytes = drive.read(response.into_body()).await?;
            return Ok(Answer { sent_ns, done_ns: now_ns(), status, bytes });
        }
        Err(Fault::Reset)
    }

    /// Leaves a link that takes a request, opened anew if the last one is over.
    async fn make_ready(&mut self, give_up: &impl Fn() -> bool) -> Result<(), Fault> {
        if let Some(Link { sender, conn }) = &mut self.link {
            let mut drive = Drive { conn, mute: &self.mute, give_up };
            if drive.until(poll_fn(|cx| sender.poll_ready(cx))).await?.is_err() {
                self.link = None;
            }
        }
        if self.link.is_none() {
            let mut drive = Drive { conn: &mut None, mute: &self.mute, give_up };
            let link = drive.until(Link::open(self.to)).await?.map_err(|e| connect_fault(&e))?;
            self.connects += 1;
            self.link = Some(link);
        }
        Ok(())
    }
}

impl Link {
    async fn open(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        never_pace(&stream);
        // Requests are small: copying them into one buffer is cheaper than a vectored write.
        let (sender, conn) =
            http1::Builder::new().writev(false).handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        Ok(Self { sender, conn: Some(Box::pin(conn)) })
    }
}

/// Polls what depends on a connection together with the connection.
struct Drive<'a, G> {
    conn: &'a mut Option<Conn>,
    mute: &'a Mute,
    give_up: &'a G,
}

impl<G: Fn() -> bool> Drive<'_, G> {
    async fn until<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Fault> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            self.mute.poll(cx, |own| {
                if (self.give_up)() {
                    return Poll::Ready(Err(Fault::GivenUp));
                }
                if let Poll::Ready(out) = future.as_mut().poll(own) {
                    return Poll::Ready(Ok(out));
                }
                self.mute.forget_calls();
                if self.conn.as_mut().is_some_and(|live| live.as_mut().poll(own).is_ready()) {
                    // Dropping what is over answers whoever still waits for it.
                    *self.conn = None;
                }
                future.as_mut().poll(own).map(Ok)
            })
        })
        .await
    }

    /// Reads a body to its end and returns its length.
    async fn read(&mut self, mut body: Incoming) -> Result<u64, Fault> {
        let mut bytes = 0_u64;
        while !body.is_end_stream() {
            match self.until(body.frame()).await? {
                Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
                Some(Err(error)) => return Err(classify(&error, Fault::ShortBody)),
                None => break,
            }
        }
        Ok(bytes)
    }
}

/// `ended` is what an early end of the connection means at this point.
fn classify(error: &hyper::Error, ended: Fault) -> Fault {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return ended;
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return match io.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Fault::Protocol,
                _ => ended,
            };
        }
        source = cause.source();
    }
    Fault::Protocol
}

fn connect_fault(error: &io::Error) -> Fault {
    if error.kind() == io::ErrorKind::ConnectionRefused { Fault::Refused } else { Fault::Connect }
}
