//! A secret that can be sent and cannot be shown.

use std::fmt;

/// A GitHub token. `Debug` hides it and it has no `Display`; only the client reads it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// `None` where there is none (an input that is not set is an empty text), and for what no header can carry.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let sendable = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        sendable.then(|| Self(text.to_owned()))
    }

    /// For the `Authorization` header.
    pub(super) fn secret(&self) -> &str {
        &self.0
    }

    /// `text` with the token in it replaced: for what a server or a library says.
    pub(super) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown() {
        let token = Token::new(" ghs_secret\n").unwrap();
        assert_eq!(format!("{token:?} {:?}", Some(&token)), "Token(***) Some(Token(***))");
        assert_eq!(token.redact("bad token ghs_secret."), "bad token ***.");
        assert!(Token::new("").is_none() && Token::new("a b").is_none() && Token::new("a\u{7}").is_none());
    }
}
