//! Envoy's administration interface, read with a small synchronous HTTP/1.1 client.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Answers longer than this are refused: statistics of a thousand clusters take about 1 MB.
const MOST_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// `GET path`, on a connection of its own, within `limit`.
pub(super) fn get(address: SocketAddr, path: &str, limit: Duration) -> io::Result<Answer> {
    let deadline = Instant::now() + limit;
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut stream = TcpStream::connect_timeout(&address, left()?)?;
    stream.set_write_timeout(Some(left()?))?;
    stream.set_nodelay(true)?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut bytes = Vec::with_capacity(4096);
    let mut chunk = [0; 16 << 10];
    loop {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut chunk)? {
            0 => break,
            n => bytes.extend_from_slice(&chunk[..n]),
        }
        if bytes.len() > MOST_BYTES {
            return Err(io::Error::other("the answer is too long"));
        }
    }
    parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a complete HTTP answer"))
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let (mut chunked, mut length) = (false, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match name.to_ascii_lowercase().as_str() {
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            "content-length" => length = Some(value.trim().parse::<usize>().ok()?),
            _ => {}
        }
    }
    let rest = &bytes[end + 4..];
    let body = match length {
        _ if chunked => dechunk(rest)?,
        Some(length) => rest.get(..length)?.to_vec(),
        None => rest.to_vec(),
    };
    Some(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
}

fn dechunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?.split(';').next()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let from = line + 2;
        body.extend_from_slice(rest.get(from..from.checked_add(size)?)?);
        rest = rest.get(from.checked_add(size)?.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_framings_are_read() {
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nLIVE\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let answer = parse(chunked).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "LIVE\nabc"));
        let counted = parse(b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nhi").unwrap();
        assert_eq!((counted.status, counted.body.as_str()), (503, "hi"));
    }

    #[test]
    fn a_cut_answer_is_no_answer() {
        assert!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi").is_none());
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nLI").is_none());
        assert!(parse(b"HTTP/1.1 200").is_none());
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n").is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            bytes.extend(tail);
            let _ = parse(&bytes);
        }
    }
}
