//! One file a subcommand: arguments, calls, exit code.

pub mod baseline;
mod baseline_text;
pub mod blame;
pub mod compare;
pub mod count;
pub mod counting_bench;
pub mod explain;
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
pub mod replay;
pub mod serve;
