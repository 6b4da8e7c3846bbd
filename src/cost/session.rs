//! One candidate under valgrind, from its start to its last class.

use std::collections::BTreeMap;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::{Client, Wire};
use super::clockwork::Clockwork;
use super::control::{Control, Fault};
use super::dump::Dump;
use super::subject::Subject;
use super::{Candidate, CostFailure, Counter, Effort, Event, Place};
use crate::record::{ClassCost, RequestClass, Window};

/// Under valgrind a request takes some ten milliseconds, the first one a second. A crowded machine takes many times that.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
/// Requests before anything is counted: connections to upstreams, statistics created on first use.
const FIRST_REQUESTS: u32 = 10;
/// A proxy sleeps when none of its threads was seen to run or wait for so long.
const QUIET: Duration = Duration::from_millis(12);
const LOOK: Duration = Duration::from_millis(2);
/// A proxy that never sleeps cannot be counted exactly.
const QUIET_LIMIT: Duration = Duration::from_secs(20);
/// Within it, whatever happens once a second has happened.
const PAUSE: Duration = Duration::from_millis(1050);
/// Valgrind's number of a program's first thread, which is no worker.
const MAIN_THREAD: u32 = 1;

/// By this header a request asks the backend for a status.
const STATUS: &str = "x-sidegate-status";

/// How one candidate is counted.
pub(super) struct Session<'a> {
    pub counter: &'a Counter,
    pub effort: &'a Effort,
    pub place: Place<'a>,
    /// Its number, for events.
    pub candidate: usize,
}

/// A candidate being counted.
struct Counting<'a> {
    subject: Subject,
    control: Control,
    client: Client,
    effort: &'a Effort,
    counter: &'a Counter,
    /// Valgrind's number of the worker thread, once it is known.
    worker: Option<u32>,
    /// What threads did around one request after a pause, until the same requests were seen in a row.
    pause: Vec<Dump>,
    clockwork: Clockwork,
}

impl Session<'_> {
    /// One cost a class, in their order.
    pub fn run(
        &self,
        candidate: &Candidate,
        classes: &[RequestClass],
        say: &mut dyn FnMut(Event),
    ) -> Result<Vec<ClassCost>, CostFailure> {
        let began = Instant::now();
        let mut costs = vec![ClassCost::default(); classes.len()];
        let mut counting = match self.begin(candidate, classes, &mut costs) {
            Ok(counting) => counting,
            Err(Fault::Arm(why)) => return Ok(all_failed(costs, &why)),
            Err(Fault::Ours(failure)) => return Err(failure),
        };
        say(Event::Started { candidate: self.candidate, after: counting.subject.startup() });
        for at in in_turn(classes) {
            let cost = &mut costs[at];
            if began.elapsed() > self.effort.deadline {
                cost.failed = Some(format!("not begun within {} s", self.effort.deadline.as_secs()));
                continue;
            }
            match counting.class(&classes[at], cost) {
                Ok(()) => {}
                Err(Fault::Arm(why)) => cost.failed = Some(why),
                Err(Fault::Ours(failure)) => return Err(failure),
            }
            if let Err(died) = counting.subject.alive() {
                for cost in costs.iter_mut().filter(|cost| cost.windows.is_empty()) {
                    cost.failed = Some(died.clone());
                }
                return Ok(costs);
            }
            say(Event::ClassDone { candidate: self.candidate, class: at });
        }
        Ok(costs)
    }

    /// Started, warm, and counting.
    fn begin(
        &self,
        candidate: &Candidate,
        classes: &[RequestClass],
        costs: &mut [ClassCost],
    ) -> Result<Counting<'_>, Fault> {
        let counter = self.counter;
        let mut subject = Subject::start(counter, candidate, self.place)?;
        let control = Control::of(&counter.tools, &counter.spawner, self.place.slot, &mut subject, &counter.stop);
        let client = Client::new(subject.at, REQUEST_LIMIT, counter.stop.clone());
        let mut counting = Counting {
            subject,
            control,
            client,
            effort: self.effort,
            counter,
            worker: None,
            pause: Vec::new(),
            clockwork: Clockwork::default(),
        };
        let (Some(class), Some(cost)) = (classes.first(), costs.first_mut()) else { return Ok(counting) };
        let wire = Wire::of(class);
        for _ in 0..FIRST_REQUESTS {
            counting.send(&wire)?;
        }
        cost.heap_bytes_per_connection = counting.heap_per_connection();
        counting.settle()?;
        counting.command(&["instrumentation", "on"])?;
        sleep(PAUSE);
        counting.send(&wire)?;
        counting.settle()?;
        counting.command(&["dump"])?;
        counting.pause = counting.subject.take_dumps()?;
        Ok(counting)
    }
}

/// Failing answers make a proxy eject hosts and open circuit breakers: nothing that could see it comes after them.
fn in_turn(classes: &[RequestClass]) -> Vec<usize> {
    let fails = |at: &usize| classes[*at].headers.iter().any(|(name, _)| name == STATUS);
    let (last, first): (Vec<usize>, Vec<usize>) = (0..classes.len()).partition(fails);
    [first, last].concat()
}

fn all_failed(mut costs: Vec<ClassCost>, why: &str) -> Vec<ClassCost> {
    costs.iter_mut().for_each(|cost| cost.failed = Some(why.to_owned()));
    costs
}

impl Counting<'_> {
    /// Warm-up, then window after window.
    fn class(&mut self, class: &RequestClass, cost: &mut ClassCost) -> Result<(), Fault> {
        let wire = Wire::of(class);
        let requests = self.warm_up(&wire)?;
        let before = self.subject.allocated();
        self.settle()?;
        let mut statuses = BTreeMap::new();
        let mut wanted = self.effort.windows;
        while (cost.windows.len() as u32) < wanted {
            cost.windows.push(self.window(&wire, requests, &mut statuses)?);
            cost.statuses = statuses.iter().map(|(&status, &count)| (status, count)).collect();
            if cost.windows.len() as u32 == self.effort.windows && spread(&cost.windows) > self.effort.spread {
                wanted += self.effort.more_windows;
            }
        }
        let grown = |now: u64, then: u64| i64::try_from(now).unwrap_or(0) - i64::try_from(then).unwrap_or(0);
        cost.heap_growth_bytes = self.subject.allocated().zip(before).map(|(now, then)| grown(now, then));
        Ok(())
    }

    /// Sends some requests uncounted, and says how many a window should have. All counts are at nothing then.
    fn warm_up(&mut self, wire: &Wire) -> Result<u32, Fault> {
        let began = Instant::now();
        let (mut sent, mut fastest) = (0_u32, Duration::MAX);
        while sent < self.effort.warm_up.max(2) && (sent < 2 || began.elapsed() < self.effort.window) {
            let start = Instant::now();
            self.send(wire)?;
            fastest = fastest.min(start.elapsed());
            sent += 1;
        }
        let instructions = self.begin_anew()?;
        let enough = self.effort.instructions.saturating_mul(sent.into()) / instructions.max(1);
        let in_time = (self.effort.window.as_secs_f64() / fastest.as_secs_f64().max(1e-6)) as u64;
        let most = self.effort.most.max(self.effort.fewest);
        Ok(u32::try_from(enough.min(in_time)).unwrap_or(most).clamp(self.effort.fewest, most))
    }

    /// All counts at nothing, with workers idle. What the worker had executed since the last time.
    fn begin_anew(&mut self) -> Result<u64, Fault> {
        self.settle()?;
        // A dump begins all counts anew. `zero` would leave those of system calls.
        self.command(&["dump"])?;
        let dumps = self.subject.take_dumps()?;
        // One worker, which has just answered requests; other threads write logs and watch over it.
        let is_worker = |dump: &&Dump| match self.worker {
            Some(worker) => dump.thread == worker,
            None => dump.thread != MAIN_THREAD,
        };
        let worker = dumps.iter().filter(is_worker).max_by_key(|dump| dump.instructions);
        let Some(worker) = worker else {
            return Err(CostFailure::Ours("callgrind counted no worker thread".to_owned()).into());
        };
        self.worker = Some(worker.thread);
        Ok(worker.instructions)
    }

    fn window(&mut self, wire: &Wire, requests: u32, statuses: &mut BTreeMap<u16, u64>) -> Result<Window, Fault> {
        for _ in 0..requests {
            let status = self.send(wire)?;
            *statuses.entry(status).or_default() += 1;
        }
        self.settle()?;
        self.command(&["dump"])?;
        let worker = self.subject.take_dumps()?.into_iter().find(|dump| Some(dump.thread) == self.worker);
        let Some(worker) = worker else {
            return Err(CostFailure::Ours("a dump lacks the worker thread".to_owned()).into());
        };
        if let Some(pause) = self.pause.drain(..).find(|dump| dump.thread == worker.thread) {
            self.clockwork = Clockwork::of(&pause, &worker, requests);
        }
        let Dump { instructions, syscalls, clock_reads, .. } = self.clockwork.taken_out(&worker);
        Ok(Window {
            requests: requests.into(),
            instructions,
            syscalls: syscalls.saturating_sub(clock_reads),
            clock_reads,
        })
    }

    fn send(&mut self, wire: &Wire) -> Result<u16, Fault> {
        self.check_stop()?;
        if !wire.new_connection {
            return self.client.send(wire).map_err(|e| self.unanswered(&e));
        }
        // Whether a proxy is woken once or twice to accept, read and close would be left to chance.
        let stream = self.client.connect().map_err(|e| self.unanswered(&e))?;
        self.drowse()?;
        let status = self.client.send_once(stream, wire).map_err(|e| self.unanswered(&e))?;
        self.drowse()?;
        Ok(status)
    }

    fn unanswered(&mut self, error: &io::Error) -> Fault {
        if let Err(Fault::Ours(stopped)) = self.check_stop() {
            return Fault::Ours(stopped);
        }
        // Its end may be the reason, and takes a moment to be seen.
        sleep(QUIET);
        match self.subject.alive() {
            Err(died) => Fault::Arm(died),
            Ok(()) => Fault::Arm(format!("a request was not answered under valgrind: {error}")),
        }
    }

    /// Waits until the proxy has nothing left to do.
    fn settle(&mut self) -> Result<(), Fault> {
        self.asleep_for(QUIET)
    }

    /// Waits until the proxy has done what it was just woken for.
    fn drowse(&mut self) -> Result<(), Fault> {
        self.asleep_for(Duration::ZERO)
    }

    fn asleep_for(&mut self, quiet: Duration) -> Result<(), Fault> {
        let began = Instant::now();
        let mut quiet_since = began;
        loop {
            match self.subject.asleep() {
                Ok(true) if quiet_since.elapsed() >= quiet => return Ok(()),
                Ok(true) => {}
                Ok(false) => quiet_since = Instant::now(),
                Err(_) => self.subject.alive().map_err(Fault::Arm)?,
            }
            self.check_stop()?;
            if began.elapsed() > QUIET_LIMIT {
                let why = format!("it was never idle within {} s after its requests", QUIET_LIMIT.as_secs());
                return Err(Fault::Arm(why));
            }
            sleep(LOOK);
        }
    }

    fn heap_per_connection(&mut self) -> Option<f64> {
        let connections = self.effort.connections;
        if connections == 0 {
            return None;
        }
        let before = self.subject.allocated()?;
        let idle = self.client.idle(connections).ok()?;
        self.settle().ok()?;
        let after = self.subject.allocated()?;
        drop(idle);
        Some((after as f64 - before as f64) / connections as f64)
    }

    fn command(&mut self, words: &[&str]) -> Result<(), Fault> {
        self.control.command(words, &mut self.subject)
    }

    fn check_stop(&self) -> Result<(), Fault> {
        match self.counter.stop.requested() {
            Some(by) => Err(CostFailure::Stopped { by: by.to_owned() }.into()),
            None => Ok(()),
        }
    }
}

/// Largest over smallest window in instructions a request, less one.
fn spread(windows: &[Window]) -> f64 {
    let each = windows.iter().map(|w| w.instructions as f64 / w.requests.max(1) as f64);
    let (low, high) = each.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
    if low > 0.0 { high / low - 1.0 } else { f64::INFINITY }
}
