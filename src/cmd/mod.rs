//! One file a subcommand, and a folder for the gate: arguments, calls, exit code.

pub mod action;
pub mod baseline;
mod baseline_text;
pub mod compare;
pub mod explain;
pub mod gate;
mod input;
pub mod load;
mod load_report;
mod output;
pub mod progress;
pub mod proxy;
pub mod rehost;
pub mod report;
pub mod serve;
