//! Runs the command line, prints what went wrong, exits with the code.

use std::io::Write;
use std::process::ExitCode;

use sidegate::{cli, exit};

fn main() -> ExitCode {
    let outcome = std::panic::catch_unwind(cli::run);
    let code = match outcome {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            let mut err = anstream::stderr().lock();
            for problem in &failure.problems {
                // A closed standard error must not change the exit code.
                let _ = writeln!(err, "sidegate: {problem}");
            }
            failure.code
        }
        Err(_) => {
            let _ = writeln!(anstream::stderr(), "sidegate: this is a bug; please report it with the lines above");
            exit::BUG
        }
    };
    ExitCode::from(code)
}
