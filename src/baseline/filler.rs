//! What stands in a secret's place: as long as it was, of the same kind, and nothing of it.

const LETTERS: &[u8] = b"redacted";

/// Plain text. Blanks and line ends stay, so that a text of several lines stays one.
pub fn text(secret: &str) -> String {
    let mut letters = LETTERS.iter().cycle();
    let mut out = String::with_capacity(secret.len());
    for c in secret.chars() {
        match c {
            ' ' | '\t' | '\r' | '\n' => out.push(c),
            // As many bytes as the character had.
            c => out.extend(letters.by_ref().take(c.len_utf8()).map(|&byte| char::from(byte))),
        }
    }
    out
}

/// Base64 that decodes to as many bytes: padding stays, and no bits are left over.
pub fn base64(secret: &str) -> String {
    let body = secret.trim_end_matches(['=', '\r', '\n', ' ']);
    let tail = &secret[body.len()..];
    let mut out = text(body);
    if out.pop().is_some() {
        out.push('A');
    }
    out + tail
}

/// A number of as many digits.
pub fn number(secret: &serde_json::Number) -> serde_json::Value {
    let digits = secret.to_string().bytes().filter(u8::is_ascii_digit).count().clamp(1, 18);
    "1".repeat(digits).parse::<u64>().map_or(serde_json::Value::Null, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillers_are_as_long_as_what_they_replace() {
        assert_eq!(text("hunter2 é\nx"), "redacte dr\ne");
        assert_eq!(base64("c2VjcmV0IQ=="), "redactedrA==");
        assert_eq!(number(&serde_json::Number::from(90_210)), 11_111);
    }
}
