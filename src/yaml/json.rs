//! JSON files, which Envoy reads by its JSON parser: values by serde, places by a second pass over the valid text.

use std::collections::HashMap;

use serde_json::Value;

use super::document::{NODE_LIMIT, Place, span};
use crate::problem::{Problem, Span};

pub(super) fn read(file: &str, text: &str) -> Result<(Value, Place), Vec<Problem>> {
    let fault = |problem: Problem| Err(vec![problem]);
    if text.starts_with('\u{feff}') {
        let help = "save the file as UTF-8 without a byte order mark";
        let message = "the file starts with a byte order mark, which Envoy does not accept in JSON";
        return fault(Problem::new(file, message).at(Some(span(1, 1))).help(help));
    }
    if text.trim().is_empty() {
        return fault(Problem::new(file, "the file is empty").help("give a proxy config: YAML or JSON"));
    }
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            let full = error.to_string();
            let message = full.split(" at line ").next().unwrap_or(&full);
            let column = characters(text, error.line(), error.column());
            let help = if YAML_MARKS.iter().any(|mark| text.trim_start().starts_with(mark)) {
                "the file looks like YAML: give it a name that ends in .yaml"
            } else {
                "correct the text at or just before this place"
            };
            let at = span(error.line().max(1), column);
            return fault(Problem::new(file, format!("not valid JSON: {message}")).at(Some(at)).help(help));
        }
    };
    let mut walk = Walk { file, text: text.as_bytes(), at: 0, line: 1, column: 1, nodes: 0, problems: Vec::new() };
    let place = walk.value(&value);
    match place {
        _ if !walk.problems.is_empty() => Err(walk.problems),
        Some(place) => Ok((value, place)),
        None => fault(Problem::new(file, "the JSON text cannot be followed").help("re-format the file")),
    }
}

const YAML_MARKS: [&str; 5] = ["#", "---", "static_resources:", "admin:", "node:"];

/// serde's column counts bytes; ours counts characters.
fn characters(text: &str, line: usize, column_bytes: usize) -> usize {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    line.char_indices().take_while(|(at, _)| *at + 1 < column_bytes).count() + 1
}

/// A cursor over text that is known to be valid JSON.
struct Walk<'a> {
    file: &'a str,
    text: &'a [u8],
    at: usize,
    line: usize,
    column: usize,
    nodes: usize,
    problems: Vec<Problem>,
}

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn step(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        if byte == b'\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else if byte & 0xC0 != 0x80 {
            self.column += 1;
        }
        Some(byte)
    }

    /// Skips blanks, commas and colons: what stands between two values of valid JSON.
    fn skip_between(&mut self) -> Span {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b':')) {
            self.step();
        }
        span(self.line, self.column)
    }

    /// Steps over the string that begins here and returns its text.
    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.step();
        loop {
            match self.step()? {
                b'\\' => _ = self.step(),
                b'"' => break,
                _ => {}
            }
        }
        serde_json::from_slice(self.text.get(start..self.at)?).ok()
    }

    /// Recursion is bounded by serde's own depth limit of 128, which `value` has passed.
    fn value(&mut self, value: &Value) -> Option<Place> {
        let at = self.skip_between();
        self.nodes += 1;
        if self.nodes > NODE_LIMIT {
            let message = format!("the document holds more than {NODE_LIMIT} values");
            self.problems.push(Problem::new(self.file, message).at(Some(at)).help("split the config"));
            return None;
        }
        let mut place = Place::at(at);
        match self.peek()? {
            b'{' => self.object(value, &mut place)?,
            b'[' => {
                self.step();
                for item in value.as_array()? {
                    place.children.push(self.value(item)?);
                }
                self.skip_between();
                self.step();
            }
            b'"' => _ = self.string()?,
            _ => {
                while self.peek().is_some_and(|byte| !b" \t\r\n,]}".contains(&byte)) {
                    self.step();
                }
            }
        }
        Some(place)
    }

    fn object(&mut self, value: &Value, place: &mut Place) -> Option<()> {
        let entries = value.as_object()?;
        let mut seen: HashMap<String, u32> = HashMap::new();
        self.step();
        loop {
            let key_at = self.skip_between();
            if self.peek()? == b'}' {
                self.step();
                return Some(());
            }
            let key = self.string()?;
            if let Some(line) = seen.get(&key) {
                let message = format!("duplicate key `{key}`: line {} repeats line {line}", key_at.line);
                let problem = Problem::new(self.file, message).at(Some(key_at));
                self.problems.push(problem.help("remove one of the two; Envoy refuses both"));
                // The value kept is the last one, so what was seen before cannot be followed any further.
                return None;
            }
            let mut child = self.value(entries.get(&key)?)?;
            child.key = Some(key_at);
            seen.insert(key, key_at.line);
            place.children.push(child);
        }
    }
}
