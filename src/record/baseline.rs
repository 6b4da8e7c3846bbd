//! The stored baseline as a run used it.

use serde::{Deserialize, Serialize};

use super::Source;
use crate::metric::Metric;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredBaseline {
    /// `baselines/checkout.json`, as the user named it or where it was found.
    pub file: String,
    /// RFC 3339, UTC.
    pub recorded_at: String,
    /// The config that it holds, by the name it had then.
    pub config: String,
    pub replay: Replay,
    /// Where its counts are from; absent where nothing was counted, or base's counts are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<StoredCounts>,
    /// What keeps the stored figures of time from being shown beside today's, in one plain sentence: another machine or
    /// another proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<String>,
    /// Typical values as they were stored; shown only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<StoredFigure>,
}

/// What became of the stored config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Replay {
    /// It ran as a live arm.
    Live { source: Source },
    /// It is what base is: no arm of its own.
    IsBase,
    /// It could not be run, or not to the end.
    Left { why: String },
}

/// Where the counts that head is held against are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum StoredCounts {
    /// The file: counts travel between machines of one class.
    Stored,
    /// The live arm, counted beside head, because the stored counts may not stand beside today's.
    Again { why: String },
    /// Nowhere: no live arm, and the stored counts may not stand beside today's.
    None { why: String },
}

/// The median over the blocks of the run that recorded it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredFigure {
    /// Empty for memory and start-up.
    pub scenario: String,
    pub metric: Metric,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_ms: Option<u64>,
    pub value: f64,
}

impl StoredBaseline {
    pub fn is_live(&self) -> bool {
        matches!(self.replay, Replay::Live { .. })
    }
}
