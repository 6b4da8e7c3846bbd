//! sidegate: a regression gate for the configuration of service-mesh sidecar proxies. See ARCHITECTURE.md.

pub mod analysis;
pub mod backend;
pub mod cli;
pub mod cmd;
pub mod exit;
pub mod files;
pub mod histogram;
pub mod judge;
pub mod lab;
pub mod load;
pub mod metric;
pub mod plan;
pub mod policy;
pub mod probe;
pub mod problem;
pub mod proxy;
pub mod record;
pub mod report;
pub mod run;
pub mod spec;
pub mod stats;
pub mod stop;
pub mod thread;
pub mod units;
pub mod verdict;
