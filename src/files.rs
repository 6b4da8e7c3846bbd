//! The files a run leaves behind and reads back: whole or not at all.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use sha2::{Digest, Sha256};

use crate::exit::Failure;
use crate::problem::{Problem, Span};
use crate::record::{self, Record, TargetRecord};
use crate::report;
use crate::verdict::Verdict;

/// Larger records are not ours: a `deep` run stays under a tenth of this.
const MAX_RECORD_BYTES: u64 = 128 << 20;

/// Larger configs are refused before they are parsed.
const MAX_TEXT_BYTES: u64 = 32 << 20;

/// How long a pipe given as a file (`<(render config)`) may take.
const PIPE_PATIENCE: Duration = Duration::from_secs(5);

/// The folder for `record.json`, `verdict.json` and `report.md`.
#[derive(Debug)]
pub struct Out {
    dir: PathBuf,
}

impl Out {
    /// Creates the folder and checks that it takes files, so that a minute of measuring is not lost at the end.
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let out = Self { dir: dir.to_path_buf() };
        if dir.exists() && !dir.is_dir() {
            let problem = Problem::new(dir.display().to_string(), "it is no folder");
            return Err(problem.help("name a folder for the results with --out DIR").into());
        }
        fs::create_dir_all(dir).map_err(|e| out.cannot_write(dir, &e))?;
        tempfile::NamedTempFile::new_in(dir)
            .and_then(|mut probe| probe.write_all(&[0; 4096]))
            .map_err(|e| out.cannot_write(dir, &e))?;
        Ok(out)
    }

    /// Removes what an earlier run left: a verdict must not lie beside the record of another run.
    pub fn clear(&self) -> Result<(), Failure> {
        for name in ["record.json", "verdict.json", "report.md"] {
            let path = self.dir.join(name);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(self.cannot_write(&path, &e)),
                _ => {}
            }
        }
        Ok(())
    }

    pub fn write_record(&self, record: &Record) -> Result<(), Failure> {
        self.write("record.json", to_json(record).as_bytes())
    }

    pub fn write_verdict(&self, record: &Record, verdict: &Verdict) -> Result<(), Failure> {
        self.write("verdict.json", report::json(verdict).as_bytes())?;
        self.write("report.md", report::markdown(record, verdict).as_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.dir.join(name);
        replace(&path, bytes).map_err(|e| self.cannot_write(&path, &e))
    }

    fn cannot_write(&self, path: &Path, error: &io::Error) -> Failure {
        Failure::environment(
            Problem::new(path.display().to_string(), format!("cannot write: {error}"))
                .help("free some space or choose another folder with --out DIR"),
        )
    }
}

/// Writes beside the place and renames: a reader sees the old file or the new one, never half of one, whatever happens
/// meanwhile.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".sidegate-").tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    readable_by_all(file.as_file())?;
    file.persist(path).map_err(|e| e.error)?;
    // The new name must survive a crash too; where a folder cannot be synced, it is as safe as any other file there.
    let _ = fs::File::open(dir).and_then(|dir| dir.sync_all());
    Ok(())
}

/// Temporary files are private; results are for other steps of a workflow, perhaps under another user.
fn readable_by_all(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

fn to_json(record: &Record) -> String {
    let mut text = serde_json::to_string(record).expect("a record has text keys and finite depth");
    text.push('\n');
    text
}

/// Reads a config or spec as text. Errors name the file and what to do.
pub fn read_text(path: &Path) -> Result<String, Problem> {
    let name = path.display().to_string();
    let bytes = read_capped(path, MAX_TEXT_BYTES).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            Problem::new(&name, "no such file").help("check the path; it is relative to the current folder")
        }
        _ => Problem::new(&name, format!("cannot read: {e}")),
    })?;
    String::from_utf8(bytes).map_err(|e| {
        Problem::new(&name, format!("not UTF-8 text (byte {})", e.utf8_error().valid_up_to()))
            .help("save the file as UTF-8")
    })
}

/// A config to measure: where its text lies, and what it is called in messages and results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// The path as the user named it, or in the repository.
    pub name: String,
    pub path: PathBuf,
    /// The path is a copy's: what lay beside the file is not beside it.
    pub is_copy: bool,
}

impl ConfigFile {
    /// Named by where it lies.
    pub fn at(path: &Path) -> Self {
        Self { name: path.display().to_string(), path: path.to_owned(), is_copy: false }
    }

    pub fn read(&self) -> Result<String, Problem> {
        read_text(&self.path).map_err(|problem| Problem { file: self.name.clone(), ..problem })
    }

    /// A file that the config names, from the config's own folder or below it, never through a link that leaves it:
    /// its name and text. The path is one of the machine the proxy runs on, so the longest end of it that exists here
    /// is taken. Errors say why there is none.
    pub fn beside(&self, path: &str) -> Result<(String, String), String> {
        if self.is_copy {
            return Err("between commits, files beside a config are not read yet".to_owned());
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err("it leads out of a folder (`..`)".to_owned());
        }
        let folder = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
        let here = folder(&self.path);
        let root = if here.as_os_str().is_empty() { Path::new(".") } else { &here };
        let root = root.canonicalize().map_err(|error| error.to_string())?;
        let ends = (0..parts.len()).map(|at| parts.iter().skip(at).collect::<PathBuf>());
        let Some(end) = ends.into_iter().find(|end| root.join(end).symlink_metadata().is_ok()) else {
            return Err("there is no such file in the folder of the config".to_owned());
        };
        let file = root.join(&end).canonicalize().map_err(|error| error.to_string())?;
        if !file.starts_with(&root) {
            return Err("a link leads out of the folder of the config".to_owned());
        }
        if !file.is_file() {
            return Err("it is not a file".to_owned());
        }
        let text = read_text(&file).map_err(|problem| problem.message)?;
        Ok((folder(Path::new(&self.name)).join(end).display().to_string(), text))
    }
}

/// SHA-256 of a text, lower-case hexadecimal.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a record back; what is not one of ours is refused by the field that shows it.
pub fn read_record(path: &Path) -> Result<Record, Failure> {
    let name = path.display().to_string();
    let bytes = read_capped(path, MAX_RECORD_BYTES).map_err(|e| Problem::new(&name, format!("cannot read: {e}")))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| not_a_record(&name, &e))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(schema) if schema == u64::from(record::SCHEMA) => {}
        Some(schema) => {
            let newest = record::SCHEMA;
            return Err(Problem::new(&name, format!("`schema` is {schema}; this sidegate reads {newest}"))
                .help("use the version of sidegate that wrote the record")
                .into());
        }
        None => return Err(Problem::new(&name, "no `schema`: this is not a record of sidegate").into()),
    }
    drop(value);
    let record: Record = serde_json::from_slice(&bytes).map_err(|e| not_a_record(&name, &e))?;
    match incomplete(&record) {
        None => Ok(record),
        Some(what) => {
            let help = "nothing can be concluded from it: run the gate again";
            Err(Problem::new(&name, format!("not a whole record: {what}")).help(help).into())
        }
    }
}

/// What is missing from a record that only an edited one lacks, and without which a verdict would be void.
fn incomplete(record: &Record) -> Option<String> {
    if record.targets.is_empty() && record.scope.is_empty() {
        return Some("it has no target".to_owned());
    }
    let lost = |target: &&TargetRecord| {
        let mut slices = target.blocks.iter().flat_map(|block| &block.slices);
        slices.any(|slice| slice.scenario as usize >= target.scenarios.len())
    };
    record.targets.iter().find(lost).map(|t| format!("target `{}` has slices of scenarios it does not list", t.name))
}

fn not_a_record(name: &str, error: &serde_json::Error) -> Problem {
    let span = Span {
        line: u32::try_from(error.line()).unwrap_or(u32::MAX),
        column: u32::try_from(error.column()).unwrap_or(u32::MAX),
    };
    Problem::new(name, format!("not a record of sidegate: {error}"))
        .at(Some(span))
        .help("give the record.json that `sidegate gate --out DIR` wrote")
}

fn read_capped(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe that nobody writes to would otherwise wait for ever, and no signal would end it.
    let file = fs::File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    let deadline = Instant::now() + PIPE_PATIENCE;
    let (mut file, mut bytes) = (file.take(most + 1), Vec::new());
    loop {
        match file.read_to_end(&mut bytes) {
            // No writer yet.
            Ok(0) if kind.is_fifo() && bytes.is_empty() => {}
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        if Instant::now() >= deadline {
            let seconds = PIPE_PATIENCE.as_secs();
            return Err(io::Error::other(format!("it is a pipe whose writer gave nothing or no end in {seconds} s")));
        }
        thread::sleep(Duration::from_millis(5));
    }
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}
