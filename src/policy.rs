//! What decides: profiles, limits, accepted costs. Detection (`notice`) and policy (`limit`, `rule_out`) are two things.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// How long a gate measures: the numbers of blocks at which it may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// At most a minute.
    Quick,
    /// Under two minutes.
    #[default]
    Standard,
    /// For releases; also gates P999 as a ratio.
    Deep,
}

impl Profile {
    /// Numbers of blocks after which the run may stop; the last is the end.
    pub fn looks(self) -> &'static [u32] {
        match self {
            Profile::Quick => &[8, 12],
            Profile::Standard => &[8, 14, 20],
            Profile::Deep => &[12, 24, 40],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Profile::Quick => "quick",
            Profile::Standard => "standard",
            Profile::Deep => "deep",
        }
    }
}

/// A named set of margins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LimitSet {
    Strict,
    #[default]
    Default,
    Lenient,
}

impl LimitSet {
    pub fn name(self) -> &'static str {
        match self {
            LimitSet::Strict => "strict",
            LimitSet::Default => "default",
            LimitSet::Lenient => "lenient",
        }
    }
}

/// What an inconclusive verdict does to the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum OnInconclusive {
    #[default]
    Pass,
    Fail,
}

/// Margins of one metric: relative for ratios (0.05 = 5 %), in the metric's unit for differences (slow share: 0.0005 =
/// 0.05 percentage points).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Margins {
    /// Surely beyond it is reported (`costlier`).
    pub notice: f64,
    /// t0: surely beyond it fails.
    pub limit: f64,
    /// t1: a pass must exclude it.
    pub rule_out: f64,
    /// A regression must also exceed this absolute change, in the metric's unit, so that a large share of nothing
    /// fails no one.
    pub floor: f64,
}

/// Thresholds of the rare tail: (milliseconds, limit, rule out), the margins as shares of requests.
pub const SLOW_THRESHOLDS: [(u64, f64, f64); 5] =
    [(1, 0.0005, 0.003), (2, 0.0005, 0.003), (5, 0.0002, 0.001), (10, 0.0002, 0.001), (20, 0.0002, 0.001)];

/// Slow requests counted per slice at most: one stall of the machine must not weigh like a hundred slow requests.
pub const SLOW_CAP_PER_SLICE: u64 = 8;

/// The margins of a metric in a set; `None` for metrics that are reported only. Source: the table in METHODOLOGY.md.
///
/// `SlowShare` has one pair of margins a threshold (`SLOW_THRESHOLDS`); what stands here is its narrowest.
pub fn margins(metric: Metric, set: LimitSet) -> Option<Margins> {
    let m = |notice, limit, rule_out, strict_limit, strict_rule_out, floor| match set {
        LimitSet::Strict => Margins { notice: strict_limit, limit: strict_limit, rule_out: strict_rule_out, floor },
        LimitSet::Default => Margins { notice, limit, rule_out, floor },
        // Twice the default: for targets whose owners want to hear of gross changes only.
        LimitSet::Lenient => Margins { notice, limit: 2.0 * limit, rule_out: 2.0 * rule_out, floor },
    };
    let same = |notice, limit, rule_out| Margins { notice, limit, rule_out, floor: 0.0 };
    Some(match metric {
        Metric::InstructionsPerRequest => m(0.01, 0.05, 0.06, 0.01, 0.02, 0.0),
        // A proxy does some eight calls a request: half a call is less than any change of what it does.
        Metric::SyscallsPerRequest => m(0.01, 0.05, 0.08, 0.01, 0.03, 0.5),
        Metric::CpuNsPerRequest => m(0.01, 0.05, 0.10, 0.01, 0.05, 200.0),
        Metric::CpuNsPerRequestSum => m(0.03, 0.08, 0.15, 0.03, 0.10, 400.0),
        Metric::LatencyP50Ns => m(0.02, 0.05, 0.10, 0.02, 0.05, 2_000.0),
        Metric::LatencyP90Ns => m(0.03, 0.08, 0.15, 0.03, 0.08, 5_000.0),
        Metric::LatencyP99Ns => m(0.05, 0.10, 0.25, 0.05, 0.15, 10_000.0),
        Metric::LatencyP999Ns => m(0.25, 0.50, 1.50, 0.25, 1.00, 100_000.0),
        Metric::SlowShare => same(0.0002, 0.0002, 0.001),
        Metric::ThroughputRps => m(0.02, 0.05, 0.10, 0.03, 0.08, 0.0),
        Metric::AllocatedBytes => m(0.01, 0.05, 0.08, 0.01, 0.03, 65_536.0),
        Metric::RssAnonBytes => m(0.03, 0.10, 0.20, 0.03, 0.10, 524_288.0),
        Metric::StartupMs => m(0.10, 0.30, 0.60, 0.10, 0.30, 20.0),
        Metric::ErrorsPerRequest
        | Metric::UpstreamConnectionsPerRequest
        | Metric::UpstreamRequestsPerRequest
        | Metric::RetriesPerRequest
        | Metric::TimeoutsPerRequest
        | Metric::OverflowPerRequest => same(0.0, 0.05, 0.2),
        Metric::HeapBytesPerRequest
        | Metric::HeapBytesPerConnection
        | Metric::RssBytes
        | Metric::RssPeakBytes
        | Metric::ContextSwitchesPerRequest => return None,
    })
}

/// A target's own margins for one metric, from `sidegate.yaml`; what is `None` comes from the set.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LimitOverride {
    pub notice: Option<f64>,
    pub limit: Option<f64>,
    pub rule_out: Option<f64>,
}

/// An intended cost that may pass: scoped, capped, dated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accept {
    pub target: String,
    pub metric: Metric,
    /// The change tolerated, relative for ratios, in the metric's unit for differences.
    pub up_to: f64,
    /// Last day on which it holds, `YYYY-MM-DD`.
    pub until: String,
    pub reason: String,
}

/// What a verdict on one target needs to know beyond the measurement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Policy {
    pub profile: Profile,
    pub limits: LimitSet,
    pub on_inconclusive: OnInconclusive,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<Metric, LimitOverride>,
    /// Absolute limits on head by metric, in the metric's unit; keys of `added_…` metrics are in `added_max`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max: BTreeMap<Metric, f64>,
    /// Absolute limits on what the sidecar adds to the direct path, for latency metrics.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added_max: BTreeMap<Metric, f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<Accept>,
}

impl Policy {
    /// The margins in force: the set's, with the target's own put over them; `None` where the metric is reported only
    /// and the target sets none.
    pub fn margins(&self, metric: Metric) -> Option<Margins> {
        let own = self.overrides.get(&metric).copied().unwrap_or_default();
        match margins(metric, self.limits) {
            Some(m) => {
                let limit = own.limit.unwrap_or(m.limit);
                let widened = m.rule_out.max(limit * 1.5);
                Some(Margins {
                    notice: own.notice.unwrap_or(m.notice.min(limit)),
                    limit,
                    rule_out: own.rule_out.unwrap_or(if own.limit.is_some() { widened } else { m.rule_out }),
                    floor: m.floor,
                })
            }
            None => own.limit.map(|limit| Margins {
                notice: own.notice.unwrap_or(limit),
                limit,
                rule_out: own.rule_out.unwrap_or(2.0 * limit),
                floor: 0.0,
            }),
        }
    }
}
