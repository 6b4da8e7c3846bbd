//! `sidegate load` and `sidegate serve`, called as the program calls them.

use std::net::TcpListener;

use clap::Parser as _;
use sidegate::stop::Stop;
use sidegate::{cmd, exit};

use super::{OK, backend, server, write};

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
