//! All integration tests, one binary: a module a subject.

mod rehost;
mod rehost_refusals;
