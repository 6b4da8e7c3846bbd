//! The synthetic upstream: an HTTP/1.1 server on loopback with one fixed answer, on one thread.

mod server;
mod text;

pub use server::{Backend, BackendCounts, BackendSpec, ListenerSpec};
