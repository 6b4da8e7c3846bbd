//! Certificates of the run, in place of those that the config names: files and services of the host are not there.

use serde_json::{Map, Value, json};

use crate::upstream::Trust;

/// What is put where the edit points to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Secret {
    /// The key that takes the place of the node's own key; none: the key stays.
    pub key: Option<&'static str>,
    pub put: Put,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Put {
    /// A `DataSource` with the authority's certificate.
    Authority,
    /// A `CertificateValidationContext`: these fields, and the authority's certificate.
    Validation(Map<String, Value>),
    /// A `TlsCertificate`: the client's.
    Client,
    /// A list of that one.
    Clients,
    /// The node goes.
    Nothing,
}

impl Secret {
    pub fn put(&self, root: &mut Value, pointer: &str, trust: &Trust) {
        let Some((parent, key)) = pointer.rsplit_once('/') else { return };
        let value = self.put.value(trust);
        if let (None, Some(value)) = (self.key, &value) {
            if let Some(target) = root.pointer_mut(pointer) {
                target.clone_from(value);
            }
            return;
        }
        let Some(entries) = root.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
        entries.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
        if let (Some(key), Some(value)) = (self.key, value) {
            entries.insert(key.to_owned(), value);
        }
    }
}

impl Put {
    fn value(&self, trust: &Trust) -> Option<Value> {
        let inline = |pem: &str| json!({"inline_string": pem});
        let client =
            || json!({"certificate_chain": inline(&trust.client_chain), "private_key": inline(&trust.client_key)});
        Some(match self {
            Self::Authority => inline(&trust.ca),
            Self::Validation(fields) => {
                let mut fields = fields.clone();
                fields.insert("trusted_ca".to_owned(), inline(&trust.ca));
                Value::Object(fields)
            }
            Self::Client => client(),
            Self::Clients => Value::Array(vec![client()]),
            Self::Nothing => return None,
        })
    }
}
