//! sidegate: a regression gate for the configuration of service-mesh sidecar proxies. See ARCHITECTURE.md.

pub mod analysis;
pub mod exit;
pub mod histogram;
pub mod judge;
pub mod metric;
pub mod plan;
pub mod policy;
pub mod problem;
pub mod record;
pub mod simulate;
pub mod stats;
pub mod stop;
pub mod verdict;
