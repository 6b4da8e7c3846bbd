//! What goes wrong is counted by its kind, never lost and never in the histograms.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sidegate::load::{Generator, LoadError, Request, SliceLoad, SliceOutcome};
use sidegate::record::Load;

use super::{DEADLINE, OK, backend, close, ms, open, server, slice, write};
use std::net::SocketAddr;

fn kinds(outcome: &SliceOutcome) -> Vec<(&str, u64)> {
    outcome.errors.iter().map(|(kind, n)| (kind.as_str(), *n)).collect()
}

/// One closed-loop run of `limit` requests over one connection.
fn limited(to: SocketAddr, limit: u64) -> SliceOutcome {
    let generator = Generator::start(&[]).unwrap();
    let pool = generator.connect(to, 1, DEADLINE).unwrap();
    let slice = SliceLoad { limit: Some(limit), ..slice(to, Load::Closed, DEADLINE) };
    generator.run(&pool, &slice).unwrap()
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
