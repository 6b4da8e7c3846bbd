//! Envoy's own words about a config it rejects, brought back to the line of the user's file.
//!
//! Envoy sees the re-hosted config, whose structure is the user's with other addresses, so the paths in its messages
//! hold for the user's file. Seen in 1.40.0 (samples in `tests/data/rehost/rejections`).

use super::kind::visit;
use super::node::{Node, is_named};
use crate::problem::Problem;
use crate::yaml::Document;

/// What Envoy's error output says, as a problem in `document`.
pub fn problem(document: &Document, stderr: &str) -> Problem {
    let sentence = sentence(stderr);
    let said = trimmed(&sentence);
    let pointer = locate(document, &sentence);
    let message = format!("the proxy rejects the config: {said}");
    let problem = match pointer {
        Some(pointer) => document.problem(&pointer, message),
        None => Problem::new(&document.file, message),
    };
    match help(&sentence) {
        Some(help) => problem.help(help),
        None => problem.help("correct the config until `envoy --mode validate` accepts it"),
    }
}

/// The field name Envoy does not know, if that is why it rejects: another version may know it.
pub fn unknown_field(stderr: &str) -> Option<String> {
    quoted_after(&sentence(stderr), "no such field: ")
}

fn help(sentence: &str) -> Option<&'static str> {
    let table = [
        ("no such field", "correct the field's name, or use a proxy version that knows it"),
        ("could not find @type", "correct the type's name, or use a proxy build that contains this extension"),
        ("with type URL: ''", "give the extension its `typed_config` with an `@type`"),
        ("find a registered implementation", "use a proxy build that contains this extension"),
        ("unknown cluster", "define the cluster under `static_resources.clusters`, or correct the name"),
        ("script load error", "correct the script; the number after the last `]:` is its own line"),
        ("duplicate cluster", "give each cluster a name of its own"),
    ];
    table.iter().find(|(mark, _)| sentence.contains(mark)).map(|(_, help)| *help)
}

/// The error proper, on one line with single blanks: Envoy varies the white space in its debug text on purpose.
fn sentence(stderr: &str) -> String {
    const MARKS: [&str; 3] =
        ["error initializing configuration '", "error initializing config '", "initializing config"];
    let from_log = MARKS.iter().find_map(|mark| {
        let start = stderr.find(mark)?;
        let rest = stderr.get(start + mark.len()..)?;
        Some(rest.split_once("': ").or_else(|| rest.split_once("'\n")).map_or(rest, |(_, error)| error))
    });
    let text = from_log.unwrap_or_else(|| last_log_message(stderr));
    let text = text.split("\n[20").next().unwrap_or(text);
    let mut out: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for word in text.split_whitespace() {
        bytes += word.len() + 1;
        if bytes > SENTENCE_LIMIT_BYTES {
            break;
        }
        out.push(word);
    }
    // A violated constraint is reported after a dump of the whole message: what counts comes last.
    match text.rfind("Proto constraint validation failed") {
        Some(at) => text.get(at..).unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" "),
        None => out.join(" "),
    }
}

/// Enough for any message; what follows is a copy of the config.
const SENTENCE_LIMIT_BYTES: usize = 4096;

/// The message of the last `critical` or `error` line, or of the last line.
fn last_log_message(stderr: &str) -> &str {
    let is_grave = |line: &&str| line.contains("[critical]") || line.contains("[error]");
    let line =
        stderr.lines().rev().find(is_grave).or_else(|| stderr.lines().rev().find(|line| !line.trim().is_empty()));
    line.map_or("it says nothing", |line| line.rsplit_once("] ").map_or(line, |(_, message)| message))
}

/// The sentence without what only repeats the config.
fn trimmed(sentence: &str) -> String {
    let wrapped = ["Unable to parse JSON as proto (INVALID_ARGUMENT: ", "reason INVALID_ARGUMENT: "];
    let inner = wrapped.iter().find_map(|mark| {
        let (_, rest) = sentence.split_once(mark)?;
        let end = rest.find("): {").or_else(|| rest.rfind(") has unknown fields")).unwrap_or(rest.len());
        rest.get(..end)
    });
    let mut said = inner.unwrap_or(sentence).to_owned();
    if let Some((path, reason)) = located(&said) {
        said = if path.is_empty() { reason } else { format!("{path}: {reason}") };
    }
    if let Some((_, cause)) = said.rsplit_once("caused by ") {
        said = cause.trim_end_matches(')').to_owned();
    }
    let said =
        said.replace("ValidationError.", ".").replace("goo.gle/debugproto ", "").replace("goo.gle/debugonly ", "");
    let said = said.replace("goo.gle/debugstr ", "");
    match said.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}…", said.get(..end).unwrap_or_default()),
        None => said,
    }
}

const MESSAGE_LIMIT: usize = 400;

/// Path and reason of `invalid JSON in TYPE @ PATH: message TYPE, near LINE:COLUMN (offset N): REASON`.
fn located(said: &str) -> Option<(String, String)> {
    let rest = said.strip_prefix("invalid JSON in ")?;
    let (place, reason) = rest.split_once("): ")?;
    let path = place.split_once(" @ ").map(|(_, path)| path.split(": message").next().unwrap_or(path));
    Some((path.unwrap_or_default().replace(".<any>", ""), reason.to_owned()))
}

fn locate(document: &Document, sentence: &str) -> Option<String> {
    let inner = sentence.split_once("INVALID_ARGUMENT: ").map_or(sentence, |(_, inner)| inner);
    if let Some((path, reason)) = located(inner) {
        let mut steps: Vec<Step> = steps(&path);
        steps.extend(quoted_after(&reason, "no such field: ").map(Step::Field));
        return follow(&Node::root(document), &steps);
    }
    constraint(document, sentence).or_else(|| named(document, sentence)).or_else(|| script(document, sentence))
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

/// `static_resources.clusters[0].name` as steps. `<struct>[4]` and the like end the path.
fn steps(path: &str) -> Vec<Step> {
    let mut out = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let (name, index) = part.split_once('[').map_or((part, None), |(name, index)| (name, Some(index)));
        if name.starts_with('<') {
            break;
        }
        out.push(Step::Field(name.to_owned()));
        out.extend(index.and_then(|index| index.trim_end_matches(']').parse().ok()).map(Step::Item));
    }
    out
}

/// The pointer the steps lead to, as far as the document follows them.
fn follow(from: &Node, steps: &[Step]) -> Option<String> {
    let mut node = from.clone();
    for step in steps {
        let next = match step {
            Step::Field(name) => node.get(name),
            Step::Item(at) => node.items().into_iter().nth(*at),
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    Some(node.pointer()).filter(|pointer| !pointer.is_empty())
}

/// `Proto constraint validation failed (AValidationError.B[0]: … | caused by BValidationError.C: …)`.
fn constraint(document: &Document, sentence: &str) -> Option<String> {
    let (_, inner) = sentence.split_once("Proto constraint validation failed (")?;
    let mut message = None;
    let mut path = Vec::new();
    for part in inner.split("caused by ") {
        let Some((owner, rest)) = part.split_once("ValidationError.") else { continue };
        message.get_or_insert_with(|| owner.trim().to_owned());
        let field = rest.split(':').next().unwrap_or(rest);
        let (name, index) = field.split_once('[').map_or((field, None), |(name, index)| (name, Some(index)));
        path.push(Step::Field(snake_title(name)));
        path.extend(index.and_then(|index| index.trim_end_matches(']').parse().ok()).map(Step::Item));
    }
    let message = message?;
    let root = Node::root(document);
    if message == "Bootstrap" {
        return follow(&root, &path);
    }
    // The message is validated by itself: it is one of those of this type. Take the first that the path fits best.
    let suffix = format!(".{message}");
    let mut owners = Vec::new();
    visit(&root, &mut |node| {
        if node.type_name().is_some_and(|name| name.ends_with(&suffix)) {
            owners.push(node.clone());
        }
    });
    let found = owners.iter().filter_map(|owner| follow(owner, &path));
    found.max_by_key(|pointer| (pointer.matches('/').count(), std::cmp::Reverse(pointer.clone())))
}

/// `LoadAssignment` as `load_assignment`.
fn snake_title(name: &str) -> String {
    super::node::snake(name.trim()).trim_start_matches('_').to_owned()
}

/// Messages that name a value: `unknown cluster 'x'`, `duplicate cluster 'x'`, `malformed IP address: x`…
fn named(document: &Document, sentence: &str) -> Option<String> {
    let root = Node::root(document);
    if let Some(name) = quoted_after(sentence, "unknown cluster ") {
        return value_at(&root, &name, &["cluster", "name"], |pointer| {
            !pointer.starts_with("/static_resources/clusters")
        });
    }
    if let Some(name) = quoted_after(sentence, "duplicate cluster ") {
        let clusters = root.get("static_resources")?.list("clusters");
        let last = clusters.into_iter().rfind(|cluster| cluster.text("name") == Some(name.as_str()))?;
        return Some(last.get("name")?.pointer());
    }
    if let Some(kind) = quoted_after(sentence, "could not find @type ") {
        return value_at(&root, &kind, &["@type"], |_| true);
    }
    if let Some(name) = quoted_after(sentence, "registered implementation for ") {
        return value_at(&root, &name, &["name"], |_| true);
    }
    if let Some(word) = quoted_after(sentence, "unknown enum value: ") {
        return any_value(&root, |text| text == word);
    }
    if let Some((_, rest)) = sentence.split_once("terminal filter named ") {
        return value_at(&root, rest.split(' ').next()?, &["name"], |_| true);
    }
    let after = ["malformed IP address: ", "Incorrect configuration: ", "field in StreamInfo: ", "missing ]: "];
    let word = after.iter().find_map(|mark| sentence.split_once(mark).map(|(_, rest)| rest))?;
    let word = word.split([' ']).next()?.trim_end_matches('.');
    any_value(&root, |text| text == word || text.contains(&format!("%{word}%")))
        .or_else(|| any_value(&root, |text| !word.is_empty() && text.contains(word)))
}

fn value_at(root: &Node, value: &str, fields: &[&str], fits: impl Fn(&str) -> bool) -> Option<String> {
    let mut found = None;
    visit(root, &mut |node| {
        let named = fields.iter().any(|field| is_named(node.key(), field));
        if found.is_none() && named && node.value == value && fits(&node.pointer()) {
            found = Some(node.pointer());
        }
    });
    found
}

fn any_value(root: &Node, fits: impl Fn(&str) -> bool) -> Option<String> {
    let mut found = None;
    visit(root, &mut |node| {
        if found.is_none() && node.value.as_str().is_some_and(&fits) {
            found = Some(node.pointer());
        }
    });
    found
}

/// `script load error: [string "FIRST LINE..."]:3: …` belongs to the script that begins with that line.
fn script(document: &Document, sentence: &str) -> Option<String> {
    let (_, rest) = sentence.split_once("script load error: [string \"")?;
    let (start, _) = rest.split_once("\"]:")?;
    let start = start.trim_end_matches("...");
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    any_value(&Node::root(document), |text| flat(text).starts_with(start))
}

fn quoted_after(sentence: &str, mark: &str) -> Option<String> {
    let (_, rest) = sentence.split_once(mark)?;
    let rest = rest.trim_start().strip_prefix('\'')?;
    rest.split_once('\'').map(|(name, _)| name.to_owned())
}
