//! The command line: which subcommands exist and where they live.

use clap::{Parser, Subcommand};

use crate::cmd::gate::runner;
use crate::cmd::{action, baseline, compare, explain, gate, load, proxy, rehost, report, serve};
use crate::exit::Failure;
use crate::stop::Stop;

/// Gates changes to service-mesh proxy configs by measuring them.
///
/// Runs the config before and after a change side by side on this machine, against the same synthetic backend and under
/// the same load, and says with known error rates whether requests became slower, costlier or hungrier.
///
/// Exit codes: 0 pass (also improved, skipped, and inconclusive where tolerated), 1 regression, 2 wrong usage or
/// configuration, 3 inconclusive and not tolerated, 4 invalid measurement or unfit environment, 70 a bug in sidegate.
#[derive(Debug, Parser)]
#[command(name = "sidegate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Gate(Box<gate::Args>),
    Compare(compare::Args),
    Explain(explain::Args),
    Baseline(baseline::Args),
    Report(report::Args),
    Rehost(rehost::Args),
    Load(load::Args),
    Serve(serve::Args),
    Proxy(proxy::Args),
    /// Does what the inputs of the GitHub Action say (INPUT_…).
    #[command(hide = true)]
    Action,
}

/// Parses the process's arguments and runs the subcommand. Returns the exit code; a failure carries its own.
pub fn run() -> Result<u8, Failure> {
    let cli = Cli::parse();
    let stop = Stop::on_signals()
        .map_err(|e| Failure::environment(crate::problem::Problem::new("", format!("cannot handle signals: {e}"))))?;
    // Where the kernel refuses, what a proxy detached from its group stays behind; nothing else suffers.
    let _ = crate::proxy::orphans::adopt();
    dispatch(&cli.command, &stop)
}

fn dispatch(command: &Command, stop: &Stop) -> Result<u8, Failure> {
    match command {
        Command::Gate(args) => gate::run(args, stop),
        Command::Compare(args) => compare::run(args),
        Command::Explain(args) => explain::run(args, stop),
        Command::Baseline(args) => baseline::run(args, stop),
        Command::Report(args) => report::run(args, stop),
        Command::Rehost(args) => rehost::run(args),
        Command::Load(args) => load::run(args, stop),
        Command::Serve(args) => serve::run(args, stop),
        Command::Proxy(args) => proxy::run(args, stop),
        Command::Action => match from_inputs() {
            Ok(command) => dispatch(&command, stop),
            Err(failure) => {
                runner::fail(&failure);
                Err(failure)
            }
        },
    }
}

/// The command that the action's inputs stand for.
fn from_inputs() -> Result<Command, Failure> {
    let line = action::command_line(&runner::environment())?;
    let cli = Cli::try_parse_from(line).map_err(|e| action::not_understood(&e.to_string()))?;
    Ok(cli.command)
}
