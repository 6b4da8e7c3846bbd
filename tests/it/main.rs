//! All integration tests, one binary: a module a subject.

mod judgement;
mod statistics;
