//! A started Envoy: is it alive, what does it use, what has it counted.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::probe::memory;
use crate::proxy::child::{Child, describe};
use crate::proxy::envoy::ADMIN_LIMIT;
use crate::proxy::threads::{ThreadTimes, Threads};
use crate::proxy::{admin, contain};
use crate::record::{Counters, CpuLayout, Memory};

/// What SIGTERM may take; an Envoy without connections needs a tenth of it.
const GRACE: Duration = Duration::from_millis(800);

/// The counters of every cluster that the gate judges, as a regular expression on their names. Text is the cheapest
/// form that all versions since 1.36 answer alike, and `type` spares the server the other kinds.
const COUNTERS: &str = "/stats?type=Counters&filter=%5Ecluster%5C..*%5C.(upstream_rq_retry%7Cupstream_rq_timeout%7C\
                        upstream_rq_per_try_timeout%7Cupstream_cx_overflow%7Cupstream_rq_pending_overflow%7C\
                        upstream_rq_retry_overflow)$";

/// A proxy in its slot. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    admin: SocketAddr,
    startup: Duration,
    cpus: CpuLayout,
    threads: Threads,
    pinned: bool,
}

/// The process has ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the proxy ended during the run ({how}){}", if .log.is_empty() { String::new() } else { format!("; its last output:\n{}", .log) })]
pub struct Died {
    /// `exit code 1`, `killed by SIGKILL`.
    pub how: String,
    pub log: String,
}

impl Running {
    pub(super) fn new(child: Child, admin: SocketAddr, startup: Duration, cpus: CpuLayout) -> io::Result<Self> {
        let threads = Threads::of(child.pid())?;
        Ok(Self { child, admin, startup, cpus, threads, pinned: false })
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The process itself: its uid, its private folder, its output.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// From the fork until it said LIVE, known to about a millisecond.
    pub fn startup(&self) -> Duration {
        self.startup
    }

    pub fn alive(&mut self) -> Result<(), Died> {
        match self.child.try_status() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Died { how: describe(status), log: self.child.log_tail(12) }),
            Err(e) => Err(Died { how: format!("its state cannot be read: {e}"), log: String::new() }),
        }
    }

    /// Resident memory from the kernel, live heap from the proxy's allocator (`None` if it does not answer).
    pub fn memory(&self) -> io::Result<Memory> {
        let resident = memory::of(self.pid())?;
        Ok(Memory {
            allocated_bytes: self.allocated(),
            rss_anon_bytes: resident.rss_anon_bytes,
            rss_bytes: resident.rss_bytes,
            rss_peak_bytes: resident.rss_peak_bytes,
        })
    }

    /// Has the main thread do something: a look at its administration interface.
    pub fn poke(&self) -> io::Result<()> {
        admin::get(self.admin, "/ready", ADMIN_LIMIT).map(drop)
    }

    /// Live heap as the proxy's allocator counts it; `None` if it does not answer.
    pub fn allocated(&self) -> Option<u64> {
        let answer = admin::get(self.admin, "/memory", ADMIN_LIMIT).ok().filter(|answer| answer.status == 200)?;
        let body: Value = serde_json::from_str(&answer.body).ok()?;
        match body.get("allocated")? {
            Value::String(text) => text.parse().ok(),
            number => number.as_u64(),
        }
    }

    /// Sums over all clusters since the start: subtract two. A sum is `None` where no cluster shows a counter of it: the
    /// config hides them (`stats_matcher`), has no cluster, or creates them on first use (deferred statistics).
    pub fn counters(&self) -> io::Result<Counters> {
        let answer = admin::get(self.admin, COUNTERS, ADMIN_LIMIT)?;
        if answer.status != 200 {
            return Err(io::Error::other(format!("/stats answers {}", answer.status)));
        }
        Ok(sums(&answer.body))
    }

    /// Scheduler times of all its threads. Threads that appeared since are found and pinned first.
    pub fn threads(&mut self) -> io::Result<ThreadTimes> {
        if self.threads.refresh()? || !self.pinned {
            self.pinned = true;
            self.pin_threads()?;
        }
        Ok(self.threads.read())
    }

    /// The kernel's ids of its worker threads.
    pub fn worker_ids(&self) -> Vec<i32> {
        self.threads.all().iter().filter(|thread| thread.worker.is_some()).map(|thread| thread.tid).collect()
    }

    /// Asks it to end, without waiting: before stopping several.
    pub fn ask_to_stop(&mut self) {
        self.child.ask_to_stop();
    }

    /// Ends it: SIGTERM, then SIGKILL. Under two seconds.
    pub fn stop(mut self) {
        self.child.stop(GRACE);
    }

    /// Workers on their CPUs, all others on the rest; how many workers there are.
    pub(super) fn pin_threads(&mut self) -> io::Result<usize> {
        self.threads.refresh()?;
        self.threads.rename();
        for thread in self.threads.all() {
            let cpus = if thread.worker.is_some() { &self.cpus.workers } else { &self.cpus.rest };
            // An empty layout leaves them where the kernel puts them.
            if cpus.is_empty() {
                continue;
            }
            match contain::pin(thread.tid, cpus, self.child.uid()) {
                // It ended since it was listed.
                Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(self.threads.workers())
    }
}

/// Lines of `cluster.NAME.COUNTER: VALUE`.
fn sums(text: &str) -> Counters {
    let mut counters = Counters::default();
    for (name, value) in text.lines().filter_map(|line| line.rsplit_once(": ")) {
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        let sum = match name.rsplit('.').next() {
            Some("upstream_rq_retry") => &mut counters.retries,
            Some("upstream_rq_timeout" | "upstream_rq_per_try_timeout") => &mut counters.timeouts,
            Some("upstream_cx_overflow" | "upstream_rq_pending_overflow" | "upstream_rq_retry_overflow") => {
                &mut counters.overflow
            }
            _ => continue,
        };
        *sum = Some(sum.unwrap_or(0).saturating_add(value));
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_over_clusters() {
        let text = "cluster.a.b.upstream_rq_retry: 3\ncluster.c.upstream_rq_retry: 4\n\
                    cluster.c.upstream_cx_overflow: 1\ncluster.c.upstream_rq_retry_overflow: 5\n\
                    cluster.c.upstream_rq_retry_success: 9\nnonsense\n";
        let expected = Counters { retries: Some(7), timeouts: None, overflow: Some(6) };
        assert_eq!(sums(text), expected);
        assert_eq!(sums(""), Counters::default());
    }
}
