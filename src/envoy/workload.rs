//! Requests derived from a config's routes: one plain GET per route that sends to a cluster.

use std::collections::{BTreeMap, HashSet};

use super::bootstrap::{Bootstrap, Listener};
use super::node::Node;
use super::route::{Route, authority};
use crate::problem::Problem;
use crate::record::RequestLine;

/// Most requests of a workload. More routes are represented by evenly spread ones.
const REQUEST_LIMIT: usize = 8;

/// What is sent, and to which listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Index into `Ports::listeners`.
    pub listener: usize,
    pub requests: Vec<RequestLine>,
    /// Routes of this listener that send to a cluster by a plain GET, those left out by the limit included.
    pub drivable: usize,
    /// Routes that give no request, counted by reason.
    pub skipped: BTreeMap<&'static str, usize>,
}

/// The requests for the first listener that has a route to a cluster.
pub fn derive(bootstrap: &Bootstrap) -> Result<Workload, Problem> {
    let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut listeners = bootstrap.listeners.iter().filter(|listener| listener.bound);
    while let Some(listener) = listeners.next() {
        let mut found = Found::of(bootstrap, listener);
        if found.requests.is_empty() {
            found.skipped.into_iter().for_each(|(why, count)| *reasons.entry(why).or_default() += count);
            continue;
        }
        let idle = listeners.map(|other| Found::of(bootstrap, other).requests.len()).sum();
        found.skip("belong to another listener, which gets no load", idle);
        let drivable = found.requests.len();
        let requests = spread(found.requests);
        return Ok(Workload { listener: listener.address, requests, drivable, skipped: found.skipped });
    }
    Err(nothing(bootstrap, &reasons))
}

fn nothing(bootstrap: &Bootstrap, reasons: &BTreeMap<&'static str, usize>) -> Problem {
    let pointer = bootstrap.listeners.iter().flat_map(|listener| &listener.managers).next();
    let pointer = pointer.map(|manager| format!("{manager}/route_config")).unwrap_or_default();
    let mut message = "no route can be driven by a plain GET".to_owned();
    if reasons.is_empty() {
        message.push_str(": there are no routes");
    } else {
        let list: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
        message.push_str(&format!(": of the routes, {}", list.join("; ")));
    }
    let help = "add a route that sends to a cluster by `prefix` or `path` alone to a copy for the gate";
    bootstrap.document.problem(&pointer, message).help(help)
}

/// At most `REQUEST_LIMIT` of the requests, the first and the last among them.
fn spread(requests: Vec<RequestLine>) -> Vec<RequestLine> {
    let count = requests.len();
    if count <= REQUEST_LIMIT {
        return requests;
    }
    let wanted: HashSet<usize> = (0..REQUEST_LIMIT).map(|at| at * (count - 1) / (REQUEST_LIMIT - 1)).collect();
    requests.into_iter().enumerate().filter(|(at, _)| wanted.contains(at)).map(|(_, request)| request).collect()
}

#[derive(Default)]
struct Found {
    requests: Vec<RequestLine>,
    skipped: BTreeMap<&'static str, usize>,
}

impl Found {
    /// What the first connection manager with a route to a cluster gives.
    fn of(bootstrap: &Bootstrap, listener: &Listener) -> Self {
        let mut found = Self::default();
        for manager in listener.managers.iter().filter_map(|pointer| Node::find(&bootstrap.document, pointer)) {
            found.manager(&manager);
            if !found.requests.is_empty() {
                break;
            }
        }
        found
    }

    fn skip(&mut self, why: &'static str, count: usize) {
        if count > 0 {
            *self.skipped.entry(why).or_default() += count;
        }
    }

    fn manager(&mut self, manager: &Node) {
        let hosts = manager.get("route_config").map(|config| config.list("virtual_hosts")).unwrap_or_default();
        let claimed: HashSet<String> = hosts.iter().flat_map(domains).collect();
        hosts.iter().for_each(|host| self.virtual_host(host, &claimed));
    }

    fn virtual_host(&mut self, host: &Node, claimed: &HashSet<String>) {
        let routes: Vec<Route> = host.list("routes").iter().map(Route::read).collect();
        if host.get("matcher").is_some() {
            self.skip("are chosen by a generic matcher", 1);
            return;
        }
        let tls = host.choice("require_tls", &["NONE", "EXTERNAL_ONLY", "ALL"]);
        if tls.is_some_and(|tls| tls != "NONE") {
            self.skip("belong to a virtual host that redirects to TLS", routes.len());
            return;
        }
        let Some(authority) = authority(&domains(host), claimed) else {
            self.skip("belong to a virtual host without a usable name", routes.len());
            return;
        };
        let name = host.text("name").unwrap_or("?");
        for (at, route) in routes.iter().enumerate() {
            if let Some(why) = route.unfit() {
                self.skip(why, 1);
                continue;
            }
            let earlier = routes.get(..at).unwrap_or_default();
            let free = |path: &String| sendable(path) && !earlier.iter().any(|route| route.may_catch(path));
            match route.candidates().into_iter().find(free) {
                Some(path) => self.requests.push(RequestLine {
                    method: "GET".to_owned(),
                    authority: authority.clone(),
                    path,
                    route: format!("{name}: {}", route.title),
                }),
                None => self.skip("are hidden by earlier routes", 1),
            }
        }
    }
}

fn domains(host: &Node) -> Vec<String> {
    host.list("domains").iter().filter_map(|domain| domain.value.as_str().map(str::to_owned)).collect()
}

/// Whether the text can stand in a request line as it is.
fn sendable(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'"')
}
