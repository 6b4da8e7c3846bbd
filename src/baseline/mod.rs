//! Stored baselines: the file, what is kept out of it, and what it is worth on this machine.

mod class;
mod file;
mod filler;
mod name;
mod redact;
mod secret;

pub use class::{differences, not_comparable};
pub use file::{Baseline, KIND, SCHEMA, StoredConfig, StoredFigures, StoredHistogram};
pub use name::{FOLDER, default_path, fit_name};
pub use redact::{Redacted, Redaction, redact};
