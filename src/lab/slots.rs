//! What a slot owns while a block lasts: its proxy, its ports, its connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use super::LabFailure;
use super::real::{ArmSetup, Setup, ours};
use crate::envoy::Ports;
use crate::load::{Generator, Pool, SliceOutcome};
use crate::probe::ports;
use crate::proxy::{Envoy, Launch, Running, Spawner, StartFailure, ThreadTimes};
use crate::record::{Arm, Counters, CpuLayout, Memory, Slot};
use crate::stop::Stop;
use crate::thread;
use crate::upstream::{PortCounts, Upstreams};

/// A proxy that is not ready by then hangs.
const READY_DEADLINE: Duration = Duration::from_secs(30);
pub(super) const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Other processes may take a port between our choosing and the proxy's binding it.
const PORT_ATTEMPTS: usize = 3;

/// Starts arms in slots.
pub struct Launcher {
    spawner: Spawner,
    /// Ports each slot needs, the most that any arm needs: both slots get the same.
    listeners: usize,
    upstreams: PortCounts,
    concurrency: u32,
    connections: u32,
    cpus: CpuLayout,
    stop: Stop,
}

/// A running proxy with open connections.
pub struct SlotRun {
    pub slot: Slot,
    pub arm: Arm,
    pub pool: Pool,
    running: Running,
    endpoints: usize,
}

impl Launcher {
    pub fn new(setup: &Setup) -> Self {
        let most = |f: fn(&ArmSetup) -> usize| setup.arms.iter().map(f).max().unwrap_or(0);
        Self {
            spawner: setup.spawner.clone(),
            listeners: most(|a| a.bootstrap.needs().listeners),
            upstreams: setup
                .arms
                .iter()
                .fold(PortCounts::default(), |most, a| most.most(a.bootstrap.needs().upstreams)),
            concurrency: setup.concurrency,
            connections: setup.connections,
            cpus: setup.cpus.clone(),
            stop: setup.stop.clone(),
        }
    }

    /// Backend ports each slot needs.
    pub fn upstreams(&self) -> PortCounts {
        self.upstreams
    }

    /// Starts `setup`'s arm in `slot` with `upstreams`, and connects to it.
    pub fn start(
        &self,
        slot: Slot,
        setup: &ArmSetup,
        upstreams: &Upstreams,
        generator: &Generator,
    ) -> Result<SlotRun, LabFailure> {
        let (running, at) = self.start_proxy(slot, setup, upstreams)?;
        if self.cpus.realtime {
            // Only the workers: a proxy's main thread that spins must not lock us out.
            for id in running.worker_ids() {
                thread::realtime(id).map_err(|e| ours(format!("cannot prioritise a worker: {e}")))?;
            }
        }
        let pool = generator.connect(at, self.connections, CONNECT_DEADLINE).map_err(|e| LabFailure::Arm {
            arm: Some(setup.arm),
            message: format!("no connection to the proxy's listener: {e}"),
        })?;
        Ok(SlotRun { slot, arm: setup.arm, pool, running, endpoints: self.upstreams.total() })
    }

    fn start_proxy(
        &self,
        slot: Slot,
        setup: &ArmSetup,
        upstreams: &Upstreams,
    ) -> Result<(Running, SocketAddr), LabFailure> {
        for attempt in 1.. {
            let reserved = ports::reserve(self.listeners + 1).map_err(|e| ours(format!("no free port: {e}")))?;
            let at: Vec<SocketAddr> =
                reserved.ports().iter().map(|&port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).collect();
            let (admin, listeners) = (at[0], at[1..].to_vec());
            let load_at = listeners[setup.listener];
            // Log files of the config go into the process's own folder, which is where it runs.
            let ports = Ports { admin, listeners, upstreams: upstreams.clone(), log_dir: ".".into() };
            let config = setup.bootstrap.rehost(&ports);
            let config = config.to_string().into_bytes();
            reserved.release();
            let launch = Launch {
                binary: &setup.binary,
                config: &config,
                slot,
                concurrency: self.concurrency,
                cpus: self.cpus.clone(),
                admin,
                ready_deadline: READY_DEADLINE,
                under: None,
                stop: self.stop.clone(),
            };
            match Envoy::start(&self.spawner, &launch) {
                Ok(running) => return Ok((running, load_at)),
                Err(e) if e.is_address_in_use() && attempt < PORT_ATTEMPTS => {}
                Err(StartFailure::Stopped { by }) => {
                    return Err(LabFailure::Interrupted { by: by.to_owned(), partial: None });
                }
                Err(e @ (StartFailure::NotStarted(_) | StartFailure::NotPinned(_))) => return Err(ours(e.to_string())),
                Err(e) => return Err(LabFailure::Arm { arm: Some(setup.arm), message: e.to_string() }),
            }
        }
        Err(ours("no free port".to_owned()))
    }
}

impl SlotRun {
    /// Which of the backend's listeners are this slot's.
    pub fn backend_listeners(&self) -> Range<usize> {
        let first = self.slot.index() * self.endpoints;
        first..first + self.endpoints
    }

    pub fn startup(&self) -> Duration {
        self.running.startup()
    }

    pub fn threads(&mut self) -> Result<ThreadTimes, LabFailure> {
        self.running.threads().map_err(|e| self.unreadable("its threads", &e))
    }

    pub fn memory(&self) -> Result<Memory, LabFailure> {
        self.running.memory().map_err(|e| self.unreadable("its memory", &e))
    }

    pub fn counters(&self) -> Result<Counters, LabFailure> {
        self.running.counters().map_err(|e| self.unreadable("its counters", &e))
    }

    pub fn check_alive(&mut self) -> Result<(), LabFailure> {
        self.running.alive().map_err(|died| self.failed(died.to_string()))
    }

    /// The failure of an arm that answers nothing, or not everything, as expected: nothing can be measured on it.
    pub fn unfit(&self, outcome: &SliceOutcome) -> LabFailure {
        let kinds: Vec<String> = outcome.errors.iter().map(|(kind, n)| format!("{kind} ({n})")).collect();
        let what = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
        match outcome.completed {
            0 => self.failed(format!("no request was answered as expected; instead: {what}")),
            1 => self.failed(format!("only 1 request was answered as expected; others: {what}")),
            few => self.failed(format!("only {few} requests were answered as expected; others: {what}")),
        }
    }

    /// Ends the proxy; the connections are left for the generator to close.
    pub fn stop(self) -> Pool {
        self.running.stop();
        self.pool
    }

    fn unreadable(&self, what: &str, error: &std::io::Error) -> LabFailure {
        self.failed(format!("{what} cannot be read: {error}"))
    }

    fn failed(&self, message: String) -> LabFailure {
        LabFailure::Arm { arm: Some(self.arm), message }
    }
}
