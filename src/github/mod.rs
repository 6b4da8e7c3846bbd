//! A run on GitHub: what it is about, and what its runner is told. Nothing here decides.

pub mod commands;
mod context;

pub use context::{Context, Event, FileCommands, is_runner, refuse_privileged};
