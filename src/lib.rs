//! sidegate: a regression gate for the configuration of service-mesh sidecar proxies. See ARCHITECTURE.md.

pub mod backend;
pub mod cmd;
pub mod exit;
pub mod histogram;
pub mod load;
pub mod metric;
pub mod plan;
pub mod policy;
pub mod problem;
pub mod record;
pub mod stop;
pub mod thread;
pub mod units;
pub mod verdict;
