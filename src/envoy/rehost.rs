//! A bootstrap moved to loopback: which places change, to what, and why. Nothing else is touched.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::bootstrap::Bootstrap;
use super::node::is_named;
use super::secret::Secret;
use crate::record::Change;
use crate::upstream::{Names, PortCounts, Speaks, Upstreams};

/// Where the re-hosted proxy listens and what it talks to. Both lists need at least as many entries as
/// `Bootstrap::needs` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    pub admin: SocketAddr,
    /// One per listener address, in the order of the config.
    pub listeners: Vec<SocketAddr>,
    /// Endpoint `k` of every cluster goes to the `k`th port of those that speak what the cluster speaks.
    pub upstreams: Upstreams,
    /// Private folder for the log files of the config.
    pub log_dir: PathBuf,
}

/// How many ports a bootstrap takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    pub listeners: usize,
    /// Of each kind, the largest number of endpoints in one cluster.
    pub upstreams: PortCounts,
    /// All kinds together.
    pub endpoints: usize,
}

/// One place that re-hosting changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    pub pointer: String,
    pub what: String,
    pub apply: Apply,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Apply {
    /// Nothing is changed: the reader should only know.
    Note,
    /// A `socket_address` becomes the nth listener port.
    Listener(usize),
    /// A `socket_address` becomes the nth endpoint port of its kind.
    Endpoint(Speaks, usize),
    /// A port number alone becomes that of the nth endpoint.
    EndpointPort(Speaks, usize),
    /// The target of a gRPC client becomes the first port that speaks HTTP/2.
    GrpcTarget,
    /// A file path becomes the nth file of the log folder.
    Log(usize),
    Set(Value),
    /// A field is added to the message at the pointer.
    Insert(&'static str, Value),
    /// Certificates of the run in place of what the config names.
    Secret(Secret),
    /// The root gets our admin address; the pointer is that of `admin` where there is one.
    Admin,
}

impl Bootstrap {
    /// The config as it runs on loopback. Where `ports` is too short, addresses stay as they are.
    pub fn rehost(&self, ports: &Ports) -> Value {
        let mut root = self.document.value.clone();
        for edit in &self.edits {
            apply(&mut root, edit, ports);
        }
        root
    }

    /// What `rehost` changes, in the order of the config.
    pub fn changes(&self) -> Vec<Change> {
        let change = |edit: &Edit| Change {
            pointer: edit.pointer.clone(),
            span: self.document.key_span(&edit.pointer),
            what: match self.document.position(&edit.pointer) {
                (0, ..) => edit.what.clone(),
                (_, file, span) => format!("{file}:{}:{}: {}", span.line, span.column, edit.what),
            },
        };
        self.edits.iter().map(change).collect()
    }

    pub fn needs(&self) -> Needs {
        let mut upstreams = PortCounts::default();
        for edit in &self.edits {
            match edit.apply {
                Apply::Endpoint(speaks, at) => upstreams.raise(speaks, at + 1),
                Apply::GrpcTarget => upstreams.raise(Speaks::Http2, 1),
                _ => {}
            }
        }
        Needs { listeners: self.addresses, upstreams, endpoints: upstreams.total() }
    }

    /// What the certificates of the upstreams must carry beside the host that is asked for.
    pub fn names(&self) -> &Names {
        &self.names
    }
}

fn apply(root: &mut Value, edit: &Edit, ports: &Ports) {
    match &edit.apply {
        Apply::Admin => return set_admin(root, ports.admin),
        Apply::Secret(secret) => {
            if let Some(trust) = ports.upstreams.trust() {
                secret.put(root, &edit.pointer, trust);
            }
            return;
        }
        _ => {}
    }
    let Some(target) = root.pointer_mut(&edit.pointer) else { return };
    match &edit.apply {
        Apply::Note | Apply::Admin | Apply::Secret(_) => {}
        Apply::Listener(at) => set_address(target, ports.listeners.get(*at).copied()),
        Apply::Endpoint(speaks, at) => set_address(target, ports.upstreams.get(*speaks, *at)),
        Apply::EndpointPort(speaks, at) => {
            if let Some(address) = ports.upstreams.get(*speaks, *at) {
                *target = json!(address.port());
            }
        }
        Apply::GrpcTarget => {
            if let Some(address) = ports.upstreams.get(Speaks::Http2, 0) {
                *target = json!(address.to_string());
            }
        }
        Apply::Log(at) => *target = json!(ports.log_dir.join(format!("{at}.log"))),
        Apply::Set(value) => *target = value.clone(),
        Apply::Insert(field, value) => {
            if let Some(entries) = target.as_object_mut() {
                entries.insert((*field).to_owned(), value.clone());
            }
        }
    }
}

fn set_address(target: &mut Value, address: Option<SocketAddr>) {
    if let Some(address) = address {
        *target = socket_address(address);
    }
}

fn socket_address(address: SocketAddr) -> Value {
    json!({"address": address.ip().to_string(), "port_value": address.port()})
}

/// Fields of `admin` that name files or an address.
pub(super) const ADMIN_OUTPUTS: [&str; 3] = ["access_log", "access_log_path", "profile_path"];

fn set_admin(root: &mut Value, address: SocketAddr) {
    let Some(entries) = root.as_object_mut() else { return };
    let admin = entries.entry("admin").or_insert(Value::Null);
    if !admin.is_object() {
        *admin = Value::Object(Map::new());
    }
    if let Some(admin) = admin.as_object_mut() {
        admin.retain(|key, _| !ADMIN_OUTPUTS.iter().any(|field| is_named(key, field)));
        admin.insert("address".to_owned(), json!({"socket_address": socket_address(address)}));
    }
}
