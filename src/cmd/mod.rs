//! One file a subcommand: arguments, calls, exit code.

pub mod load;
mod load_report;
mod load_target;
pub mod serve;
