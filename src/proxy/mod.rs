//! Proxies: their binaries, their processes, and how those are contained.

mod admin;
pub mod binary;
pub mod child;
mod contain;
pub mod envoy;
mod fetch;
pub mod install;
mod lock;
pub mod orphans;
mod pip;
mod reach;
pub mod running;
pub mod spec;
pub mod store;
pub mod threads;
pub mod under;
pub mod wheels;

pub use binary::ProxyBinary;
pub use child::{Child, Spawner};
pub use envoy::{Cause, Envoy, Launch, StartFailure, ValidateError};
pub use running::{Died, Running};
pub use spec::ProxySpec;
pub use store::Store;
pub use threads::ThreadTimes;
pub use under::Under;
