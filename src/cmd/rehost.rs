//! `sidegate rehost`: show how a config would run on loopback.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde_json::json;

use crate::cmd::gate::prepare::example_upstreams;
use crate::cmd::input;
use crate::envoy::Bootstrap;
use crate::envoy::rehost::{Needs, Ports};
use crate::envoy::workload::{self, Workload};
use crate::exit::{self, Failure};
use crate::files::ConfigFile;
use crate::problem::{Problem, on_one_line};
use crate::record::Change;
use crate::yaml::Document;

/// Show how a proxy config is re-hosted on loopback: what is changed and why, and which requests are derived from its
/// routes. No proxy is started.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 the config can be re-hosted; 2 it cannot, and every reason is printed with file, line and remedy.

Examples:
  sidegate rehost envoy.yaml                             what would be changed, and the requests
  sidegate rehost envoy.yaml --config > /tmp/r.json      the re-hosted config, to try it by hand:
  envoy --mode validate -c /tmp/r.json")]
pub struct Args {
    /// Envoy v3 config: a bootstrap, an admin config_dump, single resources, or a file that holds one of these; YAML, or
    /// JSON if its name ends in .json
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print only the re-hosted config as JSON, with example ports from 10000 (admin 9901, backend from 20000)
    #[arg(long, conflicts_with = "json")]
    config: bool,
    /// Print changes, requests and the re-hosted config as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let document = input::read(&ConfigFile::at(&args.file))?.0;
    let bootstrap = Bootstrap::read(&document).map_err(Failure::usage)?;
    let workload = workload::derive(&bootstrap)?;
    let text = if args.config {
        format!("{:#}\n", bootstrap.rehost(&example(bootstrap.needs())))
    } else if args.json {
        format!("{:#}\n", as_json(&document, &bootstrap, &workload))
    } else {
        as_text(&document, &bootstrap.changes(), bootstrap.needs(), &workload)
    };
    print(&text).map_err(|error| Failure::environment(Problem::new("", format!("standard output: {error}"))))?;
    Ok(exit::PASS)
}

/// A reader that went away early (`| head`) is no fault.
fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Ports for showing, not for running.
fn example(needs: Needs) -> Ports {
    let port = |first: u16, at: usize| first.saturating_add(u16::try_from(at).unwrap_or(u16::MAX));
    let address = |first: u16, at: usize| SocketAddr::from((Ipv4Addr::LOCALHOST, port(first, at)));
    Ports {
        admin: address(9901, 0),
        listeners: (0..needs.listeners).map(|at| address(10_000, at)).collect(),
        upstreams: example_upstreams(needs, address(20_000, 0)),
        log_dir: std::env::temp_dir(),
    }
}

fn as_json(document: &Document, bootstrap: &Bootstrap, workload: &Workload) -> serde_json::Value {
    let needs = bootstrap.needs();
    json!({
        "schema": 1,
        "file": document.file,
        "changes": bootstrap.changes(),
        "needs": {"listeners": needs.listeners, "endpoints": needs.endpoints},
        "listener": workload.listener,
        "requests": workload.requests,
        "routes": {"drivable": workload.drivable, "skipped": workload.skipped},
        "config": bootstrap.rehost(&example(needs)),
    })
}

fn as_text(document: &Document, changes: &[Change], needs: Needs, workload: &Workload) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let mut line = |text: String| _ = writeln!(out, "{}", on_one_line(&text));
    line(format!(
        "{} can be re-hosted on loopback: {}, {} for the backend.",
        document.file,
        plural(needs.listeners, "listener port"),
        plural(needs.endpoints, "port")
    ));
    line(String::new());
    line("What is changed, and why (everything else stays as it is):".to_owned());
    for change in changes {
        let at = match change.span {
            Some(span) if !change.pointer.is_empty() => format!("{}:{}", span.line, span.column),
            _ => "-".to_owned(),
        };
        line(format!("  {at:>8}  {}", change.what));
    }
    line(String::new());
    let shown = workload.requests.len();
    line(format!(
        "Requests, from {shown} of {} to clusters (listener port {}):",
        plural(workload.drivable, "route"),
        workload.listener + 1
    ));
    for request in &workload.requests {
        line(format!("  {} http://{}{}  ({})", request.method, request.authority, request.path, request.route));
    }
    for (why, count) in &workload.skipped {
        line(format!("  no request from {}: {why}", plural(*count, "route")));
    }
    out
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn run_with(arguments: &[&str]) -> Result<u8, Failure> {
        run(&Line::try_parse_from(["rehost"].iter().chain(arguments)).unwrap().args)
    }

    #[test]
    fn shows_a_config_or_says_why_not() {
        for flag in [&[][..], &["--json"], &["--config"]] {
            let arguments = [&["examples/basic/envoy.yaml"][..], flag].concat();
            assert_eq!(run_with(&arguments).unwrap(), exit::PASS);
        }
        let failure = run_with(&["examples/none.yaml"]).unwrap_err();
        assert_eq!((failure.code, failure.problems.len()), (exit::USAGE, 1));
        assert_eq!(failure.problems[0].file, "examples/none.yaml");
        assert!(Line::try_parse_from(["rehost", "a", "--json", "--config"]).is_err());
    }

    #[test]
    fn the_text_names_lines_changes_and_requests() {
        let document = Document::open("examples/basic/envoy.yaml".as_ref()).unwrap();
        let bootstrap = Bootstrap::read(&document).unwrap();
        let workload = workload::derive(&bootstrap).unwrap();
        let text = as_text(&document, &bootstrap.changes(), bootstrap.needs(), &workload);
        for part in [
            "1 listener port, 2 ports for the backend",
            "12:9  listener `ingress` moved from 0.0.0.0:8080",
            "host name `checkout-1.shop.internal` kept",
            "GET http://shop.example.com/api/checkout  (shop: path_separated_prefix /api/checkout)",
            "Requests, from 3 of 3 routes",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
