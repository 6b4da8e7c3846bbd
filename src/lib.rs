//! sidegate: a regression gate for the configuration of service-mesh sidecar proxies. See ARCHITECTURE.md.

pub mod cmd;
pub mod backend;
pub mod exit;
pub mod histogram;
pub mod load;
pub mod analysis;
pub mod exit;
pub mod histogram;
pub mod judge;
pub mod metric;
pub mod plan;
pub mod policy;
pub mod probe;
pub mod problem;
pub mod proxy;
pub mod record;
pub mod stats;
pub mod stop;
pub mod thread;
pub mod units;
pub mod verdict;
