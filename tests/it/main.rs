//! All integration tests, one binary: a module a subject.
#![allow(clippy::unwrap_used, reason = "a test may fail, in its builders too")]

mod report;
mod spec;
mod tidy;
