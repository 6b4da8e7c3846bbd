//! Which targets a change concerns: from the files of two commits, patterns or `sidegate.yaml`, to pairs of paths.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::cmd::gate::order::target_name;
use crate::git::{Entry, Tree};
use crate::problem::{Problem, on_one_line};
use crate::record::{Unmeasured, Why};
use crate::spec::Spec;

/// What both commits hold.
#[derive(Debug, Clone, Default)]
pub struct Commits {
    /// `None`: there is no base.
    pub base: Option<Tree>,
    pub head: Tree,
    /// Old path by new path.
    pub renames: BTreeMap<String, String>,
    /// Whether `sidegate.yaml` differs: every target may be judged otherwise.
    pub spec_changed: bool,
}

/// Which configs are under the gate.
#[derive(Debug)]
pub enum Gated<'s> {
    Patterns(Patterns),
    /// The targets of both commits' `sidegate.yaml`, the folder they are relative to, and what the file is called.
    Listed {
        base: &'s Spec,
        head: &'s Spec,
        folder: String,
        file: String,
    },
}

/// Patterns on paths of the repository.
#[derive(Debug)]
pub struct Patterns {
    texts: Vec<String>,
    set: GlobSet,
}

/// A target the change concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concerned {
    pub target: String,
    /// Path and blob in base; `None`: new.
    pub base: Option<(String, Entry)>,
    pub head: (String, Entry),
}

/// The targets to measure, and those only to name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub concerned: Vec<Concerned>,
    pub unmeasured: Vec<Unmeasured>,
    /// How many configs are under the gate, changed or not.
    pub gated: usize,
}

impl Commits {
    /// Whether the change edits the stored baseline of a target.
    pub fn edits_baseline(&self, target: &str) -> bool {
        let path = format!("baselines/{target}.json");
        self.base.as_ref().is_some_and(|base| base.get(&path) != self.head.get(&path))
    }
}

impl Patterns {
    /// `*` stays within a folder, `**` does not.
    pub fn new(texts: &[String]) -> Result<Self, Vec<Problem>> {
        let mut set = GlobSetBuilder::new();
        let mut problems = Vec::new();
        for text in texts {
            let plain = text.strip_prefix("./").unwrap_or(text);
            match GlobBuilder::new(plain).literal_separator(true).backslash_escape(true).build() {
                Ok(glob) => _ = set.add(glob),
                Err(e) => problems.push(
                    Problem::new("", format!("--config: `{}` is not a pattern: {}", on_one_line(text), e.kind()))
                        .help("write paths of the repository such as envoy/*.yaml or deploy/**/envoy.yaml"),
                ),
            }
        }
        match set.build() {
            Ok(set) if problems.is_empty() => Ok(Self { texts: texts.to_vec(), set }),
            Ok(_) => Err(problems),
            Err(e) => Err(vec![Problem::new("", format!("--config: {}", e.kind()))]),
        }
    }

    pub fn texts(&self) -> String {
        self.texts.iter().map(|text| format!("`{}`", on_one_line(text))).collect::<Vec<_>>().join(", ")
    }
}

/// The targets of `gated` that differ between the commits (all, where there is no base or `sidegate.yaml` differs).
pub fn select(commits: &Commits, gated: &Gated<'_>) -> Selection {
    let mut selection = match gated {
        Gated::Patterns(patterns) => by_patterns(commits, patterns),
        Gated::Listed { base, head, folder, file } => listed(commits, base, head, folder, file),
    };
    rename_twins(&mut selection.concerned);
    selection
}

fn by_patterns(commits: &Commits, patterns: &Patterns) -> Selection {
    let none = Tree::new();
    let base = commits.base.as_ref().unwrap_or(&none);
    let paths: BTreeSet<&String> =
        base.keys().chain(commits.head.keys()).filter(|p| patterns.set.is_match(p)).collect();
    let mut selection = Selection { gated: paths.len(), ..Selection::default() };
    let moved: BTreeMap<&String, &String> = commits.renames.iter().map(|(new, old)| (old, new)).collect();
    for path in paths {
        let target = target_name(Path::new(path));
        match (commits.head.contains_key(path), moved.get(path)) {
            (true, _) => {
                let old = if base.contains_key(path) { Some(path) } else { commits.renames.get(path) };
                selection.compare(commits, target, old, path);
            }
            // It is told at its new name.
            (false, Some(new)) if patterns.set.is_match(new) => {}
            (false, Some(new)) => {
                let message = format!("the config was moved to `{}`, which no pattern matches", on_one_line(new));
                selection.gone(target, path, message);
            }
            (false, None) => selection.gone(target, path, "the change removes the config".to_owned()),
        }
    }
    selection
}

fn listed(commits: &Commits, base_spec: &Spec, head_spec: &Spec, folder: &str, file: &str) -> Selection {
    let mut names: Vec<&str> = head_spec.targets.iter().map(|t| t.name.as_str()).collect();
    names.extend(base_spec.targets.iter().map(|t| t.name.as_str()).filter(|n| head_spec.target(n).is_none()));
    let none = Tree::new();
    let base = commits.base.as_ref().unwrap_or(&none);
    let moved: BTreeMap<&String, &String> = commits.renames.iter().map(|(new, old)| (old, new)).collect();
    let mut selection = Selection { gated: names.len(), ..Selection::default() };
    for name in names {
        let path = |spec: &Spec| spec.target(name).and_then(|t| within(folder, &t.config));
        let (in_base, in_head) = (path(base_spec), path(head_spec));
        let (Some(old), Some(new)) = (in_base.clone().or(in_head.clone()), in_head.clone().or(in_base.clone())) else {
            let message = format!("`config` of `{name}` in {} leads out of the repository", on_one_line(file));
            selection.refuse(name.to_owned(), None, None, message);
            continue;
        };
        // What the list forgot to follow: a config that moved.
        let new = if commits.head.contains_key(&new) { Some(new) } else { moved.get(&old).map(|&new| new.clone()) };
        let Some(new) = new else {
            if base.contains_key(&old) && in_head.is_none() {
                selection.gone(name.to_owned(), &old, "the change removes the config and its target".to_owned());
            } else {
                let message =
                    format!("{} names `{}`, which is not in the head commit", on_one_line(file), on_one_line(&old));
                selection.refuse(name.to_owned(), Some(old), None, message);
            }
            continue;
        };
        if in_head.is_none() && base.get(&old).is_some_and(|entry| commits.head.get(&new) == Some(entry)) {
            selection.gone(name.to_owned(), &old, format!("the change takes the target out of {}", on_one_line(file)));
            continue;
        }
        let old = if base.contains_key(&old) { Some(&old) } else { commits.renames.get(&new) };
        selection.compare(commits, name.to_owned(), old, &new);
    }
    selection
}

impl Selection {
    /// Takes a target in if its config differs, or what it is judged by.
    fn compare(&mut self, commits: &Commits, target: String, old: Option<&String>, new: &String) {
        let Some(head) = commits.head.get(new) else { return };
        let base = old.and_then(|old| Some((old.clone(), commits.base.as_ref()?.get(old)?.clone())));
        match &base {
            Some((old, entry)) if entry == head && !commits.spec_changed && !commits.edits_baseline(&target) => {
                if old != new && !commits.head.contains_key(old) {
                    self.unmeasured.push(Unmeasured {
                        message: format!("moved from `{}` without a change", on_one_line(old)),
                        base: Some(old.clone()),
                        head: Some(new.clone()),
                        target,
                        why: Why::Moved,
                        line: None,
                    });
                }
            }
            _ => self.concerned.push(Concerned { target, base, head: (new.clone(), head.clone()) }),
        }
    }

    fn gone(&mut self, target: String, path: &str, message: String) {
        let base = Some(path.to_owned());
        self.unmeasured.push(Unmeasured { target, base, head: None, why: Why::Removed, message, line: None });
    }

    fn refuse(&mut self, target: String, base: Option<String>, head: Option<String>, message: String) {
        self.unmeasured.push(Unmeasured { target, base, head, why: Why::Refused, message, line: None });
    }
}

/// `a.yaml` and `a.json` are two targets: the second keeps its ending, or gets a number.
fn rename_twins(concerned: &mut [Concerned]) {
    let mut taken = BTreeSet::new();
    for one in concerned {
        let whole = one.head.0.replace('/', "__");
        let mut name = one.target.clone();
        let mut count = 1;
        while !taken.insert(name.clone()) {
            name = if count == 1 { whole.clone() } else { format!("{whole}-{count}") };
            count += 1;
        }
        one.target = name;
    }
}

/// `path` relative to `folder` as a path of the repository; `None` where it leads out of it.
fn within(folder: &str, path: &Path) -> Option<String> {
    let mut parts: Vec<String> = folder.split('/').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => _ = parts.pop()?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Kind;
    use crate::spec::{Limits, Target};

    fn tree(files: &[(&str, &str)]) -> Tree {
        let entry = |id: &str| Entry { kind: Kind::File, id: id.to_owned() };
        files.iter().map(|(path, id)| ((*path).to_owned(), entry(id))).collect()
    }

    fn commits(base: &[(&str, &str)], head: &[(&str, &str)], renames: &[(&str, &str)]) -> Commits {
        let renames = renames.iter().map(|(old, new)| ((*new).to_owned(), (*old).to_owned())).collect();
        Commits { base: Some(tree(base)), head: tree(head), renames, spec_changed: false }
    }

    fn patterns(texts: &[&str]) -> Gated<'static> {
        let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
        Gated::Patterns(Patterns::new(&texts).unwrap())
    }

    fn names(selection: &Selection) -> Vec<(&str, Option<&str>, &str)> {
        selection
            .concerned
            .iter()
            .map(|c| (c.target.as_str(), c.base.as_ref().map(|b| b.0.as_str()), c.head.0.as_str()))
            .collect()
    }

    #[test]
    fn changed_added_renamed_and_removed_configs_are_told_apart() {
        let commits = commits(
            &[
                ("e/a.yaml", "1"),
                ("e/b.yaml", "2"),
                ("e/old.yaml", "3"),
                ("e/gone.yaml", "4"),
                ("e/out.yaml", "5"),
                ("x", "6"),
            ],
            &[
                ("e/a.yaml", "1"),
                ("e/b.yaml", "9"),
                ("e/new.yaml", "8"),
                ("e/added.yaml", "7"),
                ("out.yaml", "5"),
                ("x", "0"),
            ],
            &[("e/old.yaml", "e/new.yaml"), ("e/out.yaml", "out.yaml")],
        );
        let selection = select(&commits, &patterns(&["./e/*.yaml"]));
        assert_eq!(
            names(&selection),
            [
                ("e__added", None, "e/added.yaml"),
                ("e__b", Some("e/b.yaml"), "e/b.yaml"),
                ("e__new", Some("e/old.yaml"), "e/new.yaml"),
            ]
        );
        let told: Vec<(&str, Why)> = selection.unmeasured.iter().map(|u| (u.target.as_str(), u.why)).collect();
        assert_eq!(told, [("e__gone", Why::Removed), ("e__out", Why::Removed)]);
        assert!(selection.unmeasured[1].message.contains("moved to `out.yaml`"));
        assert_eq!(selection.gated, 7);
    }

    #[test]
    fn a_change_of_the_list_runs_all_and_twins_keep_apart() {
        let files = [("a.json", "1"), ("a.yaml", "2")];
        let same = commits(&files, &files, &[]);
        assert!(select(&same, &patterns(&["*"])).concerned.is_empty());
        let all = select(&Commits { spec_changed: true, ..same }, &patterns(&["*"]));
        assert_eq!(names(&all), [("a", Some("a.json"), "a.json"), ("a.yaml", Some("a.yaml"), "a.yaml")]);
        let alone = Commits { base: None, head: tree(&files), ..Commits::default() };
        assert!(select(&alone, &patterns(&["*.yaml"])).concerned.iter().all(|c| c.base.is_none()));
    }

    #[test]
    fn stars_stay_within_a_folder() {
        let commits = commits(&[], &[("a/b/c.yaml", "1"), ("a/c.yaml", "2"), ("a/[x].yaml", "3")], &[]);
        let found = |pattern: &str| select(&commits, &patterns(&[pattern])).gated;
        assert_eq!((found("a/*.yaml"), found("a/**/*.yaml"), found("a/\\[x\\].yaml"), found("*.yaml")), (2, 3, 1, 0));
        assert!(Patterns::new(&["a/[".to_owned()]).unwrap_err()[0].message.contains("not a pattern"));
    }

    fn spec(targets: &[(&str, &str)]) -> Spec {
        let target = |(name, config): &(&str, &str)| Target {
            name: (*name).to_owned(),
            config: config.into(),
            envoy: None,
            concurrency: None,
            limits: Limits::default(),
        };
        Spec { targets: targets.iter().map(target).collect(), ..Spec::default() }
    }

    #[test]
    fn targets_of_both_lists_count_and_moves_are_followed() {
        let (base, head) = (
            spec(&[
                ("kept", "./a.yaml"),
                ("dropped", "b.yaml"),
                ("moved", "m.yaml"),
                ("lost", "l.yaml"),
                ("bad", "../../x"),
            ]),
            spec(&[("kept", "a.yaml"), ("moved", "n.yaml"), ("lost", "l.yaml"), ("new", "new.yaml")]),
        );
        let commits = commits(
            &[("d/a.yaml", "1"), ("d/b.yaml", "2"), ("d/m.yaml", "3"), ("d/l.yaml", "4")],
            &[("d/a.yaml", "1"), ("d/b.yaml", "9"), ("d/n.yaml", "8"), ("d/new.yaml", "7")],
            &[],
        );
        let gated =
            Gated::Listed { base: &base, head: &head, folder: "d".to_owned(), file: "d/sidegate.yaml".to_owned() };
        let selection = select(&commits, &gated);
        assert_eq!(
            names(&selection),
            [
                ("moved", Some("d/m.yaml"), "d/n.yaml"),
                ("new", None, "d/new.yaml"),
                ("dropped", Some("d/b.yaml"), "d/b.yaml"),
            ]
        );
        let told: Vec<(&str, Why)> = selection.unmeasured.iter().map(|u| (u.target.as_str(), u.why)).collect();
        assert_eq!(told, [("lost", Why::Refused), ("bad", Why::Refused)]);
    }
}
