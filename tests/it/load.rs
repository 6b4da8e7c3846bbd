//! Generator, backend, `load` and `serve` over real sockets.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod commands;
mod faults;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidegate::backend::{Backend, BackendSpec, ListenerSpec};
use sidegate::load::{Generator, Request, SliceLoad};
use sidegate::record::Load;

const DEADLINE: Duration = Duration::from_secs(20);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn backend(listeners: usize) -> Backend {
    let listeners = (0..listeners).map(ListenerSpec::loopback).collect();
    Backend::start(BackendSpec { listeners, body_bytes: 1024, cpus: vec![], names: Default::default() }).unwrap()
}

/// A slice that records everything and waits long.
fn slice(to: SocketAddr, load: Load, length: Duration) -> SliceLoad {
    let request = Request::new("GET", &to.to_string(), "/").unwrap();
    SliceLoad {
        unrecorded: Duration::ZERO,
        request_timeout: DEADLINE,
        ..SliceLoad::new(Arc::from([request]), load, length)
    }
}

fn open(rate_rps: f64) -> Load {
    Load::Open { rate_rps }
}

/// A server that hands each request of each connection, by number, to `answer`, until that closes the connection.
fn server(answer: impl Fn(u64, &mut TcpStream) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicU64::new(0));
    let (answer, counter, numbers) = (Arc::new(answer), Arc::clone(&accepted), Arc::new(AtomicU64::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            counter.fetch_add(1, Ordering::SeqCst);
            let (answer, numbers) = (Arc::clone(&answer), Arc::clone(&numbers));
            std::thread::spawn(move || {
                while read_request(&mut stream) {
                    answer(numbers.fetch_add(1, Ordering::SeqCst), &mut stream);
                }
            });
        }
    });
    (at, accepted)
}

fn read_request(stream: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut byte = [0_u8; 1];
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            _ => return false,
        }
    }
    true
}

fn write(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}

fn close(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

#[test]
fn open_loop_sends_every_due_request_once_and_the_backend_agrees() {
    let backend = backend(2);
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(backend.addr(0), 7, DEADLINE).unwrap();
    let outcome = generator.run(&pool, &slice(backend.addr(0), open(1000.0), ms(300))).unwrap();
    assert_eq!(outcome.completed, 300);
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    assert_eq!(outcome.latency.len(), 300);
    assert_eq!(outcome.uncorrected.len(), 300);
    assert_eq!(outcome.bytes, 300 * 1024);
    assert_eq!(backend.counts(0).requests, 300);
    assert_eq!(backend.counts(0).connections, 7);
    assert_eq!((backend.counts(1).requests, backend.tag(1)), (0, 1), "counters are per listener");
    // The last request is due 299 ms after the start.
    assert!(outcome.elapsed >= ms(299));
    assert!(outcome.cpu_ns > 0 && outcome.generator_share() < 1.01);
}

#[test]
fn connections_stay_open_over_slices_and_pools_do_not_mix() {
    let backend = backend(2);
    let generator = Generator::start(&[]).unwrap();
    let pools: Vec<_> = (0..2).map(|i| generator.connect(backend.addr(i), 5, DEADLINE).unwrap()).collect();
    let mut sent = [0, 0];
    for round in 0..6 {
        let i = round % 2;
        let load = if round < 3 { Load::Closed } else { open(500.0) };
        let outcome = generator.run(&pools[i], &slice(backend.addr(i), load, ms(40))).unwrap();
        assert_eq!((outcome.connects, outcome.error_count()), (0, 0));
        sent[i] += outcome.completed;
    }
    for (i, sent) in sent.into_iter().enumerate() {
        assert_eq!((backend.counts(i).connections, backend.counts(i).requests), (5, sent));
    }
}

#[test]
fn the_first_part_is_counted_but_not_recorded() {
    let backend = backend(1);
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(backend.addr(0), 4, DEADLINE).unwrap();
    let slice = SliceLoad { unrecorded: ms(20), ..slice(backend.addr(0), open(1000.0), ms(100)) };
    let outcome = generator.run(&pool, &slice).unwrap();
    assert_eq!(outcome.completed, 100);
    assert_eq!(outcome.latency.len(), 80, "requests 20 to 99 are due at 20 ms or later");
}

#[test]
fn latency_counts_from_when_a_request_was_due_not_from_when_it_was_sent() {
    let (at, _) = server(|number, stream| {
        if number == 20 {
            std::thread::sleep(ms(400));
        }
        write(stream, OK);
    });
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(at, 1, DEADLINE).unwrap();
    let outcome = generator.run(&pool, &slice(at, open(500.0), ms(600))).unwrap();
    assert_eq!(outcome.completed, 300);
    // Some 200 requests fell due while the server stalled; only one of them was on its way.
    let slow = |h: &sidegate::histogram::Histogram| h.count_above(50_000_000);
    assert!(slow(&outcome.latency) >= 150, "{}", slow(&outcome.latency));
    assert!(outcome.latency.quantile(0.99).unwrap() >= 350_000_000);
    // A stalled machine may slow a few more answers, never one in ten.
    assert!(slow(&outcome.uncorrected) < 30, "{}", slow(&outcome.uncorrected));
    assert!(outcome.queued >= 150);
    // Waiting for the busy connection is not the generator's lateness.
    assert!(outcome.lateness.len() <= 300 - outcome.queued);
}

#[test]
fn requests_are_taken_in_turn() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let lines = Arc::clone(&seen);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0_u8; 4096];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            lines.lock().unwrap().push(String::from_utf8_lossy(&buffer[..n]).into_owned());
            write(&mut stream, OK);
        }
    });
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(at, 1, DEADLINE).unwrap();
    let requests = [
        Request::new("GET", "shop.example", "/a?x=1").unwrap().header("x-kind", "one").unwrap(),
        Request::new("POST", "shop.example", "/b").unwrap().body("body".into()),
    ];
    let slice = SliceLoad { requests: Arc::from(requests), limit: Some(3), ..slice(at, Load::Closed, DEADLINE) };
    assert_eq!(generator.run(&pool, &slice).unwrap().completed, 3);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0], "GET /a?x=1 HTTP/1.1\r\nhost: shop.example\r\nx-kind: one\r\n\r\n");
    assert!(
        seen[1].starts_with("POST /b HTTP/1.1\r\n") && seen[1].ends_with("content-length: 4\r\n\r\nbody"),
        "{}",
        seen[1]
    );
    assert_eq!(seen[2], seen[0]);
}

#[test]
fn closing_a_pool_closes_its_connections() {
    let (closed, ended) = std::sync::mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        closed.send(stream.read(&mut [0]).unwrap()).unwrap();
    });
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(at, 1, DEADLINE).unwrap();
    generator.close(pool);
    assert_eq!(ended.recv_timeout(DEADLINE), Ok(0), "end of file");
}

#[test]
fn many_fresh_pools_never_hang() {
    let backend = backend(1);
    let at = backend.addr(0);
    let generator = Generator::start(&[]).unwrap();
    for _ in 0..200 {
        let pool = generator.connect(at, 3, DEADLINE).unwrap();
        let outcome = generator.run(&pool, &slice(at, open(10_000.0), ms(1))).unwrap();
        assert_eq!((outcome.completed, outcome.error_count()), (10, 0));
    }
}

#[test]
fn the_backend_answers_any_method_and_drains_bodies() {
    let backend = backend(1);
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(backend.addr(0)).unwrap();
        write(&mut stream, request.as_bytes());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-length: 1024"), "{head}");
    assert_eq!(body.len(), 1024);
    let answer = ask("HEAD / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(answer.contains("content-length: 1024") && answer.ends_with("\r\n\r\n"), "{answer}");
    let body = "x".repeat(100_000);
    let two = format!(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}DELETE / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        body.len()
    );
    assert_eq!(ask(&two).matches("HTTP/1.1 200 OK").count(), 2);
    assert_eq!(backend.counts(0).requests, 4);
    assert_eq!(backend.counts(0).connections, 3);
}

#[test]
fn answers_to_head_have_no_body() {
    let backend = backend(1);
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(backend.addr(0), 1, DEADLINE).unwrap();
    let head = Request::new("HEAD", "a", "/").unwrap().expect(200, Some(1024));
    let slice =
        SliceLoad { requests: Arc::from([head]), limit: Some(3), ..slice(backend.addr(0), Load::Closed, DEADLINE) };
    let outcome = generator.run(&pool, &slice).unwrap();
    assert_eq!((outcome.completed, outcome.bytes, outcome.error_count()), (3, 0, 0));
}

#[test]
fn a_port_in_use_is_an_error_that_names_it() {
    let backend = backend(1);
    let taken = ListenerSpec { at: backend.addr(0), ..ListenerSpec::loopback(0) };
    let spec = BackendSpec { listeners: vec![taken], body_bytes: 1, cpus: vec![], names: Default::default() };
    let error = Backend::start(spec).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&backend.addr(0).to_string()), "{error}");
}
