//! Everything measured in one run, as it is kept in `record.json`: enough to analyse it again to the same verdict.

mod baseline;
mod cost;
mod price;
mod scope;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use baseline::{Replay, StoredBaseline, StoredCounts, StoredFigure};
pub use cost::{ArmCost, Blame, BlamePart, ClassCost, Cost, CountingClass, Missing, RequestClass, Window};
pub use price::{BlockPrice, Count, Counted, Price, Prices};
pub use scope::{Scope, Unmeasured, Why};

use crate::histogram::Histogram;
use crate::policy::Policy;
use crate::problem::Span;

/// Version of the record's shape. A reader refuses other versions by name.
pub const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub schema: u32,
    /// `sidegate 0.1.0`.
    pub tool: String,
    /// RFC 3339, UTC. Acceptances are judged as of this day, so that a record keeps its verdict.
    pub started_at: String,
    pub host: Host,
    pub seed: u64,
    /// Commits, and targets that were not measured.
    #[serde(default, skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
    pub targets: Vec<TargetRecord>,
}

/// The machine, as far as results depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Host {
    pub os: String,
    pub kernel: String,
    pub architecture: String,
    pub cpu_model: String,
    /// CPUs this process may use.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// The cgroup's `cpu.max` where it limits us, as text.
    pub cpu_quota: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    pub name: String,
    /// `None`: no base (new file, not given, or it cannot load); `no_base` says why.
    pub base: Option<Source>,
    pub no_base: Option<String>,
    pub head: Source,
    pub policy: Policy,
    pub concurrency: u32,
    pub cpus: CpuLayout,
    /// The requests sent, in turn.
    pub workload: Vec<RequestLine>,
    pub scenarios: Vec<Scenario>,
    /// Numbers of blocks at which the run was allowed to stop.
    pub looks: Vec<u32>,
    /// Counts under valgrind; `None` where they were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The stored baseline that was given or found, and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<StoredBaseline>,
    pub blocks: Vec<Block>,
    pub end: End,
}

impl TargetRecord {
    /// Whether there is something to hold head against on this arm.
    pub fn has(&self, arm: Arm) -> bool {
        self.arms().contains(&arm)
    }

    /// Who is measured: the first two in every round, a third in every third. The stored baseline takes base's part
    /// where there is none.
    pub fn arms(&self) -> Vec<Arm> {
        let base = self.base.is_some().then_some(Arm::Base);
        let baseline = self.baseline.as_ref().is_some_and(StoredBaseline::is_live).then_some(Arm::Baseline);
        base.into_iter().chain([Arm::Head]).chain(baseline).collect()
    }
}

/// One config as it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// File as the user named it.
    pub file: String,
    pub sha256: String,
    pub proxy: ProxyId,
    /// What re-hosting changed.
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyId {
    /// `envoy`.
    pub kind: String,
    pub version: String,
    /// SHA-256 of the binary.
    pub sha256: String,
}

/// One thing re-hosting changed: where, from what, to what, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// JSON pointer into the source document.
    pub pointer: String,
    pub span: Option<Span>,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLine {
    pub method: String,
    pub authority: String,
    pub path: String,
    /// The route it was derived from, for people.
    pub route: String,
}

/// CPUs by use. Worker threads of the proxies alone on `workers`; everything else on `rest`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CpuLayout {
    pub workers: Vec<u32>,
    pub rest: Vec<u32>,
    /// Whether workers, generator and backend ran before all ordinary threads of the machine.
    pub realtime: bool,
}

/// What is run, as far as two results may be compared: its identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// `open` or `closed` for the built-in ones.
    pub name: String,
    /// `one`: through one sidecar.
    pub path: String,
    /// `http1`.
    pub protocol: String,
    pub connections: u32,
    pub load: Load,
    pub response_bytes: u64,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Rounds of a block.
    pub rounds: u32,
    /// Median over slices of the slower slot's closed-loop throughput, found once before the first block.
    pub capacity_rps: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "snake_case")]
pub enum Load {
    /// Each connection sends its next request when the last is answered.
    Closed,
    /// Requests are due at fixed times, evenly spread, de-phased over connections.
    Open { rate_rps: f64 },
}

/// Slots are what the harness knows; which arm sits in which is drawn per block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    A,
    B,
    /// Used where a stored baseline is replayed beside base and head.
    C,
}

impl Slot {
    pub const BOTH: [Slot; 2] = [Slot::A, Slot::B];
    pub const ALL: [Slot; 3] = [Slot::A, Slot::B, Slot::C];

    pub fn index(self) -> usize {
        match self {
            Slot::A => 0,
            Slot::B => 1,
            Slot::C => 2,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    Direct,
    Base,
    Head,
    /// A stored baseline's config, replayed.
    Baseline,
}

impl Arm {
    pub fn name(self) -> &'static str {
        match self {
            Arm::Direct => "direct",
            Arm::Base => "base",
            Arm::Head => "head",
            Arm::Baseline => "baseline",
        }
    }
}

/// Fresh proxy processes, warm-up, rounds: the unit of analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    pub index: u32,
    /// The coin: where base sat. Head sat in the other slot (in this one, if there is no base).
    pub base_slot: Slot,
    /// Where the stored baseline sat, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_slot: Option<Slot>,
    /// Why this block does not count; decided without looking at labels.
    pub void: Option<String>,
    /// One entry for base (if any), one for head, and one for the stored baseline (if it ran).
    pub arms: Vec<ArmBlock>,
    /// In the order in which they ran.
    pub slices: Vec<Slice>,
}

/// What is known of one arm's proxy process once a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmBlock {
    pub arm: Arm,
    pub slot: Slot,
    /// From `exec` until the proxy says it is ready.
    pub startup_ns: u64,
    /// After warm-up, before the first slice.
    pub idle: Memory,
    /// After the last slice.
    pub loaded: Memory,
    /// Deltas over the slices of each scenario, in the order of `scenarios`.
    pub counters: Vec<Counters>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Live heap as the proxy's allocator counts it; `None` where the proxy does not tell.
    pub allocated_bytes: Option<u64>,
    pub rss_anon_bytes: u64,
    /// `VmRSS`.
    pub rss_bytes: u64,
    /// `VmHWM`.
    pub rss_peak_bytes: u64,
}

/// The proxy's own counters; `None` where it does not keep one (a config can switch statistics off).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    pub retries: Option<u64>,
    pub timeouts: Option<u64>,
    pub overflow: Option<u64>,
}

impl Counters {
    /// What was counted since `before`. A counter that appeared meanwhile began at 0.
    pub fn since(&self, before: &Counters) -> Counters {
        let grown = |now: Option<u64>, then: Option<u64>| now.map(|n| n.saturating_sub(then.unwrap_or(0)));
        Counters {
            retries: grown(self.retries, before.retries),
            timeouts: grown(self.timeouts, before.timeouts),
            overflow: grown(self.overflow, before.overflow),
        }
    }
}

/// 50-100 ms of load on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Index into `scenarios`.
    pub scenario: u32,
    pub round: u32,
    pub arm: Arm,
    /// From the first intended send to the last answer.
    pub elapsed_ns: u64,
    /// Requests answered as expected, the unrecorded first tenth included.
    pub completed: u64,
    /// Everything else, by kind: `status 503`, `reset`, `refused`, `timeout`, `short body`, `protocol`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Intended send to last byte, of expected answers after the first tenth of the slice.
    pub latency: Histogram,
    /// The same from the actual send: what a generator that forgets its own lateness would have said.
    pub uncorrected_p50_ns: u64,
    pub uncorrected_p99_ns: u64,
    /// Actual send minus intended send.
    pub lateness_p99_ns: u64,
    /// CPU time of the generator's and the backend's thread over the slice.
    pub generator_cpu_ns: u64,
    pub backend_cpu_ns: u64,
    /// Connections accepted and requests answered by the backend for this slot.
    pub upstream_connections: u64,
    pub upstream_requests: u64,
    /// `None` on the direct arm.
    pub proxy: Option<ProxyTimes>,
}

/// Scheduler times of a proxy over one slice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProxyTimes {
    /// All threads.
    pub cpu_ns: u64,
    /// Worker threads, one entry each.
    pub worker_cpu_ns: Vec<u64>,
    /// Time the worker threads were runnable but not running.
    pub worker_wait_ns: u64,
    /// Times a thread of the proxy was switched in.
    pub context_switches: u64,
}

/// How the run of a target ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    /// All blocks ran.
    Complete,
    /// Every gated metric had surely passed at a look.
    Early,
    /// A signal, or the budget, ended it: the record is partial.
    Interrupted { by: String },
    /// An arm failed so that nothing more could be measured.
    Failed { arm: Option<Arm>, message: String },
}
