//! The services a proxy asks beside its upstreams, over gRPC: they allow, accept and change nothing. Which one is asked
//! stands in the path of a call.

mod call;
mod frame;
mod processor;
mod service;

pub use call::Call;
pub use service::Calls;
