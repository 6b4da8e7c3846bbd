//! The load generator: HTTP/1.1 over keep-alive connections, closed loop or open loop at a rate, on one thread.
//!
//! `schedule` says when each request is due (pure), `pacer` wakes the thread then, `wire` is one connection (`mute` its waker), `pool`
//! the connections that work through a slice together, `recorder` the histograms, `generator` the thread around it.

mod generator;
mod mute;
mod outcome;
mod pacer;
mod pool;
mod recorder;
mod request;
pub mod schedule;
mod url;
mod wire;

pub use generator::{Generator, Pool};
pub use outcome::{LoadError, SliceLoad, SliceOutcome};
pub use request::{Request, RequestError};
pub use url::Url;
