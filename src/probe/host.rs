//! The machine as the record keeps it.

use std::fs;

use crate::probe::{cgroup, cpus};
use crate::record::Host;

/// Describes this machine. What cannot be read is left empty or zero: it is context, not evidence.
pub fn host() -> Host {
    Host {
        os: field(&read("/etc/os-release"), "PRETTY_NAME=").unwrap_or_default().trim_matches('"').to_owned(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: cpu_model(&read("/proc/cpuinfo")),
        cpus: cpus::allowed().map_or(0, |cpus| u32::try_from(cpus.len()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        cpu_quota: cgroup::cpu_quota(),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key))
}

/// x86 says `model name`; Arm has only numbers, of which implementer and part tell cores apart.
fn cpu_model(cpuinfo: &str) -> String {
    let value = |key| field(cpuinfo, key).map(|rest| rest.trim_start_matches([' ', '\t', ':']).trim());
    match (value("model name"), value("CPU implementer"), value("CPU part")) {
        (Some(name), _, _) => name.to_owned(),
        (None, Some(implementer), Some(part)) => format!("implementer {implementer} part {part}"),
        _ => String::new(),
    }
}

fn memory_bytes(meminfo: &str) -> u64 {
    field(meminfo, "MemTotal:")
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let host = host();
        assert!(!host.kernel.is_empty() && host.cpus >= 1 && host.memory_bytes > 1 << 20, "{host:?}");
    }

    #[test]
    fn models_of_both_architectures() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Xeon E5\n"), "Xeon E5");
        assert_eq!(cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "implementer 0x41 part 0xd0c");
        assert_eq!(cpu_model(""), "");
        assert_eq!(memory_bytes("MemTotal:       100 kB\n"), 102_400);
    }
}
