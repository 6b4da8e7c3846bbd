//! A config that stands in another document: under a key of a ConfigMap or of Helm values, as text or as a mapping.

use super::Kind;
use crate::envoy::node::Node;
use crate::problem::{Problem, Span};
use crate::yaml::{Document, moved};

/// Words without which a text is not looked into.
const MARKS: [&str; 8] = [
    "static_resources",
    "staticResources",
    "dynamic_resources",
    "dynamicResources",
    "envoy.config.listener.v3.",
    "envoy.config.cluster.v3.",
    "envoy.config.route.v3.",
    "filter_chains",
];

/// API groups whose objects hold patches of configs, not configs.
const PATCHES: [&str; 3] = ["networking.istio.io", "extensions.istio.io", "gateway.envoyproxy.io"];

/// A config, and other files that stand beside it under keys of the same document.
pub(super) struct Found {
    pub document: Document,
    pub files: Vec<(String, Document)>,
    pub notes: Vec<String>,
}

struct Candidate {
    document: Document,
    /// The keys that lead to it, and what holds it.
    within: String,
    /// The last of these keys.
    key: String,
    kind: Kind,
    span: Option<Span>,
}

struct Search<'t> {
    lines: Vec<&'t str>,
    found: Vec<Candidate>,
    problems: Vec<Problem>,
}

/// The only config in these documents of one text. Errors: there are several, or one cannot be read.
pub(super) fn find(documents: &[Document], text: &str) -> Result<Option<Found>, Vec<Problem>> {
    let mut search = Search { lines: text.lines().collect(), found: Vec::new(), problems: Vec::new() };
    for document in documents {
        let root = Node::root(document);
        if !is_patch(&root) {
            search.node(&root, documents.len() > 1);
        }
    }
    let Search { found, problems, .. } = search;
    let whole = |candidate: &Candidate| matches!(candidate.kind, Kind::Bootstrap | Kind::ConfigDump);
    let (mut whole, mut rest): (Vec<_>, Vec<_>) = found.into_iter().partition(whole);
    if whole.is_empty() {
        let (fragments, others) = rest.into_iter().partition(|candidate| candidate.kind == Kind::Fragment);
        (whole, rest) = (fragments, others);
    }
    if whole.len() > 1 {
        return Err(vec![several(&whole)]);
    }
    let Some(Candidate { document, within, span, .. }) = whole.pop() else {
        return if problems.is_empty() { Ok(None) } else { Err(problems) };
    };
    let line = span.map_or_else(String::new, |span| format!(", line {}", span.line));
    let files = rest.into_iter().map(|candidate| (candidate.key, candidate.document)).collect();
    Ok(Some(Found { document, files, notes: vec![format!("the config stands in {within}{line}")] }))
}

/// Whether a Kubernetes object holds changes to a config that something else makes.
pub(super) fn is_patch(root: &Node) -> bool {
    let group = root.text("apiVersion").unwrap_or_default();
    PATCHES.iter().any(|patch| group.starts_with(patch))
}

fn several(found: &[Candidate]) -> Problem {
    const SHOWN: usize = 5;
    let mut places: Vec<String> = found
        .iter()
        .take(SHOWN)
        .map(|one| match one.span {
            Some(span) => format!("line {} ({})", span.line, one.within),
            None => one.within.clone(),
        })
        .collect();
    if found.len() > SHOWN {
        places.push(format!("{} more", found.len() - SHOWN));
    }
    let message = format!("the file holds {} Envoy configs: {}", found.len(), places.join(", "));
    let file = found.first().map(|one| one.document.file.clone()).unwrap_or_default();
    let at = found.get(1).and_then(|second| second.span);
    Problem::new(file, message).at(at).help("keep one config per file, and give each a target of its own")
}

impl Search<'_> {
    /// `whole`: the node may itself be a config of any kind.
    fn node(&mut self, node: &Node, whole: bool) {
        if let Some(text) = node.value.as_str() {
            return self.text(node, text);
        }
        let kind = Kind::of(node);
        let is_config = matches!(kind, Kind::Bootstrap | Kind::ConfigDump) || (whole && kind == Kind::Fragment);
        if is_config && let Some(part) = node.document.part(&node.pointer()) {
            let document = Document::assembled(&node.document.file, Vec::new(), part, Vec::new());
            return self.push(node, document, kind);
        }
        node.children(|child| self.node(&child, false));
    }

    fn push(&mut self, node: &Node, document: Document, kind: Kind) {
        let root = Node::root(node.document);
        let name = root.get("metadata").and_then(|metadata| metadata.text("name").map(str::to_owned));
        let mut within = match node.pointer().trim_start_matches('/') {
            "" => "one of the documents".to_owned(),
            pointer => format!("`{}`", pointer.replace("~1", "/").replace("~0", "~")),
        };
        if let Some(kind) = root.text("kind").filter(|_| root.get("apiVersion").is_some()) {
            within.push_str(&format!(" of the {kind} `{}`", name.unwrap_or_default()));
        }
        let span = node.document.key_span(&node.pointer());
        self.found.push(Candidate { document, within, key: node.key().to_owned(), kind, span });
    }

    fn text(&mut self, node: &Node, text: &str) {
        if !MARKS.iter().any(|mark| text.contains(mark)) {
            return;
        }
        let outer = &node.document.file;
        // JSON is YAML, but for Envoy's own rules of scalars.
        let format = if node.key().ends_with(".json") { "json" } else { "yaml" };
        let shift = self.shift(node, text);
        let at = node.document.key_span(&node.pointer());
        match Document::parse(&format!("embedded.{format}"), text) {
            Ok(document) => {
                let document = match (shift, at) {
                    (Some((lines, columns)), _) => document.moved(lines, columns),
                    (None, Some(span)) => document.standing_at(span),
                    (None, None) => document,
                };
                let kind = Kind::of(&Node::root(&document));
                self.push(node, document.named(outer), kind);
            }
            Err(problems) => {
                let place = |span: Span| shift.map_or(at, |(lines, columns)| Some(moved(span, lines, columns)));
                let told = |problem: Problem| Problem {
                    file: outer.clone(),
                    span: problem.span.map_or(at, place),
                    message: format!("under `{}`: {}", node.key(), problem.message),
                    ..problem
                };
                self.problems.extend(problems.into_iter().map(told));
            }
        }
    }

    /// How many lines and characters further on a text stands in the file, where it stands there as it is (`|`).
    fn shift(&self, node: &Node, text: &str) -> Option<(u32, u32)> {
        let pointer = node.pointer();
        let (span, key) = (node.document.span(&pointer)?, node.document.key_span(&pointer)?);
        [key.line, span.line, span.line.saturating_sub(1)].into_iter().find_map(|before| self.shift_after(before, text))
    }

    fn shift_after(&self, before: u32, text: &str) -> Option<(u32, u32)> {
        let outer = self.lines.get(usize::try_from(before).ok()?..)?;
        let (first, inner) = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty())?;
        let indent = outer.get(first)?.strip_suffix(inner)?;
        if !indent.chars().all(|c| c == ' ') {
            return None;
        }
        let same = text.lines().zip(outer).all(|(inner, outer)| {
            inner.trim().is_empty() || outer.strip_prefix(indent).is_some_and(|outer| outer == inner)
        });
        let columns = u32::try_from(indent.len()).ok()?;
        (same && text.lines().count() <= outer.len()).then_some((before, columns))
    }
}
