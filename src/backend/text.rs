//! The body of the fixed answer: words, so that filters that compress or scan bodies have something like text to do.

use bytes::Bytes;

const WORDS: [&str; 16] = [
    "order", "basket", "the", "payment", "of", "customer", "a", "delivery", "to", "address", "is", "ready", "invoice",
    "and", "stock", "price",
];

/// Text of exactly `length` bytes, the same for the same length.
pub(super) fn text(length: usize) -> Bytes {
    let mut body = Vec::with_capacity(length + 16);
    let mut state = 1_u32;
    while body.len() < length {
        // The 16 top bits of a full-period congruential generator choose the word.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let word = WORDS[(state >> 16) as usize % WORDS.len()];
        body.extend_from_slice(word.as_bytes());
        body.push(b' ');
    }
    body.truncate(length);
    body.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn text_has_the_length_and_more_than_one_letter() {
        for length in [0, 1, 7, 1024, 100_000] {
            assert_eq!(text(length).len(), length);
        }
        assert!(text(1024).iter().collect::<BTreeSet<_>>().len() > 10);
        assert_eq!(text(1024), text(1024));
    }
}
