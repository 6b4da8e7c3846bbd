//! Which known word a mistyped one was meant to be.

/// The nearest of `known` to `word`, if it is near enough to be worth a "did you mean".
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = word.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(d, _)| d <= allowed)
        .min_by_key(|&(d, _)| d)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, ignoring ASCII case and taking `-` for `_`. Long words are cut: nobody mistypes those.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars().take(64).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
    };
    let (a, b) = (fold(a), fold(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_its_word_and_noise_finds_none() {
        assert_eq!(nearest("cpu_ns_per_requets", ["latency_p99_ns", "cpu_ns_per_request"]), Some("cpu_ns_per_request"));
        assert_eq!(nearest("Rule-Out", ["limit", "rule_out"]), Some("rule_out"));
        assert_eq!(nearest("zzz", ["limit", "rule_out"]), None);
        assert_eq!(nearest("", ["limit"]), None);
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
