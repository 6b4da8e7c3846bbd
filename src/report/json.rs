//! `verdict.json`.

use crate::verdict::Verdict;

/// The verdict as its file holds it: indented, with a final newline.
pub fn json(verdict: &Verdict) -> String {
    let mut text = serde_json::to_string_pretty(verdict).expect("a verdict has text keys and finite depth");
    text.push('\n');
    text
}
