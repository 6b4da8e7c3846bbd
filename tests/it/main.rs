//! All integration tests, one binary: a module a subject.
#![allow(clippy::unwrap_used, reason = "a test may fail, in its builders too")]

mod common;
mod gate;
mod child;
mod failing;
mod install;
mod proxy;
mod report;
mod spec;
mod rehost;
mod rehost_refusals;
mod load;
mod tidy;
