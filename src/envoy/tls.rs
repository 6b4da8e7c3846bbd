//! TLS to an upstream: whom the proxy trusts and what it shows become certificates of the run; all else stays.

use serde_json::{Map, Value};

use super::bootstrap::Findings;
use super::node::{Node, is_named};
use super::rehost::Apply;
use super::secret::{Put, Secret};
use crate::upstream::San;

const COPY: &str = "measure a copy without it";

/// Parts that need what a run does not have.
const REFUSED: [(&str, &str); 8] = [
    ("custom_handshaker", "the handshake is another library's"),
    ("key_log", "keys are written to a file of the host"),
    ("custom_tls_certificate_selector", "certificates are chosen by an extension"),
    ("tls_certificate_provider_instance", "certificates come from a provider of the host"),
    ("tls_certificate_certificate_provider", "certificates come from a provider of the host"),
    ("tls_certificate_certificate_provider_instance", "certificates come from a provider of the host"),
    ("validation_context_certificate_provider", "trusted certificates come from a provider of the host"),
    ("validation_context_certificate_provider_instance", "trusted certificates come from a provider of the host"),
];
const REFUSED_VALIDATION: [(&str, &str); 5] = [
    ("verify_certificate_hash", "the real server's certificate is pinned, and its key is not here"),
    ("verify_certificate_spki", "the real server's key is pinned, and is not here"),
    ("crl", "revoked certificates are those of the real authority"),
    ("custom_validator_config", "certificates are judged by an extension"),
    ("ca_certificate_provider_instance", "trusted certificates come from a provider of the host"),
];

/// Changes of an `UpstreamTlsContext`. Gives whether the proxy shows a certificate of its own.
pub(super) fn read(context: &Node, name: &str, findings: &mut Findings) -> bool {
    let Some(common) = context.get("common_tls_context") else { return false };
    let mut reader = Reader { name, findings };
    reader.refuse_all(&common, &REFUSED);
    if let Some(params) = common.get("tls_params") {
        reader.params(&params);
    }
    if let Some(context) = common.get("validation_context") {
        reader.validation(&context);
    }
    if let Some(combined) = common.get("combined_validation_context") {
        reader.combined(&combined);
    }
    if let Some(service) = common.get("validation_context_sds_secret_config") {
        let what = "what it trusts comes from a service that is not here: the authority of this run in its place, without \
                    the names that the service may demand";
        reader.secret(&service, what, Some("validation_context"), Put::Validation(Map::new()));
    }
    reader.client(&common)
}

struct Reader<'r> {
    /// The cluster's.
    name: &'r str,
    findings: &'r mut Findings,
}

impl Reader<'_> {
    fn refuse(&mut self, node: &Node, why: &str, help: &str) {
        let message = format!("cluster `{}`: `{}` cannot be re-hosted yet: {why}", self.name, node.key());
        self.findings.refuse(node, message, help);
    }

    fn refuse_all(&mut self, message: &Node, fields: &[(&str, &str)]) {
        for (field, why) in fields {
            let empty = |node: &Node| node.value.as_array().is_some_and(Vec::is_empty);
            if let Some(node) = message.get(field).filter(|node| !empty(node)) {
                self.refuse(&node, why, COPY);
            }
        }
    }

    fn secret(&mut self, node: &Node, what: &str, key: Option<&'static str>, put: Put) {
        let what = format!("cluster `{}`: {what}", self.name);
        self.findings.edit(node, what, Apply::Secret(Secret { key, put }));
    }

    /// What the backend's TLS cannot agree to.
    fn params(&mut self, params: &Node) {
        const VERSIONS: [&str; 5] = ["TLS_AUTO", "TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3"];
        const CURVES: [&str; 3] = ["X25519", "P-256", "P-384"];
        const CIPHERS: [&str; 3] =
            ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"];
        const HELP: &str = "measure a copy without this setting";
        let most = params.choice("tls_maximum_protocol_version", &VERSIONS);
        let too_old = matches!(most.as_deref(), Some("TLSV1_0" | "TLSV1_1"));
        if let Some(node) = params.get("tls_maximum_protocol_version").filter(|_| too_old) {
            self.refuse(&node, "the backend speaks TLS 1.2 and 1.3 only", HELP);
        }
        // The ciphers of TLS 1.3 are not chosen here.
        let ciphers = (most.as_deref() != Some("TLSV1_3")).then_some(("cipher_suites", &CIPHERS[..]));
        let signatures = ("signature_algorithms", &["ecdsa_secp256r1_sha256"][..]);
        for (field, known) in ciphers.into_iter().chain([("ecdh_curves", &CURVES[..]), signatures]) {
            let Some(node) = params.get(field) else { continue };
            let items = params.list(field);
            let offered: Vec<&str> = items.iter().filter_map(|item| item.value.as_str()).collect();
            let common = offered.iter().any(|text| known.iter().any(|known| text.contains(known)));
            if !offered.is_empty() && !common {
                let why = format!("the backend's key is ECDSA P-256, and it knows only {}", known.join(", "));
                self.refuse(&node, &why, HELP);
            }
        }
    }

    fn validation(&mut self, context: &Node) {
        self.demands(context);
        if let Some(ca) = context.get("trusted_ca") {
            self.secret(&ca, "the authority it trusts becomes that of this run", None, Put::Authority);
        }
        if let Some(system) = context.get("system_root_certs") {
            let what = "the authorities of the system it trusts become that of this run";
            self.secret(&system, what, Some("trusted_ca"), Put::Authority);
        }
        self.unwatch(context);
    }

    /// What a certificate must fulfil: names go into ours.
    fn demands(&mut self, context: &Node) {
        self.refuse_all(context, &REFUSED_VALIDATION);
        for typed in context.list("match_typed_subject_alt_names") {
            self.typed_name(&typed);
        }
        for matcher in context.list("match_subject_alt_names") {
            self.name_of(&matcher, |text| match text.parse() {
                Ok(address) => Some(San::Ip(address)),
                Err(_) if text.contains("://") => Some(San::Uri(text)),
                Err(_) => Some(San::Dns(text)),
            });
        }
    }

    fn typed_name(&mut self, typed: &Node) {
        let kind =
            typed.choice("san_type", &["SAN_TYPE_UNSPECIFIED", "EMAIL", "DNS", "URI", "IP_ADDRESS", "OTHER_NAME"]);
        let Some(matcher) = typed.get("matcher") else { return };
        self.name_of(&matcher, |text| match kind.as_deref() {
            Some("EMAIL") => Some(San::Email(text)),
            Some("DNS") => Some(San::Dns(text)),
            Some("URI") => Some(San::Uri(text)),
            Some("IP_ADDRESS") => text.parse().ok().map(San::Ip),
            _ => None,
        });
    }

    /// A name that fits a matcher: the text itself, which begins with itself, ends with itself and contains itself.
    fn name_of(&mut self, matcher: &Node, san: impl Fn(String) -> Option<San>) {
        const HELP: &str = "name what it fits, with `exact`, in a copy for the gate";
        let text = ["exact", "prefix", "suffix", "contains"].iter().find_map(|field| matcher.text(field));
        match text.filter(|text| text.is_ascii()).and_then(|text| san(text.to_owned())) {
            Some(san) => _ = self.findings.names.insert(san),
            None => self.refuse(matcher, "no certificate can be made that is sure to fit it", HELP),
        }
    }

    /// The fields of the default and our authority, in one context.
    fn combined(&mut self, combined: &Node) {
        self.refuse_all(combined, &REFUSED[6..]);
        let default = combined.get("default_validation_context");
        let mut fields = default.as_ref().and_then(|node| node.value.as_object()).cloned().unwrap_or_default();
        fields.retain(|key, _| {
            !["trusted_ca", "system_root_certs", "watched_directory"].iter().any(|f| is_named(key, f))
        });
        if let Some(default) = default {
            self.demands(&default);
        }
        let what = "what it trusts comes in part from a service that is not here: the part in the file kept, the authority of \
                    this run in place of the other";
        self.secret(combined, what, Some("validation_context"), Put::Validation(fields));
    }

    fn unwatch(&mut self, holder: &Node) {
        if let Some(directory) = holder.get("watched_directory") {
            self.secret(&directory, "no directory of the host is watched", None, Put::Nothing);
        }
    }

    /// Certificates that the proxy shows.
    fn client(&mut self, common: &Node) -> bool {
        const KEY: &str = "by one of this run (ECDSA P-256: the type and size of the real key are not known)";
        let certificates = common.list("tls_certificates");
        for certificate in &certificates {
            if let Some(node) = certificate.get("private_key_provider") {
                self.refuse(&node, "the key is in a device or library of the host", COPY);
            } else if !is_inline(certificate) {
                let what = format!("its client certificate, which is not in the config, replaced {KEY}");
                self.secret(certificate, &what, None, Put::Client);
            }
        }
        let services = common.get("tls_certificate_sds_secret_configs");
        if let Some(services) = &services {
            let what = format!("its client certificate, which comes from a service that is not here, replaced {KEY}");
            self.secret(services, &what, Some("tls_certificates"), Put::Clients);
        }
        services.is_some() || !certificates.is_empty()
    }
}

/// Whether chain and key both stand in the config, so that the key's type and size are the user's own.
fn is_inline(certificate: &Node) -> bool {
    let is_pem = |field: &str| {
        let text = certificate.get(field).and_then(|source| source.text("inline_string"));
        // A stored baseline's keys are struck out.
        text.is_some_and(|text| text.contains("-----BEGIN ") && !text.contains("redacted"))
    };
    let only =
        |(key, _): &(&String, &Value)| ["certificate_chain", "private_key"].iter().any(|field| is_named(key, field));
    is_pem("certificate_chain")
        && is_pem("private_key")
        && certificate.value.as_object().is_some_and(|entries| entries.iter().all(|entry| only(&entry)))
}
