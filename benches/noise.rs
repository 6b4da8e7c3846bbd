//! How far two identical configs differ, by design: slices interleaved in one block against one after the other.
//!
//! `make bench-noise` prints, for each metric, the standard deviation over trials of ln(head/base) of both designs,
//! their trials taking turns in one run on one machine, and the quotient of the two. Same config, same total load.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use sidegate::analysis;
use sidegate::cmd::gate_setup;
use sidegate::histogram::Histogram;
use sidegate::lab::{Lab, LabFailure, RealLab};
use sidegate::metric::Metric;
use sidegate::plan::{self, BlockPlan, On, Step};
use sidegate::record::{Arm, Block, Slot, TargetRecord};
use sidegate::stop::Stop;

/// Noise of a block on this machine, for identical configs.
#[derive(Debug, Parser)]
struct Args {
    /// Trials of each design.
    #[arg(long, default_value_t = 16)]
    trials: u32,
    /// Config to measure against itself.
    #[arg(long, default_value = "examples/basic/envoy.yaml")]
    config: PathBuf,
    #[arg(long, default_value = "1.40.0", env = "SIDEGATE_TEST_ENVOY")]
    envoy: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Load per arm and trial of the naive design: as much as the interleaved one gives each arm in its open-loop scenario.
const NAIVE_ROUNDS: u32 = 1;

fn main() {
}
