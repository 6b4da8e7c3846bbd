//! What of a config is a block: a part that can be taken away, or changed, by itself.
//!
//! A config is walked through *areas* (listener, connection manager, virtual host, route, cluster…). Whatever stands in
//! an area and is none itself is a block: an HTTP filter, an access log, a field with all below it.

use super::node::{Node, snake};
use crate::problem::on_one_line;

/// What a block is, by what it usually costs a request: the dearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    HttpFilter,
    MirrorPolicy,
    Tracing,
    AccessLog,
    /// Routes, virtual hosts, clusters, listeners, filter chains, taken together per list.
    Items,
    /// The part of the route table that a request does not need.
    RouteTable,
    NetworkFilter,
    ListenerFilter,
    /// What a route or a virtual host sets for one filter.
    Override,
    Field,
}

/// A message that is walked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    Root,
    Resources,
    Listener,
    Chain,
    ManagerFilter,
    Manager,
    RouteConfig,
    VirtualHost,
    Route,
    Action,
    Cluster,
    /// `typed_extension_protocol_options`: a map.
    Protocols,
    Protocol,
    RouterFilter,
    Router,
    /// `typed_per_filter_config`: a map.
    Overrides,
}

/// A list whose items are areas or blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    Areas(Area),
    Blocks(Kind),
    NetworkFilters,
    HttpFilters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Area(Area),
    List(Items),
    Block(Kind),
}

const LOGS: Part = Part::List(Items::Blocks(Kind::AccessLog));
const MIRRORS: Part = Part::List(Items::Blocks(Kind::MirrorPolicy));
const FILTERS: Part = Part::List(Items::HttpFilters);
const OVERRIDES: Part = Part::Area(Area::Overrides);

impl Area {
    /// What stands at `field` (proto name) of this area.
    pub fn child(self, field: &str, node: &Node) -> Part {
        use Area as A;
        let part = match (self, field) {
            (A::Root, "static_resources") => Part::Area(A::Resources),
            (A::Resources, "listeners") => Part::List(Items::Areas(A::Listener)),
            (A::Resources, "clusters") => Part::List(Items::Areas(A::Cluster)),
            (A::Listener, "filter_chains") => Part::List(Items::Areas(A::Chain)),
            (A::Listener, "default_filter_chain") => Part::Area(A::Chain),
            (A::Listener, "listener_filters") => Part::List(Items::Blocks(Kind::ListenerFilter)),
            (A::Listener | A::Manager, "access_log") | (A::Router, "upstream_log") => LOGS,
            (A::Chain, "filters") => Part::List(Items::NetworkFilters),
            (A::ManagerFilter, "typed_config") => Part::Area(A::Manager),
            (A::Manager, "route_config") => Part::Area(A::RouteConfig),
            (A::Manager | A::Protocol, "http_filters") | (A::Router, "upstream_http_filters") => FILTERS,
            (A::Manager, "tracing") => Part::Block(Kind::Tracing),
            (A::RouteConfig, "virtual_hosts") => Part::List(Items::Areas(A::VirtualHost)),
            (A::RouteConfig | A::VirtualHost | A::Action, "request_mirror_policies") => MIRRORS,
            (A::RouteConfig | A::VirtualHost | A::Route, "typed_per_filter_config") => OVERRIDES,
            (A::VirtualHost, "routes") => Part::List(Items::Areas(A::Route)),
            (A::Route, "route") => Part::Area(A::Action),
            (A::Cluster, "typed_extension_protocol_options") => Part::Area(A::Protocols),
            (A::Protocols, _) if is_type(node, ".HttpProtocolOptions") => Part::Area(A::Protocol),
            (A::RouterFilter, "typed_config") => Part::Area(A::Router),
            (A::Overrides, _) => Part::Block(Kind::Override),
            _ => Part::Block(Kind::Field),
        };
        part.of(node)
    }

    /// Maps have keys of their own; messages have fields, which go by two names.
    pub fn field(self, key: &str) -> String {
        if matches!(self, Self::Protocols | Self::Overrides) { key.to_owned() } else { snake(key) }
    }

    /// Fields of which only one may be set, and those that only work together, are one block.
    pub fn together(self, field: &str) -> &str {
        match (self, field) {
            (Self::Route, "route" | "redirect" | "direct_response" | "filter_action" | "non_forwarding_action") => {
                "action"
            }
            (
                Self::Action,
                "cluster"
                | "cluster_header"
                | "weighted_clusters"
                | "inline_cluster_specifier_plugin"
                | "cluster_specifier_plugin",
            ) => "cluster",
            (Self::Action, "prefix_rewrite" | "regex_rewrite" | "path_rewrite_policy" | "path_rewrite") => {
                "path rewriting"
            }
            (Self::Action, field) if field.starts_with("host_rewrite") || field == "auto_host_rewrite" => {
                "host rewriting"
            }
            (Self::Manager, "route_config" | "rds" | "scoped_routes") => "routes",
            (
                Self::Manager,
                "normalize_path" | "merge_slashes" | "path_with_escaped_slashes_action" | "path_normalization_options",
            ) => "path normalisation",
            (Self::Manager, "forward_client_cert_details" | "set_current_client_cert_details") => {
                "client certificate details"
            }
            (Self::Cluster, "type" | "cluster_type" | "load_assignment") => "endpoints",
            (
                Self::RouteConfig | Self::VirtualHost | Self::Route,
                "request_headers_to_add"
                | "request_headers_to_remove"
                | "response_headers_to_add"
                | "response_headers_to_remove",
            ) => "header changes",
            (_, field) => field,
        }
    }

    /// Whether a request may cost less without this field, and the config still makes sense.
    pub fn may_lose(self, field: &str) -> bool {
        let together = self.together(field);
        match self {
            Self::Root => matches!(field, "stats_config" | "overload_manager"),
            Self::Manager => {
                matches!(together, "path normalisation" | "client certificate details")
                    || matches!(
                        field,
                        "local_reply_config"
                            | "original_ip_detection_extensions"
                            | "early_header_mutation_extensions"
                            | "proxy_status_config"
                    )
            }
            Self::RouteConfig | Self::VirtualHost | Self::Route | Self::Action => {
                matches!(together, "header changes" | "path rewriting" | "host rewriting")
                    || matches!(
                        field,
                        "retry_policy"
                            | "hash_policy"
                            | "rate_limits"
                            | "cors"
                            | "hedge_policy"
                            | "internal_redirect_policy"
                            | "tracing"
                    )
            }
            Self::Cluster => matches!(field, "outlier_detection" | "lb_subset_config" | "track_cluster_stats"),
            _ => false,
        }
    }
}

impl Items {
    pub fn item(self, node: &Node) -> Part {
        let config = node.get("typed_config");
        let is = |suffix: &str| config.as_ref().is_some_and(|config| is_type(config, suffix));
        let part = match self {
            Self::Areas(area) => Part::Area(area),
            Self::Blocks(kind) => Part::Block(kind),
            Self::NetworkFilters if is(".HttpConnectionManager") => Part::Area(Area::ManagerFilter),
            Self::NetworkFilters => Part::Block(Kind::NetworkFilter),
            Self::HttpFilters if is(".Router") || (config.is_none() && is_named_router(node)) => {
                Part::Area(Area::RouterFilter)
            }
            // The end of an upstream chain: never taken away.
            Self::HttpFilters if is(".UpstreamCodec") => Part::Block(Kind::Field),
            Self::HttpFilters => Part::Block(Kind::HttpFilter),
        };
        part.of(node)
    }

    /// Blocks of their own, rather than parts of a table.
    pub fn stand_alone(self) -> bool {
        !matches!(self, Self::Areas(_))
    }
}

impl Part {
    /// What the value really is: a message in place of a list is a list of one, anything else a block.
    fn of(self, node: &Node) -> Self {
        match self {
            Self::List(items) if node.value.is_object() => items.item(node),
            Self::List(_) if !node.value.is_array() => Self::Block(Kind::Field),
            Self::Area(_) if !node.value.is_object() => Self::Block(Kind::Field),
            part => part,
        }
    }
}

fn is_type(node: &Node, suffix: &str) -> bool {
    node.type_name().is_some_and(|name| name.ends_with(suffix))
}

fn is_named_router(node: &Node) -> bool {
    matches!(node.text("name"), Some("envoy.filters.http.router" | "envoy.router"))
}

/// Where a walk is: what blocks at the same place in many routes or clusters have in common.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    /// The way from the root, list items by name, those of long tables by `*`.
    pub key: String,
    /// `virtual host orders`, for people; empty at the top.
    pub owner: String,
    /// Inside one of many alike: `routes of virtual host orders`, `clusters`.
    pub many: Option<String>,
}

impl Trail {
    pub fn start() -> Self {
        Self { key: String::new(), owner: String::new(), many: None }
    }

    pub fn field(&self, field: &str) -> Self {
        Self { key: format!("{}/{field}", self.key), ..self.clone() }
    }

    /// Into an item of a list. `name` tells it from its siblings.
    pub fn item(&self, part: Part, node: &Node, name: &str) -> Self {
        let named = |noun: &str| match shown(node.text("name").unwrap_or_default()) {
            name if name.is_empty() => format!("a {noun}"),
            name => format!("{noun} {name}"),
        };
        let (owner, many) = match part {
            Part::Area(Area::Listener) => (named("listener"), None),
            Part::Area(Area::VirtualHost) => (named("virtual host"), None),
            Part::Area(Area::Route) => {
                (format!("a route of {}", self.owner), Some(format!("routes of {}", self.owner)))
            }
            Part::Area(Area::Cluster) => (named("cluster"), Some("clusters".to_owned())),
            _ => (self.owner.clone(), self.many.clone()),
        };
        let step = if many.is_some() { "*" } else { name };
        Self { key: format!("{}/{step}", self.key), owner, many }
    }
}

/// What tells an item from its siblings, wherever it stands.
pub(super) fn identity(node: &Node) -> String {
    if let Some(text) = node.value.as_str() {
        return text.to_owned();
    }
    let name = node.text("name").filter(|name| !name.is_empty());
    let name = name.or_else(|| node.text("cluster"));
    let name = name.or_else(|| node.path(&["typed_config"]).and_then(|config| config.type_name()));
    match name {
        Some(name) => name.to_owned(),
        None => node.get("match").map(|found| found.value.to_string()).unwrap_or_default(),
    }
}

/// Blocks named alike, with all they stand for.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub kind: Kind,
    /// For people, without the place.
    pub subject: String,
    pub owner: String,
    pub many: Option<String>,
    /// Places it is made of.
    pub count: usize,
}

impl Group {
    pub fn new(kind: Kind, field: &str, node: &Node, trail: &Trail) -> Self {
        let name = || shown(&identity(node));
        let subject = match kind {
            Kind::HttpFilter => format!("HTTP filter {}", name()),
            Kind::NetworkFilter => format!("network filter {}", name()),
            Kind::ListenerFilter => format!("listener filter {}", name()),
            Kind::AccessLog => format!("access log {}", name()),
            Kind::MirrorPolicy => match node.text("cluster") {
                Some(cluster) => format!("mirroring to cluster {}", shown(cluster)),
                None => "mirroring".to_owned(),
            },
            Kind::Tracing => "tracing".to_owned(),
            Kind::Override => format!("setting for filter {}", shown(field)),
            Kind::Items | Kind::RouteTable | Kind::Field => shown(field),
        };
        Self { kind, subject, owner: trail.owner.clone(), many: trail.many.clone(), count: 1 }
    }

    /// Items that come to a table or leave it; `below` is the trail of the first.
    pub fn items(part: Part, field: &str, trail: &Trail, below: &Trail) -> Self {
        let noun = match field {
            "filter_chains" => "filter chains",
            "virtual_hosts" => "virtual hosts",
            field => field,
        };
        let subject = match part {
            Part::Area(Area::Chain) => format!("a filter chain of {}", trail.owner),
            _ => below.owner.clone(),
        };
        let of = if trail.owner.is_empty() || field == "virtual_hosts" {
            String::new()
        } else {
            format!(" of {}", trail.owner)
        };
        let many = Some(format!("{noun}{of}"));
        Self { kind: Kind::Items, subject, owner: String::new(), many, count: 1 }
    }

    /// `HTTP filter envoy.filters.http.lua`, `retry_policy of 12 routes of virtual host orders`.
    pub fn title(&self) -> String {
        let subject = &self.subject;
        match &self.many {
            Some(many) if self.count > 1 && self.kind == Kind::Items => format!("{} {many}", self.count),
            Some(many) if self.count > 1 => format!("{subject} of {} {many}", self.count),
            None if matches!(self.kind, Kind::HttpFilter | Kind::NetworkFilter | Kind::AccessLog | Kind::Tracing) => {
                subject.clone()
            }
            _ if self.owner.is_empty() => subject.clone(),
            _ => format!("{subject} of {}", self.owner),
        }
    }
}

/// A name from the config, short and on one line.
pub(super) fn shown(name: &str) -> String {
    const LONGEST: usize = 80;
    let name = on_one_line(name);
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name,
    }
}
