//! What stands in for the upstreams of a config: which ports, what is spoken on them, whom they trust.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// What a port of the backend speaks, as the cluster's options demand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speaks {
    /// HTTP/1.1 without TLS.
    Http1,
    /// HTTP/2 with prior knowledge, without TLS. (HTTP/1.1 is answered as well: health checks may speak it.)
    Http2,
    /// TLS. Inside of it HTTP/2 or HTTP/1.1, by ALPN, and without ALPN by what the client begins with.
    Tls,
    /// The same, and the client is asked for its certificate.
    MutualTls,
}

impl Speaks {
    pub const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Tls, Self::MutualTls];

    pub fn is_tls(self) -> bool {
        matches!(self, Self::Tls | Self::MutualTls)
    }
}

/// Numbers of ports, by what is spoken on them. Wherever ports stand in one list, they stand in the order of `Speaks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounts([usize; Speaks::ALL.len()]);

impl PortCounts {
    /// `count` ports that speak HTTP/1.1.
    pub fn plain(count: usize) -> Self {
        let mut counts = Self::default();
        counts.raise(Speaks::Http1, count);
        counts
    }

    pub fn of(self, speaks: Speaks) -> usize {
        self.0[speaks as usize]
    }

    /// At least `count` of this kind.
    pub fn raise(&mut self, speaks: Speaks, count: usize) {
        let own = &mut self.0[speaks as usize];
        *own = count.max(*own);
    }

    /// Enough for either.
    #[must_use]
    pub fn most(mut self, other: Self) -> Self {
        Speaks::ALL.iter().for_each(|&speaks| self.raise(speaks, other.of(speaks)));
        self
    }

    pub fn total(self) -> usize {
        self.0.iter().sum()
    }

    /// What each port speaks, in order.
    pub fn each(self) -> impl Iterator<Item = Speaks> {
        Speaks::ALL.into_iter().flat_map(move |speaks| std::iter::repeat_n(speaks, self.of(speaks)))
    }

    /// Where the `at`-th port of a kind stands in the list of all.
    pub fn index(self, speaks: Speaks, at: usize) -> Option<usize> {
        let before: usize = self.0[..speaks as usize].iter().sum();
        (at < self.of(speaks)).then_some(before + at)
    }
}

/// What a proxy needs to believe the backend, and to show it. All PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Trust {
    /// The authority's certificate.
    pub ca: String,
    /// A client's certificate.
    pub client_chain: String,
    /// Its key.
    pub client_key: String,
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trust(***)")
    }
}

/// A name in a certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum San {
    Dns(String),
    Uri(String),
    Email(String),
    Ip(IpAddr),
}

/// Names that the server's certificate must carry beside the one asked for by SNI.
pub type Names = BTreeSet<San>;

/// The backend as a re-hosted proxy sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstreams {
    counts: PortCounts,
    at: Vec<SocketAddr>,
    trust: Option<Trust>,
}

impl Upstreams {
    /// `at`: in the order of `counts.each()`. `trust`: needed where a config speaks TLS.
    pub fn new(counts: PortCounts, at: Vec<SocketAddr>, trust: Option<Trust>) -> Self {
        Self { counts, at, trust }
    }

    /// The port for endpoint `at` of a cluster that speaks so, if there are so many.
    pub fn get(&self, speaks: Speaks, at: usize) -> Option<SocketAddr> {
        self.at.get(self.counts.index(speaks, at)?).copied()
    }

    pub fn trust(&self) -> Option<&Trust> {
        self.trust.as_ref()
    }
}

/// All speak HTTP/1.1.
impl From<Vec<SocketAddr>> for Upstreams {
    fn from(at: Vec<SocketAddr>) -> Self {
        Self::new(PortCounts::plain(at.len()), at, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_stand_in_the_order_of_their_kinds() {
        let mut counts = PortCounts::plain(1);
        counts.raise(Speaks::Tls, 2);
        let mut other = PortCounts::plain(2);
        other.raise(Speaks::Http2, 1);
        let both = counts.most(other);
        assert_eq!(both, other.most(counts));
        let each: Vec<Speaks> = both.each().collect();
        assert_eq!(each, [Speaks::Http1, Speaks::Http1, Speaks::Http2, Speaks::Tls, Speaks::Tls]);
        assert_eq!((both.total(), both.index(Speaks::Tls, 1), both.index(Speaks::Tls, 2)), (5, Some(4), None));
        for (at, speaks) in each.into_iter().enumerate() {
            let first = both.index(speaks, 0).unwrap();
            assert_eq!(both.index(speaks, at - first), Some(at));
        }
    }
}
