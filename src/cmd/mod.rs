//! One file a subcommand: arguments, calls, exit code.

pub mod action;
pub mod commits;
pub mod compare;
pub mod gate;
pub mod jobs;
pub mod load;
mod load_report;
pub mod measure;
pub mod order;
mod output;
pub mod prepare;
pub mod progress;
pub mod proxy;
pub mod publish;
pub mod rehost;
pub mod report;
pub mod revisions;
pub mod rules;
pub mod runner;
pub mod serve;
pub mod targets;
