//! All integration tests, one binary: a module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so and stop; some print what they counted"
)]

mod ablate;
mod action;
mod baseline;
mod child;
mod common;
mod cost;
mod count_judgement;
mod creep;
mod explain;
mod failing;
mod gate;
mod git;
mod github;
mod hostile;
mod inputs;
mod install;
mod judgement;
mod load;
mod packaging;
mod proxy;
mod redaction;
mod rehost;
mod rehost_refusals;
mod report;
mod spec;
mod statistics;
mod stubs;
mod tidy;
mod upstream;
