//! The synthetic upstream: a server on loopback with one fixed answer, on one thread. Each port speaks what the cluster
//! behind it wants: HTTP/1.1, HTTP/2, either in TLS.

mod authority;
mod either;
mod server;
mod text;
mod tls;

pub use authority::Authority;
pub use server::{Backend, BackendCounts, BackendSpec, ListenerSpec};
