//! Generator, backend, `load` and `serve` over real sockets.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser as _;
use sidegate::backend::{Backend, BackendSpec, ListenerSpec};
use sidegate::cmd;
use sidegate::exit;
use sidegate::load::{Generator, LoadError, Request, SliceLoad, SliceOutcome};
use sidegate::record::Load;
use sidegate::stop::Stop;

const DEADLINE: Duration = Duration::from_secs(20);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn backend(listeners: usize) -> Backend {
    let listeners = (0..listeners).map(ListenerSpec::loopback).collect();
    Backend::start(BackendSpec { listeners, body_bytes: 1024, cpus: vec![] }).unwrap()
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

fn kinds(outcome: &SliceOutcome) -> Vec<(&str, u64)> {
    outcome.errors.iter().map(|(kind, n)| (kind.as_str(), *n)).collect()
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

/// One closed-loop run of `limit` requests over one connection.
fn limited(to: SocketAddr, limit: u64) -> SliceOutcome {
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(to, 1, DEADLINE).unwrap();
    let slice = SliceLoad { limit: Some(limit), ..slice(to, Load::Closed, DEADLINE) };
    generator.run(&pool, &slice).unwrap()
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
fn other_statuses_are_errors_and_keep_their_connection() {
    let (at, accepted) = server(|number, stream| {
        write(stream, if number % 2 == 0 { b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n" } else { OK });
    });
    let outcome = limited(at, 10);
    assert_eq!((outcome.completed, kinds(&outcome)), (5, vec![("status 503", 5)]));
    assert_eq!(outcome.latency.len(), 5);
    assert_eq!((outcome.connects, accepted.load(Ordering::SeqCst)), (0, 1));
}

#[test]
fn expectations_of_a_request_are_checked() {
    let (at, _) = server(|_, stream| write(stream, b"HTTP/1.1 404 No\r\ncontent-length: 4\r\n\r\nnone"));
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(at, 1, DEADLINE).unwrap();
    let request = Request::new("GET", "a", "/").unwrap();
    let expect = |status, bytes| request.clone().expect(status, bytes);
    let requests = Arc::from([
        expect(404, None),
        expect(404, Some(4)),
        expect(404, Some(5)),
        expect(404, Some(3)),
        expect(200, None),
    ]);
    let slice = SliceLoad { requests, limit: Some(5), ..slice(at, Load::Closed, DEADLINE) };
    let outcome = generator.run(&pool, &slice).unwrap();
    assert_eq!(outcome.completed, 2);
    assert_eq!(kinds(&outcome), [("long body", 1), ("short body", 1), ("status 404", 1)]);
}

#[test]
fn a_body_cut_short_is_named_and_the_connection_opened_again() {
    let (at, accepted) = server(|number, stream| {
        if number == 1 {
            write(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
            close(stream);
        } else {
            write(stream, OK);
        }
    });
    let outcome = limited(at, 4);
    assert_eq!((outcome.completed, kinds(&outcome)), (3, vec![("short body", 1)]));
    assert_eq!((outcome.connects, accepted.load(Ordering::SeqCst)), (1, 2));
}

#[test]
fn a_connection_lost_before_the_answer_is_a_reset() {
    let (at, _) = server(|number, stream| if number == 1 { close(stream) } else { write(stream, OK) });
    let outcome = limited(at, 4);
    assert_eq!((outcome.completed, kinds(&outcome), outcome.connects), (3, vec![("reset", 1)], 1));
}

#[test]
fn what_is_not_http_is_a_protocol_error() {
    let (at, _) = server(|number, stream| write(stream, if number == 1 { b"SSH-2.0-x\r\n\r\n" } else { OK }));
    let outcome = limited(at, 4);
    assert_eq!((outcome.completed, kinds(&outcome), outcome.connects), (3, vec![("protocol", 1)], 1));
}

#[test]
fn a_server_that_closes_after_each_answer_costs_connections_not_errors() {
    let (at, accepted) = server(|_, stream| {
        write(stream, b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
        close(stream);
    });
    let outcome = limited(at, 20);
    assert_eq!((outcome.completed, kinds(&outcome)), (20, vec![]));
    assert_eq!((outcome.connects, accepted.load(Ordering::SeqCst)), (19, 20));
}

#[test]
fn requests_never_answered_time_out_counted_from_when_they_were_due() {
    let (at, _) = server(|_, _| {});
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(at, 2, DEADLINE).unwrap();
    let slice = SliceLoad { request_timeout: ms(100), ..slice(at, open(200.0), ms(200)) };
    let started = std::time::Instant::now();
    let outcome = generator.run(&pool, &slice).unwrap();
    assert_eq!((outcome.completed, kinds(&outcome)), (0, vec![("timeout", 40)]));
    assert!(outcome.latency.is_empty());
    assert!(outcome.elapsed >= ms(290));
    assert!(started.elapsed() >= ms(290), "the last request is due at 195 ms and has 100 ms");
    assert!(started.elapsed() < DEADLINE);
}

#[test]
fn a_server_that_goes_away_refuses_and_is_not_hammered() {
    let mut gone = Some(backend(1));
    let at = gone.as_ref().unwrap().addr(0);
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(at, 2, DEADLINE).unwrap();
    assert!(generator.run(&pool, &slice(at, Load::Closed, ms(20))).unwrap().completed > 0);
    gone.take();
    let outcome = generator.run(&pool, &slice(at, Load::Closed, ms(100))).unwrap();
    // Two connections, an attempt each 10 ms.
    assert_eq!(outcome.completed, 0);
    assert!((2..=40).contains(&outcome.error_count()), "{:?}", outcome.errors);
    assert!(outcome.errors.contains_key("refused"), "{:?}", outcome.errors);
    let outcome = generator.run(&pool, &slice(at, open(1000.0), ms(100))).unwrap();
    assert_eq!(kinds(&outcome), [("refused", 100)], "every due request is accounted for");
    assert!(matches!(generator.connect(at, 1, DEADLINE), Err(LoadError::Refused { .. })));
}

#[test]
fn nonsense_is_refused_and_the_generator_lives_on() {
    let backend = backend(1);
    let at = backend.addr(0);
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(at, 1, DEADLINE).unwrap();
    for rate in [0.0, -1.0, f64::NAN] {
        assert!(matches!(generator.run(&pool, &slice(at, open(rate), ms(10))), Err(LoadError::Input(_))));
    }
    let nothing = SliceLoad { requests: Arc::from([]), ..slice(at, Load::Closed, ms(10)) };
    assert!(matches!(generator.run(&pool, &nothing), Err(LoadError::Input(_))));
    assert!(matches!(generator.connect(at, 0, DEADLINE), Err(LoadError::Input(_))));
    let other = Generator::start(&[]).unwrap();
    let _others = other.connect(at, 1, DEADLINE).unwrap();
    let empty = generator.run(&pool, &slice(at, open(100.0), Duration::ZERO)).unwrap();
    assert_eq!((empty.completed, empty.error_count()), (0, 0));
    assert!(other.run(&pool, &slice(at, Load::Closed, ms(10))).is_err(), "a pool belongs to its generator");
    assert!(generator.run(&pool, &slice(at, Load::Closed, ms(10))).unwrap().completed > 0);
    drop(generator);
    drop(pool);
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
    let taken = ListenerSpec { tag: 0, at: backend.addr(0) };
    let spec = BackendSpec { listeners: vec![taken], body_bytes: 1, cpus: vec![] };
    let error = Backend::start(spec).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&backend.addr(0).to_string()), "{error}");
}

#[derive(clap::Parser)]
struct LoadCommand {
    #[command(flatten)]
    args: cmd::load::Args,
}

#[derive(clap::Parser)]
struct ServeCommand {
    #[command(flatten)]
    args: cmd::serve::Args,
}

fn load_args(words: &[&str]) -> cmd::load::Args {
    LoadCommand::try_parse_from([&["load"], words].concat()).unwrap().args
}

fn serve_args(words: &[&str]) -> cmd::serve::Args {
    ServeCommand::try_parse_from([&["serve"], words].concat()).unwrap().args
}

#[test]
fn load_reports_what_the_issue_promises() {
    let backend = backend(1);
    let url = format!("http://{}/", backend.addr(0));
    let args = load_args(&[&url, "--connections", "4", "--duration", "200ms", "--rate", "500", "--format", "json"]);
    let report = serde_json::to_value(cmd::load::measure(&args, &Stop::default()).unwrap()).unwrap();
    assert_eq!(report["requests"], 100);
    assert_eq!(report["errors"], 0);
    assert_eq!(report["errors_by_kind"], serde_json::json!({}));
    assert!(report["rate_rps"].as_f64().unwrap() > 0.0);
    for kind in ["latency_ns", "uncorrected_ns", "lateness_ns"] {
        for key in ["p50", "p90", "p99", "p999", "max", "mean"] {
            assert!(report[kind][key].as_u64().unwrap() > 0, "{kind} {key}");
        }
    }
    assert_eq!(cmd::load::run(&args, &Stop::default()).unwrap(), exit::PASS);
}

#[test]
fn load_ends_4_when_nothing_succeeds_and_2_when_asked_wrongly() {
    let (at, _) = server(|_, stream| write(stream, b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"));
    let args = load_args(&[&format!("http://{at}/"), "-c", "1", "-d", "20ms"]);
    let report = cmd::load::measure(&args, &Stop::default()).unwrap();
    assert_eq!(report.requests, 0);
    assert_eq!(report.errors_by_kind["status 503"], report.errors);
    assert_eq!(cmd::load::run(&args, &Stop::default()).unwrap(), exit::INVALID);

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = cmd::load::measure(&load_args(&[&format!("http://{free}/")]), &Stop::default()).unwrap_err();
    assert_eq!(failure.code, exit::INVALID);
    assert!(failure.problems[0].message.contains("refused"), "{failure:?}");

    for words in [&["https://localhost/"][..], &["http://192.0.2.1/"], &["http://127.0.0.1/", "-H", "no colon"]] {
        let failure = cmd::load::measure(&load_args(words), &Stop::default()).unwrap_err();
        assert_eq!(failure.code, exit::USAGE, "{words:?}");
    }
    for words in [&["-d", "3"][..], &["--rate", "0"], &["--connections", "0"], &["--cpu", "x"]] {
        assert!(LoadCommand::try_parse_from([&["load", "http://127.0.0.1/"], words].concat()).is_err(), "{words:?}");
    }
}

#[test]
fn a_signal_stops_load_and_serve_and_the_figures_so_far_are_kept() {
    let stop = Stop::on_signals().unwrap();
    let (at, _) = server(|number, stream| {
        // The last request before the signal is never answered.
        if number < 50 {
            write(stream, OK);
        } else {
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM);
        }
    });
    let args = load_args(&[&format!("http://{at}/"), "-c", "1", "-d", "60s", "--timeout", "60s"]);
    let report = cmd::load::measure(&args, &stop).unwrap();
    assert!(report.interrupted);
    assert_eq!((report.requests, report.errors), (50, 0));
    assert!(report.to_string().starts_with("interrupted"), "{report}");
    assert_eq!(cmd::serve::run(&serve_args(&["--listen", "127.0.0.1:0"]), &stop).unwrap(), exit::PASS);
}

#[test]
fn serve_names_the_port_that_is_taken() {
    let backend = backend(1);
    let taken = backend.addr(0).to_string();
    let failure = cmd::serve::run(&serve_args(&["--listen", &taken]), &Stop::default()).unwrap_err();
    assert_eq!(failure.code, exit::INVALID);
    assert!(failure.problems[0].message.contains(&taken), "{failure:?}");
    assert!(failure.problems[0].help.as_deref().unwrap().contains("--listen"));
    let beyond = cmd::serve::run(&serve_args(&["--listen", "127.0.0.1:65535", "--listeners", "2"]), &Stop::default());
    assert_eq!(beyond.unwrap_err().code, exit::USAGE);
}
