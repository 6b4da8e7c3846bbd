//! Discovery by files: a bootstrap whose resources stand in files that it names.

use super::fields;
use super::gather::Gathered;
use crate::envoy::kind::visit;
use crate::envoy::node::{Node, is_named};
use crate::yaml::{Document, Part};

/// Fields that hold a `ConfigSource` whose file is read.
const SOURCES: [&str; 4] = ["lds_config", "cds_config", "config_source", "eds_config"];

/// Whether any part of the config comes from a file.
pub(super) fn is(document: &Document) -> bool {
    let mut found = false;
    visit(&Node::root(document), &mut |node| {
        let source = SOURCES.iter().any(|field| is_named(node.key(), field));
        found |= source && (node.text("path").is_some() || node.path(&["path_config_source", "path"]).is_some());
    });
    found
}

pub(super) fn read(document: Document, gathered: &mut Gathered) -> Part {
    let mut root = document.into_part(0);
    gathered.is_bootstrap = true;
    let mut empty = false;
    fields::edit(&mut root, "", "dynamic_resources", |dynamic, _| {
        for field in ["lds_config", "cds_config"] {
            if gathered.read_source(dynamic, field) {
                fields::take(dynamic, field);
            }
        }
        empty = dynamic.value().as_object().is_some_and(serde_json::Map::is_empty);
    });
    if empty {
        fields::take(&mut root, "dynamic_resources");
    }
    if !gathered.resources.listeners.is_empty() || !gathered.resources.clusters.is_empty() {
        let what = format!("`dynamic_resources` replaced by what its files hold: {}", gathered.resources.counted());
        gathered.note("", what);
    }
    root
}
