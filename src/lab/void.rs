//! When a block does not count. Decided without looking at labels: nothing here knows base from head.

use crate::record::{Load, Scenario, Slice};

/// Above this share of all CPU time taken by the hypervisor a block says more about the neighbours than about us.
const STEAL_SHARE: f64 = 0.10;

/// Above this median over open-loop slices of the generator's P99 lateness, "open loop at a rate" is not what ran.
const LATENESS_NS: u64 = 5_000_000;

/// The machine's accounting of stolen time at one moment, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steal {
    stolen: u64,
    total: u64,
}

impl Steal {
    /// Zeros where the kernel does not tell.
    pub fn now() -> Self {
        std::fs::read_to_string("/proc/stat").ok().and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// From the first line of `/proc/stat`: user nice system idle iowait irq softirq steal …
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> =
            text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().map_while(|f| f.parse().ok()).collect();
        let stolen = *fields.get(7)?;
        Some(Self { stolen, total: fields.iter().take(8).sum() })
    }

    fn share_since(self, before: &Steal) -> f64 {
        let total = self.total.saturating_sub(before.total);
        if total == 0 { 0.0 } else { self.stolen.saturating_sub(before.stolen) as f64 / total as f64 }
    }
}

/// Why the block that began at `before` and ran `slices` is void, if it is.
pub fn reason(before: &Steal, slices: &[Slice], scenarios: &[Scenario]) -> Option<String> {
    let stolen = Steal::now().share_since(before);
    if stolen > STEAL_SHARE {
        return Some(format!("the hypervisor took {:.0} % of the CPU time", 100.0 * stolen));
    }
    let is_open = |s: &&Slice| {
        scenarios.get(s.scenario as usize).is_some_and(|scenario| matches!(scenario.load, Load::Open { .. }))
    };
    let mut lateness: Vec<u64> = slices.iter().filter(is_open).map(|s| s.lateness_p99_ns).collect();
    lateness.sort_unstable();
    let typical = *lateness.get(lateness.len() / 2)?;
    (typical > LATENESS_NS).then(|| format!("the generator was {:.1} ms late", typical as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time() {
        let before = Steal::parse("cpu  100 0 100 800 0 0 0 0 0 0\n").expect("parses");
        let after = Steal::parse("cpu  150 0 150 850 0 0 0 50 0 0\n").expect("parses");
        assert!((after.share_since(&before) - 0.25).abs() < 1e-12);
        assert_eq!(before.share_since(&before), 0.0);
        assert_eq!(Steal::parse("intr 1 2 3"), None);
    }
}
