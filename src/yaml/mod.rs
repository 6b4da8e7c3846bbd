//! Configuration text as a JSON tree by Envoy's own scalar rules, with the line and column of every node.

mod build;
mod document;
mod json;
mod part;
mod scalar;
mod template;

pub use document::{Document, Note, moved};
pub use part::Part;
