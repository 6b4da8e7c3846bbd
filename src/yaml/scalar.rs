//! What Envoy makes of a YAML scalar. Found by reading configs back from Envoy 1.40.0 and checked against the real
//! binary by `tests/it/rehost.rs`: only an untagged plain scalar can be null; a quoted or block scalar is a string
//! unless a tag other than `!` stands before it; everything else is tried as a boolean, then as an integer; an integer
//! outside 32 bits becomes its decimal text; floats stay text.

use serde_json::Value;

/// How a scalar stood in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Plain and without a tag.
    Plain,
    /// Quoted, block, or tagged `!`.
    String,
    /// With a tag such as `!!str` or `!name`: typed as plain text, whatever the tag says, but never null.
    Tagged,
}

pub(super) fn value(text: &str, style: Style) -> Value {
    if style == Style::String {
        return Value::from(text);
    }
    if style == Style::Plain && is_null(text) {
        return Value::Null;
    }
    if let Some(truth) = boolean(text) {
        return Value::from(truth);
    }
    match integer(text) {
        Some(number) if i32::try_from(number).is_ok() => Value::from(number),
        Some(number) => Value::from(number.to_string()),
        None => Value::from(text),
    }
}

pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// YAML 1.1 booleans, in lower case, upper case, or with a capital.
fn boolean(text: &str) -> Option<bool> {
    let capital = text.chars().next().is_some_and(char::is_uppercase);
    let rest = text.get(1..)?;
    let flexible = rest.chars().all(char::is_lowercase) || (capital && rest.chars().all(char::is_uppercase));
    if !flexible {
        return None;
    }
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" | "on" => Some(true),
        "n" | "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// An integer as C's streams read it: an optional sign, then `0x` hexadecimal, a leading zero octal, else decimal.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_scalars_are_typed_as_envoy_does() {
        let table = [
            ("yes", json!(true)),
            ("y", json!(true)),
            ("Y", json!(true)),
            ("oN", json!("oN")),
            ("OFF", json!(false)),
            ("tRue", json!("tRue")),
            ("5", json!(5)),
            ("+5", json!(5)),
            ("-0", json!(0)),
            ("010", json!(8)),
            ("08", json!("08")),
            ("0x1F", json!(31)),
            ("-0x1", json!(-1)),
            ("0x", json!("0x")),
            ("+", json!("+")),
            ("2147483648", json!("2147483648")),
            ("-2147483648", json!(-2_147_483_648_i64)),
            ("0xFFFFFFFF", json!("4294967295")),
            ("9223372036854775808", json!("9223372036854775808")),
            ("1.5", json!("1.5")),
            ("1e3", json!("1e3")),
            ("1_000", json!("1_000")),
            ("0o7", json!("0o7")),
            ("nULL", json!("nULL")),
            ("NULL", json!(null)),
            ("~", json!(null)),
            ("00", json!(0)),
            ("é", json!("é")),
        ];
        for (text, expected) in table {
            assert_eq!(value(text, Style::Plain), expected, "{text}");
        }
    }

    #[test]
    fn quotes_and_tags() {
        assert_eq!(value("5", Style::String), json!("5"));
        assert_eq!(value("5", Style::Tagged), json!(5));
        assert_eq!(value("null", Style::Tagged), json!("null"));
        assert_eq!(value("", Style::Tagged), json!(""));
    }
}
