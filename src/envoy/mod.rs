//! Envoy's bootstrap: read with lines, re-hosted on loopback, requests derived from its routes, rejections located.

pub mod ablate;
mod align;
pub mod block;
pub mod bootstrap;
pub mod classes;
mod cluster;
pub mod difference;
mod grpc;
pub mod input;
mod kind;
mod listener;
mod node;
mod outside;
pub mod quiet;
pub mod rehost;
pub mod rejection;
mod route;
mod secret;
mod socket;
mod tls;
mod transport;
pub mod workload;

pub use bootstrap::Bootstrap;
pub use rehost::Ports;
