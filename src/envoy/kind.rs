//! What a document is, where it is not a v3 bootstrap.

use super::node::Node;
use crate::problem::Problem;
use crate::yaml::Document;

/// Fields that only a bootstrap has at its top.
const BOOTSTRAP: [&str; 5] = ["static_resources", "dynamic_resources", "admin", "node", "layered_runtime"];

/// A problem that names what the document is, if it is not a v3 bootstrap.
pub(super) fn refuse(document: &Document) -> Option<Problem> {
    let root = Node::root(document);
    if !document.value.is_object() {
        let what = if document.value.is_array() { "a list" } else { "a single value" };
        let problem = Problem::new(&document.file, format!("this is {what}, not an Envoy bootstrap"));
        return Some(problem.at(document.span("")).help("give a bootstrap: a mapping with `static_resources`"));
    }
    kubernetes(&root)
        .or_else(|| dump(&root))
        .or_else(|| discovery(&root))
        .or_else(|| v1(&root))
        .or_else(|| v2(&root))
        .or_else(|| nothing(&root))
}

fn kubernetes(root: &Node) -> Option<Problem> {
    let (version, kind) = (root.get("apiVersion")?, root.text("kind")?);
    let help = match kind {
        "EnvoyFilter" => {
            "it is a patch for a mesh's own config: apply it, and give sidegate what the proxy then has: `istioctl \
             proxy-config all POD -o json`"
        }
        "EnvoyPatchPolicy" | "EnvoyProxy" | "EnvoyExtensionPolicy" => {
            "it changes a config that Envoy Gateway makes: apply it, and give sidegate what the proxy then has: `egctl \
             config envoy-proxy all -o json`"
        }
        "ConfigMap" => "it holds no Envoy config; give the ConfigMap that does, or the config itself",
        _ => "give sidegate the Envoy config that is made from it, or the proxy's own answer to `/config_dump`",
    };
    Some(version.problem(format!("this is a Kubernetes object of kind {kind}, not an Envoy bootstrap")).help(help))
}

fn dump(root: &Node) -> Option<Problem> {
    let configs = root.get("configs")?;
    let is_dump = configs.items().iter().any(|item| item.type_name().is_some_and(|name| name.contains("admin.v")));
    let what = if is_dump { "an admin config_dump" } else { "not an Envoy bootstrap: it has `configs` at its top" };
    let help =
        "give what Envoy's admin interface answers to `/config_dump`, or the bootstrap the proxy was started with";
    Some(configs.problem(format!("this is {what}")).help(help))
}

fn discovery(root: &Node) -> Option<Problem> {
    let resources = root.get("resources")?;
    let help = "move its listeners and clusters under `static_resources` of a bootstrap, and give that";
    Some(resources.problem("this is a discovery (xDS) response, not an Envoy bootstrap").help(help))
}

fn v1(root: &Node) -> Option<Problem> {
    let old = root.get("cluster_manager").filter(|node| node.get("clusters").is_some())?;
    let help = "rewrite it for the v3 API; Envoy has not read v1 since 1.9";
    Some(old.problem("this is a v1 Envoy config").help(help))
}

fn nothing(root: &Node) -> Option<Problem> {
    if BOOTSTRAP.iter().any(|field| root.get(field).is_some()) {
        return None;
    }
    let (key, what) = match root.entries().first() {
        Some((key, node)) => (Some(node.clone()), format!("its first key is `{key}`")),
        None => (None, "it is an empty mapping".to_owned()),
    };
    let at = key.map_or_else(|| root.problem(""), |node| node.problem(""));
    let message = format!("this is not an Envoy bootstrap: {what}");
    Some(Problem { message, ..at }.help("give a v3 bootstrap: a mapping with `static_resources`"))
}

/// Names and fields that went with the v2 API (Envoy 1.18).
pub(super) fn v2(root: &Node) -> Option<Problem> {
    let mut found: Option<(String, String)> = None;
    let mut count = 0_usize;
    visit(root, &mut |node| {
        if let Some(what) = v2_mark(node) {
            count += 1;
            found.get_or_insert_with(|| (node.pointer(), what));
        }
    });
    let (pointer, what) = found?;
    let rest = match count {
        1 => String::new(),
        2 => ", and 1 more place".to_owned(),
        _ => format!(", and {} more places", count - 1),
    };
    let problem = root.document.problem(&pointer, format!("this is a v2 Envoy config: {what}{rest}"));
    Some(problem.help("rewrite it for the v3 API; Envoy 1.18 and later read no other"))
}

fn v2_mark(node: &Node) -> Option<String> {
    if let Some(name) = node.type_name() {
        // Meshes count the versions of their own extensions as they like.
        let old = (name.starts_with("envoy.")
            && [".v2.", ".v2alpha.", ".v2alpha1."].iter().any(|part| name.contains(part)))
            || (name.starts_with("envoy.config.filter.") && !name.contains(".v3."));
        if old {
            return Some(format!("type `{name}`"));
        }
    }
    let parent_is = |list: &str| node.list_key() == list;
    match node.key() {
        "config" if parent_is("filters") || parent_is("http_filters") || parent_is("access_log") => {
            Some("untyped `config` of an extension".to_owned())
        }
        "hosts" if parent_is("clusters") && node.value.is_array() => Some("`hosts` of a cluster".to_owned()),
        "tls_context" if parent_is("clusters") || parent_is("filter_chains") => Some("`tls_context`".to_owned()),
        _ => None,
    }
}

/// Calls `each` for every node, parents first. Depth is bounded by the parser.
pub(super) fn visit<'a>(node: &Node<'a>, each: &mut impl FnMut(&Node<'a>)) {
    each(node);
    node.children(|child| visit(&child, each));
}
