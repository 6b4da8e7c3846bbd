//! Deterministic cost: what was counted under valgrind, per class of request.

use serde::{Deserialize, Serialize};

use super::Arm;
use crate::problem::Span;

/// The counts of one target, or why there are none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Why nothing could be counted (no valgrind, no rights), in one plain sentence, and what helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// What must be equal before counts of two runs may be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<CountingClass>,
    /// What was sent, one class after the other.
    pub classes: Vec<RequestClass>,
    /// Names of classes that did not fit into the time, said in the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    pub arms: Vec<ArmCost>,
    /// Which change accounts for which part of a difference, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub why: String,
    pub help: String,
}

/// Counts travel between machines that agree in all of this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountingClass {
    /// `x86_64`.
    pub architecture: String,
    /// The instruction-set level that valgrind presents to the proxy: `x86-64-v3`.
    pub instruction_set: String,
    /// `glibc 2.36`.
    pub libc: String,
    /// `valgrind-3.19.0`.
    pub valgrind: String,
    /// Raised whenever what we send, or how we count, changes.
    pub workload_version: u32,
}

impl CountingClass {
    /// Each part and what it is.
    pub fn parts(&self) -> [(&'static str, String); 5] {
        [
            ("architecture", self.architecture.clone()),
            ("instruction set", self.instruction_set.clone()),
            ("C library", self.libc.clone()),
            ("valgrind", self.valgrind.clone()),
            ("workload version", self.workload_version.to_string()),
        ]
    }
}

/// One kind of request whose cost is counted by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestClass {
    /// `GET /v1/orders`, `GET /v1/orders, new connection`, `POST /v1/orders 16 KiB`: unique in its target, for people.
    pub name: String,
    pub method: String,
    pub authority: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Length of the request's body.
    pub body_bytes: u64,
    /// Whether every request opens a connection of its own.
    pub new_connection: bool,
    /// The route it was derived from, for people.
    pub route: String,
}

impl RequestClass {
    /// Whether the same is sent. What the route is called is for people.
    pub fn is_same_request(&self, other: &Self) -> bool {
        Self { route: other.route.clone(), ..self.clone() } == *other
    }
}

/// One arm's counts, in the order of the classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmCost {
    pub arm: Arm,
    pub classes: Vec<ClassCost>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassCost {
    /// The repeats.
    pub windows: Vec<Window>,
    /// Live heap of the proxy gained over all windows, as its allocator counts it. `None` where it does not tell.
    pub heap_growth_bytes: Option<i64>,
    /// Live heap with some tens of idle downstream connections more than before, per connection.
    pub heap_bytes_per_connection: Option<f64>,
    /// The statuses of the answers in the windows, ascending, each with its number.
    pub statuses: Vec<(u16, u64)>,
    /// Why it has fewer windows than wanted: the arm failed, or answered nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// One stretch of requests, counted on the worker thread between two moments at which it was idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub requests: u64,
    pub instructions: u64,
    /// System calls, without readings of the clock: those are calls only under valgrind.
    pub syscalls: u64,
    pub clock_reads: u64,
}

/// Which of the changed blocks account for the difference between base and head, one class of request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blame {
    /// Index into the classes: the one with the largest difference.
    pub class: u32,
    /// Instructions per request of base and of head.
    pub base: f64,
    pub head: f64,
    /// In order of size, largest first.
    pub parts: Vec<BlamePart>,
    /// Changes that were not tried for lack of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untried: Vec<String>,
}

/// One changed block, applied to base alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlamePart {
    /// JSON pointer into head (into base, for what was removed).
    pub pointer: String,
    /// Where it stands in head's file; `None` for what was removed.
    pub span: Option<Span>,
    /// `HTTP filter envoy.filters.http.lua added`.
    pub what: String,
    /// Instructions per request it adds; `None` where base with this change alone could not be run.
    pub instructions: Option<f64>,
}
