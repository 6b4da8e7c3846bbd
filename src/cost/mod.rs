//! Deterministic cost: how many instructions and system calls a request takes, counted by valgrind's callgrind.

mod client;
mod clockwork;
mod control;
mod dump;
mod session;
mod subject;
mod tools;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::backend::{Authority, Backend, BackendSpec, ListenerSpec};
use crate::envoy::Bootstrap;
use crate::policy::Profile;
use crate::proxy::{ProxyBinary, Spawner};
use crate::record::{ClassCost, CountingClass, CpuLayout, Missing, RequestClass, Slot};
use crate::stop::Stop;
use crate::upstream::{PortCounts, Upstreams};

use session::Session;
use tools::Tools;

/// Raised whenever what is sent, or how it is counted, changes: counts of two versions are not compared.
pub const WORKLOAD_VERSION: u32 = 2;

/// The fixed answer of the upstream, unless a request asks for another.
const RESPONSE_BYTES: usize = 1024;

/// Proxies on one CPU, where there are more than CPUs.
const SHARING: usize = 2;

/// Counts the cost of requests: valgrind found, and all it takes to run proxies in it.
#[derive(Debug, Clone)]
pub struct Counter {
    tools: Tools,
    class: CountingClass,
    spawner: Spawner,
    /// Where a proxy runs; as many at a time. Two share a CPU, since each waits a quarter of its time.
    lanes: Vec<Option<u32>>,
    /// Where our own threads run; empty: anywhere.
    rest: Vec<u32>,
    fixed_addresses: bool,
    stop: Stop,
}

/// One config to be counted, in one binary.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub binary: &'a ProxyBinary,
    pub bootstrap: &'a Bootstrap,
    /// Which of its listeners takes the requests.
    pub listener: usize,
}

/// How much is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Effort {
    /// Windows of a class, and how many more where they differ by more than `spread`.
    pub windows: u32,
    pub more_windows: u32,
    /// Largest over smallest window, less one.
    pub spread: f64,
    /// Requests of a window: as many as take so many instructions, within these two, and never longer than `window`.
    pub instructions: u64,
    pub fewest: u32,
    pub most: u32,
    pub window: Duration,
    /// Requests of a class before its first window, at most, and within `window`.
    pub warm_up: u32,
    /// Idle connections whose memory is looked at; none: it is not.
    pub connections: usize,
    /// A candidate's classes that have not begun by then are given up.
    pub deadline: Duration,
}

impl Effort {
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Quick | Profile::Standard => Self::default(),
            Profile::Deep => Self { instructions: 32_000_000, most: 200, ..Self::default() },
        }
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            windows: 3,
            more_windows: 2,
            spread: 0.004,
            // Fifty requests of a plain sidecar (METHODOLOGY.md, *Deterministic cost*).
            instructions: 8_000_000,
            fewest: 4,
            most: 50,
            window: Duration::from_secs(8),
            warm_up: 10,
            connections: 32,
            deadline: Duration::from_secs(300),
        }
    }
}

/// What happens while it counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A candidate's proxy runs under valgrind.
    Started { candidate: usize, after: Duration },
    /// `class` is an index into the classes.
    ClassDone { candidate: usize, class: usize },
}

/// Why there are no counts, where no candidate is to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostFailure {
    #[error("stopped by {by}")]
    Stopped { by: String },
    /// The backend, a child, the disk.
    #[error("{0}")]
    Ours(String),
    /// Valgrind does not do what it is told, though the proxy lives.
    #[error("valgrind cannot be controlled on this machine: {0}")]
    Control(String),
}

impl Counter {
    /// Looks for valgrind in `SIDEGATE_VALGRIND` (a folder with `valgrind` and `vgdb`, or the path of `valgrind`), else
    /// in `PATH`, and asks it for its version.
    ///
    /// # Errors
    /// Why nothing can be counted on this machine, and what helps.
    pub fn find(spawner: &Spawner, cpus: &CpuLayout, stop: &Stop) -> Result<Self, Missing> {
        let tools = Tools::find(spawner, stop)?;
        let class = tools.class();
        let mut all: Vec<u32> = cpus.rest.iter().chain(&cpus.workers).copied().collect();
        all.sort_unstable();
        all.dedup();
        // The last ones, as for workers; where there are more, the first are left to our own threads.
        let (rest, lanes) = all.split_at(all.len().saturating_sub(Slot::BOTH.len()));
        let lanes = match lanes {
            [] => vec![None],
            lanes => lanes.iter().copied().map(Some).collect::<Vec<_>>().repeat(SHARING),
        };
        let rest = rest.to_vec();
        Ok(Self { tools, class, spawner: spawner.clone(), lanes, rest, fixed_addresses: true, stop: stop.clone() })
    }

    /// What must be equal before counts of two runs may be compared.
    pub fn class(&self) -> &CountingClass {
        &self.class
    }

    /// Leaves the layout of memory to chance, as where a container refuses to fix it.
    #[must_use]
    pub fn with_random_addresses(mut self) -> Self {
        self.fixed_addresses = false;
        self
    }

    /// Everything on one CPU, one proxy at a time.
    #[must_use]
    pub fn on_one_cpu(mut self) -> Self {
        self.lanes.truncate(1);
        self.rest = self.lanes.iter().copied().flatten().collect();
        self
    }

    /// Proxies that can be counted at a time.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Counts every class on each candidate, two candidates a CPU at a time. One list a candidate,
    /// one entry a class. A candidate that fails has it said in its own entries; nothing of it is left running.
    ///
    /// # Errors
    /// What no candidate is to blame for.
    pub fn count(
        &self,
        candidates: &[Candidate],
        classes: &[RequestClass],
        effort: &Effort,
        events: &mut dyn FnMut(Event),
    ) -> Result<Vec<Vec<ClassCost>>, CostFailure> {
        let lanes = self.lanes.len().min(candidates.len());
        let upstreams = self.upstreams(candidates, lanes)?;
        let next = AtomicUsize::new(0);
        let (report, reports) = mpsc::channel();
        let mut counted: Vec<Option<Vec<ClassCost>>> = vec![None; candidates.len()];
        let failures: Vec<CostFailure> = std::thread::scope(|scope| {
            let run = |lane: usize, report: mpsc::Sender<Report>| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(candidate) = candidates.get(at) else { return Ok(()) };
                    let place = Place {
                        slot: Slot::BOTH[lane % 2],
                        cpu: self.lanes[lane],
                        upstreams: &upstreams.of_lane[lane],
                    };
                    let mut say = |event: Event| drop(report.send(Report::Event(event)));
                    let session = Session { counter: self, effort, place, candidate: at };
                    let costs = session.run(candidate, classes, &mut say).inspect_err(|_| {
                        // Nobody begins another: the failure is everyone's.
                        next.store(candidates.len(), Ordering::Relaxed);
                    })?;
                    let _ = report.send(Report::Counted(at, costs));
                }
            };
            let threads: Vec<_> = (0..lanes)
                .map(|lane| {
                    let report = report.clone();
                    scope.spawn(move || run(lane, report))
                })
                .collect();
            drop(report);
            for report in reports {
                match report {
                    Report::Event(event) => events(event),
                    Report::Counted(at, costs) => counted[at] = Some(costs),
                }
            }
            let panicked = || Err(CostFailure::Ours("a counting thread panicked".to_owned()));
            threads.into_iter().filter_map(|thread| thread.join().unwrap_or_else(|_| panicked()).err()).collect()
        });
        match failures.into_iter().next() {
            Some(failure) => Err(failure),
            None => Ok(counted.into_iter().map(Option::unwrap_or_default).collect()),
        }
    }
}

/// The backend, and which of its ports are whose. It serves until dropped.
struct Served {
    _backend: Backend,
    of_lane: Vec<Upstreams>,
}

impl Counter {
    /// As many ports of each kind for each lane as the neediest candidate wants.
    fn upstreams(&self, candidates: &[Candidate], lanes: usize) -> Result<Served, CostFailure> {
        let needs = candidates.iter().map(|c| c.bootstrap.needs().upstreams);
        let counts = needs.fold(PortCounts::default(), PortCounts::most);
        let speaks = std::iter::repeat_n(counts, lanes).flat_map(PortCounts::each);
        let backend = Backend::start(BackendSpec {
            listeners: speaks.zip(0..).map(|(speaks, tag)| ListenerSpec::speaking(speaks, tag)).collect(),
            body_bytes: RESPONSE_BYTES,
            cpus: self.rest.clone(),
            names: candidates.iter().flat_map(|c| c.bootstrap.names().clone()).collect(),
        })
        .map_err(|e| CostFailure::Ours(format!("cannot start the backend: {e}")))?;
        let trust = Authority::trust_for(counts).map_err(|e| CostFailure::Ours(e.to_string()))?;
        let of_lane = |lane: usize| {
            let at = (0..counts.total()).map(|k| backend.addr(lane * counts.total() + k)).collect();
            Upstreams::new(counts, at, trust.clone())
        };
        Ok(Served { of_lane: (0..lanes).map(of_lane).collect(), _backend: backend })
    }
}

enum Report {
    Event(Event),
    Counted(usize, Vec<ClassCost>),
}

/// Where a candidate runs, and what it talks to.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    slot: Slot,
    cpu: Option<u32>,
    upstreams: &'a Upstreams,
}
