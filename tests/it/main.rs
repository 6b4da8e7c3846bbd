//! All integration tests, one binary: a module a subject.

mod child;
mod failing;
mod install;
mod proxy;
