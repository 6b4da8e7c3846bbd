//! Taking blocks out of a config: which blocks it has that a request may pay for, and the config without them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::block::{Area, Group, Items, Kind, Part, Trail, identity};
use super::bootstrap::Bootstrap;
use super::node::Node;
use super::route::Route;
use crate::problem::Span;
use crate::yaml::Document;

/// One block that can be taken away by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub kind: Kind,
    /// JSON pointer of its first place.
    pub pointer: String,
    /// Where that stands in the file.
    pub span: Option<Span>,
    /// `HTTP filter envoy.filters.http.lua`.
    pub what: String,
    /// All its places.
    places: Vec<String>,
}

/// Whose price is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Index of the address the request is sent to, among all listener addresses.
    pub listener: usize,
    /// A plain GET: without headers or a body of its own.
    pub plain: bool,
    pub authority: &'a str,
    pub path: &'a str,
}

impl Target<'_> {
    fn may_take(&self, route: &Node) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        let route = Route::read(route);
        if self.plain { route.may_catch(path) } else { route.may_catch_path(path) }
    }
}

/// A config and the blocks a request may pay for.
#[derive(Debug, Clone)]
pub struct Ablation {
    document: Document,
    blocks: Vec<Block>,
    /// Blocks of listeners that the request does not pass.
    elsewhere: usize,
}

impl Ablation {
    /// The blocks that a request to `target` may pay for, in the order of the file.
    pub fn of(bootstrap: &Bootstrap, target: Target) -> Self {
        let document = bootstrap.document.clone();
        let passed = bootstrap.listeners.iter().rposition(|listener| listener.address <= target.listener);
        let mut walk = Walk { target, passed, outside: false, order: HashMap::new(), found: Vec::new(), elsewhere: 0 };
        walk.area(Area::Root, &Node::root(&document), &Trail::start());
        let mut blocks: Vec<Block> = walk
            .found
            .into_iter()
            .map(|found| Block {
                kind: found.group.kind,
                span: document.key_span(&found.places[0]),
                pointer: found.places[0].clone(),
                what: found.group.title(),
                places: found.places,
            })
            .collect();
        blocks.sort_by_key(|block| block.span);
        let elsewhere = walk.elsewhere;
        Self { document, blocks, elsewhere }
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Number of blocks that were not looked at because the request does not pass their listener.
    pub fn elsewhere(&self) -> usize {
        self.elsewhere
    }

    /// The config without these blocks (indices into `blocks`). Places in the text are lost.
    pub fn without(&self, removed: &[usize]) -> Document {
        let places = removed.iter().filter_map(|&at| self.blocks.get(at)).flat_map(|block| &block.places);
        let mut cut = Cut::default();
        places.for_each(|pointer| cut.add(pointer));
        self.document.edited(cut.copy(&self.document.value))
    }

    /// The config without any block.
    pub fn bare(&self) -> Document {
        self.without(&(0..self.blocks.len()).collect::<Vec<_>>())
    }

    /// The bare config with one block put back.
    pub fn only(&self, kept: usize) -> Document {
        self.without(&(0..self.blocks.len()).filter(|&at| at != kept).collect::<Vec<_>>())
    }
}

struct Found {
    group: Group,
    /// Never empty.
    places: Vec<String>,
}

struct Walk<'t> {
    target: Target<'t>,
    /// Index of the listener that the request passes.
    passed: Option<usize>,
    /// Inside another listener.
    outside: bool,
    order: HashMap<String, usize>,
    found: Vec<Found>,
    elsewhere: usize,
}

impl Walk<'_> {
    fn area(&mut self, area: Area, node: &Node, trail: &Trail) {
        if area == Area::RouteConfig {
            self.route_table(node);
        }
        for (key, child) in node.entries() {
            let field = area.field(key);
            let together = area.together(&field).to_owned();
            let below = trail.field(&together);
            match area.child(&field, &child) {
                Part::Area(Area::Listener) => self.listener(0, &child, &below),
                Part::Area(inner) => self.area(inner, &child, &below),
                Part::List(items) => self.list(items, &field, &child, &below),
                Part::Block(Kind::Field) if !area.may_lose(&field) => {}
                Part::Block(kind) => self.block(kind, &together, &child, &below),
            }
        }
    }

    fn list(&mut self, items: Items, field: &str, list: &Node, trail: &Trail) {
        for (at, node) in list.items().into_iter().enumerate() {
            let part = items.item(&node);
            let below = trail.item(part, &node, &at.to_string());
            match part {
                Part::Area(Area::Listener) => self.listener(at, &node, &below),
                Part::Area(area) => self.area(area, &node, &below),
                Part::List(_) | Part::Block(Kind::Field) => {}
                // The same mirror or log in many routes is one block.
                Part::Block(kind) if below.many.is_some() => {
                    self.block(kind, field, &node, &below.field(&identity(&node)));
                }
                Part::Block(kind) => self.block(kind, field, &node, &below),
            }
        }
    }

    fn listener(&mut self, at: usize, node: &Node, trail: &Trail) {
        self.outside = self.passed.is_some_and(|passed| passed != at);
        self.area(Area::Listener, node, trail);
        self.outside = false;
    }

    fn block(&mut self, kind: Kind, field: &str, node: &Node, trail: &Trail) {
        if self.outside {
            self.elsewhere += 1;
            return;
        }
        if is_empty(node.value) {
            return;
        }
        let next = self.found.len();
        let at = *self.order.entry(trail.key.clone()).or_insert(next);
        match self.found.get_mut(at) {
            Some(found) => {
                found.group.count += 1;
                found.places.push(node.pointer());
            }
            None => {
                let group = Group::new(kind, field, node, trail);
                self.found.push(Found { group, places: vec![node.pointer()] });
            }
        }
    }

    /// What of the route table the request does not need, as one block.
    fn route_table(&mut self, config: &Node) {
        if self.outside {
            return;
        }
        let hosts = config.list("virtual_hosts");
        let (mut places, mut routes) = (Vec::new(), 0);
        for host in &hosts {
            let table = host.list("routes");
            if !may_serve(host, self.target.authority) {
                routes += table.len();
                places.push(host.pointer());
                continue;
            }
            // Behind a generic matcher there is no list to cut.
            for route in table.iter().filter(|route| !self.target.may_take(route)) {
                routes += 1;
                places.push(route.pointer());
            }
        }
        if places.is_empty() {
            return;
        }
        let subject = match routes {
            1 => "route table: 1 route that the request does not need".to_owned(),
            _ => format!("route table: {routes} routes that the request does not need"),
        };
        let group = Group { kind: Kind::RouteTable, subject, owner: String::new(), many: None, count: 1 };
        self.found.push(Found { group, places });
    }
}

/// Whether requests for `authority` can come to a virtual host.
fn may_serve(host: &Node, authority: &str) -> bool {
    let domains = host.list("domains");
    let fits = |domain: &Node| {
        domain.value.as_str().is_none_or(|domain| domain.contains('*') || domain.eq_ignore_ascii_case(authority))
    };
    domains.is_empty() || domains.iter().any(fits)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Places to leave out, as a tree: a copy takes one pass however many they are.
#[derive(Debug, Default)]
struct Cut {
    here: bool,
    below: BTreeMap<String, Cut>,
}

impl Cut {
    fn add(&mut self, pointer: &str) {
        let mut at = self;
        for token in pointer.split('/').skip(1) {
            let token: Cow<str> = match token.contains('~') {
                true => token.replace("~1", "/").replace("~0", "~").into(),
                false => token.into(),
            };
            at = at.below.entry(token.into_owned()).or_default();
        }
        at.here = true;
    }

    fn copy(&self, value: &Value) -> Value {
        if self.below.is_empty() {
            return value.clone();
        }
        let kept = |key: &str, value: &Value| match self.below.get(key) {
            Some(cut) if cut.here => None,
            Some(cut) => Some(cut.copy(value)),
            None => Some(value.clone()),
        };
        match value {
            Value::Object(entries) => Value::Object(
                entries.iter().filter_map(|(key, value)| Some((key.clone(), kept(key, value)?))).collect(),
            ),
            Value::Array(items) => {
                items.iter().enumerate().filter_map(|(at, value)| kept(&at.to_string(), value)).collect()
            }
            leaf => leaf.clone(),
        }
    }
}
