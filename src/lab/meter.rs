//! What is read at the borders of a slice: scheduler times of every thread involved, and the backend's counts.

use super::LabFailure;
use super::real::ours;
use super::slots::SlotRun;
use crate::backend::Backend;
use crate::probe::thread::SchedClock;
use crate::proxy::ThreadTimes;
use crate::record::ProxyTimes;

pub struct Meter {
    generator: SchedClock,
    backend: SchedClock,
}

/// All clocks and counts at one moment.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    generator_cpu_ns: u64,
    backend_cpu_ns: u64,
    upstream_connections: u64,
    upstream_requests: u64,
    proxy: Option<ThreadTimes>,
}

/// What passed between two readings.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    pub generator_cpu_ns: u64,
    pub backend_cpu_ns: u64,
    pub upstream_connections: u64,
    pub upstream_requests: u64,
    pub proxy: Option<ProxyTimes>,
}

impl Meter {
    pub fn new(generator_thread: i32, backend_thread: i32) -> std::io::Result<Self> {
        Ok(Self {
            generator: SchedClock::of_thread(generator_thread)?,
            backend: SchedClock::of_thread(backend_thread)?,
        })
    }

    /// Reads the proxy in `run` (none on the direct path) and our own threads.
    pub fn read(&self, run: Option<&mut SlotRun>, backend: &Backend) -> Result<Reading, LabFailure> {
        let own =
            |clock: &SchedClock| clock.read().map(|s| s.cpu_ns).map_err(|e| ours(format!("cannot read /proc: {e}")));
        let mut reading = Reading {
            generator_cpu_ns: own(&self.generator)?,
            backend_cpu_ns: own(&self.backend)?,
            ..Reading::default()
        };
        if let Some(run) = run {
            for listener in run.backend_listeners() {
                let counts = backend.counts(listener);
                reading.upstream_connections += counts.connections;
                reading.upstream_requests += counts.requests;
            }
            reading.proxy = Some(run.threads()?);
        }
        Ok(reading)
    }
}

impl Reading {
    pub fn since(&self, before: &Reading) -> Spent {
        Spent {
            generator_cpu_ns: self.generator_cpu_ns.saturating_sub(before.generator_cpu_ns),
            backend_cpu_ns: self.backend_cpu_ns.saturating_sub(before.backend_cpu_ns),
            upstream_connections: self.upstream_connections.saturating_sub(before.upstream_connections),
            upstream_requests: self.upstream_requests.saturating_sub(before.upstream_requests),
            proxy: self.proxy.as_ref().zip(before.proxy.as_ref()).map(|(now, then)| now.since(then)),
        }
    }
}
