//! Where valgrind is, which one it is, and what its counts depend on.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::WORKLOAD_VERSION;
use crate::proxy::Spawner;
use crate::proxy::child::{Spec, User};
use crate::record::{CountingClass, Missing, Slot};
use crate::stop::Stop;

/// A folder, or the path of `valgrind` itself.
pub const VARIABLE: &str = "SIDEGATE_VALGRIND";

const VERSION_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
const GET: &str = "install valgrind (apt-get install valgrind), or name its folder in SIDEGATE_VALGRIND";

/// The two programs.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    pub valgrind: PathBuf,
    pub vgdb: PathBuf,
    /// `valgrind-3.19.0`.
    version: String,
}

impl Tools {
    pub fn find(spawner: &Spawner, stop: &Stop) -> Result<Self, Missing> {
        let folders = match env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) => vec![folder(Path::new(&value))],
            None => env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect(),
        };
        let find = |name: &str| {
            let found = folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path));
            found.ok_or_else(|| {
                let place = if env::var_os(VARIABLE).is_some() { VARIABLE } else { "PATH" };
                missing(format!("there is no `{name}` in {place}"), GET)
            })
        };
        let (valgrind, vgdb) = (find("valgrind")?, find("vgdb")?);
        for program in [&valgrind, &vgdb] {
            if !spawner.reaches(program) {
                let why = format!("{} cannot be executed by the users that proxies run as", program.display());
                return Err(missing(why, "install valgrind where every user can execute it"));
            }
        }
        let version = version(spawner, &valgrind, stop)?;
        Ok(Self { valgrind, vgdb, version })
    }

    /// What counts with these tools on this machine depend on.
    pub fn class(&self) -> CountingClass {
        CountingClass {
            architecture: env::consts::ARCH.to_owned(),
            instruction_set: instruction_set(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            libc: libc_version(),
            valgrind: self.version.clone(),
            workload_version: WORKLOAD_VERSION,
        }
    }
}

fn folder(value: &Path) -> PathBuf {
    if value.is_dir() { value.to_owned() } else { value.parent().map(Path::to_owned).unwrap_or_default() }
}

fn is_program(path: &Path) -> bool {
    path.is_absolute() && path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn missing(why: String, help: &str) -> Missing {
    Missing { why, help: help.to_owned() }
}

fn version(spawner: &Spawner, valgrind: &Path, stop: &Stop) -> Result<String, Missing> {
    let broken = |why: String| missing(format!("{} does not work: {why}", valgrind.display()), GET);
    let spec = Spec {
        program: valgrind.to_owned(),
        args: vec!["--version".into()],
        user: User::Slot(Slot::A),
        cpus: Vec::new(),
        files: Vec::new(),
        under: None,
    };
    let mut child = spawner.spawn(&spec).map_err(|e| broken(e.to_string()))?;
    let deadline = Instant::now() + VERSION_LIMIT;
    while child.wait(POLL).is_none() {
        if let Some(by) = stop.requested() {
            return Err(broken(format!("stopped by {by}")));
        }
        if Instant::now() > deadline {
            return Err(broken(format!("`--version` gave no answer in {} s", VERSION_LIMIT.as_secs())));
        }
    }
    let said = child.stdout_tail();
    let said = said.trim();
    match said.strip_prefix("valgrind-") {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) && said.len() < 40 => Ok(said.to_owned()),
        _ => Err(broken(format!("it says {:?}", child.log_tail(2).chars().take(200).collect::<String>()))),
    }
}

/// Valgrind shows a program one of a few processors, by what the real one can do.
fn instruction_set(cpuinfo: &str) -> String {
    let has = |flag: &str| {
        cpuinfo
            .lines()
            .filter(|line| line.starts_with("flags"))
            .take(1)
            .any(|line| line.split_ascii_whitespace().any(|word| word == flag))
    };
    let level = match env::consts::ARCH {
        "x86_64" if has("avx2") && has("bmi2") => "x86-64-v3",
        "x86_64" if has("avx") => "x86-64-v2 with AVX",
        "x86_64" if has("sse4_2") => "x86-64-v2",
        "x86_64" => "x86-64-v1",
        other => other,
    };
    level.to_owned()
}

/// The proxy is linked against the same C library as this process, wherever that is one of the common ones.
fn libc_version() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| line.split_ascii_whitespace().last());
    let ours = mapped.filter(|path| path.ends_with("/libc.so.6"));
    let usual = [
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/aarch64-linux-gnu/libc.so.6",
        "/lib64/libc.so.6",
        "/usr/lib/libc.so.6",
    ];
    let mut all = ours.chain(usual);
    let found = all.find_map(|path| glibc(&fs::read(path).ok()?));
    found.map_or_else(|| "unknown".to_owned(), |version| format!("glibc {version}"))
}

/// The library holds a sentence about itself: `GNU C Library (…) stable release version 2.36.`
fn glibc(bytes: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b" release version ";
    let at = bytes.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    let digits = bytes[at..].iter().take(16).take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let version: String = digits.map(|&byte| char::from(byte)).collect();
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_tells_its_version() {
        let bytes = b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright";
        assert_eq!(glibc(bytes).as_deref(), Some("2.36"));
        assert_eq!(glibc(b"musl"), None);
        assert!(libc_version().starts_with("glibc 2."), "{}", libc_version());
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn levels_follow_from_flags() {
        assert_eq!(instruction_set("model name: x\nflags\t\t: fpu avx avx2 bmi2 sse4_2\n"), "x86-64-v3");
        assert_eq!(instruction_set("flags\t\t: fpu avx sse4_2 notavx2\n"), "x86-64-v2 with AVX");
        assert_eq!(instruction_set(""), "x86-64-v1");
    }

    #[test]
    fn the_variable_may_name_the_program_or_its_folder() {
        assert_eq!(folder(Path::new("/usr/bin")), Path::new("/usr/bin"));
        assert_eq!(folder(Path::new("/opt/nowhere/valgrind")), Path::new("/opt/nowhere"));
    }
}
