//! One file a subcommand: arguments, calls, exit code.

pub mod compare;
pub mod gate;
pub mod load;
mod load_report;
pub mod measure;
pub mod order;
mod output;
pub mod prepare;
pub mod progress;
pub mod proxy;
pub mod rehost;
pub mod report;
pub mod serve;
