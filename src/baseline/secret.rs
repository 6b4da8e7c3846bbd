//! What is a secret: by the name of its field or header, or by its looks inside of a text.

use std::ops::Range;

/// Names, and last words of names, of what must not be written down.
const WORDS: [&str; 19] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "auth_key",
    "private_key",
    "hmac",
    "hmac_key",
    "access_key",
    "access_key_id",
    "secret_key",
    "encryption_key",
    "signing_key",
    "signature",
    "session_ticket_keys",
    "jwt",
];

const HEADERS: [&str; 4] = ["authorization", "proxy_authorization", "cookie", "set_cookie"];

/// Members of a JSON Web Key that only its owner may know.
const KEY_MEMBERS: [&str; 8] = ["k", "d", "p", "q", "dp", "dq", "qi", "oth"];

/// Schemes of the authorization header.
const SCHEMES: [&str; 4] = ["bearer ", "basic ", "token ", "apikey "];

/// Beginnings of well-known kinds of tokens, with the least length of what follows.
const PREFIXES: [(&str, usize); 13] = [
    ("AKIA", 12),
    ("ASIA", 12),
    ("AIza", 20),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("sk_live_", 10),
    ("hvs.", 16),
    ("ya29.", 16),
];

/// A part of a text that is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub at: Range<usize>,
    pub what: &'static str,
}

/// Whether a field or header of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let plain = plain(name);
    let ends = |word: &str| plain == word || plain.strip_suffix(word).is_some_and(|rest| rest.ends_with('_'));
    HEADERS.contains(&plain.as_str()) || WORDS.iter().any(|word| ends(word))
}

/// Whether this member of a JSON Web Key is secret.
pub fn is_key_member(name: &str) -> bool {
    KEY_MEMBERS.contains(&name)
}

/// `X-Api-Key`, `xApiKey` and `x_api_key` are one name.
fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            out.push('_');
        }
        out.push(if c == '-' || c == '.' { '_' } else { c.to_ascii_lowercase() });
        before = c;
    }
    out
}

/// Secrets inside of a text (a script, an address, a header's value), in order, without overlaps.
pub fn in_text(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    private_keys(text, &mut found);
    schemes(text, &mut found);
    web_tokens(text, &mut found);
    prefixed(text, &mut found);
    user_infos(text, &mut found);
    assignments(text, &mut found);
    found.sort_by_key(|f| (f.at.start, usize::MAX - f.at.end));
    let mut end = 0;
    found.retain(|f| {
        let keep = f.at.start >= end && !f.at.is_empty();
        if keep {
            end = f.at.end;
        }
        keep
    });
    found
}

/// Between the lines that begin and end a private key.
fn private_keys(text: &str, found: &mut Vec<Found>) {
    for (at, _) in text.match_indices("PRIVATE KEY-----") {
        let from = at + "PRIVATE KEY-----".len();
        if text[..at].rfind("-----").is_some_and(|dashes| text[dashes..at].starts_with("-----BEGIN")) {
            let end = text[from..].find("-----END").map_or(text.len(), |end| from + end);
            found.push(Found { at: from..end, what: "private key" });
        }
    }
}

/// `Bearer abc…`, `Basic abc…`.
fn schemes(text: &str, found: &mut Vec<Found>) {
    let lower = text.to_ascii_lowercase();
    for scheme in SCHEMES {
        for (at, _) in lower.match_indices(scheme) {
            let from = at + scheme.len();
            let end = run(text, from, is_token);
            let word = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            if word && end - from >= 6 && !lower[from..].starts_with("realm") {
                found.push(Found { at: from..end, what: "credentials" });
            }
        }
    }
}

/// `eyJ….eyJ….…`.
fn web_tokens(text: &str, found: &mut Vec<Found>) {
    for (at, _) in text.match_indices("eyJ") {
        let end = run(text, at, |c| is_token(c) && !matches!(c, '/' | '+' | '='));
        if text[at..end].matches('.').count() >= 1 && end - at >= 20 {
            found.push(Found { at: at..end, what: "JSON Web Token" });
        }
    }
}

fn prefixed(text: &str, found: &mut Vec<Found>) {
    for (prefix, least) in PREFIXES {
        for (at, _) in text.match_indices(prefix) {
            let from = at + prefix.len();
            let end = run(text, from, |c| is_token(c) && c != '/');
            if end - from >= least {
                found.push(Found { at: at..end, what: "token of a well-known kind" });
            }
        }
    }
}

/// `scheme://user:password@host`.
fn user_infos(text: &str, found: &mut Vec<Found>) {
    for (at, _) in text.match_indices("://") {
        let from = at + 3;
        let authority =
            run(text, from, |c| !matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>') && !c.is_whitespace());
        if let Some(end) = text[from..authority].rfind('@') {
            found.push(Found { at: from..from + end, what: "user information of an address" });
        }
    }
}

/// `?token=abc`, `&sig=abc`; `password = "abc"`, `"x-api-key", "abc"`.
fn assignments(text: &str, found: &mut Vec<Found>) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    for (at, separator) in text.match_indices(['=', ':', ',']) {
        let before = text[..at].trim_end_matches([' ', '\t', ']']);
        let quoted = before.trim_end_matches(['"', '\'']);
        let start =
            quoted.rfind(|c| !is_name(c)).map_or(0, |at| at + quoted[at..].chars().next().map_or(1, char::len_utf8));
        let name = &quoted[start..];
        let short = matches!(name, "sig" | "pwd" | "pass");
        if !(short || is_secret_name(name)) || (separator == "," && quoted.len() == before.len()) {
            continue;
        }
        let after = at + 1 + (text[at + 1..].len() - text[at + 1..].trim_start_matches([' ', '\t']).len());
        let from = match text[after..].chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let end = text[after + 1..].find(quote).map_or(text.len(), |end| after + 1 + end);
                found.push(Found { at: after + 1..end, what: "value beside a name of secrets" });
                continue;
            }
            _ => at + 1,
        };
        let in_query = separator == "=" && quoted[..start].ends_with(['?', '&', ';']);
        if in_query {
            let end = run(text, from, |c| !matches!(c, '&' | '"' | '\'' | '#' | ';') && !c.is_whitespace());
            found.push(Found { at: from..end, what: "value beside a name of secrets" });
        }
    }
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '~' | '+' | '/' | '=' | '-')
}

/// Where the run of such characters that begins at `from` ends.
fn run(text: &str, from: usize, of: impl Fn(char) -> bool) -> usize {
    text[from..].find(|c| !of(c)).map_or(text.len(), |end| from + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in ["Authorization", "x-api-key", "clientSecret", "hmac", "token_secret", "X-Vault-Token", "cookie"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["token_bucket", "max_tokens", "name", "secret_name", "tokens_per_fill", "key", "host"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secrets_in_texts() {
        let hidden = |text: &str| in_text(text).into_iter().map(|f| text[f.at].to_owned()).collect::<Vec<_>>();
        assert_eq!(hidden("Bearer abcdef123"), ["abcdef123"]);
        assert_eq!(hidden("https://u:p@h/x?token=a1b2&x=1"), ["u:p", "a1b2"]);
        assert_eq!(hidden("local password = \"hunter2\" -- x"), ["hunter2"]);
        assert_eq!(hidden("h:add(\"x-api-key\", \"k1\")"), ["k1"]);
        assert_eq!(hidden("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----"), ["\nMII\n"]);
        assert_eq!(hidden("t eyJhbGciOi.eyJzdWIiOiIx.c2ln"), ["eyJhbGciOi.eyJzdWIiOiIx.c2ln"]);
        for plain in [
            "local token = headers:get(\"x-token\")",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "http://host:80/path?x=1",
            "%REQ(AUTHORIZATION)%",
            "basic realm=\"x\"",
        ] {
            assert_eq!(hidden(plain), Vec::<String>::new(), "{plain}");
        }
    }
}
