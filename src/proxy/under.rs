//! A program that executes the proxy in its own hands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program in another's hands: `valgrind ARGUMENTS PROGRAM ITS-ARGUMENTS`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Under {
    /// Executed where it is installed, since it finds its parts from there: everybody must be able to.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(&'static str, String)>,
    /// Asks the kernel for the same addresses in every process. Where it refuses, nothing is said.
    pub fixed_addresses: bool,
}

/// The command that executes `program`, without its arguments.
pub(super) fn command(under: Option<&Under>, program: &Path) -> Command {
    let Some(under) = under else { return Command::new(program) };
    let mut command = Command::new(&under.program);
    command.args(&under.args).arg(program);
    command
}

pub(super) fn set_environment(under: Option<&Under>, command: &mut Command) {
    if let Some(under) = under {
        command.envs(under.environment.iter().map(|(name, value)| (name, value)));
    }
}
