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

/// Exactly `length` bytes of lines such as an interface for data gives, the same for the same length: names that come
/// back, numbers that do not. A compressor finds in it what it finds in real answers, a quarter to a sixth of the length.
pub(super) fn records(length: usize) -> Bytes {
    let mut body = Vec::with_capacity(length + 128);
    let mut state = 7_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    while body.len() < length {
        let (id, word, other) = (next(1_000_000), next(16) as usize, next(16) as usize);
        let (whole, part, stock) = (next(1000), next(100), next(500));
        let line = format!(
            "{{\"id\":{id},\"name\":\"{} {}\",\"price\":{whole}.{part:02},\"stock\":{stock}}}\n",
            WORDS[word], WORDS[other]
        );
        body.extend_from_slice(line.as_bytes());
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

    #[test]
    fn records_have_the_length_and_hardly_repeat_a_line() {
        let body = records(64 << 10);
        assert_eq!((body.len(), records(0).len()), (64 << 10, 0));
        let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
        assert!(lines.len() > 500 && lines.iter().collect::<BTreeSet<_>>().len() == lines.len());
    }
}
