//! All integration tests, one binary: a module a subject.

mod report;
mod spec;
mod tidy;
