//! A runner in small: sets what GitHub's runner sets for a container action, and reads what comes back by the same rules
//! (`EnvFileKeyValuePairs`, `ActionCommand.TryParseV2` and `TryParse`, its limits).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use sidegate::yaml::Document;
use tempfile::TempDir;

use crate::common::{envoy, text, wait};
use crate::git::Sandbox;

/// The action's inputs and their defaults, as its file has them.
const INPUTS: [(&str, &str); 11] = [
    ("command", "gate"),
    ("config", ""),
    ("spec", ""),
    ("profile", ""),
    ("limits", ""),
    ("envoy-version", ""),
    ("on-inconclusive", "pass"),
    ("comment", ""),
    ("github-token", ""),
    ("base-ref", ""),
    ("out", "sidegate-out"),
];
const OUTPUTS: [&str; 4] = ["verdict", "result-path", "report-path", "regressions"];

/// The runner drops summaries beyond this.
const SUMMARY_LIMIT: usize = 1 << 20;
/// And cuts messages at this many characters.
const MESSAGE_LIMIT: usize = 4096;

/// A step that has not run yet.
pub struct Step<'s> {
    workspace: &'s Path,
    event: String,
    payload: Value,
    inputs: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    mounts: TempDir,
}

/// What came of a step.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub log: String,
    pub commands: Vec<Line>,
    pub outputs: BTreeMap<String, String>,
    pub summary: String,
}

/// One command that the runner would execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub name: String,
    pub properties: BTreeMap<String, String>,
    pub data: String,
}

impl<'s> Step<'s> {
    pub fn new(sandbox: &'s Sandbox, event: &str, payload: Value) -> Self {
        let inputs = declared().into_iter().collect();
        let mounts = TempDir::new().expect("temp dir");
        Self { workspace: &sandbox.at, event: event.to_owned(), payload, inputs, variables: BTreeMap::new(), mounts }
    }

    pub fn input(mut self, name: &str, value: &str) -> Self {
        assert!(self.inputs.insert(name.to_owned(), value.to_owned()).is_some(), "action.yml has no input `{name}`");
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// With the real Envoy of the tests.
    pub fn with_envoy(self) -> Self {
        let envoy = envoy();
        self.variable("SIDEGATE_ENVOY", &envoy)
    }

    fn mount(&self, name: &str) -> PathBuf {
        self.mounts.path().join(name)
    }

    /// Starts it with both outputs in one, in the order in which they were written: as the runner reads them.
    pub fn start(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidegate"));
        command.arg("action").current_dir(self.workspace).env_clear().stdin(Stdio::null());
        // No shell between: it would drop variables with a hyphen in their name.
        let log = fs::File::options().append(true).create(true).open(self.mount("log")).expect("can open");
        command.stdout(log.try_clone().expect("can be shared")).stderr(log);
        for folder in ["home", "workflow", "file_commands", "runner_temp", "cache"] {
            fs::create_dir_all(self.mount(folder)).expect("can make a folder");
        }
        fs::write(self.mount("workflow/event.json"), self.payload.to_string()).expect("can write");
        for file in ["output", "summary"] {
            fs::write(self.mount("file_commands").join(file), "").expect("can write");
        }
        let path = std::env::var("PATH").expect("there is a PATH");
        let of_mount = |name: &str| self.mount(name).display().to_string();
        for (name, value) in [
            ("PATH", path),
            ("HOME", of_mount("home")),
            ("CI", "true".to_owned()),
            ("GITHUB_ACTIONS", "true".to_owned()),
            ("GITHUB_EVENT_NAME", self.event.clone()),
            ("GITHUB_EVENT_PATH", of_mount("workflow/event.json")),
            ("GITHUB_OUTPUT", of_mount("file_commands/output")),
            ("GITHUB_STEP_SUMMARY", of_mount("file_commands/summary")),
            ("GITHUB_REPOSITORY", "shop/mesh".to_owned()),
            ("GITHUB_RUN_ID", "77".to_owned()),
            ("GITHUB_RUN_ATTEMPT", "1".to_owned()),
            ("GITHUB_WORKSPACE", self.workspace.display().to_string()),
            ("RUNNER_TEMP", of_mount("runner_temp")),
            ("SIDEGATE_CACHE", of_mount("cache")),
            // Whatever wants to start a proxy in these tests and must not, fails here and not on the network.
            ("SIDEGATE_ENVOY", "/nonexistent/envoy".to_owned()),
        ] {
            command.env(name, value);
        }
        for (name, value) in &self.inputs {
            command.env(format!("INPUT_{}", name.replace(' ', "_").to_uppercase()), value);
        }
        command.envs(&self.variables).spawn().expect("sidegate starts")
    }

    pub fn run(&self) -> Done {
        let child = self.start();
        self.end(child, Duration::from_secs(180))
    }

    pub fn end(&self, child: Child, most: Duration) -> Done {
        let output = wait(child, most);
        let log = text(&fs::read(self.mount("log")).expect("is there"));
        let read = |name: &str| fs::read_to_string(self.mount("file_commands").join(name)).expect("is there");
        let outputs = parse_outputs(&read("output")).unwrap_or_else(|e| panic!("the step fails: {e}\n{log}"));
        for name in outputs.keys() {
            assert!(OUTPUTS.contains(&name.as_str()), "action.yml has no output `{name}`");
        }
        let summary = read("summary");
        assert!(summary.len() <= SUMMARY_LIMIT, "the runner drops this summary");
        let commands = parse_commands(&log);
        for kind in ["error", "warning", "notice"] {
            let of_kind: Vec<&Line> = commands.iter().filter(|c| c.name == kind).collect();
            assert!(of_kind.len() <= 10, "the runner shows ten");
            assert!(of_kind.iter().all(|c| c.data.chars().count() <= MESSAGE_LIMIT));
        }
        Done { code: output.status.code().unwrap_or(-1), log, commands, outputs, summary }
    }
}

impl Done {
    pub fn output(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }

    pub fn annotations(&self, kind: &str) -> Vec<&Line> {
        self.commands.iter().filter(|c| c.name == kind).collect()
    }

    /// Every command must be one that sidegate gives on purpose.
    pub fn gave_only_annotations(&self) {
        for command in &self.commands {
            assert!(["error", "warning", "notice"].contains(&command.name.as_str()), "{command:?}\n{}", self.log);
            let title = command.properties.get("title").map_or("", String::as_str);
            assert!(title.starts_with("sidegate"), "{command:?}");
        }
    }
}

/// From `action.yml` where it is there, which must then agree with the list above.
fn declared() -> Vec<(String, String)> {
    let own: Vec<(String, String)> = INPUTS.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml");
    let Ok(text) = fs::read_to_string(path) else { return own };
    let file = Document::parse("action.yml", &text).expect("action.yml is YAML").value;
    let inputs = file["inputs"].as_object().expect("it has inputs");
    let default = |input: &Value| input["default"].as_str().unwrap_or_default().to_owned();
    let declared: Vec<(String, String)> = inputs.iter().map(|(name, input)| (name.clone(), default(input))).collect();
    assert_eq!(declared, own, "action.yml and this list must agree");
    let outputs: Vec<&str> = file["outputs"].as_object().expect("it has outputs").keys().map(String::as_str).collect();
    assert_eq!(outputs, OUTPUTS);
    assert_eq!(file["runs"]["args"], serde_json::json!(["action"]));
    declared
}

/// The runner's reader of `$GITHUB_OUTPUT`: whichever of `=` and `<<` comes first decides; a delimiter must come, and
/// what precedes the last one must end in a line end.
pub fn parse_outputs(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut outputs = BTreeMap::new();
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let bare = line.trim_end_matches(['\r', '\n']);
        if bare.is_empty() {
            continue;
        }
        let (equals, heredoc) = (bare.find('='), bare.find("<<"));
        match (equals, heredoc) {
            (Some(at), other) if other.is_none_or(|h| at < h) && at > 0 => {
                outputs.insert(bare[..at].to_owned(), bare[at + 1..].to_owned());
            }
            (_, Some(at)) if at > 0 => {
                let (name, delimiter) = (&bare[..at], &bare[at + 2..]);
                if delimiter.is_empty() {
                    return Err(format!("invalid format '{bare}': delimiter must not be empty"));
                }
                let mut value = String::new();
                loop {
                    let Some(line) = lines.next() else {
                        return Err(format!("invalid value: matching delimiter not found '{delimiter}'"));
                    };
                    if line.trim_end_matches(['\r', '\n']) == delimiter {
                        break;
                    }
                    if !line.ends_with('\n') {
                        return Err(format!("invalid value: EOF value must end with newline: '{delimiter}'"));
                    }
                    value.push_str(line);
                }
                let value = value.trim_end_matches('\n').trim_end_matches('\r').to_owned();
                outputs.insert(name.to_owned(), value);
            }
            _ => return Err(format!("invalid format '{bare}'")),
        }
    }
    Ok(outputs)
}

/// The runner's reader of logs. .NET ends a line at CR, LF or both.
pub fn parse_commands(log: &str) -> Vec<Line> {
    let mut commands = Vec::new();
    let mut stopped: Option<String> = None;
    for line in log.split(['\r', '\n']) {
        let Some(command) = parse_v2(line).or_else(|| parse_v1(line)) else { continue };
        match &stopped {
            Some(token) => {
                if command.name == *token {
                    stopped = None;
                }
            }
            None if command.name == "stop-commands" => stopped = Some(command.data),
            None => commands.push(command),
        }
    }
    assert_eq!(stopped, None, "commands must be taken again for the steps that follow");
    commands
}

/// `::name key=value,key=value::data` at the start of a line, blanks skipped.
fn parse_v2(line: &str) -> Option<Line> {
    let rest = line.trim_start().strip_prefix("::")?;
    let (info, data) = rest.split_once("::")?;
    let (name, properties) = info.split_once(' ').unwrap_or((info, ""));
    if name.is_empty() {
        return None;
    }
    Some(Line { name: name.to_owned(), properties: pairs(properties, ','), data: unescaped(data) })
}

/// `##[name key=value;key=value]data` anywhere in a line.
fn parse_v1(line: &str) -> Option<Line> {
    let rest = &line[line.find("##[")? + 3..];
    let (info, data) = rest.split_once(']')?;
    let (name, properties) = info.split_once(' ').unwrap_or((info, ""));
    Some(Line { name: name.to_owned(), properties: pairs(properties, ';'), data: data.to_owned() })
}

fn pairs(text: &str, separator: char) -> BTreeMap<String, String> {
    let pair = |part: &str| part.split_once('=').map(|(k, v)| (k.trim().to_owned(), unescaped(v)));
    text.split(separator).filter_map(pair).collect()
}

fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for (code, c) in [("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")] {
        text = text.replace(code, c);
    }
    text
}

#[test]
fn the_emulated_runner_reads_what_the_real_one_reads() {
    let ok = parse_outputs("a=1\nb<<X\nline\nX\n\nc<<Y\nY\n").unwrap();
    assert_eq!((ok["a"].as_str(), ok["b"].as_str(), ok["c"].as_str()), ("1", "line", ""));
    for bad in ["a<<X\nline\n", "a<<X\nline", "a\n", "=x\n", "a<<\nx\n"] {
        assert!(parse_outputs(bad).is_err(), "{bad:?}");
    }
    let found =
        parse_commands("x ::error::no\n  ::warning file=a%2Cb,line=3::m%0An\ny ##[set-output name=v]z\r::debug::d\n");
    let names: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["warning", "set-output", "debug"]);
    assert_eq!((found[0].properties["file"].as_str(), found[0].data.as_str()), ("a,b", "m\nn"));
    assert!(parse_commands("::stop-commands::t\n::error::x\n##[error]y\n::t::\n").is_empty());
}
