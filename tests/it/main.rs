//! All integration tests, one binary: a module a subject.

mod child;
mod common;
mod failing;
mod gate;
mod install;
mod load;
mod proxy;
mod rehost;
mod rehost_refusals;
mod report;
mod spec;
mod tidy;
