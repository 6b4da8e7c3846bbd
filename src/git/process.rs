//! One call of `git`: bounded in time and output, stoppable, without the caller's environment.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::exit::Failure;
use crate::problem::{Problem, on_one_line};
use crate::proxy::Spawner;
use crate::proxy::child::{Spec, User};
use crate::stop::Stop;

/// Listing the largest repositories takes seconds.
const DEADLINE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(50);
/// Starts a program with nothing but the environment it is given.
const ENV: &str = "/usr/bin/env";
/// What `env` ends with where the program is not there.
const NOT_FOUND: i32 = 127;

/// Settings that could start a program, reach the network, or change what an object's name stands for.
const SETTINGS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "diff.external=",
];

#[derive(Debug)]
pub struct Git {
    folder: PathBuf,
    trusted: bool,
    spawner: Spawner,
    stop: Stop,
}

#[derive(Debug)]
pub struct Output {
    status: ExitStatus,
    pub stdout: Vec<u8>,
    stderr: String,
}

impl Git {
    pub fn new(folder: &Path, trusted: bool, spawner: Spawner, stop: Stop) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self { folder, trusted, spawner, stop }
    }

    /// Runs `git` with `arguments`. Standard output beyond `most` bytes is an error.
    pub fn run(&self, arguments: &[&str], most: u64) -> Result<Output, Failure> {
        let spec = Spec {
            program: PathBuf::from(ENV),
            args: self.command_line(arguments),
            user: User::Own,
            cpus: Vec::new(),
            files: Vec::new(),
        };
        let mut child = self.spawner.spawn(&spec).map_err(|e| failed(&format!("cannot be started: {e}")))?;
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = child.wait(STEP) {
                break status;
            }
            if let Some(signal) = self.stop.requested() {
                return Err(failed(&format!("was stopped by {signal}")));
            }
            if Instant::now() >= deadline {
                return Err(failed(&format!("gave no answer in {} s", DEADLINE.as_secs())));
            }
        };
        if status.code() == Some(NOT_FOUND) {
            return Err(Failure::environment(
                Problem::new("", "git is not installed").help("install git 2.30 or newer"),
            ));
        }
        let stdout = read(&child.folder().join("stdout.log"), most)?;
        Ok(Output { status, stdout, stderr: child.log_tail(50) })
    }

    fn command_line(&self, arguments: &[&str]) -> Vec<OsString> {
        let own = |name: &str| std::env::var_os(name).unwrap_or_default();
        let set = |name: &str, value: OsString| {
            let mut text = OsString::from(name);
            text.push("=");
            text.push(value);
            text
        };
        let mut line: Vec<OsString> = vec!["-i".into(), set("PATH", own("PATH")), "LC_ALL=C".into()];
        if self.trusted {
            line.extend(["HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"].map(Into::into));
        } else {
            // The user's own settings may name folders of others as safe.
            line.extend([set("HOME", own("HOME")), set("XDG_CONFIG_HOME", own("XDG_CONFIG_HOME"))]);
        }
        let fixed = [
            "GIT_ATTR_NOSYSTEM=1",
            "GIT_TERMINAL_PROMPT=0",
            "GIT_OPTIONAL_LOCKS=0",
            "GIT_NO_LAZY_FETCH=1",
            "GIT_NO_REPLACE_OBJECTS=1",
            "git",
            "--no-pager",
            "-C",
        ];
        line.extend(fixed.map(Into::into));
        line.push(self.folder.clone().into());
        for setting in SETTINGS {
            line.extend(["-c".into(), setting.into()]);
        }
        if self.trusted {
            // A container's workspace belongs to the user outside. Only the folder we were told to read, or one above.
            for folder in self.folder.ancestors() {
                line.extend(["-c".into(), set("safe.directory", folder.into())]);
            }
        }
        line.extend(arguments.iter().map(Into::into));
        line
    }
}

impl Output {
    pub fn succeeded(&self) -> bool {
        self.status.success()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What it complained of, on one line.
    pub fn said(&self) -> String {
        let mut lines = self.stderr.lines();
        let fault = lines.clone().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
        let line = on_one_line(fault.or_else(|| lines.next()).unwrap_or_default());
        if line.is_empty() { self.status.to_string() } else { line }
    }
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|e| failed(&format!("wrote what cannot be read: {e}")))?;
    if bytes.len() as u64 > most {
        return Err(failed(&format!("answered more than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

fn failed(what: &str) -> Failure {
    Failure::environment(Problem::new("", format!("git {what}")))
}
