//! Free loopback ports for listeners that another process will open.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports this process has handed out: none is handed out twice.
static HANDED_OUT: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Attempts below the ephemeral range before the kernel is asked to choose.
const ATTEMPTS: u16 = 2000;

/// Ports of 127.0.0.1, kept open so that nobody else takes them.
#[derive(Debug)]
pub struct Reserved {
    listeners: Vec<TcpListener>,
    ports: Vec<u16>,
}

impl Reserved {
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Frees the ports for the proxy. From here until it has bound them any process may take one: call this right
    /// before the start, and on `address already in use` reserve others and start again.
    pub fn release(self) -> Vec<u16> {
        drop(self.listeners);
        self.ports
    }
}

/// Reserves `n` ports that this process never got before. They lie below the range from which the kernel takes the
/// source ports of outgoing connections, where it can: a load of many connections would otherwise take them.
pub fn reserve(n: usize) -> io::Result<Reserved> {
    let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut reserved = Reserved { listeners: Vec::new(), ports: Vec::new() };
    let mut candidates = candidates();
    while reserved.ports.len() < n {
        let candidate = candidates.next().unwrap_or(0);
        if handed_out.contains(&candidate) {
            continue;
        }
        match TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)) {
            Ok(listener) => {
                let port = listener.local_addr()?.port();
                // A repeat stays open, so that the kernel must choose another next time.
                if handed_out.insert(port) {
                    reserved.ports.push(port);
                }
                reserved.listeners.push(listener);
            }
            Err(e) if candidate == 0 => return Err(e),
            Err(_) => {}
        }
    }
    Ok(reserved)
}

/// Ports between the registered servers and the ephemeral range, from a place that differs between processes.
fn candidates() -> impl Iterator<Item = u16> {
    const FIRST: u16 = 12_000;
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_ascii_whitespace().next().and_then(|first| first.parse::<u16>().ok()).unwrap_or(32_768);
    let count = u32::from(end.saturating_sub(FIRST));
    let start = std::process::id().wrapping_mul(2_654_435_761);
    (0..ATTEMPTS).filter_map(move |i| {
        let offset = start.wrapping_add(u32::from(i)).checked_rem(count)?;
        u16::try_from(u32::from(FIRST) + offset).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_held_then_free_and_never_given_twice() {
        let first = reserve(5).unwrap();
        let taken = first.ports()[0];
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, taken)).is_err(), "held while reserved");
        let mut all = first.release();
        for _ in 0..3 {
            all.extend(reserve(5).unwrap().release());
        }
        assert_eq!(all.len(), 20);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 20);
    }

    #[test]
    fn candidates_stay_below_the_ephemeral_range() {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
        assert!(candidates().all(|port| port < first));
    }
}
