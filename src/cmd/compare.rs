//! `sidegate compare`: one record in, its verdict out; or two, and what can be said across runs. No proxy is started.

use std::path::PathBuf;

use crate::cmd::output::{self, Format};
use crate::exit::Failure;
use crate::files;
use crate::judge;
use crate::problem::Problem;

/// Analyses a record again: the same record always gives the identical verdict.
///
/// With a second record, head of the first run is compared with head of the second: instructions and system calls per
/// request, if machine class and proxy binary are the same, and the proxy's counters. Times of different runs are shown
/// and not compared.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// `record.json` of a gate run.
    record: PathBuf,
    /// `record.json` of a later run.
    second: Option<PathBuf>,
    /// Where to write `verdict.json` and `report.md`; nothing is written without it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let first = files::read_record(&args.record)?;
    let (record, verdict) = match &args.second {
        None => {
            let verdict = judge::judge(&first);
            (first, verdict)
        }
        Some(second) => {
            let later = files::read_record(second)?;
            judge::judge_apart(&first, &later).map_err(|why| {
                Problem::new(second.display().to_string(), why).help("give two runs of the same target")
            })?
        }
    };
    if let Some(dir) = &args.out {
        files::Out::open(dir)?.write_verdict(&record, &verdict)?;
    }
    output::print(&record, &verdict, args.format);
    Ok(verdict.exit_code)
}
