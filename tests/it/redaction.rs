//! No secret of a config is written down, and what is not secret stays as it is.

use proptest::prelude::*;
use serde_json::{Value, json};
use sidegate::baseline::redact;

/// One secret in one of the places where Envoy's configs have them.
fn placed(place: usize, secret: &str) -> Value {
    let base64 = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>() + "==";
    match place {
        0 => json!({"private_key": {"inline_string": secret}}),
        1 => json!({"tls_certificates": [{"privateKey": {"inlineBytes": base64(secret)}, "password": secret}]}),
        2 => json!({"header": {"key": "Authorization", "value": format!("Bearer {secret}")}}),
        3 => json!({"uri": format!("https://user:{secret}@idp.example.com/keys")}),
        4 => json!({"hmac_secret": {"secret": {"inline_string": secret}}}),
        5 => json!({"local_jwks": {"inline_string": json!({"keys": [{"kty": "oct", "k": secret}]}).to_string()}}),
        6 => json!({"users": {"inline_string": format!("bob:{{SHA}}{secret}\nann:{{SHA}}{secret}")}}),
        7 => json!({"default_source_code": {"inline_string": format!("local password = \"{secret}\"\n")}}),
        8 => json!({"inline_code": format!("h:add(\"x-api-key\", \"{secret}\")")}),
        9 => json!({"headers": [{"name": "x-api-key", "string_match": {"exact": secret}}]}),
        10 => json!({"prefix_rewrite": format!("/a?access_token={secret}&b=1")}),
        11 => json!({"session_ticket_keys": {"keys": [{"inline_bytes": base64(secret)}]}}),
        12 => json!({"initial_metadata": [{"key": "x-vault-token", "value": secret}]}),
        13 => json!({"inline_string": format!(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n"
        )}),
        14 => json!({"clientSecret": secret}),
        15 => json!({"credentials": [{"key": secret, "client": "a"}]}),
        16 => json!({"headers": [{"name": "authorization", "exact_match": secret}]}),
        17 => json!({"filter_metadata": {"envoy.lb": {"api-key": secret}}}),
        18 => json!({"body": {"inline_string": format!("eyJhbGciOiJIUzI1NiJ9.{secret}.{secret}")}}),
        _ => json!({"static_value": format!("ghp_{secret}")}),
    }
}

const PLACES: usize = 20;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_secret_survives(
        secrets in prop::collection::vec((0..PLACES, "[A-Za-z0-9]{20,40}"), 1..6),
        depth in 0..4_usize,
    ) {
        let mut config = Value::Array(secrets.iter().map(|(place, secret)| placed(*place, secret)).collect());
        for _ in 0..depth {
            config = json!({"typed_config": {"@type": "type.googleapis.com/x", "list": [config]}});
        }
        let redacted = redact(&config);
        let text = redacted.document.to_string() + &serde_json::to_string(&redacted.places).unwrap();
        for (place, secret) in &secrets {
            prop_assert!(!text.contains(secret.as_str()), "{place}: {text}");
            // Not in part either.
            prop_assert!(!text.contains(&secret[..12]) && !text.contains(&secret[8..]), "{place}: {text}");
        }
        prop_assert!(redacted.places.len() >= secrets.len());
        prop_assert!(redacted.places.iter().all(|p| p.bytes > 0));
        // As large as before, and nothing more to find the second time.
        prop_assert_eq!(redacted.document.to_string().len(), config.to_string().len());
        prop_assert_eq!(&redact(&redacted.document).document, &redacted.document);
    }
}

#[test]
fn what_is_no_secret_stays() {
    let config = json!({
        "name": "envoy.filters.http.jwt_authn",
        "token_bucket": {"max_tokens": 100, "tokens_per_fill": "10", "fill_interval": "1s"},
        "local_jwks": {"inline_string": "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"0vx7agoebGcQSuuPiLJXZpt\",\"e\":\"AQAB\"}]}"},
        "certificate_chain": {"inline_string": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"},
        "from_headers": [{"name": "Authorization", "value_prefix": "Bearer "}],
        "inline_code": "local token = request_handle:headers():get(\"authorization\")\nif token == nil then return end\n",
        "header": {"key": "authorization", "value": "%REQ(X-FORWARDED-AUTH)%"},
        "address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}},
        "redirect": "https://example.com/login?next=/a",
        "secret_name": "sds://a",
        "hash_policy": [{"cookie": {"name": "session", "ttl": "0s"}}],
    });
    let redacted = redact(&config);
    assert_eq!(redacted.document, config, "{:?}", redacted.places);
    assert!(redacted.places.is_empty());
}

#[test]
fn places_are_told_by_pointer_kind_and_size() {
    let config = json!({"a": [{"header": {"key": "x/token", "value": "v"}}, {"x-token": {"value": "hunter2"}}]});
    let redacted = redact(&config);
    let told: Vec<String> = redacted.places.iter().map(|p| format!("{} {} {}", p.pointer, p.what, p.bytes)).collect();
    assert_eq!(told, ["/a/1/x-token/value x-token 7"]);
    assert_eq!(redacted.document["a"][1]["x-token"]["value"], "redacte");
    // A number is a secret too where its field says so.
    assert_eq!(redact(&json!({"password": 90210})).document, json!({"password": 11111}));
}
