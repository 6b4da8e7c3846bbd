//! Text that is not a config yet but a template of one: said by name, because the parser's own complaint does not help.

use super::document::span;
use crate::problem::Problem;

/// The template language `text` is written in, as a problem at the first mark of it.
pub(super) fn explain(file: &str, text: &str) -> Option<Problem> {
    text.lines().enumerate().find_map(|(index, line)| {
        let (at, what) = mark(line)?;
        let column = line.get(..at).map_or(1, |before| before.chars().count() + 1);
        let message = format!("this is a {what} template, not a config: it cannot be read before it is rendered");
        let help = "render it first and give sidegate the result";
        Some(Problem::new(file, message).at(Some(span(index + 1, column))).help(help))
    })
}

fn mark(line: &str) -> Option<(usize, &'static str)> {
    let before_comment = line.trim_start();
    if before_comment.starts_with('#') {
        return None;
    }
    if let Some(at) = line.find("{%") {
        return Some((at, "Jinja"));
    }
    if let Some(at) = line.find("<%") {
        return Some((at, "ERB"));
    }
    let at = line.find("{{")?;
    let inside = line.get(at + 2..)?.trim_start_matches('-').trim_start();
    let go = ["$", ".", "if ", "range ", "end", "with ", "include ", "define ", "template ", "toYaml ", "printf "];
    let what = if go.iter().any(|start| inside.starts_with(start)) { "Go (Helm)" } else { "Jinja or Go" };
    line.get(at + 2..)?.contains("}}").then_some((at, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_language_and_the_place() {
        let problem = explain("a.yaml", "a: 1\nb: {{ .Values.x }}\n").unwrap();
        assert!(problem.message.contains("Go"), "{problem}");
        assert_eq!(problem.span, Some(span(2, 4)));
        assert!(explain("a.yaml", "{% if x %}").unwrap().message.contains("Jinja"));
        assert_eq!(explain("a.yaml", "a: {b: {c: 1}}\n# {{ x }}"), None);
    }
}
