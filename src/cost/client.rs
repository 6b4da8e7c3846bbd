//! One connection, one request at a time: the load whose cost is counted.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::record::RequestClass;
use crate::stop::Stop;

/// How often a signal is looked for while an answer is waited for.
const STOP_POLL: Duration = Duration::from_millis(100);
/// Answers longer than this are refused.
const MOST_BYTES: usize = 64 << 20;

/// A client of one listener. Not thread-safe on purpose: closed loop, one request at a time.
#[derive(Debug)]
pub(super) struct Client {
    at: SocketAddr,
    limit: Duration,
    stop: Stop,
    kept: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects when it first sends. Every answer must come within `limit`.
    pub fn new(at: SocketAddr, limit: Duration, stop: Stop) -> Self {
        Self { at, limit, stop, kept: None, buffer: Vec::with_capacity(128 << 10) }
    }

    /// Connections that send nothing.
    pub fn idle(&self, count: usize) -> io::Result<Vec<TcpStream>> {
        (0..count).map(|_| TcpStream::connect_timeout(&self.at, self.limit)).collect()
    }

    /// Sends one request on the kept connection and reads its whole answer; the status. Connects anew where the last
    /// answer ended the old one.
    pub fn send(&mut self, request: &Wire) -> io::Result<u16> {
        let mut stream = match self.kept.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        let (status, reusable) = self.exchange(&mut stream, request)?;
        self.kept = reusable.then_some(stream);
        Ok(status)
    }

    /// Sends one request on a connection of its own, and closes it. The kept one stays open beside it.
    pub fn send_once(&mut self, mut stream: TcpStream, request: &Wire) -> io::Result<u16> {
        self.exchange(&mut stream, request).map(|(status, _)| status)
    }

    fn exchange(&mut self, stream: &mut TcpStream, request: &Wire) -> io::Result<(u16, bool)> {
        let deadline = Instant::now() + self.limit;
        stream.write_all(&request.bytes)?;
        self.answer(stream, deadline)
    }

    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.at, self.limit)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STOP_POLL))?;
        stream.set_write_timeout(Some(self.limit))?;
        Ok(stream)
    }

    /// Status, and whether the connection may be used again.
    fn answer(&mut self, stream: &mut TcpStream, deadline: Instant) -> io::Result<(u16, bool)> {
        self.buffer.clear();
        let head = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = Head::parse(&self.buffer[..end]).ok_or_else(|| invalid("the answer is not HTTP/1.1"))?;
                // What was announced to be continued is followed by the answer itself.
                self.buffer.drain(..end + 4);
                if head.status >= 200 {
                    break head;
                }
                continue;
            }
            if self.more(stream, deadline)? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed unanswered"));
            }
        };
        loop {
            let end = match head.framing {
                Framing::Length(length) => (self.buffer.len() >= length).then_some(length),
                Framing::Chunked => chunks_end(&self.buffer)?,
                Framing::UntilClosed => None,
            };
            if end.is_some() {
                return Ok((head.status, head.keep));
            }
            if self.more(stream, deadline)? == 0 {
                return match head.framing {
                    Framing::UntilClosed => Ok((head.status, false)),
                    _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut short")),
                };
            }
        }
    }

    fn more(&mut self, stream: &mut TcpStream, deadline: Instant) -> io::Result<usize> {
        if self.buffer.len() > MOST_BYTES {
            return Err(invalid("the answer is too long"));
        }
        let mut chunk = [0; 64 << 10];
        loop {
            match stream.read(&mut chunk) {
                Ok(n) => {
                    self.buffer.extend_from_slice(&chunk[..n]);
                    return Ok(n);
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if self.stop.requested().is_some() {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    if Instant::now() >= deadline {
                        let said = format!("no answer within {} s", self.limit.as_secs());
                        return Err(io::Error::new(io::ErrorKind::TimedOut, said));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// A request as it is sent.
#[derive(Debug)]
pub(super) struct Wire {
    bytes: Vec<u8>,
    pub new_connection: bool,
}

impl Wire {
    pub fn of(class: &RequestClass) -> Self {
        let mut text = format!("{} {} HTTP/1.1\r\nhost: {}\r\n", class.method, class.path, class.authority);
        for (name, value) in [("user-agent", "sidegate"), ("accept", "*/*")] {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        for (name, value) in &class.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if class.body_bytes > 0 {
            let _ = write!(text, "content-type: application/json\r\ncontent-length: {}\r\n", class.body_bytes);
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend(body(usize::try_from(class.body_bytes).unwrap_or(0)));
        Self { bytes, new_connection: class.new_connection }
    }
}

/// A JSON text of this length, as far as one can be so short.
fn body(length: usize) -> Vec<u8> {
    const START: &[u8] = b"{\"order\":\"";
    const END: &[u8] = b"\"}";
    let letters = (b'a'..=b'z').cycle();
    if length < START.len() + END.len() {
        return letters.take(length).collect();
    }
    let middle = letters.take(length - START.len() - END.len());
    START.iter().copied().chain(middle).chain(END.iter().copied()).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClosed,
}

#[derive(Debug)]
struct Head {
    status: u16,
    framing: Framing,
    keep: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let head = std::str::from_utf8(bytes).ok()?;
        let mut lines = head.split("\r\n");
        let status: u16 = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let (mut framing, mut keep) = (Framing::UntilClosed, true);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => framing = Framing::Chunked,
                "content-length" if framing != Framing::Chunked => framing = Framing::Length(value.parse().ok()?),
                "connection" if value.eq_ignore_ascii_case("close") => keep = false,
                _ => {}
            }
        }
        if status < 200 || status == 204 || status == 304 {
            framing = Framing::Length(0);
        }
        Some(Self { status, framing, keep })
    }
}

/// Where the chunked body ends, once all of it is there.
fn chunks_end(bytes: &[u8]) -> io::Result<Option<usize>> {
    let line = |from: usize| Some(from + bytes.get(from..)?.windows(2).position(|window| window == b"\r\n")?);
    let mut at = 0;
    loop {
        let Some(end) = line(at) else { return Ok(None) };
        let size = std::str::from_utf8(&bytes[at..end]).ok().and_then(|text| text.split(';').next());
        let size = size.and_then(|text| usize::from_str_radix(text.trim(), 16).ok());
        let size = size.filter(|&size| size <= MOST_BYTES).ok_or_else(|| invalid("a chunk without a length"))?;
        if size == 0 {
            return trailers_end(bytes, end + 2);
        }
        at = end + 2 + size + 2;
        if at > bytes.len() {
            return Ok(None);
        }
    }
}

/// Trailers end with an empty line.
fn trailers_end(bytes: &[u8], from: usize) -> io::Result<Option<usize>> {
    let rest = bytes.get(from..).unwrap_or_default();
    if rest.starts_with(b"\r\n") {
        return Ok(Some(from + 2));
    }
    Ok(rest.windows(4).position(|window| window == b"\r\n\r\n").map(|at| from + at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heads_say_where_the_body_ends() {
        let framing = |text: &str| Head::parse(text.as_bytes()).map(|head| (head.status, head.framing, head.keep));
        assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 7"), Some((200, Framing::Length(7), true)));
        let both = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 7\r\nconnection: close";
        assert_eq!(framing(both), Some((200, Framing::Chunked, false)));
        assert_eq!(framing("HTTP/1.1 204 No Content"), Some((204, Framing::Length(0), true)));
        assert_eq!(framing("HTTP/1.1 200 OK"), Some((200, Framing::UntilClosed, true)));
        assert!(framing("HTTP/1.0 200 OK").is_none() && framing("SSH-2.0").is_none());
    }

    #[test]
    fn chunked_bodies_end_where_they_end() {
        let text = b"5\r\nhello\r\n0\r\n\r\n";
        assert_eq!(chunks_end(text).unwrap(), Some(text.len()));
        let trailed = b"5;x=1\r\nhello\r\n0\r\nx: y\r\n\r\n";
        assert_eq!(chunks_end(trailed).unwrap(), Some(trailed.len()));
        for cut in 0..text.len() {
            assert_eq!(chunks_end(&text[..cut]).unwrap(), None, "{cut}");
        }
        assert!(chunks_end(b"zz\r\n").is_err());
    }

    #[test]
    fn bodies_have_their_length() {
        for length in [0, 1, 11, 12, 13, 100_000] {
            assert_eq!(body(length).len(), length);
        }
        assert!(serde_json::from_slice::<serde_json::Value>(&body(4096)).is_ok());
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = (chunks_end(&bytes), Head::parse(&bytes));
        }
    }
}
