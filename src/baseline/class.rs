//! Which stored figures of time may stand beside today's: those of the same class of machine and the same proxy.

use crate::record::{Host, ProxyId};

/// What differs between two machines as far as times go, in words; empty for the same class.
pub fn differences(stored: &Host, here: &Host) -> Vec<String> {
    let mut found = Vec::new();
    let mut tell = |what: &str, stored: &str, here: &str| {
        if stored != here {
            found.push(format!("{what} was {}, is {}", named(stored), named(here)));
        }
    };
    tell("the architecture", &stored.architecture, &here.architecture);
    tell("the CPU model", &stored.cpu_model, &here.cpu_model);
    tell("the number of CPUs", &stored.cpus.to_string(), &here.cpus.to_string());
    found
}

fn named(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

/// Why stored figures of time are not shown beside today's; `None` where they may be.
pub fn not_comparable(stored: (&Host, &ProxyId), here: (&Host, &ProxyId)) -> Option<String> {
    let mut found = differences(stored.0, here.0);
    if stored.1.sha256 != here.1.sha256 {
        let (stored, here) = (stored.1, here.1);
        found.push(match stored.version == here.version {
            true => format!("the proxy was another build of {} {}", here.kind, here.version),
            false => format!("the proxy was {} {}, is {}", stored.kind, stored.version, here.version),
        });
    }
    (!found.is_empty()).then(|| found.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_told_by_what_differs() {
        let host = |model: &str, cpus| Host { cpu_model: model.to_owned(), cpus, ..Host::default() };
        let proxy = |version: &str, sha: &str| ProxyId {
            kind: "envoy".to_owned(),
            version: version.to_owned(),
            sha256: sha.to_owned(),
        };
        let (a, b) = (host("Xeon", 2), Host { kernel: "6.1".to_owned(), ..host("Xeon", 2) });
        assert_eq!(not_comparable((&a, &proxy("1.40.0", "x")), (&b, &proxy("1.40.0", "x"))), None);
        let why = not_comparable((&a, &proxy("1.39.0", "x")), (&host("", 4), &proxy("1.40.0", "y"))).unwrap();
        for part in ["CPU model was Xeon, is unknown", "CPUs was 2, is 4", "envoy 1.39.0, is 1.40.0"] {
            assert!(why.contains(part), "{why}");
        }
    }
}
