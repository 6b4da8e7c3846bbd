//! `sidegate compare`: a record in, the verdict out. No proxy is started.

use std::path::PathBuf;

use crate::cmd::output::{self, Format};
use crate::exit::Failure;
use crate::files;
use crate::judge;

/// Analyses a record again: the same record always gives the identical verdict.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// `record.json` of a gate run.
    record: PathBuf,
    /// Where to write `verdict.json` and `report.md`; nothing is written without it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let record = files::read_record(&args.record)?;
    let verdict = judge::judge(&record);
    if let Some(dir) = &args.out {
        files::Out::open(dir)?.write_verdict(&record, &verdict)?;
    }
    output::print(&record, &verdict, args.format);
    Ok(verdict.exit_code)
}
