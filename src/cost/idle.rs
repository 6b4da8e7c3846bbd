//! What a worker does by itself, from time to time: it is no request's.

use super::dump::Dump;

/// Functions that do less of the idle work than this tell nothing of how often it was done.
const LEAST_SHARE: f64 = 0.005;
/// Where, among functions in order of how much more they did, those stand that requests do not use: about half of the
/// idle work is theirs. A few below do more on an idle worker than on a busy one, which need not be woken.
const QUANTILE: f64 = 0.25;

/// A worker's work over a time without requests.
#[derive(Debug, Default)]
pub(super) struct Idle(Dump);

impl Idle {
    pub fn of(dump: Dump) -> Self {
        Self(dump)
    }

    /// `window` without the idle work in it. How often that was done in the window is seen by functions which requests
    /// do not use: however long a window takes on a busy machine, its own work remains.
    pub fn taken_out(&self, window: &Dump) -> Dump {
        let times = self.times(window);
        let without = |all: u64, idle: u64| all.saturating_sub((idle as f64 * times).round() as u64);
        Dump {
            instructions: without(window.instructions, self.0.instructions),
            syscalls: without(window.syscalls, self.0.syscalls),
            clock_reads: without(window.clock_reads, self.0.clock_reads),
            ..window.clone()
        }
    }

    /// How many times the idle work is in `window`.
    fn times(&self, window: &Dump) -> f64 {
        let least = (LEAST_SHARE * self.0.instructions as f64).max(1.0);
        let functions = self.0.functions.iter().filter(|(_, own)| **own as f64 >= least);
        let mut ratios: Vec<(f64, f64)> = functions
            .map(|(name, own)| {
                let here = window.functions.get(name).copied().unwrap_or(0);
                (here as f64 / *own as f64, *own as f64)
            })
            .collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = QUANTILE * ratios.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut sum = 0.0;
        let found = ratios.into_iter().find(|(_, weight)| {
            sum += weight;
            sum >= wanted
        });
        found.map_or(0.0, |(ratio, _)| ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(instructions: u64, functions: &[(&str, u64)]) -> Dump {
        let functions = functions.iter().map(|(name, own)| ((*name).to_owned(), *own)).collect();
        Dump { thread: 2, instructions, syscalls: instructions / 1000, clock_reads: 0, functions }
    }

    #[test]
    fn idle_work_is_taken_out_as_often_as_it_was_done() {
        let idle =
            Idle::of(dump(10_000, &[("wake", 800), ("date", 3000), ("zone", 2000), ("copy", 2500), ("lock", 1700)]));
        // Three times, on a busy worker: it had to be woken once. Requests copy and lock, too.
        let parts =
            [("wake", 800), ("date", 9000), ("zone", 6000), ("copy", 90_000), ("lock", 70_000), ("parse", 900_000)];
        let window = dump(1_030_000, &parts);
        assert_eq!((idle.taken_out(&window).instructions, idle.taken_out(&window).syscalls), (1_000_000, 1000));
        let never = dump(1_000_000, &[("copy", 90_000), ("lock", 70_000), ("parse", 900_000)]);
        assert_eq!(idle.taken_out(&never), never);
    }

    #[test]
    fn where_nothing_was_seen_nothing_is_taken_out() {
        let window = dump(1_000_000, &[("copy", 90_000)]);
        assert_eq!(Idle::default().taken_out(&window), window);
    }
}
