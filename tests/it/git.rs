//! Real repositories read by the real git: names, kinds of entries, history that is missing, hostile settings.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sidegate::git::{Kind, Repository};
use sidegate::proxy::Spawner;
use sidegate::stop::Stop;
use tempfile::TempDir;

use crate::common::{run, sidegate, text};

/// A repository in a folder of its own.
pub struct Sandbox {
    folder: TempDir,
    pub at: PathBuf,
}

impl Sandbox {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("temp dir");
        let at = folder.path().join("repository");
        fs::create_dir(&at).expect("can make a folder");
        let sandbox = Self { folder, at };
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox
    }

    /// A copy cut off after `depth` commits, as actions/checkout makes it.
    pub fn shallow(&self, depth: u32) -> Self {
        let folder = TempDir::new().expect("temp dir");
        let at = folder.path().join("repository");
        let url = format!("file://{}", self.at.display());
        let line = ["clone", "-q", "--depth", &depth.to_string(), &url, &at.display().to_string()];
        git_in(self.folder.path(), &line);
        Self { folder, at }
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.at, arguments)
    }

    pub fn write(&self, path: &str, content: &str) -> &Self {
        let whole = self.at.join(path);
        fs::create_dir_all(whole.parent().expect("has a folder")).expect("can make folders");
        fs::write(whole, content).expect("can write");
        self
    }

    /// Commits everything; the commit's name.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Two commits: what `base` writes and what `head` writes.
    pub fn change(base: &[(&str, &str)], head: &[(&str, &str)]) -> Self {
        let sandbox = Self::new();
        for (message, files) in [("base", base), ("head", head)] {
            files.iter().for_each(|(path, content)| _ = sandbox.write(path, content));
            sandbox.commit(message);
        }
        sandbox
    }

    pub fn repository(&self) -> Repository {
        Repository::open(&self.at, false, &Spawner::new().unwrap(), &Stop::default()).unwrap()
    }
}

fn git_in(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
    command.args(["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"]).args(arguments);
    let output = command.output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

#[test]
fn names_of_any_kind_and_line_ends_are_read_as_committed() {
    let names =
        ["with space.yaml", "-dash.yaml", "new\nline.yaml", "--help", "ünï.yaml", "a/\"quoted\".yaml", "tab\t.yaml"];
    let sandbox = Sandbox::new();
    for name in names {
        sandbox.write(name, "a: 1\r\nb: 2\r\n");
    }
    sandbox.git(&["config", "core.autocrlf", "false"]);
    sandbox.commit("names");
    let repository = sandbox.repository();
    let tree = repository.tree(&sandbox.head()).unwrap();
    for name in names {
        let text = repository.text(&tree[name]).unwrap().unwrap();
        assert_eq!(text, "a: 1\r\nb: 2\r\n", "{name:?}");
    }
    assert_eq!(tree.len(), names.len());
}

#[test]
fn links_submodules_pointers_and_huge_files_are_refused_by_their_kind() {
    let other = Sandbox::change(&[("x", "1")], &[("x", "2")]);
    let sandbox = Sandbox::new();
    sandbox
        .write("real.yaml", "a: 1\n")
        .write("lfs.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    symlink("real.yaml", sandbox.at.join("link.yaml")).unwrap();
    fs::write(sandbox.at.join("huge.yaml"), vec![b'a'; (16 << 20) + 1]).unwrap();
    fs::write(sandbox.at.join("latin.yaml"), b"a: \xe4\n").unwrap();
    sandbox.git(&["submodule", "add", "-q", &format!("file://{}", other.at.display()), "sub"]);
    sandbox.commit("kinds");
    let repository = sandbox.repository();
    let tree = repository.tree(&sandbox.head()).unwrap();
    assert_eq!((tree["link.yaml"].kind, tree["sub"].kind), (Kind::Link, Kind::Submodule));
    for (name, said) in [
        ("link.yaml", "symbolic link"),
        ("sub", "submodule"),
        ("lfs.yaml", "Git LFS"),
        ("huge.yaml", "larger than 16 MiB"),
        ("latin.yaml", "not UTF-8 text (byte 3)"),
    ] {
        let why = repository.text(&tree[name]).unwrap().unwrap_err();
        assert!(why.0.contains(said), "{name}: {why:?}");
    }
    assert_eq!(repository.text(&tree["real.yaml"]).unwrap().unwrap(), "a: 1\n");
}

#[test]
fn renames_are_found_and_deletions_are_none() {
    let body = "line of some length\n".repeat(20);
    let sandbox = Sandbox::change(&[("old name.yaml", &body), ("gone", "x")], &[]);
    sandbox.git(&["mv", "--", "old name.yaml", "-new\nname.yaml"]);
    sandbox.git(&["rm", "-q", "gone"]);
    let head = sandbox.commit("moved");
    let renames = sandbox.repository().renames(&sandbox.git(&["rev-parse", "HEAD^1"]), &head).unwrap();
    assert_eq!(renames.into_iter().collect::<Vec<_>>(), [("-new\nname.yaml".to_owned(), "old name.yaml".to_owned())]);
}

#[test]
fn parents_are_named_where_history_is_cut_off() {
    let sandbox = Sandbox::change(&[("x", "1")], &[("x", "2")]);
    let base = sandbox.git(&["rev-parse", "HEAD^1"]);
    for (depth, there) in [(1, None), (2, Some(base.clone()))] {
        let shallow = sandbox.shallow(depth);
        let repository = shallow.repository();
        assert!(repository.is_shallow().unwrap() == (depth == 1) || depth == 2);
        assert_eq!(repository.parents(&shallow.head()).unwrap(), std::slice::from_ref(&base));
        assert_eq!(repository.commit("HEAD^1").unwrap(), there);
    }
    let repository = sandbox.repository();
    for name in ["nowhere", "HEAD^7", "HEAD:x", "0000000000000000000000000000000000000000"] {
        assert_eq!(repository.commit(name).unwrap(), None, "{name}");
    }
    for name in ["", "-x", "--output=/tmp/x", "a\nb", "a\0b"] {
        assert!(repository.commit(name).unwrap_err().problems[0].message.contains("not a revision"), "{name:?}");
    }
}

/// A checkout can bring settings that start programs: none of them runs.
#[test]
fn settings_of_the_repository_start_nothing() {
    let sandbox = Sandbox::change(
        &[("a.yaml", "a: 1\n")],
        &[("a.yaml", "a: 2\n"), (".gitattributes", "* diff=evil filter=evil\n")],
    );
    let (script, proof) = (sandbox.at.join("evil.sh"), sandbox.folder.path().join("ran"));
    fs::write(&script, format!("#!/bin/sh\ntouch '{}'\ncat\n", proof.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let evil = script.display().to_string();
    for setting in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.smudge",
        "filter.evil.clean",
        "alias.ls-tree",
        "uploadpack.packObjectsHook",
    ] {
        sandbox.git(&["config", setting, &evil]);
    }
    let (base, head) = (sandbox.git(&["rev-parse", "HEAD^1"]), sandbox.head());
    let _ = fs::remove_file(&proof);
    let repository = sandbox.repository();
    let tree = repository.tree(&head).unwrap();
    assert_eq!(repository.text(&tree["a.yaml"]).unwrap().unwrap(), "a: 2\n");
    repository.renames(&base, &head).unwrap();
    repository.parents(&head).unwrap();
    assert!(!proof.exists(), "a program named by the repository ran");
}

/// Container actions run as root in a folder of another user.
#[test]
fn a_workspace_of_another_user_is_read_where_that_is_expected() {
    let sandbox = Sandbox::change(&[("x", "1")], &[("x", "2")]);
    if std::os::unix::fs::chown(&sandbox.at, Some(12_345), Some(12_345)).is_err() {
        return; // Only root can give a folder away; git's check is not met otherwise.
    }
    let spawner = Spawner::new().unwrap();
    let open = |trusted: bool| Repository::open(&sandbox.at, trusted, &spawner, &Stop::default());
    assert!(open(true).unwrap().commit("HEAD").unwrap().is_some());
    let refused = open(false).unwrap_err();
    assert!(refused.problems[0].message.contains("dubious ownership"), "{refused:?}");
}

#[test]
fn a_folder_without_a_repository_is_told() {
    let folder = TempDir::new().unwrap();
    let failure = Repository::open(folder.path(), true, &Spawner::new().unwrap(), &Stop::default()).unwrap_err();
    assert!(failure.problems[0].message.contains("not in a git repository"), "{failure:?}");
}

fn gate_in(sandbox: &Sandbox, arguments: &[&str]) -> (i32, String, String) {
    let mut command = sidegate();
    command.current_dir(&sandbox.at).arg("gate").args(arguments);
    command.env_remove("GITHUB_ACTIONS").env("SIDEGATE_ENVOY", "/nonexistent/envoy");
    run(&mut command)
}

#[test]
fn revisions_on_the_command_line_plan_what_changed() {
    let sandbox = Sandbox::change(
        &[("e/a.yaml", "a: 1\n"), ("e/same.yaml", "a: 1\n"), ("readme", "x")],
        &[("e/a.yaml", "a: 2\n"), ("e/new.yaml", "b: 1\n"), ("readme", "y")],
    );
    let (code, out, err) = gate_in(&sandbox, &["--base-rev", "HEAD^1", "--config", "e/*.yaml", "--print-plan"]);
    assert_eq!(code, 0, "{err}");
    let targets: Vec<&str> = out.lines().filter_map(|l| l.strip_prefix("target       ")).collect();
    assert_eq!(targets, ["e__a", "e__new"]);
    assert!(out.contains("base         e/a.yaml (") && out.contains("base         none ("), "{out}");
    let (code, out, err) =
        gate_in(&sandbox, &["--base-rev", "HEAD^1", "--config", "r*", "x*", "e/same*", "--target", "e__same"]);
    assert_eq!((code, out.contains("SKIPPED")), (0, true), "{out}{err}");
}

#[test]
fn what_cannot_be_compared_ends_two_with_a_way_out() {
    let sandbox = Sandbox::change(&[("a.yaml", "a: 1\n")], &[("a.yaml", "a: 2\n")]);
    for (arguments, said) in [
        (&["--config", "*"][..], "nothing to compare"),
        (&["--base-rev", "nowhere", "--config", "*"], "base commit (nowhere)"),
        (&["--base-rev", "-x", "--config", "*"], "unexpected argument"),
        (&["--base-rev=-x", "--config", "*"], "`-x` is not a revision"),
        (&["--head-rev", "HEAD", "--config", "*"], "without a base"),
        (&["--base-rev", "HEAD^1"], "which configs are under the gate"),
        (&["--base-rev", "HEAD^1", "--config", "b*"], "no file of either commit matches `b*`"),
        (&["--base-rev", "HEAD^1", "--config", "a[", "--config", "b["], "`b[` is not a pattern"),
        (&["--base-rev", "HEAD^1", "--config", "*", "--spec", "no.yaml"], "no.yaml: neither commit holds this file"),
        (&["--base-rev", "HEAD^1", "--config", "*", "--head", "x"], "cannot be used with"),
    ] {
        let (code, _, err) = gate_in(&sandbox, arguments);
        assert!(code == 2 && err.contains(said), "{arguments:?}: {code}\n{err}");
    }
    let shallow = sandbox.shallow(1);
    let (code, _, err) = gate_in(&shallow, &["--base-rev", "HEAD^1", "--config", "*"]);
    assert!(code == 2 && err.contains("history was cut off") && err.contains("fetch-depth: 0"), "{err}");
}

#[test]
fn limits_are_of_base_and_acceptances_of_head() {
    let accept = "accept: [{target: t, metric: cpu_ns_per_request, up_to: 12%, until: 2026-01-01, reason: x}]\n";
    let base = "version: 1\ndefaults: {profile: quick, limits: strict}\ntargets: [{name: t, config: a.yaml, concurrency: 2}]\n";
    let head = base.replace("quick", "deep").replace("strict", "lenient") + accept;
    let sandbox = Sandbox::change(&[("sidegate.yaml", base), ("a.yaml", "a: 1\n")], &[("sidegate.yaml", &head)]);
    let (code, out, err) = gate_in(&sandbox, &["--base-rev", "HEAD^1", "--print-plan"]);
    assert!(code == 0 && out.contains("profile      quick, limits strict"), "{out}{err}");
    sandbox.write("sidegate.yaml", "version: 1\ntargets: 7\n").commit("broken");
    let (code, _, err) = gate_in(&sandbox, &["--base-rev", "HEAD^1"]);
    assert!(code == 2 && err.contains("sidegate.yaml:2:"), "{err}");
    // A base that is broken is what the next change mends.
    sandbox.write("sidegate.yaml", base).commit("mended");
    let (code, out, err) = gate_in(&sandbox, &["--base-rev", "HEAD^1", "--print-plan"]);
    assert!(code == 0 && out.contains("limits default"), "{out}{err}");
}
