//! Resident memory as `/proc/PID/status` tells it.

use std::fs;
use std::io;

/// Of one process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resident {
    /// `VmRSS`.
    pub rss_bytes: u64,
    /// `VmHWM`: the most it ever was.
    pub rss_peak_bytes: u64,
    /// `RssAnon`.
    pub rss_anon_bytes: u64,
}

/// Of the process `pid`. An ended process (which has no memory any more) is an error.
pub fn of(pid: u32) -> io::Result<Resident> {
    parse(&fs::read_to_string(format!("/proc/{pid}/status"))?)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the process holds no memory"))
}

/// Of this process.
pub fn own() -> io::Result<Resident> {
    of(std::process::id())
}

fn parse(status: &str) -> Option<Resident> {
    let bytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(Resident { rss_bytes: bytes("VmRSS:")?, rss_peak_bytes: bytes("VmHWM:")?, rss_anon_bytes: bytes("RssAnon:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_plausible() {
        let own = own().unwrap();
        assert!(own.rss_anon_bytes > 0 && own.rss_anon_bytes <= own.rss_bytes, "{own:?}");
        // The kernel batches its per-CPU counters, so the peak may lag a little behind.
        assert!(own.rss_peak_bytes + (4 << 20) >= own.rss_bytes, "{own:?}");
    }

    #[test]
    fn a_zombie_has_none() {
        assert_eq!(parse("Name:\tenvoy\nState:\tZ (zombie)\n"), None);
        let parsed = parse("VmHWM:\t 9 kB\nVmRSS:\t 7 kB\nRssAnon:\t 3 kB\n").unwrap();
        assert_eq!((parsed.rss_peak_bytes, parsed.rss_bytes, parsed.rss_anon_bytes), (9216, 7168, 3072));
    }
}
