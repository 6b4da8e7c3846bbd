//! The layout's rules, read off the source: who may know whom, which crates live where, how long things may get.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One part of the source: a file or a folder directly under `src`.
struct Room {
    name: &'static str,
    /// Rooms it may name; `*` is every room.
    knows: &'static [&'static str],
    /// External crates it may use, besides those free to all.
    crates: &'static [&'static str],
    /// No clock, no disk, no environment, no network, no processes.
    pure: bool,
}

const fn room(name: &'static str, knows: &'static [&'static str], crates: &'static [&'static str]) -> Room {
    Room { name, knows, crates, pure: false }
}

const fn pure(name: &'static str, knows: &'static [&'static str], crates: &'static [&'static str]) -> Room {
    Room { name, knows, crates, pure: true }
}

/// What every room may know: the vocabulary.
const VOCABULARY: [&str; 10] =
    ["exit", "histogram", "metric", "plan", "policy", "problem", "record", "units", "upstream", "verdict"];

/// Crates that only describe data.
const FREE_CRATES: [&str; 4] = ["serde", "serde_json", "thiserror", "schemars"];

const ROOMS: &[Room] = &[
    room("main", &["*"], &["clap", "anstream"]),
    room("lib", &["*"], &[]),
    room("cli", &["*"], &["clap", "anstream"]),
    room("cmd", &["*"], &["clap", "anstream", "indicatif", "tempfile", "jiff", "globset"]),
    room("files", &["report"], &["tempfile", "sha2", "nix"]),
    room("thread", &["stop"], &["nix", "libc"]),
    room("stop", &[], &["signal_hook", "nix", "libc"]),
    pure("exit", &[], &[]),
    pure("histogram", &[], &["hdrhistogram"]),
    pure("metric", &[], &[]),
    pure("plan", &[], &["rand", "rand_chacha"]),
    pure("policy", &[], &["clap"]),
    pure("problem", &[], &[]),
    pure("record", &[], &[]),
    pure("units", &[], &[]),
    // Addresses of ports only; nothing is opened.
    room("upstream", &[], &[]),
    pure("verdict", &[], &[]),
    room("yaml", &[], &["saphyr_parser"]),
    pure("spec", &[], &["clap", "jiff"]),
    pure("stats", &[], &["statrs", "rand", "rand_chacha"]),
    pure("analysis", &["stats"], &[]),
    pure("judge", &["analysis", "stats"], &["jiff"]),
    pure("simulate", &["analysis", "judge", "stats"], &["rand", "rand_chacha"]),
    pure("report", &["analysis"], &["jiff"]),
    room("github", &["report", "stop"], &["clap", "octocrab", "tokio", "hyper", "http_body_util", "sha2", "jiff"]),
    room("envoy", &["yaml", "spec"], &["sha2"]),
    pure("explain", &["envoy", "yaml", "stats"], &[]),
    room("git", &["proxy", "stop"], &[]),
    room(
        "load",
        &["stop", "thread"],
        &["tokio", "hyper", "hyper_util", "http_body_util", "bytes", "hdrhistogram", "nix", "libc"],
    ),
    room(
        "backend",
        &["stop", "stub", "thread"],
        &["tokio", "hyper", "hyper_util", "http_body_util", "bytes", "nix", "libc", "rustls", "tokio_rustls", "rcgen"],
    ),
    pure("stub", &[], &["hyper", "bytes", "http_body_util"]),
    room("proxy", &["stop", "probe", "thread"], &["nix", "libc", "sha2", "zip", "ureq", "tempfile"]),
    room("probe", &["thread"], &["nix", "libc"]),
    room("lab", &["load", "backend", "proxy", "probe", "envoy", "stop", "thread"], &[]),
    room("cost", &["backend", "proxy", "probe", "envoy", "stop", "thread"], &["libc"]),
    room("run", &["lab", "judge"], &[]),
    room("baseline", &["analysis", "files"], &[]),
];

const IMPURE: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "Timestamp::now",
    "Zoned::now",
];
const MAX_FILE: usize = 400;
const MAX_FUNCTION: usize = 70;

struct Source {
    path: String,
    room: String,
    /// Without comments, the contents of texts, and the tests at its end; lines kept.
    code: String,
}

#[test]
fn the_source_keeps_the_rules_of_its_layout() {
    let faults: Vec<String> = sources().iter().flat_map(faults_of).collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn faults_of(source: &Source) -> Vec<String> {
    let mut faults = length_faults(source);
    let stem = Path::new(&source.path).file_stem().unwrap().to_string_lossy().into_owned();
    if ["util", "utils", "helper", "helpers", "manager", "common", "misc"].contains(&stem.as_str()) {
        faults.push(format!("{}: a file is named after the one thing it holds, not `{stem}`", source.path));
    }
    match ROOMS.iter().find(|r| r.name == source.room) {
        Some(room) => faults.extend(room_faults(source, room)),
        None => {
            faults.push(format!("{}: room `{}` has no rules; add it to tests/it/tidy.rs", source.path, source.room))
        }
    }
    faults
}

fn room_faults(source: &Source, room: &Room) -> Vec<String> {
    let mut faults = Vec::new();
    let path = &source.path;
    for other in rooms_named(&source.code) {
        let free = other == source.room || VOCABULARY.contains(&other.as_str()) || room.knows.contains(&"*");
        let is_room = ROOMS.iter().any(|r| r.name == other);
        if is_room && !free && !room.knows.contains(&other.as_str()) {
            faults.push(format!("{path}: `{}` must not know `{other}`", room.name));
        }
    }
    for name in external_crates() {
        let allowed = FREE_CRATES.contains(&name.as_str()) || room.crates.contains(&name.as_str());
        if !allowed && names_path(&source.code, &name) {
            faults.push(format!("{path}: the crate `{name}` has no place in `{}`", room.name));
        }
    }
    if room.pure {
        for impure in IMPURE {
            if names_path(&source.code, impure) || names_in_group(&source.code, impure) {
                faults.push(format!("{path}: `{}` is pure and must not touch `{impure}`", room.name));
            }
        }
    }
    faults
}

fn length_faults(source: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = source.code.lines().count();
    if lines > MAX_FILE {
        faults.push(format!("{}: {lines} lines without tests, more than {MAX_FILE}: one file, one noun", source.path));
    }
    for (name, line, length) in functions(&source.code) {
        if length > MAX_FUNCTION {
            let place = format!("{}:{line}", source.path);
            faults.push(format!("{place}: `{name}` has {length} lines, more than {MAX_FUNCTION}: split it by steps"));
        }
    }
    faults
}

/// Rooms that the code names by `crate::room` or `sidegate::room`, grouped imports included.
fn rooms_named(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for root in ["crate::", "sidegate::"] {
        for (at, _) in code.match_indices(root) {
            if code[..at].ends_with(is_word) || code[..at].ends_with(':') {
                continue;
            }
            let rest = &code[at + root.len()..];
            match rest.strip_prefix('{') {
                Some(group) => rooms.extend(heads_of_group(group)),
                None => rooms.extend(leading_word(rest)),
            }
        }
    }
    rooms
}

/// First words of the members of `a::b, c::{d, e}}`, the opening brace already read.
fn heads_of_group(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let (mut depth, mut expect) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expect = true,
            c if expect && is_word(c) => {
                heads.extend(leading_word(&group[at..]));
                expect = false;
            }
            _ => {}
        }
    }
    heads
}

fn leading_word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| is_word(*c)).collect();
    (!word.is_empty()).then_some(word)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the code has the path `name::…` (or `name` itself, where `name` is a path), not as a part of another word.
fn names_path(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = &code[at + name.len()..];
        let starts = !before.is_some_and(|c| is_word(c) || c == ':');
        let ends = if name.contains("::") { !after.starts_with(is_word) } else { after.starts_with("::") };
        starts && ends
    })
}

/// Whether `a::b` is imported as `a::{…, b, …}`.
fn names_in_group(code: &str, path: &str) -> bool {
    let Some((parent, last)) = path.rsplit_once("::") else { return false };
    let opening = format!("{parent}::{{");
    code.match_indices(&opening).any(|(at, _)| heads_of_group(&code[at + opening.len()..]).iter().any(|h| h == last))
}

/// Names of `[dependencies]` as code writes them.
fn external_crates() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    section
        .lines()
        .filter(|l| !l.trim_start().starts_with('#'))
        .filter_map(|l| Some(l.split_once('=')?.0.trim().replace('-', "_")))
        .filter(|n| !n.is_empty())
        .collect()
}

/// (name, first line, number of lines) of every function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let Some(name) = leading_word(&code[at + 3..]) else { continue };
        let Some(body) = body_of(&code[at..]) else { continue };
        let first = code[..at].matches('\n').count() + 1;
        found.push((name, first, body.matches('\n').count() + 1));
    }
    found
}

/// From `fn` to the brace that closes its body; `None` for a signature only.
fn body_of(code: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut brackets = 0_i32;
    for (at, c) in code.char_indices() {
        match c {
            ';' if depth == 0 && brackets == 0 => return None,
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return Some(&code[..=at]),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    collect(&root().join("src"), &mut files);
    files.sort();
    assert!(files.len() > 10, "the source is not where this test looks for it");
    files
        .into_iter()
        .map(|file| {
            let path = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            let room = path.split('/').nth(1).unwrap().trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&file).unwrap();
            let before_tests = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
            Source { code: bare(before_tests), path, room }
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") && path.file_name().is_some_and(|n| n != "tests.rs") {
            files.push(path);
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The code without comments and without what stands in quotes; newlines stay.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest, out.chars().next_back()) {
            length
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' {
            character(rest)
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
        rest = &rest[skipped..];
    }
    out
}

/// Length of `r#"…"#` at the start of `text`.
fn raw_string(text: &str, before: Option<char>) -> Option<usize> {
    let hashes = text.strip_prefix('r')?.chars().take_while(|c| *c == '#').count();
    if before.is_some_and(|c| is_word(c) && c != 'b') || !text[1 + hashes..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let from = 2 + hashes;
    Some(text[from..].find(&end).map_or(text.len(), |at| from + at + end.len()))
}

/// Length of a text in quotes, escapes minded.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a character literal; of the quote alone for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => quoted(text, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 1,
    }
}

#[test]
fn the_reader_of_source_sees_what_it_should() {
    let code =
        bare("use crate::{metric::Metric, load::{a, b}};\n// crate::proxy\nlet s = \"crate::lab\"; crate::stats::x();");
    let rooms = rooms_named(&code);
    assert_eq!(rooms.into_iter().collect::<Vec<_>>(), ["load", "metric", "stats"]);
    assert!(names_path("use hyper::body;", "hyper") && !names_path("use hyper_util::rt;", "hyper"));
    assert!(names_path("std::fs::read(x)", "std::fs") && !names_path("std::fsx::read(x)", "std::fs"));
    let code = bare("fn a(x: [u8; 2]) {\n  if x { '}' };\n}\nfn b();\ntrait T { fn c<'a>(&'a self) -> &'a str; }\n");
    let found: Vec<(String, usize)> = functions(&code).into_iter().map(|(name, _, length)| (name, length)).collect();
    assert_eq!(found, [("a".to_owned(), 3)]);
    assert_eq!(bare("let a = r#\"x \" fn y\"#; // z\nb").lines().count(), 2);
}

#[test]
fn a_broken_rule_is_named() {
    let source =
        |room: &str, code: &str| Source { path: format!("src/{room}.rs"), room: room.to_owned(), code: bare(code) };
    let long = format!("fn f() {{\n{}}}", "x();\n".repeat(80));
    for (faulty, said) in [
        (source("stats", "use crate::proxy::Child;"), "`stats` must not know `proxy`"),
        (source("judge", "let now = std::time::Instant::now();"), "is pure"),
        (source("judge", "use std::{io, fs};"), "must not touch `std::fs`"),
        (source("judge", "use std::time::{Duration, Instant};"), "must not touch `std::time::Instant`"),
        (source("report", "use hyper::Request;"), "crate `hyper` has no place in `report`"),
        (source("attic", ""), "has no rules"),
        (source("load", &long), "split it by steps"),
        (source("load", &"x();\n".repeat(500)), "one file, one noun"),
        (Source { path: "src/load/util.rs".to_owned(), ..source("load", "") }, "one thing it holds"),
    ] {
        let faults = faults_of(&faulty);
        assert!(faults.iter().any(|f| f.contains(said)), "{said}: {faults:?}");
    }
}
