//! Text that others wrote (file names, routes, names of targets) made harmless for a terminal and for Markdown.

/// Longest piece of foreign text shown, in characters.
const CAP: usize = 120;

/// One line of at most `cap` characters: white space becomes a space; control, invisible and direction characters go.
pub fn line(text: &str, cap: usize) -> String {
    let spaced = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|&c| !is_hidden(c));
    // Reading a little beyond the cap is enough to know that there is more.
    let squeezed: String = spaced.take(cap.saturating_mul(4)).collect();
    let words: Vec<&str> = squeezed.split(' ').filter(|w| !w.is_empty()).collect();
    truncate(&words.join(" "), cap)
}

/// The first `cap` characters, the last of them `…` if there were more.
fn truncate(text: &str, cap: usize) -> String {
    if text.chars().count() <= cap {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(cap.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Characters that change how others look or are not seen at all.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A Markdown code span: nothing in it is markup. For use outside tables.
pub fn code(text: &str) -> String {
    span(&line(text, CAP))
}

/// The same for a table's cell, where a bar would end the cell even inside a code span.
pub fn cell_code(text: &str) -> String {
    span(&line(text, CAP).replace('|', "¦"))
}

fn span(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A sentence for Markdown: words of letters, digits and plain punctuation stay as they are, every other word becomes a
/// code span, so that nothing in it is a link, a mention, a heading or HTML whoever wrote it.
pub fn sentence(text: &str) -> String {
    words(&line(text, SENTENCE_CAP), span)
}

/// The same for a table's cell.
pub fn cell_sentence(text: &str) -> String {
    words(&line(text, SENTENCE_CAP).replace('|', "¦"), span)
}

/// Sentences are ours, with foreign names in them.
const SENTENCE_CAP: usize = 600;

fn words(text: &str, code: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    for (i, word) in pieces(text).into_iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let (core, tail) = part(word);
        // A bracket that opens before the word stays outside of its code.
        let core = match core.strip_prefix('(').filter(|inner| !inner.is_empty() && !is_plain(core)) {
            Some(inner) => {
                out.push('(');
                inner
            }
            None => core,
        };
        // What the sentence itself put into backticks is code already.
        let core = core.strip_prefix('`').and_then(|c| c.strip_suffix('`')).unwrap_or(core);
        if is_plain(core) && !(i == 0 && opens_block(word)) {
            out.push_str(core);
            out.push_str(tail);
        } else if core.is_empty() {
            out.push_str(&code(word));
        } else {
            out.push_str(&code(core));
            out.push_str(tail);
        }
    }
    out
}

/// Words between blanks; what stands between two backticks is one piece, blanks and all.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut from, mut inside) = (0, false);
    let balanced = text.matches('`').count().is_multiple_of(2);
    for (at, c) in text.char_indices() {
        match c {
            '`' if balanced => inside = !inside,
            ' ' if !inside => {
                pieces.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[from..]);
    pieces
}

/// A word and the punctuation that ends it.
fn part(word: &str) -> (&str, &str) {
    let core = word.trim_end_matches([',', ';', ':', '.', ')', '?']);
    (core, &word[core.len()..])
}

/// Nothing a Markdown reader could take for markup: letters, digits, opening brackets in front, and inner characters
/// that stand between two letters or digits.
fn is_plain(word: &str) -> bool {
    let word = word.strip_prefix('(').unwrap_or(word);
    let word = word.strip_prefix(['+', '-']).unwrap_or(word);
    if matches!(word, "%" | "…" | "–" | "/") {
        return true;
    }
    let inner_ok = |c: char| c.is_alphanumeric() || matches!(c, '-' | '\'' | '’' | '%');
    let number = word.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '%');
    let edges = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '%');
    (number || word.chars().all(inner_ok)) && edges(word.chars().next()) && edges(word.chars().last())
}

/// Whether a word at the start of a line makes it a list item: `1.`, `1)`, `-`, `+`.
fn opens_block(word: &str) -> bool {
    matches!(word, "-" | "+") || (word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(['.', ')']))
}

/// Columns that a terminal gives a character, rather too many than too few.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    let wide = matches!(u32::from(c),
        0x1100..=0x11ff | 0x2300..=0x23ff | 0x25a0..=0x27bf | 0x2b00..=0x2bff | 0x2e80..=0xa4cf | 0xa960..=0xa97f
        | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff01..=0xff60 | 0xffe0..=0xffe6 | 0x1_0000..);
    if wide { 2 } else { 1 }
}

/// `text` cut to `columns`, ending in `…` if it was longer.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > columns {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_sentences_stay_and_names_become_code() {
        assert_eq!(sentence("cpu_ns_per_request rose by 11.3 %."), "`cpu_ns_per_request` rose by 11.3 %.");
        assert_eq!(sentence("at least (9.4 % more), surely"), "at least (9.4 % more), surely");
        assert_eq!(sentence("see [a](http://b) @all"), "see `[a](http://b`) `@all`");
        assert_eq!(sentence("unknown field `a_b`: gone"), "unknown field `a_b`: gone");
        assert_eq!(sentence("ended in `status 503` on head"), "ended in `status 503` on head");
        assert_eq!(sentence("buffers (per_connection_bytes) and"), "buffers (`per_connection_bytes`) and");
        assert_eq!(sentence("1. not a list"), "`1`. not a list");
        assert_eq!(sentence("- not a list"), "`-` not a list");
        assert_eq!(sentence("www.example.com"), "`www.example.com`");
    }

    #[test]
    fn spans_outgrow_the_backticks_inside() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("``"), "``` `` ```");
        assert_eq!(code(""), "(empty)");
        assert_eq!(cell_code("a|b"), "`a¦b`");
        assert_eq!(code("a\u{202e}b\u{1b}[31m\nc"), "`ab[31m c`");
        assert_eq!(code(&"x".repeat(500)).chars().count(), CAP + 2);
    }

    #[test]
    fn fitting_counts_columns_not_characters() {
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("longer", 5), "long…");
        assert_eq!(width(&fit("漢字漢字漢字", 6)), 5);
    }
}
