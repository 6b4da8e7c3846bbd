//! When open-loop requests are due, and on which connection: arithmetic only.
//!
//! Request i is due `i / rate` after the start and belongs to connection `i mod C`. Arrivals are therefore evenly
//! spread over time, and each connection has its own phase: `c / rate` into a period of `C / rate`.

const SECOND_NS: f64 = 1e9;

/// The due times of one slice, relative to its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    rate_rps: f64,
    total: u64,
    connections: u64,
}

impl Schedule {
    /// All requests due before `length_ns`, but `limit` at most. `None` where the rate is not a positive finite number
    /// or there are no connections.
    pub fn new(rate_rps: f64, length_ns: u64, connections: u32, limit: Option<u64>) -> Option<Self> {
        if !(rate_rps.is_finite() && rate_rps > 0.0) || connections == 0 {
            return None;
        }
        let unlimited = Self { rate_rps, total: limit.unwrap_or(u64::MAX), connections: connections.into() };
        let total = match length_ns.checked_sub(1) {
            Some(last) => unlimited.due_by(last),
            None => 0,
        };
        Some(Self { total, ..unlimited })
    }

    /// Number of requests.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// When request `index` is due, in ns after the start.
    pub fn due_ns(&self, index: u64) -> u64 {
        // One multiplication and one division of the index itself: errors do not add up over requests.
        (index as f64 * SECOND_NS / self.rate_rps).round() as u64
    }

    /// How many requests are due at or before `elapsed_ns`.
    pub fn due_by(&self, elapsed_ns: u64) -> u64 {
        // The estimate is right within one; two steps more would mean that rounding ate the whole interval.
        let mut count = (elapsed_ns as f64 * self.rate_rps / SECOND_NS) as u64;
        count = count.saturating_add(1);
        for _ in 0..3 {
            if count > 0 && self.due_ns(count - 1) > elapsed_ns {
                count -= 1;
            }
        }
        for _ in 0..3 {
            if self.due_ns(count) <= elapsed_ns {
                count = count.saturating_add(1);
            }
        }
        count.min(self.total)
    }

    /// The connection request `index` belongs to.
    pub fn connection(&self, index: u64) -> u64 {
        index % self.connections
    }

    /// The index of the `turn`-th request of a connection, both from 0; `None` after its last.
    pub fn nth(&self, connection: u64, turn: u64) -> Option<u64> {
        let index = turn.checked_mul(self.connections)?.checked_add(connection)?;
        (index < self.total && connection < self.connections).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schedules() -> impl Strategy<Value = (Schedule, u64)> {
        (1.0_f64..200_000.0, 0_u64..200_000_000, 1_u32..300, prop::option::of(0_u64..5_000))
            .prop_map(|(rate, length, c, limit)| (Schedule::new(rate, length, c, limit).unwrap(), length))
    }

    proptest! {
        #[test]
        fn every_request_belongs_to_one_turn_of_one_connection((s, _) in schedules()) {
            let mut indices: Vec<u64> = (0..s.connections)
                .flat_map(|c| (0..).map_while(move |turn| s.nth(c, turn).inspect(|&i| assert_eq!(s.connection(i), c))))
                .collect();
            indices.sort_unstable();
            prop_assert_eq!(indices, (0..s.total()).collect::<Vec<_>>());
        }

        #[test]
        fn due_times_are_evenly_spread_and_within_the_slice((s, length) in schedules()) {
            let gap = SECOND_NS / s.rate_rps;
            for i in 0..s.total() {
                prop_assert!((s.due_ns(i) as f64 - i as f64 * gap).abs() <= 0.5 + 1e-6);
                prop_assert!(s.due_ns(i) < length);
            }
        }

        #[test]
        fn the_slice_is_filled_to_its_end(rate in 1.0_f64..200_000.0, length in 0_u64..200_000_000) {
            let s = Schedule::new(rate, length, 1, None).unwrap();
            prop_assert!(s.due_ns(s.total()) >= length);
        }

        #[test]
        fn due_by_counts_exactly_the_requests_due((s, length) in schedules(), at in 0.0_f64..1.5) {
            let elapsed = (length as f64 * at) as u64;
            let n = s.due_by(elapsed);
            prop_assert!(n == 0 || s.due_ns(n - 1) <= elapsed);
            prop_assert!(n == s.total() || s.due_ns(n) > elapsed);
        }

        #[test]
        fn no_rate_length_or_time_panics(
            rate in any::<f64>(), length in any::<u64>(), c in any::<u32>(), i in any::<u64>(), t in any::<u64>(),
        ) {
            if let Some(s) = Schedule::new(rate, length, c, None) {
                let _ = (s.due_ns(i), s.due_by(t), s.connection(i), s.nth(i, t));
            }
        }
    }

    #[test]
    fn connections_have_their_own_phase() {
        let s = Schedule::new(1000.0, 100_000_000, 4, None).unwrap();
        let first: Vec<u64> = (0..4).filter_map(|c| s.nth(c, 0)).map(|i| s.due_ns(i)).collect();
        assert_eq!(first, [0, 1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(s.due_ns(s.nth(1, 1).unwrap()) - first[1], 4_000_000);
    }

    #[test]
    fn a_rate_must_be_a_positive_number() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Schedule::new(rate, 1, 1, None), None);
        }
        assert_eq!(Schedule::new(1.0, 1, 0, None), None);
    }
}
