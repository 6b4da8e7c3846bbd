//! The generator's thread: commanded synchronously by others, asynchronous inside.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

use crate::load::pacer::Pacer;
use crate::load::pool::{Members, Run, Tally};
use crate::load::schedule::Schedule;
use crate::load::wire::Wire;
use crate::load::{LoadError, SliceLoad, SliceOutcome};
use crate::record::Load;
use crate::stop::Stop;
use crate::thread;

/// The first request is due this long after the slice was asked for, so that it is not late by the start itself.
const LEAD_NS: u64 = 200_000;
/// How often time limits and the stop token are looked at, at most.
const WATCH: Duration = Duration::from_millis(20);

/// Ids are never used twice in a process, so that no generator takes another's pool for its own.
static NEXT_POOL: AtomicU64 = AtomicU64::new(0);

/// A thread that gives load over HTTP/1.1 and measures latency. Dropping it closes all connections and ends it.
pub struct Generator {
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
    thread_id: i32,
}

/// Open connections to one address; they stay open between slices. Dropping it closes them.
#[derive(Debug)]
pub struct Pool {
    id: u64,
    to: SocketAddr,
    connections: u32,
    commands: UnboundedSender<Command>,
}

type Reply<T> = SyncSender<T>;

#[derive(Debug)]
enum Command {
    Connect { to: SocketAddr, connections: u32, deadline: Duration, stop: Stop, reply: Reply<Result<u64, LoadError>> },
    Run { pool: u64, slice: Box<SliceLoad>, reply: Reply<Result<SliceOutcome, LoadError>> },
    Close { pool: u64, reply: Option<Reply<()>> },
    End,
}

impl Generator {
    /// Starts the thread on `cpus`; an empty list leaves it to the scheduler. Raises the limit of open files.
    pub fn start(cpus: &[u32]) -> io::Result<Self> {
        thread::raise_open_files();
        let cpus = cpus.to_vec();
        let (commands, received) = unbounded_channel();
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new().name("sidegate-load".to_owned()).spawn(move || {
            let prepared = thread::pin(&cpus)
                .and_then(|()| thread::exact_timers())
                .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build());
            match prepared {
                Ok(runtime) => {
                    let _ = ready.send(Ok(thread::own_id()));
                    LocalSet::new().block_on(&runtime, obey(received));
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        })?;
        let thread_id = started.recv().map_err(io::Error::other)??;
        Ok(Self { commands, thread: Some(thread), thread_id })
    }

    /// The kernel's id of the thread, for `/proc/self/task/<id>`.
    pub fn thread_id(&self) -> i32 {
        self.thread_id
    }

    /// Opens keep-alive connections. Nothing is sent over them yet.
    pub fn connect(&self, to: SocketAddr, connections: u32, deadline: Duration) -> Result<Pool, LoadError> {
        self.connect_unless(&Stop::default(), to, connections, deadline)
    }

    /// As [`Generator::connect`], given up when `stop` says so.
    pub fn connect_unless(
        &self,
        stop: &Stop,
        to: SocketAddr,
        connections: u32,
        deadline: Duration,
    ) -> Result<Pool, LoadError> {
        if connections == 0 {
            return Err(LoadError::Input("at least one connection is needed"));
        }
        let id = self.ask(|reply| Command::Connect { to, connections, deadline, stop: stop.clone(), reply })??;
        Ok(Pool { id, to, connections, commands: self.commands.clone() })
    }

    /// Gives one slice of load and waits for its end: every request is then answered, failed or timed out.
    pub fn run(&self, pool: &Pool, slice: &SliceLoad) -> Result<SliceOutcome, LoadError> {
        self.ask(|reply| Command::Run { pool: pool.id, slice: Box::new(slice.clone()), reply })?
    }

    /// Closes a pool's connections and waits until they are closed.
    pub fn close(&self, pool: Pool) {
        let _ = self.ask(|reply| Command::Close { pool: pool.id, reply: Some(reply) });
    }

    fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, LoadError> {
        let (reply, answer) = sync_channel(1);
        self.commands.send(command(reply)).map_err(|_| LoadError::Gone)?;
        answer.recv().map_err(|_| LoadError::Gone)
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // Pools that outlive the generator keep the channel open, so its end has to be said.
        let _ = self.commands.send(Command::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Pool {
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    pub fn connections(&self) -> u32 {
        self.connections
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Close { pool: self.id, reply: None });
    }
}

/// Works off commands until the end.
async fn obey(mut commands: UnboundedReceiver<Command>) {
    let mut pools: HashMap<u64, Members> = HashMap::new();
    let tally = Rc::new(RefCell::new(Tally::new()));
    let mut pacer = None;
    while let Some(command) = commands.recv().await {
        match command {
            Command::Connect { to, connections, deadline, stop, reply } => {
                let opened = open(to, connections, deadline, &stop).await.map(|members| {
                    let id = NEXT_POOL.fetch_add(1, Ordering::Relaxed);
                    pools.insert(id, members);
                    id
                });
                let _ = reply.send(opened);
            }
            Command::Run { pool, slice, reply } => {
                let outcome = match pools.get(&pool) {
                    Some(members) => run(members, *slice, &tally, &mut pacer).await,
                    None => Err(LoadError::Input("the pool is not this generator's")),
                };
                let _ = reply.send(outcome);
            }
            Command::End => return,
            Command::Close { pool, reply } => {
                pools.remove(&pool);
                // Aborted tasks are dropped when they are polled next.
                tokio::task::yield_now().await;
                if let Some(reply) = reply {
                    let _ = reply.send(());
                }
            }
        }
    }
}

async fn open(to: SocketAddr, connections: u32, deadline: Duration, stop: &Stop) -> Result<Members, LoadError> {
    let until = tokio::time::Instant::now() + deadline;
    let mut wires = Vec::new();
    for opened in 0..connections {
        let wire = tokio::select! {
            biased;
            () = stopped(stop) => return Err(LoadError::Stopped),
            wire = tokio::time::timeout_at(until, Wire::open(to)) => wire,
        };
        match wire {
            Ok(Ok(wire)) => wires.push(wire),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(LoadError::Refused { to });
            }
            Ok(Err(error)) => return Err(LoadError::Connect { to, error }),
            Err(_) => return Err(LoadError::Deadline { to, opened, wanted: connections }),
        }
    }
    Ok(Members::spawn(wires))
}

async fn stopped(stop: &Stop) {
    while stop.requested().is_none() {
        tokio::time::sleep(WATCH).await;
    }
}

async fn run(
    members: &Members,
    slice: SliceLoad,
    tally: &Rc<RefCell<Tally>>,
    pacer: &mut Option<Pacer>,
) -> Result<SliceOutcome, LoadError> {
    if slice.requests.is_empty() {
        return Err(LoadError::Input("there are no requests to send"));
    }
    let schedule = match slice.load {
        Load::Closed => None,
        Load::Open { rate_rps } => {
            let connections = u32::try_from(members.len()).unwrap_or(u32::MAX);
            let length_ns = u64::try_from(slice.length.as_nanos()).unwrap_or(u64::MAX);
            let schedule = Schedule::new(rate_rps, length_ns, connections, slice.limit);
            Some(schedule.ok_or(LoadError::Input("a rate must be a positive number"))?)
        }
    };
    let pacer = match pacer {
        Some(pacer) => pacer,
        empty => empty.insert(Pacer::new().map_err(LoadError::Timer)?),
    };
    let cpu_before_ns = thread::own_cpu_ns();
    let start_ns = thread::now_ns() + if schedule.is_some() { LEAD_NS } else { 0 };
    let run = Rc::new(Run::new(slice, schedule, start_ns, tally));
    members.start(&run);
    let paced = tokio::select! {
        biased;
        paced = pace(members, &run, pacer) => paced,
        () = watch(members, &run) => Ok(()),
    };
    paced.map_err(LoadError::Timer)?;
    let cpu_ns = thread::own_cpu_ns().saturating_sub(cpu_before_ns);
    Ok(outcome(&mut tally.borrow_mut(), &run, cpu_ns))
}

/// Releases requests as they fall due, then waits for the last answer.
async fn pace(members: &Members, run: &Run, pacer: &Pacer) -> io::Result<()> {
    if let Some(schedule) = run.schedule {
        let mut next = 0;
        while next < schedule.total() && !run.interrupted() {
            pacer.until(run.start_ns.saturating_add(schedule.due_ns(next))).await?;
            let due = schedule.due_by(thread::now_ns().saturating_sub(run.start_ns));
            for index in next..due {
                members.release(run, index);
            }
            next = due.max(next);
        }
    }
    run.finished().await;
    Ok(())
}

/// Enforces time limits and the stop token until the run is stopped and its connections have let go.
async fn watch(members: &Members, run: &Run) {
    let tick = (run.slice.request_timeout / 10).clamp(Duration::from_millis(1), WATCH);
    while run.slice.stop.requested().is_none() {
        tokio::time::sleep(tick).await;
        members.expire(thread::now_ns());
    }
    members.stop(run);
    run.finished().await;
}

fn outcome(tally: &mut Tally, run: &Run, cpu_ns: u64) -> SliceOutcome {
    SliceOutcome {
        latency: tally.recorder.latency.take(),
        uncorrected: tally.recorder.uncorrected.take(),
        lateness: tally.recorder.lateness.take(),
        completed: mem::take(&mut tally.completed),
        errors: mem::take(&mut tally.errors),
        queued: mem::take(&mut tally.queued),
        elapsed: Duration::from_nanos(mem::take(&mut tally.last_end_ns).saturating_sub(run.start_ns)),
        bytes: mem::take(&mut tally.bytes),
        connects: mem::take(&mut tally.connects),
        cpu_ns,
        interrupted: run.interrupted(),
    }
}
