//! `sidegate serve`: the backend on its own.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use crate::backend::{Backend, BackendSpec, ListenerSpec};
use crate::exit::{self, Failure};
use crate::problem::Problem;
use crate::stop::Stop;
use crate::units;
use crate::upstream::Names;

/// Largest body that is kept in memory for the answer.
const LARGEST_BODY_BYTES: u64 = 16 << 20;

/// Serve one fixed HTTP/1.1 answer, the upstream sidegate measures against.
///
/// Prints the addresses it listens on, one a line, serves until SIGINT or SIGTERM, then prints what it counted.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Address of the first listener; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// How many listeners; those after the first take the ports that follow (or any, after port 0)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub listeners: u16,
    /// Length of the answer's body, such as 512 or 1KiB
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_body)]
    pub response: u64,
    /// CPUs to run on, such as 1 or 2-3 (default: any)
    #[arg(long, value_name = "LIST", value_parser = units::parse_cpus)]
    pub cpu: Option<units::CpuList>,
}

/// Serves until `stop`.
pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    let spec = BackendSpec {
        listeners: listeners(args)?,
        body_bytes: usize::try_from(args.response).unwrap_or(usize::MAX),
        cpus: args.cpu.clone().map_or_else(Vec::new, |list| list.0),
        names: Names::new(),
    };
    let backend = Backend::start(spec).map_err(|error| Failure::environment(cannot_start(args, &error)))?;
    let mut out = anstream::stdout();
    for index in 0..backend.len() {
        let _ = writeln!(out, "http://{}/", backend.addr(index));
    }
    let _ = out.flush();
    while stop.requested().is_none() {
        if !backend.is_alive() {
            return Err(Failure::environment(Problem::new("", "the server's thread ended by itself")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for index in 0..backend.len() {
        let counts = backend.counts(index);
        let _ = writeln!(
            out,
            "{}: {} requests over {} connections",
            backend.addr(index),
            counts.requests,
            counts.connections
        );
    }
    Ok(exit::PASS)
}

fn listeners(args: &Args) -> Result<Vec<ListenerSpec>, Problem> {
    let first = args.listen.port();
    (0..args.listeners)
        .map(|i| {
            let port = if first == 0 { Some(0) } else { first.checked_add(i) };
            let port = port.ok_or_else(|| {
                Problem::new("", format!("{} listeners from port {first} on go beyond port 65535", args.listeners))
                    .help("choose a lower port with --listen, or port 0")
            })?;
            let at = SocketAddr::new(args.listen.ip(), port);
            Ok(ListenerSpec { at, ..ListenerSpec::loopback(usize::from(i)) })
        })
        .collect()
}

fn cannot_start(args: &Args, error: &io::Error) -> Problem {
    let problem = Problem::new("", error.to_string());
    match error.kind() {
        io::ErrorKind::AddrInUse => problem
            .help("another program listens there: stop it, or choose another port with --listen (port 0 takes any)"),
        io::ErrorKind::PermissionDenied => problem.help("ports below 1024 need privileges: choose a higher one"),
        io::ErrorKind::AddrNotAvailable => {
            problem.help(format!("{} is not an address of this machine", args.listen.ip()))
        }
        io::ErrorKind::InvalidInput => problem.help("--cpu names no CPU that this process may use"),
        _ => problem,
    }
}

fn parse_body(text: &str) -> Result<u64, String> {
    let bytes = units::parse_bytes(text).map_err(|e| e.to_string())?;
    if bytes > LARGEST_BODY_BYTES { Err("the largest answer is 16MiB".to_owned()) } else { Ok(bytes) }
}
