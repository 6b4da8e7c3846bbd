//! Exit codes: the contract with scripts and CI.

/// Passed, improved, skipped, or inconclusive where that is tolerated.
pub const PASS: u8 = 0;
/// A regression was found.
pub const REGRESSION: u8 = 1;
/// Wrong usage or configuration: the user's input must change.
pub const USAGE: u8 = 2;
/// Inconclusive, and the caller asked not to tolerate that.
pub const INCONCLUSIVE: u8 = 3;
/// The measurement is invalid or the environment cannot carry it.
pub const INVALID: u8 = 4;
/// A bug in sidegate.
pub const BUG: u8 = 70;

use crate::problem::Problem;

/// A run that ended without a verdict: the code to exit with and everything the user should read.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub problems: Vec<Problem>,
}

impl Failure {
    /// The user's input is wrong.
    pub fn usage(problems: Vec<Problem>) -> Self {
        Self { code: USAGE, problems }
    }

    /// The machine, the network or a child process failed.
    pub fn environment(problem: Problem) -> Self {
        Self { code: INVALID, problems: vec![problem] }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::usage(vec![problem])
    }
}
