//! All integration tests, one binary: a module a subject.

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
