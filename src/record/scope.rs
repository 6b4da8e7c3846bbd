//! What a run was about, where the configs came from git: commits, and what was left unmeasured and why.

use serde::{Deserialize, Serialize};

/// Empty where the configs were named as files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// Full names of the commits compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_commit: Option<String>,
    /// Targets that the change concerns and that were not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
    /// What a reader must know about the whole run: plain sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Scope {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A target without measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmeasured {
    pub target: String,
    /// Paths in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    pub why: Why,
    /// One plain sentence or several lines of faults with their places.
    pub message: String,
    /// Line of head that the message is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The change takes the config away.
    Removed,
    /// Moved, every byte the same.
    Moved,
    /// The time for all targets was up.
    DidNotFit,
    /// The config is wrong, or cannot be measured.
    Refused,
    /// The machine, the network or a child process failed.
    Environment,
    /// A signal came before its turn.
    Interrupted,
}
