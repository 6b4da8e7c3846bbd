//! What a slice of load is asked to do, and what came of it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::histogram::Histogram;
use crate::load::Request;
use crate::record::Load;
use crate::stop::Stop;

/// One slice of load over the connections of a pool.
#[derive(Debug, Clone)]
pub struct SliceLoad {
    /// Taken in turn: request number i of the slice is `requests[i % requests.len()]`.
    pub requests: Arc<[Request]>,
    pub load: Load,
    /// Requests are due (open loop) or sent (closed loop) for this long; then what is outstanding is drained.
    pub length: Duration,
    /// Requests due in this first part are left out of the histograms.
    pub unrecorded: Duration,
    /// Counted from when a request was due; a connection whose request timed out is closed.
    pub request_timeout: Duration,
    /// Ends the slice after this many requests, should `length` not be over before.
    pub limit: Option<u64>,
    /// Looked at every few milliseconds; when set, outstanding requests are dropped and not counted.
    pub stop: Stop,
}

impl SliceLoad {
    /// A slice whose first tenth is not recorded, with a timeout of 2 s.
    pub fn new(requests: Arc<[Request]>, load: Load, length: Duration) -> Self {
        let (unrecorded, request_timeout) = (length / 10, Duration::from_secs(2));
        Self { requests, load, length, unrecorded, request_timeout, limit: None, stop: Stop::default() }
    }
}

/// What happened in one slice. Histograms hold answers as expected, due after the unrecorded part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SliceOutcome {
    /// From when the request was due (closed loop: sent) to the last byte of its answer, in ns. Waiting for a busy
    /// connection is part of it.
    pub latency: Histogram,
    /// From the actual send to the last byte: what a generator that forgets its own lateness would have said.
    pub uncorrected: Histogram,
    /// Open loop: actual send minus due, of requests whose connection was free when they were due. This is the
    /// generator's own fault; waiting behind an unanswered request is not.
    pub lateness: Histogram,
    /// Answers as expected, the unrecorded part included.
    pub completed: u64,
    /// Everything else, by kind: `status 503`, `reset`, `refused`, `connect`, `timeout`, `short body`, `long body`,
    /// `protocol`.
    pub errors: BTreeMap<String, u64>,
    /// Open loop: requests that fell due while their connection was still busy.
    pub queued: u64,
    /// From the first intended send to the last answer or failure.
    pub elapsed: Duration,
    /// Body bytes of all answers.
    pub bytes: u64,
    /// Connections opened anew during the slice.
    pub connects: u64,
    /// CPU time of the generator's thread over the slice, in ns.
    pub cpu_ns: u64,
    /// `stop` ended the slice: requests due later were not sent, those outstanding were dropped uncounted.
    pub interrupted: bool,
}

impl SliceOutcome {
    /// All errors together.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Answers as expected per second.
    pub fn rate_rps(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.completed as f64 / seconds } else { 0.0 }
    }

    /// CPU time of the generator's thread over the slice's length: 1 is a whole CPU.
    pub fn generator_share(&self) -> f64 {
        let nanos = self.elapsed.as_nanos();
        if nanos > 0 { self.cpu_ns as f64 / nanos as f64 } else { 0.0 }
    }
}

/// Why no load could be given at all. Requests that fail are counted in `SliceOutcome::errors` instead.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{to} refused the connection")]
    Refused { to: SocketAddr },
    #[error("{opened} of {wanted} connections to {to} were open when the deadline passed")]
    Deadline { to: SocketAddr, opened: u32, wanted: u32 },
    #[error("connecting to {to} failed: {error}")]
    Connect { to: SocketAddr, error: io::Error },
    #[error("stopped by a signal while connecting")]
    Stopped,
    #[error("{0}")]
    Input(&'static str),
    #[error("the generator's timer failed: {0}")]
    Timer(io::Error),
    #[error("the generator's thread has ended")]
    Gone,
}
