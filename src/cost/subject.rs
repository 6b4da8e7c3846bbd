//! The proxy under valgrind: all that the counting knows of its kind. Another driver needs these few functions.

use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::control::{DUMPS, Fault, PIPES, is_dump};
use super::dump::{self, Dump};
use super::{Candidate, CostFailure, Counter, Place};
use crate::envoy::{Ports, quiet};
use crate::probe::{ports, thread};
use crate::proxy::{Envoy, Launch, Running, StartFailure, Under};
use crate::record::CpuLayout;

/// An idle machine needs 6 s, and 20 s for a thousand clusters.
const READY_DEADLINE: Duration = Duration::from_secs(240);
/// Other processes may take a port between our choosing and the proxy's binding it.
const PORT_ATTEMPTS: usize = 3;
/// Dumps of one thread are some hundred kilobytes.
const MOST_DUMP: u64 = 64 << 20;

/// The C library chooses how to copy memory by the machine's caches: here by none in particular.
const TUNABLES: &str = "glibc.cpu.x86_data_cache_size=0x8000:glibc.cpu.x86_shared_cache_size=0x100000:\
                        glibc.cpu.x86_non_temporal_threshold=0xc0000";

/// A proxy that executes under callgrind, not counted yet.
#[derive(Debug)]
pub(super) struct Subject {
    running: Running,
    pub at: SocketAddr,
}

impl Subject {
    pub fn start(counter: &Counter, candidate: &Candidate, place: Place) -> Result<Self, Fault> {
        let under = under(counter);
        let cpus: Vec<u32> = place.cpu.into_iter().collect();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let needed = candidate.bootstrap.needs().listeners + 1;
            let reserved = ports::reserve(needed).map_err(|e| CostFailure::Ours(format!("no free port: {e}")))?;
            let at: Vec<SocketAddr> =
                reserved.ports().iter().map(|&port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).collect();
            let (admin, listeners) = (at[0], at[1..].to_vec());
            let load_at = *listeners
                .get(candidate.listener)
                .ok_or_else(|| CostFailure::Ours("the config has no such listener".to_owned()))?;
            let upstreams = place.upstreams.clone();
            let mut config = candidate.bootstrap.rehost(&Ports { admin, listeners, upstreams, log_dir: ".".into() });
            quiet::lengthen(&mut config);
            let config = config.to_string().into_bytes();
            reserved.release();
            let launch = Launch {
                binary: candidate.binary,
                config: &config,
                slot: place.slot,
                concurrency: 1,
                cpus: CpuLayout { workers: cpus.clone(), rest: cpus.clone(), realtime: false },
                admin,
                ready_deadline: READY_DEADLINE,
                under: Some(&under),
                stop: counter.stop.clone(),
            };
            match Envoy::start(&counter.spawner, &launch) {
                Ok(running) => return Ok(Self { running, at: load_at }),
                Err(e) if e.is_address_in_use() && attempt < PORT_ATTEMPTS => {}
                Err(e) => return Err(not_started(e)),
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub fn folder(&mut self) -> &Path {
        self.running.child().folder()
    }

    pub fn startup(&self) -> Duration {
        self.running.startup()
    }

    /// Has the main thread execute something.
    pub fn poke(&self) -> io::Result<()> {
        self.running.poke()
    }

    /// Live heap, if the proxy tells it.
    pub fn allocated(&self) -> Option<u64> {
        self.running.allocated()
    }

    /// Errors: how it ended.
    pub fn alive(&mut self) -> Result<(), String> {
        self.running.alive().map_err(|died| died.to_string())
    }

    /// Whether no thread of it runs or wants to.
    pub fn asleep(&self) -> io::Result<bool> {
        thread::all_asleep(self.pid())
    }

    /// Reads and removes the dumps of all threads.
    pub fn take_dumps(&mut self) -> Result<Vec<Dump>, Fault> {
        let unreadable = |e: io::Error| CostFailure::Ours(format!("cannot read what callgrind counted: {e}"));
        let folder = self.folder().to_owned();
        let mut dumps = Vec::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if !is_dump(&path) {
                continue;
            }
            let text = read(&path).map_err(unreadable)?;
            fs::remove_file(&path).map_err(unreadable)?;
            let dump = dump::parse(&text).map_err(|e| CostFailure::Ours(format!("a dump of callgrind: {e}")))?;
            dumps.push(dump);
        }
        Ok(dumps)
    }
}

/// The folder is the proxy's own: a config's code may lay anything there under any name.
fn read(path: &PathBuf) -> io::Result<String> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    file.take(MOST_DUMP).read_to_string(&mut text)?;
    Ok(text)
}

fn not_started(failure: StartFailure) -> Fault {
    match failure {
        StartFailure::Stopped { by } => Fault::Ours(CostFailure::Stopped { by: by.to_owned() }),
        StartFailure::NotStarted(_) | StartFailure::NotPinned(_) => Fault::Ours(CostFailure::Ours(failure.to_string())),
        failure => Fault::Arm(format!("under valgrind, {failure}")),
    }
}

fn under(counter: &Counter) -> Under {
    let arguments = [
        "-q",
        "--tool=callgrind",
        // Starting up is not counted, and so is not slowed down further.
        "--instr-atstart=no",
        "--separate-threads=yes",
        "--collect-systime=nsec",
        // Basic blocks between two looks at the pipe.
        "--vgdb-poll=1000",
    ];
    let mut args: Vec<_> = arguments.iter().map(Into::into).collect();
    args.push(format!("--vgdb-prefix={PIPES}").into());
    args.push(format!("--callgrind-out-file={DUMPS}").into());
    Under {
        program: counter.tools.valgrind.clone(),
        args,
        environment: vec![("GLIBC_TUNABLES", TUNABLES.to_owned())],
        fixed_addresses: counter.fixed_addresses,
    }
}
