//! What the machine and the kernel say: processors, schedulers, ports, memory, control groups.

pub mod cgroup;
pub mod cpus;
mod host;
pub mod memory;
pub mod ports;
pub mod thread;

pub use host::host;
