//! Envoy's release page: the binary, and the list of checksums it publishes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::proxy::binary::hex;
use crate::stop::Stop;

/// Where releases are published; tests and mirrors say `SIDEGATE_RELEASE_URL` instead.
pub const RELEASES: &str = "https://github.com/envoyproxy/envoy/releases/download";
const MOST_BYTES: u64 = 2 << 30;
const MOST_CHECKSUMS_BYTES: u64 = 1 << 20;
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(900);

/// Why a source did not give the binary.
#[derive(Debug, thiserror::Error)]
pub(super) enum Miss {
    /// The next source may have it.
    #[error("{0}")]
    Unavailable(String),
    /// Somebody serves something else: nothing is tried after that.
    #[error("{what} has the wrong SHA-256: {actual}, expected {expected}")]
    WrongHash { what: String, expected: String, actual: String },
    #[error("stopped by a signal")]
    Stopped,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Downloads a release's binary to `target`. Its hash is the one given, or stands in the release's checksum file.
pub(super) fn release(base: &str, version: &str, given: Option<&str>, target: &Path, stop: &Stop) -> Result<(), Miss> {
    let folder = format!("{}/v{version}", base.trim_end_matches('/'));
    let names = asset_names(version);
    let (name, expected) = match given {
        Some(hash) => (names[0].clone(), hash.to_owned()),
        None => {
            let mut list = Vec::new();
            transfer(&format!("{folder}/checksums.txt.asc"), MOST_CHECKSUMS_BYTES, stop, |chunk| {
                list.extend_from_slice(chunk);
                Ok(())
            })?;
            listed(&String::from_utf8_lossy(&list), &names).ok_or_else(|| {
                Miss::Unavailable(format!("release page: its checksum file does not list {}", names[0]))
            })?
        }
    };
    let mut hash = Sha256::new();
    let mut file = File::create_new(target)?;
    transfer(&format!("{folder}/{name}"), MOST_BYTES, stop, |chunk| {
        hash.update(chunk);
        file.write_all(chunk)
    })?;
    let actual = hex(&hash.finalize());
    if actual != expected {
        return Err(Miss::WrongHash { what: name, expected, actual });
    }
    Ok(file.sync_all()?)
}

/// Releases spell the second architecture with an underscore.
fn asset_names(version: &str) -> Vec<String> {
    let spellings: &[&str] = match std::env::consts::ARCH {
        "aarch64" => &["aarch_64", "aarch64"],
        other => &[other],
    };
    spellings.iter().map(|arch| format!("envoy-{version}-linux-{arch}")).collect()
}

/// The signed text's lines are `hash  name`; the signature around it is not verified, the connection's TLS is.
fn listed(text: &str, names: &[String]) -> Option<(String, String)> {
    text.lines().find_map(|line| {
        let (hash, name) = line.split_once(char::is_whitespace)?;
        let name = name.trim().trim_start_matches(['*', '.', '/']);
        let found = names.iter().find(|wanted| name.rsplit('/').next() == Some(wanted))?;
        Some((found.clone(), parse_sha256(hash)?))
    })
}

/// 64 hexadecimal digits, made lower case.
pub fn parse_sha256(text: &str) -> Option<String> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_ascii_lowercase())
}

/// Reads `url` piece by piece. A thread of its own does the blocking, so that a signal is answered at once.
fn transfer(url: &str, most: u64, stop: &Stop, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> Result<(), Miss> {
    let (pieces, queue) = mpsc::sync_channel::<Result<Vec<u8>, String>>(8);
    let address = url.to_owned();
    thread::Builder::new().name("download".into()).spawn(move || read(&address, most, &pieces))?;
    loop {
        match queue.recv_timeout(Duration::from_millis(50)) {
            Ok(Ok(piece)) if piece.is_empty() => return Ok(()),
            Ok(Ok(piece)) => take(&piece)?,
            Ok(Err(why)) => return Err(Miss::Unavailable(format!("release page: {url}: {why}"))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Miss::Unavailable(format!("release page: {url}: the download broke off")));
            }
        }
        if stop.requested().is_some() {
            return Err(Miss::Stopped);
        }
    }
}

/// Sends the body in pieces, then an empty one: only then is it complete.
fn read(url: &str, most: u64, pieces: &mpsc::SyncSender<Result<Vec<u8>, String>>) {
    let send = |piece| pieces.send(piece).is_ok();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_LIMIT))
        .timeout_recv_response(Some(CONNECT_LIMIT))
        .timeout_global(Some(LIMIT))
        .user_agent(concat!("sidegate/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut body = match agent.get(url).call() {
        Ok(answer) => answer.into_body().into_with_config().limit(most).reader(),
        Err(e) => {
            send(Err(e.to_string()));
            return;
        }
    };
    let mut chunk = vec![0; 256 << 10];
    loop {
        let piece = match body.read(&mut chunk) {
            Ok(n) => Ok(chunk[..n].to_vec()),
            Err(e) => Err(e.to_string()),
        };
        let last = piece.as_ref().map_or(true, Vec::is_empty);
        if !send(piece) || last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_found_in_a_signed_list() {
        let hash = "A".repeat(64);
        let text = format!(
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{}  envoy-contrib-1.2.3-linux-x86_64\n\
             {hash}  bin/envoy-1.2.3-linux-x86_64\nxyz  envoy-1.2.3-linux-x86_64\n-----BEGIN PGP SIGNATURE-----\n",
            "b".repeat(64)
        );
        let name = "envoy-1.2.3-linux-x86_64".to_owned();
        assert_eq!(listed(&text, std::slice::from_ref(&name)), Some((name, "a".repeat(64))));
        assert_eq!(listed(&text, &["envoy-9.9.9-linux-x86_64".to_owned()]), None);
    }
}
