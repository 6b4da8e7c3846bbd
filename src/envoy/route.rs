//! Routes as far as it can be told from the config which request they catch.

use std::borrow::Cow;
use std::collections::HashSet;

use super::node::Node;

/// What of a path a route looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Path {
    Exact(String),
    Prefix(String),
    /// Whole path segments.
    Separated(String),
    /// The fixed text a regular expression begins with; what follows is not known.
    Regex(String),
    Other,
}

/// Where a matched request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Cluster,
    /// Why no upstream sees such a request.
    Elsewhere(&'static str),
}

/// One route of a virtual host.
#[derive(Debug)]
pub(super) struct Route {
    /// Name, or the match as written, for people.
    pub title: String,
    path: Path,
    ignore_case: bool,
    /// Conditions beside the path.
    method: Method,
    further: Further,
    pub action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Any,
    Get,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Further {
    None,
    /// Conditions that a request with no headers of its own never meets.
    Unmet,
    /// It depends.
    Unknown,
}

impl Route {
    pub fn read(route: &Node) -> Self {
        let matcher = route.get("match");
        let (path, written) = matcher.as_ref().map_or((Path::Other, "?".to_owned()), path);
        let (method, further) = matcher.as_ref().map_or((Method::Any, Further::Unknown), conditions);
        let title = match route.text("name") {
            Some(name) if !name.is_empty() => format!("{name} ({written})"),
            _ => written,
        };
        let ignore_case = matcher.is_some_and(|matcher| matcher.flag("case_sensitive") == Some(false));
        Self { title, path, ignore_case, method, further, action: action(route) }
    }

    /// Why no plain GET is derived from this route.
    pub fn unfit(&self) -> Option<&'static str> {
        if let Action::Elsewhere(why) = self.action {
            return Some(why);
        }
        match self.path {
            Path::Regex(_) => return Some("matches paths by a regular expression"),
            Path::Other => return Some("matches by something else than a path"),
            _ => {}
        }
        if self.method == Method::Other {
            return Some("takes another method than GET");
        }
        (self.further != Further::None).then_some("has conditions on headers, parameters or runtime values")
    }

    /// Whether a GET for `path` without further headers could be caught here.
    pub fn may_catch(&self, path: &str) -> bool {
        self.method != Method::Other && self.further != Further::Unmet && self.may_catch_path(path)
    }

    /// Whether some request for `path` could be caught here, whatever its method and headers.
    pub fn may_catch_path(&self, path: &str) -> bool {
        let fold = |text| if self.ignore_case { Cow::from(str::to_lowercase(text)) } else { Cow::from(text) };
        let path = fold(path);
        match &self.path {
            Path::Exact(exact) => path == fold(exact),
            Path::Prefix(prefix) | Path::Regex(prefix) => path.starts_with(fold(prefix).as_ref()),
            Path::Separated(prefix) => {
                let rest = path.strip_prefix(fold(prefix).as_ref());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Path::Other => true,
        }
    }

    /// Paths this route catches, the plainest first.
    pub fn candidates(&self) -> Vec<String> {
        match &self.path {
            Path::Exact(exact) => vec![exact.clone()],
            Path::Prefix(prefix) if prefix.is_empty() => vec!["/".to_owned(), "/sidegate".to_owned()],
            Path::Prefix(prefix) => {
                let slash = if prefix.ends_with('/') { "" } else { "/" };
                let more = ["sidegate", "sidegate/0", "zz-sidegate"].map(|tail| format!("{prefix}{slash}{tail}"));
                [vec![prefix.clone()], more.to_vec(), vec![format!("{prefix}-sidegate")]].concat()
            }
            Path::Separated(prefix) => vec![prefix.clone(), format!("{prefix}/sidegate")],
            Path::Regex(_) | Path::Other => Vec::new(),
        }
    }
}

fn path(matcher: &Node) -> (Path, String) {
    let text = |field: &str| matcher.text(field).map(str::to_owned);
    if let Some(prefix) = text("prefix") {
        return (Path::Prefix(prefix.clone()), format!("prefix {prefix}"));
    }
    if let Some(exact) = text("path") {
        return (Path::Exact(exact.clone()), format!("path {exact}"));
    }
    if let Some(prefix) = text("path_separated_prefix") {
        return (Path::Separated(prefix.clone()), format!("path_separated_prefix {prefix}"));
    }
    if let Some(regex) = matcher.get("safe_regex").and_then(|regex| regex.text("regex").map(str::to_owned)) {
        return (Path::Regex(fixed_start(&regex)), format!("regex {regex}"));
    }
    (Path::Other, "another kind of match".to_owned())
}

/// The literal text every match of `regex` begins with. Envoy matches the whole path, so `^` says nothing.
fn fixed_start(regex: &str) -> String {
    if alternatives(regex) {
        return String::new();
    }
    let mut out = String::new();
    let mut chars = regex.trim_start_matches('^').chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c) if !c.is_alphanumeric() => out.push(c),
                _ => break,
            },
            '*' | '?' | '{' => {
                out.pop();
                break;
            }
            '.' | '[' | '(' | '+' | '$' | '^' | '|' | ')' | ']' | '}' => break,
            c => out.push(c),
        }
    }
    out
}

/// Whether a `|` stands outside brackets.
fn alternatives(regex: &str) -> bool {
    let (mut depth, mut class, mut escaped) = (0_usize, false, false);
    regex.chars().any(|c| {
        if escaped {
            escaped = false;
            return false;
        }
        match c {
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => depth += 1,
            ')' if !class => depth = depth.saturating_sub(1),
            '|' if !class && depth == 0 => return true,
            _ => {}
        }
        false
    })
}

/// What the generator or Envoy sets on every request, so that a condition on it may be met.
const PRESENT: [&str; 8] =
    ["host", "user-agent", "accept", "content-length", "x-forwarded-proto", "x-request-id", "x-forwarded-for", "te"];

fn conditions(matcher: &Node) -> (Method, Further) {
    let (mut method, mut further) = (Method::Any, Further::None);
    for header in matcher.list("headers") {
        let name = header.text("name").unwrap_or_default().to_lowercase();
        if name == ":method" {
            method = self::method(&header);
            if method == Method::Any {
                further = Further::Unknown;
            }
            continue;
        }
        let known_absent = !name.starts_with(':') && !name.starts_with("x-envoy-") && !PRESENT.contains(&name.as_str());
        let wants_absence = header.flag("invert_match") == Some(true)
            || header.flag("present_match") == Some(false)
            || header.flag("treat_missing_header_as_empty") == Some(true);
        if known_absent && !wants_absence {
            further = Further::Unmet;
        } else if further == Further::None {
            further = Further::Unknown;
        }
    }
    if !matcher.list("query_parameters").is_empty() {
        further = Further::Unmet;
    }
    let others = ["grpc", "tls_context", "dynamic_metadata", "filter_state", "runtime_fraction", "cookies"];
    if further == Further::None && others.iter().any(|field| matcher.get(field).is_some()) {
        further = Further::Unknown;
    }
    (method, further)
}

/// What a condition on `:method` says about GET; `Any` where it cannot be told.
fn method(header: &Node) -> Method {
    let inverted = header.flag("invert_match") == Some(true);
    let exact = header.text("exact_match").or_else(|| header.get("string_match").and_then(|m| m.text("exact")));
    match exact {
        Some(exact) if (exact == "GET") != inverted => Method::Get,
        Some(_) => Method::Other,
        None => Method::Any,
    }
}

fn action(route: &Node) -> Action {
    let Some(action) = route.get("route") else {
        let kinds = [
            ("redirect", "answers with a redirect"),
            ("direct_response", "answers by itself"),
            ("filter_action", "is answered by a filter"),
            ("non_forwarding_action", "forwards nothing"),
        ];
        let kind = kinds.iter().find(|(field, _)| route.get(field).is_some());
        return Action::Elsewhere(kind.map_or("has no action", |(_, why)| *why));
    };
    // An inline specifier (a script, a matcher) chooses among the clusters of this file on every request: its cost is
    // part of the route. `cluster_header` needs a header that a plain GET does not have.
    let sends = ["cluster", "weighted_clusters", "inline_cluster_specifier_plugin"]
        .iter()
        .any(|field| action.get(field).is_some());
    if sends { Action::Cluster } else { Action::Elsewhere("chooses its cluster at run time") }
}

/// The host name requests to a virtual host carry: its first name without a wildcard, or one made of its first name
/// that no other virtual host claims.
pub(super) fn authority(domains: &[String], claimed: &HashSet<String>) -> Option<String> {
    if let Some(exact) = domains.iter().find(|domain| !domain.contains('*') && !domain.is_empty()) {
        return Some(exact.clone());
    }
    let concrete = |name: &str| {
        domains.iter().find_map(|domain| match domain.as_str() {
            "*" => Some(format!("{name}.test")),
            domain if domain.starts_with('*') => domain.strip_prefix('*').map(|rest| match rest.strip_prefix('.') {
                Some(rest) => format!("{}.{rest}", if name == "sidegate" { "www" } else { name }),
                None => format!("{name}{rest}"),
            }),
            domain => domain
                .strip_suffix('*')
                .map(|start| format!("{start}{}test", if start.ends_with('.') { "" } else { "." })),
        })
    };
    ["sidegate", "sidegate-a", "sidegate-b"]
        .iter()
        .filter_map(|name| concrete(name))
        .find(|name| !claimed.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_start_of_regular_expressions() {
        let table = [
            ("/items/[0-9]+", "/items/"),
            ("^/a\\.b", "/a.b"),
            ("/ab?c", "/a"),
            ("/a|/b", ""),
            (".*", ""),
            ("/x(a|b)", "/x"),
            ("/d\\d", "/d"),
            ("/a{2}", "/"),
            ("/[|]x", "/"),
        ];
        for (regex, start) in table {
            assert_eq!(fixed_start(regex), start, "{regex}");
        }
    }

    #[test]
    fn names_are_made_concrete() {
        let none = HashSet::new();
        let name = |domain: &str| authority(&[domain.to_owned()], &none).unwrap();
        assert_eq!(name("*"), "sidegate.test");
        assert_eq!(name("*.x.com"), "www.x.com");
        assert_eq!(name("*-x.com"), "sidegate-x.com");
        assert_eq!(name("x.*"), "x.test");
        assert_eq!(name("a.com:8080"), "a.com:8080");
        let claimed = HashSet::from(["www.x.com".to_owned()]);
        assert_eq!(authority(&["*.x.com".to_owned()], &claimed).unwrap(), "sidegate-a.x.com");
        assert_eq!(authority(&[], &none), None);
    }
}
