//! A v3 static bootstrap that can be re-hosted, or every reason why it cannot.

use std::collections::HashSet;

use serde_json::Value;

use super::node::Node;
use super::rehost::{ADMIN_OUTPUTS, Apply, Edit};
use super::{cluster, kind, listener, outside};
use crate::problem::Problem;
use crate::upstream::Names;
use crate::yaml::Document;

/// Problems listed one by one; the rest is counted.
const PROBLEM_LIMIT: usize = 60;

/// A bootstrap whose every address is known, and what is to be changed in it.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    pub(super) document: Document,
    pub(super) edits: Vec<Edit>,
    /// Listener addresses, all listeners together.
    pub(super) addresses: usize,
    pub(super) listeners: Vec<Listener>,
    /// In the certificates of the upstreams.
    pub(super) names: Names,
}

/// What deriving requests needs to know of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listener {
    /// Index of its first address among all addresses.
    pub address: usize,
    /// `bind_to_port` is not false.
    pub bound: bool,
    /// Pointers to the connection managers of its filter chains.
    pub managers: Vec<String>,
}

/// What the readers of the parts find.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub edits: Vec<Edit>,
    pub problems: Vec<Problem>,
    /// Nodes dealt with, accepted or refused: the walk for whatever else reaches outside skips them.
    pub handled: HashSet<*const Value>,
    pub addresses: usize,
    pub listeners: Vec<Listener>,
    pub names: Names,
}

impl Findings {
    pub fn edit(&mut self, node: &Node, what: impl Into<String>, apply: Apply) {
        self.handled.insert(node.id());
        self.edits.push(Edit { pointer: node.pointer(), what: what.into(), apply });
    }

    pub fn refuse(&mut self, node: &Node, message: impl Into<String>, help: impl Into<String>) {
        self.handled.insert(node.id());
        self.problems.push(node.problem(message).help(help));
    }
}

/// Top-level parts that need something outside the file, with the reason they are refused.
const REFUSED: [(&str, &str, &str); 7] = [
    ("dynamic_resources", "listeners or clusters come from a discovery service", FLATTEN),
    ("hds_config", "health is reported to a discovery service", "remove `hds_config` from a copy for the gate"),
    ("stats_sinks", "statistics are sent to a collector", "remove `stats_sinks` from a copy for the gate"),
    ("config_sources", "configuration comes from a discovery service", FLATTEN),
    ("default_config_source", "configuration comes from a discovery service", FLATTEN),
    ("flags_path", "feature flags are read from files on the host", "remove `flags_path` from a copy for the gate"),
    ("tracing", "traces are sent to a collector", "move it to the connection manager, with an HTTP collector"),
];
const FLATTEN: &str = "give a static bootstrap: the same listeners and clusters under `static_resources`";

impl Bootstrap {
    /// What it was read from.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Reads a document, or says everything that stands in the way of re-hosting it.
    pub fn read(document: &Document) -> Result<Self, Vec<Problem>> {
        if let Some(problem) = kind::refuse(document) {
            return Err(vec![problem]);
        }
        let root = Node::root(document);
        let mut findings = Findings::default();
        for note in document.notes() {
            let (pointer, what) = (note.pointer.clone(), note.what.clone());
            findings.edits.push(Edit { pointer, what, apply: Apply::Note });
        }
        top(&root, &mut findings);
        let resources = root.get("static_resources");
        let (listeners, clusters) = match &resources {
            Some(resources) => (resources.list("listeners"), resources.list("clusters")),
            None => (Vec::new(), Vec::new()),
        };
        listeners.iter().for_each(|node| listener::read(node, &mut findings));
        clusters.iter().for_each(|node| cluster::read(node, &mut findings));
        outside::read(&root, &mut findings);
        if findings.problems.is_empty() && listeners.is_empty() {
            let at = resources.unwrap_or_else(|| root.clone());
            findings.refuse(&at, "the bootstrap has no static listener to send requests to", FLATTEN);
        }
        if findings.problems.is_empty() && findings.listeners.iter().all(|listener| !listener.bound) {
            let help = "let at least one listener bind its port";
            findings.refuse(&listeners[0], "no listener is bound to a port (`bind_to_port: false`)", help);
        }
        finish(document, findings)
    }
}

fn top(root: &Node, findings: &mut Findings) {
    for (field, why, help) in REFUSED {
        if let Some(node) = root.get(field).filter(|node| !is_empty(node)) {
            findings.refuse(&node, format!("`{field}` cannot be re-hosted yet: {}", outside::origin(&node, why)), help);
        }
    }
    let outputs: Vec<&str> = match root.get("admin") {
        Some(admin) => {
            for field in ["address"].iter().chain(&ADMIN_OUTPUTS) {
                findings.handled.extend(admin.get(field).map(|node| node.id()));
            }
            ADMIN_OUTPUTS.iter().copied().filter(|field| admin.get(field).is_some()).collect()
        }
        None => Vec::new(),
    };
    let mut what = match root.get("admin") {
        Some(_) => "admin moved to a loopback port of ours, where counters are read".to_owned(),
        None => "admin added on a loopback port of ours, where counters are read".to_owned(),
    };
    if !outputs.is_empty() {
        what.push_str(&format!("; its {} removed: the gate's own reading is not to be logged", outputs.join(", ")));
    }
    let pointer = root.get("admin").map(|admin| admin.pointer()).unwrap_or_default();
    findings.edits.push(Edit { pointer, what, apply: Apply::Admin });
}

fn is_empty(node: &Node) -> bool {
    node.value.as_object().is_some_and(serde_json::Map::is_empty) || node.value.as_array().is_some_and(Vec::is_empty)
}

fn finish(document: &Document, mut findings: Findings) -> Result<Bootstrap, Vec<Problem>> {
    findings.problems.sort_by_key(|problem| problem.span);
    findings.problems.dedup();
    let count = findings.problems.len();
    if count == 0 {
        let Findings { mut edits, addresses, listeners, names, .. } = findings;
        edits.sort_by_cached_key(|edit| {
            let (file, _, span) = document.position(&edit.pointer);
            (!edit.pointer.is_empty(), file, span)
        });
        return Ok(Bootstrap { document: document.clone(), edits, addresses, listeners, names });
    }
    if count > PROBLEM_LIMIT {
        findings.problems.truncate(PROBLEM_LIMIT);
        let rest = format!("{} more places cannot be re-hosted", count - PROBLEM_LIMIT);
        findings.problems.push(Problem::new(&document.file, rest).help("correct the ones listed first"));
    }
    Err(findings.problems)
}
