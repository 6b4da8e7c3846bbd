//! A proxy's executable: what it says it is, and what its bytes are.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::proxy::child::{Spawner, Spec, User, describe};
use crate::record::{ProxyId, Slot};
use crate::stop::Stop;

/// `--version` of a real proxy answers in a tenth of a second; the rest is for a busy machine.
const VERSION_LIMIT: Duration = Duration::from_secs(20);
/// How often a signal is looked for meanwhile.
const STOP_POLL: Duration = Duration::from_millis(20);
/// What is shown of a program that is no Envoy, in characters.
const MOST_SAID: usize = 300;
/// Longer versions are none: `1.41.0-dev` has ten characters.
const MOST_VERSION: usize = 32;

/// An Envoy that may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyBinary {
    pub path: PathBuf,
    /// As the binary itself tells it: `1.40.0`.
    pub version: String,
    /// Of the whole file, lower-case hexadecimal.
    pub sha256: String,
}

impl ProxyBinary {
    /// As the record names it.
    pub fn id(&self) -> ProxyId {
        ProxyId { kind: "envoy".to_owned(), version: self.version.clone(), sha256: self.sha256.clone() }
    }
}

/// Asks the binary for its version, contained like any proxy.
///
/// # Errors
/// Why it cannot be run, or is no Envoy.
pub fn version(path: &Path, spawner: &Spawner, stop: &Stop) -> Result<String, String> {
    let path = path.canonicalize().map_err(|e| e.to_string())?;
    let args = vec!["--version".into()];
    let spec =
        Spec { program: path, args, user: User::Slot(Slot::A), cpus: Vec::new(), files: Vec::new(), under: None };
    let mut child = spawner.spawn(&spec).map_err(|e| not_executed(&e))?;
    let deadline = Instant::now() + VERSION_LIMIT;
    let status = loop {
        if let Some(status) = child.wait(STOP_POLL) {
            break status;
        }
        if let Some(by) = stop.requested() {
            return Err(format!("stopped by {by}"));
        }
        if Instant::now() >= deadline {
            return Err(format!("`--version` gave no answer in {} s", VERSION_LIMIT.as_secs()));
        }
    };
    match parse_version(&child.stdout_tail()) {
        Some(version) if status.success() => Ok(version),
        _ => {
            let said: String = child.log_tail(3).chars().take(MOST_SAID).collect();
            let said = if said.is_empty() { "nothing" } else { &said };
            Err(format!("it does not answer `--version` like Envoy ({}), it says: {said}", describe(status)))
        }
    }
}

/// Why `exec` failed, in words that help.
pub(super) fn not_executed(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOEXEC) => "it is no program for this machine".to_owned(),
        Some(libc::EACCES) => "it may not be executed (mode, or a file system mounted noexec)".to_owned(),
        Some(libc::ENOENT) => "no such file, or its dynamic loader is missing".to_owned(),
        _ => error.to_string(),
    }
}

/// SHA-256 of a file, lower-case hexadecimal.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 256 << 10];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&chunk[..n]),
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `envoy  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL`.
fn parse_version(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.split_once(" version: ").map(|(_, rest)| rest))?;
    let version = line.split('/').nth(1)?;
    let plain = version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+_".contains(c));
    let is_one = plain && version.len() <= MOST_VERSION && version.starts_with(|c: char| c.is_ascii_digit());
    is_one.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_second_part() {
        let text = "\n/x/envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.40.0/Clean/RELEASE/BoringSSL\n\n";
        assert_eq!(parse_version(text).as_deref(), Some("1.40.0"));
        assert_eq!(parse_version("GNU bash, version 5.2"), None);
        assert_eq!(parse_version(""), None);
        assert_eq!(parse_version("envoy  version: c/1.41.0-dev/Clean").as_deref(), Some("1.41.0-dev"));
        assert_eq!(parse_version("envoy  version: c/1.40.0 ::error::x/Clean"), None);
        assert_eq!(parse_version(&format!("envoy  version: c/1.40.{}/Clean", "0".repeat(3000))), None);
    }

    #[test]
    fn hash_of_known_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(file.path()).unwrap(), known);
    }
}
