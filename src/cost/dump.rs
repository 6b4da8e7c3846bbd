//! What callgrind writes of one thread: its totals, and the calls that exist only under valgrind.

use std::collections::HashMap;

/// One thread between two dumps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dump {
    /// Valgrind's number of the thread; the main thread is 1.
    pub thread: u32,
    pub instructions: u64,
    /// All of them, readings of the clock included.
    pub syscalls: u64,
    /// System calls by the C library's clock functions. Outside valgrind these are no calls: the kernel lends its code
    /// (vDSO), which valgrind hides.
    pub clock_reads: u64,
    /// Instructions of each function, without those it calls.
    pub functions: HashMap<String, u64>,
}

/// The functions of the C library that read a clock, without the marks around their names.
const CLOCKS: [&str; 5] = ["clock_gettime", "gettimeofday", "time", "getcpu", "sched_getcpu"];

/// Reads a profile (`callgrind format`, version 1) with the events `Ir` and `sysCount`, and one thread in it.
///
/// # Errors
/// What is missing, in a sentence's fragment.
pub fn parse(text: &str) -> Result<Dump, String> {
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let events: Vec<&str> = field("events:").ok_or("it names no events")?.split_ascii_whitespace().collect();
    let event = |name: &str| events.iter().position(|event| *event == name).ok_or(format!("it counts no {name}"));
    let (instructions, syscalls) = (event("Ir")?, event("sysCount")?);
    let totals = field("totals:").or_else(|| field("summary:")).ok_or("it has no totals: it was cut short")?;
    let totals: Vec<u64> = totals.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let total = |at: usize| totals.get(at).copied().unwrap_or(0);
    let thread = field("thread:").and_then(|text| text.parse().ok()).ok_or("it names no thread")?;
    let mut dump = Dump {
        thread,
        instructions: total(instructions),
        syscalls: total(syscalls),
        clock_reads: 0,
        functions: HashMap::new(),
    };
    own_costs(text, |name, costs| {
        let cost = |at: usize| costs.split_ascii_whitespace().nth(1 + at).and_then(|word| word.parse::<u64>().ok());
        if reads_clock(name) {
            dump.clock_reads = dump.clock_reads.saturating_add(cost(syscalls).unwrap_or(0));
        }
        let sum = match dump.functions.get_mut(name) {
            Some(sum) => sum,
            None => dump.functions.entry(name.to_owned()).or_default(),
        };
        *sum = sum.saturating_add(cost(instructions).unwrap_or(0));
    });
    Ok(dump)
}

/// Calls `each` for every line of a function's own cost. They follow its `fn=`; the line behind `calls=` is what it
/// spent in another one.
fn own_costs<'a>(text: &'a str, mut each: impl FnMut(&'a str, &'a str)) {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let (mut current, mut of_callee) = ("", false);
    for line in text.lines() {
        let called = line.strip_prefix("cfn=");
        if let Some(name) = called.or_else(|| line.strip_prefix("fn=")) {
            // `(7) name` the first time, `(7)` from then on, also in `cfn=`.
            let (id, name) = name.split_once(' ').map_or((name, None), |(id, name)| (id, Some(name)));
            if let Some(name) = name {
                names.insert(id, name);
            }
            if called.is_none() {
                current = names.get(id).copied().unwrap_or(id);
            }
        } else if line.starts_with("calls=") {
            of_callee = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            if !of_callee && !current.is_empty() {
                each(current, line);
            }
            of_callee = false;
        }
    }
}

/// `clock_gettime@@GLIBC_2.17`, `__gettimeofday_syscall`, `time_syscall'2`.
fn reads_clock(name: &str) -> bool {
    let name = name.split(['@', '\'']).next().unwrap_or(name).trim_start_matches('_');
    CLOCKS.contains(&name.strip_suffix("_syscall").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
# callgrind format
version: 1
pid: 12
part: 2
thread: 6

positions: line
events: Ir sysCount sysTime sysCpuTime
summary: 14767826 4910 1865644148 43055673

ob=(1) /usr/lib/libc.so.6
fl=(1) clock_gettime.c
fn=(0) clock_gettime@@GLIBC_2.17
+3 1200
+1 2400 3508 900 800

fn=(2) write
12 30 10 1 1
cfn=(3) __gettimeofday_syscall
calls=4 20
+1 44 401 7 7

fn=(3)
9 40 401 7 7
fn=(4) uptime
9 40 6 7 7
fn=(5) (below main)
cfn=(0)
calls=1 2
* 5 9 9 9

totals: 14767826 4910 1865644148 43055673
";

    #[test]
    fn totals_and_clock_readings() {
        let dump = parse(TEXT).unwrap();
        let counts = (dump.thread, dump.instructions, dump.syscalls, dump.clock_reads);
        assert_eq!(counts, (6, 14_767_826, 4910, 3909));
        let own = |name: &str| dump.functions.get(name).copied();
        assert_eq!((own("write"), own("__gettimeofday_syscall"), own("(below main)")), (Some(30), Some(40), None));
    }

    #[test]
    fn other_orders_of_events() {
        let text = "thread: 1\nevents: sysCount sysTime Ir\nfn=(1) time\n4 3 2 1\n\ntotals: 5 6 7\n";
        let functions = HashMap::from([("time".to_owned(), 1)]);
        assert_eq!(parse(text), Ok(Dump { thread: 1, instructions: 7, syscalls: 5, clock_reads: 3, functions }));
    }

    #[test]
    fn what_is_missing_is_said() {
        for (text, said) in [
            ("", "no events"),
            ("events: Ir\nthread: 1\ntotals: 1", "no sysCount"),
            ("events: Ir sysCount\nthread: 1", "cut short"),
            ("events: Ir sysCount\ntotals: 1 2", "no thread"),
        ] {
            assert!(parse(text).unwrap_err().contains(said), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(fn=|cfn=|calls=|events: Ir sysCount|totals: |[0-9 +*()-]|\n|thread: ){0,60}") {
            let _ = parse(&text);
        }
    }
}
