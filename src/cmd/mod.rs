//! One file a subcommand: arguments, calls, exit code.

pub mod rehost;
