//! One file a subcommand: arguments, calls, exit code.

pub mod compare;
pub mod gate;
pub mod load;
pub mod order;
pub mod prepare;
pub mod progress;
pub mod proxy;
pub mod rehost;
pub mod serve;
