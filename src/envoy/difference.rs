//! What a change to a config consists of, block by block, and base with some of the changes applied.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::align::{Step, align};
use super::block::{Area, Group, Items, Kind, Part, Trail, identity};
use super::node::Node;
use crate::problem::Span;
use crate::yaml::Document;

/// One changed block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    /// JSON pointer of its first place in head; in base, for what was removed.
    pub pointer: String,
    /// Where it stands in head's file; `None` for what was removed.
    pub span: Option<Span>,
    /// `HTTP filter envoy.filters.http.lua added`.
    pub what: String,
    /// Places it is made of.
    pub places: usize,
    /// Changes without which this one cannot stand: the clusters it names.
    needs: Vec<usize>,
}

/// All changes between two configs.
#[derive(Debug, Clone)]
pub struct Difference {
    base: Document,
    head: Document,
    changes: Vec<Change>,
    ids: HashMap<String, usize>,
}

impl Difference {
    pub fn between(base: &Document, head: &Document) -> Self {
        let mut merge = Merge { noting: true, ..Merge::default() };
        merge.area(Area::Root, &Node::root(base), &Node::root(head), &Trail::start());
        let Merge { ids, found, .. } = merge;
        let added: Vec<(usize, HashSet<String>)> = found
            .iter()
            .enumerate()
            .filter(|(_, found)| found.is_clusters)
            .map(|(at, found)| (at, found.names.clone()))
            .collect();
        let change = |(at, found): (usize, Found)| {
            let names = |(other, clusters): &(usize, HashSet<String>)| {
                (*other != at && !found.texts.is_disjoint(clusters)).then_some(*other)
            };
            Change {
                kind: found.group.kind,
                span: if found.in_head { head.key_span(&found.pointer) } else { None },
                what: format!("{} {}", found.group.title(), found.verb()),
                needs: added.iter().filter_map(names).collect(),
                places: found.group.count,
                pointer: found.pointer,
            }
        };
        let changes = found.into_iter().enumerate().map(change).collect();
        Self { base: base.clone(), head: head.clone(), changes, ids }
    }

    /// In the order of a walk through both files.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Base with these changes (indices into `changes`). None gives base, all give head, up to the spelling of field
    /// names. Places in the text are lost.
    pub fn apply(&self, chosen: &[usize]) -> Document {
        self.base.edited(self.merged(chosen.iter().copied().collect()))
    }

    /// Base with one change, and the clusters it names.
    pub fn alone(&self, change: usize) -> Document {
        let needs = self.changes.get(change).map(|change| change.needs.as_slice()).unwrap_or_default();
        self.base.edited(self.merged(needs.iter().copied().chain([change]).collect()))
    }

    fn merged(&self, chosen: HashSet<usize>) -> Value {
        let mut merge = Merge { chosen, ids: self.ids.clone(), ..Merge::default() };
        merge.area(Area::Root, &Node::root(&self.base), &Node::root(&self.head), &Trail::start())
    }
}

/// What one change was seen to do.
struct Found {
    group: Group,
    pointer: String,
    in_head: bool,
    added: usize,
    removed: usize,
    changed: usize,
    /// An addition of clusters, and their names.
    is_clusters: bool,
    names: HashSet<String>,
    /// Short texts in what head has there.
    texts: HashSet<String>,
}

impl Found {
    fn verb(&self) -> &'static str {
        match (self.added > 0, self.removed > 0, self.changed > 0) {
            (true, false, false) => "added",
            (false, true, false) => "removed",
            (true, true, false) if self.group.kind != Kind::Items && self.added == self.removed => "moved",
            _ => "changed",
        }
    }
}

/// One walk through both configs side by side: notes the changes, and takes head's side of the chosen ones.
#[derive(Default)]
struct Merge {
    noting: bool,
    chosen: HashSet<usize>,
    ids: HashMap<String, usize>,
    found: Vec<Found>,
}

/// One block in base and in head.
type Sides<'a, 'n> = (Option<&'n Node<'a>>, Option<&'n Node<'a>>);

impl Merge {
    fn area(&mut self, area: Area, base: &Node, head: &Node, trail: &Trail) -> Value {
        let mut heads: Vec<Option<(&str, Node)>> = head.entries().into_iter().map(Some).collect();
        let exact: HashMap<&str, usize> =
            heads.iter().enumerate().filter_map(|(at, entry)| Some((entry.as_ref()?.0, at))).collect();
        let spelled: HashMap<String, usize> = heads
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| Some((area.field(entry.as_ref()?.0), at)))
            .filter(|(_, at)| heads[*at].as_ref().is_some_and(|(key, _)| base.value.get(key).is_none()))
            .collect();
        let mut out = Map::new();
        for (key, ours) in base.entries() {
            let at = exact.get(key).copied().or_else(|| spelled.get(&area.field(key)).copied());
            let theirs = at.and_then(|at| heads[at].take()).map(|(_, node)| node);
            let merged = self.part(area, key, (Some(&ours), theirs.as_ref()), trail);
            out.extend(merged.map(|value| (key.to_owned(), value)));
        }
        for (key, theirs) in heads.into_iter().flatten() {
            let merged = self.part(area, key, (None, Some(&theirs)), trail);
            out.extend(merged.map(|value| (key.to_owned(), value)));
        }
        Value::Object(out)
    }

    fn part(&mut self, area: Area, key: &str, sides: Sides, trail: &Trail) -> Option<Value> {
        let field = area.field(key);
        let together = area.together(&field).to_owned();
        let below = trail.field(&together);
        let shape = |node: &Node| area.child(&field, node);
        if let (Some(base), Some(head)) = sides {
            if base.value == head.value {
                return Some(base.value.clone());
            }
            match (shape(base), shape(head)) {
                (Part::Area(one), Part::Area(other)) if one == other => {
                    return Some(self.area(one, base, head, &below));
                }
                (Part::List(items), Part::List(_)) => return self.list(items, &field, sides, &below),
                _ => {}
            }
        } else if let Some(Part::List(items)) = sides.0.or(sides.1).map(shape)
            && sides.0.or(sides.1).is_some_and(|node| !node.items().is_empty())
        {
            return self.list(items, &field, sides, &below);
        }
        let kind = sides.1.or(sides.0).map_or(Kind::Field, |node| match shape(node) {
            Part::Block(kind) => kind,
            Part::Area(_) | Part::List(_) => Kind::Field,
        });
        self.block(kind, &together, sides, &below)
    }

    fn list(&mut self, items: Items, field: &str, sides: Sides, trail: &Trail) -> Option<Value> {
        let nodes = |side: Option<&Node<'_>>| side.map(|node| node.items().len()).unwrap_or_default();
        let (base, head) = (items_of(sides.0), items_of(sides.1));
        let mut out = Vec::with_capacity(base.len().max(head.len()));
        let (mut gone, mut come) = (Nth::default(), Nth::default());
        for step in align(&base, &head) {
            // An item that leaves one place and comes to another is one change: it is named alike on both sides.
            let (sides, name) = match step {
                Step::First(at) => ((base.get(at), None), base.get(at).map(|node| gone.name(node))),
                Step::Second(at) => ((None, head.get(at)), head.get(at).map(|node| come.name(node))),
                Step::Both(x, y) => ((base.get(x), head.get(y)), Some(x.to_string())),
            };
            out.extend(self.item(items, field, sides, trail, &name.unwrap_or_default()));
        }
        // An emptied list is written where the side it came from writes one.
        let written = match nodes(sides.0) {
            0 => sides.0.is_some(),
            _ => sides.1.is_some(),
        };
        (!out.is_empty() || written).then_some(Value::Array(out))
    }

    fn item(&mut self, items: Items, field: &str, sides: Sides, trail: &Trail, name: &str) -> Option<Value> {
        let node = sides.1.or(sides.0)?;
        let part = items.item(node);
        let below = trail.item(part, node, name);
        if let (Some(base), Some(head)) = sides {
            if base.value == head.value {
                return Some(base.value.clone());
            }
            if let (Part::Area(one), Part::Area(other)) = (items.item(base), part)
                && one == other
            {
                return Some(self.area(one, base, head, &below));
            }
        }
        if items.stand_alone() {
            let kind = if let Part::Block(kind) = part { kind } else { Kind::Field };
            // The same mirror in many routes is one block.
            let below = if below.many.is_some() { below.field(&identity(node)) } else { below };
            return self.block(kind, field, sides, &below);
        }
        // Items that come to or leave a table are one change for the whole table.
        let key = format!("{}/items", trail.key);
        self.note(key, sides, field == "clusters", |_| Group::items(part, field, trail, &below))
    }

    fn block(&mut self, kind: Kind, field: &str, sides: Sides, trail: &Trail) -> Option<Value> {
        self.note(trail.key.clone(), sides, false, |node| Group::new(kind, field, node, trail))
    }

    /// A difference: head's side where its change is chosen, else base's.
    fn note(
        &mut self,
        key: String,
        sides: Sides,
        is_clusters: bool,
        group: impl FnOnce(&Node) -> Group,
    ) -> Option<Value> {
        let next = self.ids.len();
        let id = *self.ids.entry(key).or_insert(next);
        let (base, head) = sides;
        if let Some(node) = head.or(base).filter(|_| self.noting) {
            match self.found.get_mut(id) {
                Some(found) => found.group.count += 1,
                None => self.found.push(Found::new(group(node), node, is_clusters)),
            }
            if let Some(found) = self.found.get_mut(id) {
                found.see(sides);
            }
        }
        let side = if self.chosen.contains(&id) { head } else { base };
        side.map(|node| node.value.clone())
    }
}

impl Found {
    fn new(group: Group, node: &Node, is_clusters: bool) -> Self {
        let (names, texts) = (HashSet::new(), HashSet::new());
        let pointer = node.pointer();
        Self { group, pointer, in_head: false, added: 0, removed: 0, changed: 0, is_clusters, names, texts }
    }

    fn see(&mut self, (base, head): Sides) {
        match (base, head) {
            (None, _) => self.added += 1,
            (_, None) => self.removed += 1,
            _ => self.changed += 1,
        }
        let Some(head) = head else { return };
        if !self.in_head {
            self.in_head = true;
            self.pointer = head.pointer();
        }
        if self.is_clusters {
            self.names.extend(head.text("name").map(str::to_owned));
        }
        texts(head.value, &mut self.texts);
    }
}

/// Texts that could be the name of a cluster.
fn texts(value: &Value, into: &mut HashSet<String>) {
    const LONGEST: usize = 256;
    match value {
        Value::String(text) if text.len() <= LONGEST => {
            into.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(entries) => entries.values().for_each(|item| texts(item, into)),
        _ => {}
    }
}

/// Numbers items of the same name.
#[derive(Default)]
struct Nth(HashMap<String, usize>);

impl Nth {
    fn name(&mut self, node: &Node) -> String {
        let name = identity(node);
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        format!("{count} {name}")
    }
}

fn items_of<'a>(side: Option<&Node<'a>>) -> Vec<Node<'a>> {
    side.map(Node::items).unwrap_or_default()
}
