//! What is collected while an input is read: files, resources, notes and faults; and the bootstrap made of them.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::resources::Resources;
use super::{Beside, fields};
use crate::problem::Problem;
use crate::yaml::{Document, Note, Part};

/// Most files read beside a config, and most bytes of them together.
const FILE_LIMIT: usize = 64;
const TEXT_LIMIT_BYTES: usize = 8 << 20;
/// Most values that are written in place of names, all together: one route table may be named by many listeners.
const COPY_LIMIT: usize = 600_000;

pub(super) struct Gathered<'a> {
    file: String,
    /// Files that parts come from besides the config's own.
    others: Vec<String>,
    beside: Beside<'a>,
    /// Files that stand in the same text, by name.
    inside: BTreeMap<String, Document>,
    read: HashSet<String>,
    bytes: usize,
    copied: usize,
    /// It is the user's own bootstrap: what it leaves to a service is refused, not replaced.
    pub is_bootstrap: bool,
    /// Clusters that are named and missing are added.
    pub fills_clusters: bool,
    pub resources: Resources,
    pub notes: Vec<Note>,
    problems: Vec<Problem>,
}

impl<'a> Gathered<'a> {
    pub fn new(file: &str, inside: Vec<(String, Document)>, beside: Beside<'a>) -> Self {
        Self {
            file: file.to_owned(),
            others: Vec::new(),
            beside,
            inside: inside.into_iter().collect(),
            read: HashSet::new(),
            bytes: 0,
            copied: 0,
            is_bootstrap: false,
            fills_clusters: false,
            resources: Resources::default(),
            notes: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub fn note(&mut self, pointer: &str, what: impl Into<String>) {
        self.notes.push(Note { pointer: pointer.to_owned(), what: what.into() });
    }

    pub fn refuse(&mut self, part: &Part, message: impl Into<String>, help: impl Into<String>) {
        let (file, span) = part.place();
        let name = match file {
            0 => Some(&self.file),
            at => self.others.get(usize::from(at) - 1),
        };
        let problem = Problem::new(name.unwrap_or(&self.file), message).at(Some(span)).help(help);
        self.problems.push(problem);
    }

    /// Adds a resource, which may be wrapped as an xDS `Resource`.
    pub fn add(&mut self, part: Part) {
        if let Err(refused) = self.resources.add(part) {
            let (part, message) = *refused;
            self.refuse(&part, message, "leave it out of a copy for the gate");
        }
    }

    /// Counts what a resource costs that is to be written at `owner`; false, and refused, where all come to too much.
    pub fn may_copy(&mut self, resource: &Value, owner: &Part) -> bool {
        let before = self.copied;
        self.copied = before.saturating_add(weight(resource));
        let fits = self.copied <= COPY_LIMIT;
        if !fits && before <= COPY_LIMIT {
            let message = format!("what others name comes to more than {COPY_LIMIT} values when written in place");
            self.refuse(owner, message, "leave out listeners that are not measured");
        }
        fits
    }

    /// Reads the file that `path` names, once, and adds its resources; false if it cannot be read.
    pub fn read_file(&mut self, path: &Part) -> bool {
        let Some(name) = path.value().as_str().map(str::to_owned) else { return false };
        if !self.read.insert(name.clone()) {
            return true;
        }
        let root = match self.open(&name) {
            Ok(root) => root,
            Err(problems) => {
                for problem in problems {
                    match problem.file.is_empty() {
                        true => self.refuse(path, problem.message, problem.help.unwrap_or_default()),
                        false => self.problems.push(problem),
                    }
                }
                return false;
            }
        };
        super::fragment::resources(root).into_iter().for_each(|resource| self.add(resource));
        true
    }

    fn open(&mut self, path: &str) -> Result<Part, Vec<Problem>> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some(document) = self.inside.get(name) {
            return Ok(document.clone().into_part(0));
        }
        let fault = |message: String, help: &str| vec![Problem::new("", message).help(help)];
        if self.others.len() >= FILE_LIMIT {
            let message = format!("more than {FILE_LIMIT} files are named");
            return Err(fault(message, "write the resources under `static_resources`"));
        }
        let (file, text) = (self.beside)(path).map_err(|why| {
            let help = "keep the file that the path names in the folder of the config, or below it";
            fault(format!("`{path}` is not read: {why}"), help)
        })?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > TEXT_LIMIT_BYTES {
            let message = format!("the files named have more than {TEXT_LIMIT_BYTES} bytes together");
            return Err(fault(message, "split the config, or leave out what is not measured"));
        }
        let document = Document::parse(&file, &text)?;
        self.others.push(file);
        Ok(document.into_part(u16::try_from(self.others.len()).unwrap_or(u16::MAX)))
    }

    /// Joins the resources, puts them under `static_resources` of the bootstrap, and gives the whole as a document.
    pub fn finish(mut self, mut bootstrap: Part) -> Result<Document, Vec<Problem>> {
        let mut resources = fields::take(&mut bootstrap, "static_resources")
            .filter(|part| part.value().is_object())
            .unwrap_or_else(|| bootstrap.beside(json!({})));
        for (field, parts) in [
            ("listeners", std::mem::take(&mut self.resources.listeners)),
            ("clusters", std::mem::take(&mut self.resources.clusters)),
        ] {
            let present = fields::take_list(&mut resources, field);
            let mut list = resources.beside(Value::Array(Vec::new()));
            present.into_iter().chain(parts).for_each(|part| list.push(part));
            resources.insert(field, list);
        }
        self.join(&mut resources);
        if self.fills_clusters {
            self.fill_clusters(&mut resources);
        }
        bootstrap.insert("static_resources", resources);
        if self.problems.is_empty() {
            return Ok(Document::assembled(&self.file, self.others, bootstrap, self.notes));
        }
        Err(self.problems)
    }
}

/// Values in a value, long texts counted as several.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(weight).sum::<usize>(),
        _ => 1,
    }
}
