//! All integration tests, one binary: a module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so and stop; some print what they counted"
)]

mod baseline;
mod child;
mod common;
mod cost;
mod count_judgement;
mod creep;
mod failing;
mod gate;
mod hostile;
mod install;
mod judgement;
mod load;
mod proxy;
mod redaction;
mod rehost;
mod rehost_refusals;
mod report;
mod spec;
mod statistics;
mod tidy;
