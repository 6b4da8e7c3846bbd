//! Other kinds of input than a static bootstrap, read into one: dumps, fragments, discovery by files, and configs that
//! stand in other documents. What is done to them is noted in the document that comes out.

mod absent;
mod config_dump;
mod embedded;
mod fields;
mod filesystem;
mod fragment;
mod gather;
mod join;
mod resources;

use gather::Gathered;

use super::kind;
use super::node::Node;
use crate::problem::Problem;
use crate::yaml::Document;

/// A file beside the config, by the path under which the config names it: what messages call it, and its text. Errors
/// say why it is not read, a lower-case fragment.
pub type Beside<'a> = &'a dyn Fn(&str) -> Result<(String, String), String>;

/// No files are beside the config.
pub fn alone(_: &str) -> Result<(String, String), String> {
    Err("files beside the config are not read here".to_owned())
}

/// Reads a text of any known kind into a static bootstrap. What is of no known kind comes out as it is, for
/// `Bootstrap::read` to refuse.
pub fn read(file: &str, text: &str, beside: Beside) -> Result<Document, Vec<Problem>> {
    let mut documents = Document::parse_all(file, text)?;
    if documents.len() == 1
        && let Some(document) = documents.pop()
    {
        return match Kind::of(&Node::root(&document)) {
            Kind::Other => match embedded::find(std::slice::from_ref(&document), text)? {
                Some(found) => convert(found.document, found.files, found.notes, beside),
                None => Ok(document),
            },
            _ => convert(document, Vec::new(), Vec::new(), beside),
        };
    }
    match embedded::find(&documents, text)? {
        Some(found) => convert(found.document, found.files, found.notes, beside),
        None => Err(none_of(&documents)),
    }
}

/// Why no document of a file of several is a config.
fn none_of(documents: &[Document]) -> Vec<Problem> {
    let objects = || documents.iter().filter(|document| Node::root(document).get("apiVersion").is_some());
    let patch = objects().find(|document| embedded::is_patch(&Node::root(document)));
    let known = patch.or_else(|| objects().next()).and_then(kind::refuse);
    let Some(second) = documents.get(1) else { return Vec::new() };
    let several = || {
        let message = "the file holds several YAML documents, and none is an Envoy config".to_owned();
        second.problem("", message).help("keep one config per file")
    };
    vec![known.unwrap_or_else(several)]
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bootstrap,
    ConfigDump,
    Fragment,
    Other,
}

impl Kind {
    fn of(root: &Node) -> Self {
        let has = |field: &str| root.get(field).is_some();
        // Not `node` or `admin`, which may be anything.
        let resources = ["static_resources", "dynamic_resources"].iter().any(|field| has(field));
        match () {
            () if has("apiVersion") && has("kind") => Self::Other,
            () if resources => Self::Bootstrap,
            () if config_dump::is(root) => Self::ConfigDump,
            () if has("cluster_manager") => Self::Other,
            () if fragment::is(root) => Self::Fragment,
            () => Self::Other,
        }
    }
}

fn convert(
    document: Document,
    files: Vec<(String, Document)>,
    notes: Vec<String>,
    beside: Beside,
) -> Result<Document, Vec<Problem>> {
    // An old config is told as such, not by what its parts lack.
    if let Some(problem) = kind::v2(&Node::root(&document)) {
        return Err(vec![problem]);
    }
    let kind = Kind::of(&Node::root(&document));
    let mut gathered = Gathered::new(&document.file, files, beside);
    notes.into_iter().for_each(|what| gathered.note("", what));
    let bootstrap = match kind {
        Kind::Bootstrap if !filesystem::is(&document) && gathered.notes.is_empty() => return Ok(document),
        Kind::Bootstrap => filesystem::read(document, &mut gathered),
        Kind::ConfigDump => config_dump::read(document, &mut gathered),
        Kind::Fragment => fragment::read(document, &mut gathered),
        Kind::Other => return Ok(document),
    };
    gathered.finish(bootstrap)
}
