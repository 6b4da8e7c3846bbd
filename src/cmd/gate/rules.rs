//! `sidegate.yaml` of two commits: limits and commands come from base, and only what a trusted change may decide from
//! head.

use std::path::Path;

use crate::cmd::gate::commits::Compared;
use crate::cmd::gate::order::{DEFAULT_SPEC, parse_spec};
use crate::exit::Failure;
use crate::git::{Repository, Tree};
use crate::problem::{Problem, on_one_line};
use crate::spec::{Limits, Spec, Target};

/// What holds for a change.
#[derive(Debug, Default)]
pub struct Rules {
    /// By which targets are judged.
    pub spec: Spec,
    /// The files as they are in the commits: which targets there are.
    pub base: Spec,
    pub head: Spec,
    /// Path of the file in the repository.
    pub file: String,
    pub changed: bool,
    pub notes: Vec<String>,
}

impl Rules {
    /// Folder that the file's paths are relative to.
    pub fn folder(&self) -> String {
        Path::new(&self.file).parent().map(|p| p.display().to_string()).unwrap_or_default()
    }

    /// Whether one of the commits lists targets.
    pub fn list_targets(&self) -> bool {
        !self.base.targets.is_empty() || !self.head.targets.is_empty()
    }
}

/// Reads both files. Faults of head's end the run; those of base's, which the change may be there to mend, do not.
pub fn read(
    given: Option<&Path>,
    repository: &Repository,
    compared: &Compared,
    base: Option<&Tree>,
    head: &Tree,
) -> Result<Rules, Failure> {
    let file = given.unwrap_or(Path::new(DEFAULT_SPEC)).to_string_lossy();
    let file = file.strip_prefix("./").unwrap_or(&file).to_owned();
    let (in_base, in_head) = (base.and_then(|tree| tree.get(&file)), head.get(&file));
    if given.is_some() && in_base.is_none() && in_head.is_none() {
        let problem = Problem::new(&file, "neither commit holds this file");
        return Err(problem.help("name it by its path in the repository").into());
    }
    let mut rules = Rules { changed: base.is_some() && in_base != in_head, file, ..Rules::default() };
    let text = |entry: Option<&crate::git::Entry>| -> Result<Option<Spec>, Failure> {
        let Some(entry) = entry else { return Ok(None) };
        match repository.text(entry)? {
            Ok(text) => parse_spec(&rules.file, &text).map(Some),
            Err(why) => Err(Problem::new(&rules.file, why.0).into()),
        }
    };
    rules.head = text(in_head)?.unwrap_or_default();
    if base.is_none() {
        rules.spec = rules.head.clone();
        return Ok(rules);
    }
    let (read, fault) = match text(in_base) {
        Ok(spec) => (spec.unwrap_or_default(), None),
        Err(failure) => (Spec::default(), Some(failure)),
    };
    rules.base = read;
    if let Some(failure) = fault {
        let why = failure.problems.first().map_or("it cannot be read", |p| p.message.as_str());
        let note =
            format!("{} of the base commit is not valid ({}): built-in limits decide", rules.file, on_one_line(why));
        rules.notes.push(note);
    }
    rules.spec = judged_by(&rules, compared.trusted);
    rules.notes.extend(rules.changed.then(|| note_of_change(&rules.file, compared.trusted)));
    Ok(rules)
}

/// Base's file; of head's the acceptances, and how to run targets that base does not know, where its author is trusted.
fn judged_by(rules: &Rules, trusted: bool) -> Spec {
    let mut spec = rules.base.clone();
    if trusted {
        spec.accept.clone_from(&rules.head.accept);
        let new = rules.head.targets.iter().filter(|t| rules.base.target(&t.name).is_none());
        spec.targets.extend(new.map(|t| Target { limits: Limits::default(), ..t.clone() }));
    }
    spec
}

fn note_of_change(file: &str, trusted: bool) -> String {
    let file = on_one_line(file);
    let accept = if trusted { "acceptances are head's" } else { "acceptances too, since the change comes from a fork" };
    format!("this change edits {file}: its limits and commands are still those of the base commit; {accept}")
}
