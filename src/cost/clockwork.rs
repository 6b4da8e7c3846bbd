//! What a worker does because time passes: it is no request's.

use std::collections::HashMap;

use super::dump::Dump;

/// A function is driven by time if a request that comes after a pause has it do so many times what it does for one of
/// many requests. Fewer, and functions that requests use too would be among them.
const RARER: f64 = 8.0;

/// A worker's work that time drives, as seen around one request after a pause: timers in the pause, and what is kept for
/// a while and made anew by the next request, such as the text of the current second.
#[derive(Debug, Default)]
pub(super) struct Clockwork {
    /// Functions that do nothing else, and their instructions.
    functions: HashMap<String, u64>,
    sum: f64,
    /// What other functions did for them.
    instructions: f64,
    syscalls: f64,
    clock_reads: f64,
}

impl Clockwork {
    /// `pause` holds a pause and one request, `many` holds `requests` of the same kind in a row.
    pub fn of(pause: &Dump, many: &Dump, requests: u32) -> Self {
        let each = |all: u64| all as f64 / f64::from(requests.max(1));
        let more = |once: u64, all: u64| (once as f64 - each(all)).max(0.0);
        let rare = |(name, own): &(&String, &u64)| {
            let usual = many.functions.get(*name).copied().unwrap_or(0);
            **own as f64 > RARER * each(usual)
        };
        let functions: HashMap<String, u64> =
            pause.functions.iter().filter(rare).map(|(name, own)| (name.clone(), *own)).collect();
        let sum = functions.values().sum::<u64>() as f64;
        let usual: f64 = functions.keys().filter_map(|name| many.functions.get(name)).map(|&own| each(own)).sum();
        Self {
            sum,
            instructions: (more(pause.instructions, many.instructions) - (sum - usual)).max(0.0),
            syscalls: more(pause.syscalls, many.syscalls),
            clock_reads: more(pause.clock_reads, many.clock_reads),
            functions,
        }
    }

    /// `window` without it. Functions that only time drives are left out as they were counted; of what others did for
    /// them, as much as that is of what was seen. However long a window takes on a busy machine, a request's work remains.
    pub fn taken_out(&self, window: &Dump) -> Dump {
        let here = |name: &String| window.functions.get(name).copied().unwrap_or(0);
        let own: u64 = self.functions.keys().map(here).sum();
        let times = if self.sum > 0.0 { own as f64 / self.sum } else { 0.0 };
        let without = |all: u64, once: f64| all.saturating_sub((once * times).round() as u64);
        Dump {
            instructions: without(window.instructions.saturating_sub(own), self.instructions),
            syscalls: without(window.syscalls, self.syscalls),
            clock_reads: without(window.clock_reads, self.clock_reads),
            ..window.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(instructions: u64, syscalls: u64, functions: &[(&str, u64)]) -> Dump {
        let functions = functions.iter().map(|(name, own)| ((*name).to_owned(), *own)).collect();
        Dump { thread: 2, instructions, syscalls, clock_reads: 0, functions }
    }

    /// One request: 10 000 instructions in two functions. Time: 5 000 in two of its own, 1 000 in one of the request's.
    fn seen() -> Clockwork {
        let pause = dump(16_000, 15, &[("parse", 8000), ("copy", 3000), ("date", 3000), ("zone", 2000)]);
        let many = dump(100_000, 100, &[("parse", 80_000), ("copy", 20_000)]);
        Clockwork::of(&pause, &many, 10)
    }

    #[test]
    fn what_time_drives_is_taken_out_however_often_it_was_done() {
        for times in 0..5 {
            let parts = [
                ("parse", 400_000),
                ("copy", 100_000 + 1000 * times),
                ("date", 3000 * times),
                ("zone", 2000 * times),
                ("rare", 700),
            ];
            let window = dump(500_700 + 6000 * times, 500 + 5 * times, &parts);
            let left = seen().taken_out(&window);
            assert_eq!((left.instructions, left.syscalls), (500_700, 500), "{times}");
        }
    }

    #[test]
    fn two_clocks_that_run_at_different_speeds_leave_only_what_they_share() {
        let parts = [("parse", 400_000), ("copy", 101_500), ("date", 9000)];
        let left = seen().taken_out(&dump(510_500, 500, &parts));
        assert_eq!(left.instructions, 501_500 - 1800);
    }

    #[test]
    fn work_now_and_then_that_no_pause_brings_about_stays() {
        let parts = [("parse", 400_000), ("copy", 100_000), ("collect garbage", 90_000)];
        assert_eq!(seen().taken_out(&dump(590_000, 500, &parts)).instructions, 590_000);
    }

    #[test]
    fn where_nothing_was_seen_nothing_is_taken_out() {
        let window = dump(1_000_000, 10, &[("copy", 90_000)]);
        assert_eq!(Clockwork::default().taken_out(&window), window);
        let nothing = Clockwork::of(&Dump::default(), &Dump::default(), 0);
        assert_eq!(nothing.taken_out(&window), window);
    }
}
