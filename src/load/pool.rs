//! The connections that work through a slice together, a task each.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::load::SliceLoad;
use crate::load::recorder::Recorder;
use crate::load::schedule::Schedule;
use crate::load::wire::{Answer, Fault, Wire};
use crate::thread::now_ns;

/// A refusal holds for this long: requests due within it are refused without asking again.
const REFUSED_FOR_NS: u64 = 10_000_000;
/// Pause of a closed-loop connection after it broke, so that a peer that hangs up at once is not hammered.
const PAUSE_AFTER_FAULT: Duration = Duration::from_millis(1);
/// Nothing is in flight.
const NEVER: u64 = u64::MAX;

/// The connections of one pool. Dropping it closes them.
pub(super) struct Members(Vec<(Rc<Member>, JoinHandle<()>)>);

/// One connection as the rest of the thread sees it.
struct Member {
    index: u64,
    waker: RefCell<Option<Waker>>,
    run: RefCell<Option<Rc<Run>>>,
    /// Open loop: how many of its requests have fallen due.
    released: Cell<u64>,
    /// When the request in flight is to be given up.
    deadline_ns: Cell<u64>,
    given_up: Cell<bool>,
}

/// A slice in progress.
pub(super) struct Run {
    pub slice: SliceLoad,
    pub start_ns: u64,
    /// `None` in the closed loop.
    pub schedule: Option<Schedule>,
    end_ns: u64,
    recorded_from_ns: u64,
    timeout_ns: u64,
    /// Closed loop: requests sent so far.
    taken: Cell<u64>,
    stopping: Cell<bool>,
    working: Cell<usize>,
    finished: RefCell<Option<Waker>>,
    tally: Rc<RefCell<Tally>>,
}

/// What is counted during a slice.
pub(super) struct Tally {
    pub recorder: Recorder,
    pub completed: u64,
    pub errors: BTreeMap<String, u64>,
    pub queued: u64,
    pub bytes: u64,
    pub connects: u64,
    pub last_end_ns: u64,
}

impl Members {
    /// Gives every connection its task. Needs a `LocalSet`.
    pub fn spawn(wires: Vec<Wire>) -> Self {
        let spawn = |(index, wire)| {
            let member = Rc::new(Member {
                index,
                waker: RefCell::default(),
                run: RefCell::default(),
                released: Cell::new(0),
                deadline_ns: Cell::new(NEVER),
                given_up: Cell::new(false),
            });
            let task = tokio::task::spawn_local(live(Rc::clone(&member), wire));
            (member, task)
        };
        Self((0..).zip(wires).map(spawn).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Sets every connection to work.
    pub fn start(&self, run: &Rc<Run>) {
        run.working.set(self.0.len());
        for (member, _) in &self.0 {
            member.released.set(0);
            member.given_up.set(false);
            *member.run.borrow_mut() = Some(Rc::clone(run));
            member.wake();
        }
    }

    /// Open loop: request `index` has fallen due.
    pub fn release(&self, run: &Run, index: u64) {
        let Some(schedule) = run.schedule else { return };
        let Some((member, _)) = usize::try_from(schedule.connection(index)).ok().and_then(|i| self.0.get(i)) else {
            return;
        };
        member.released.set(member.released.get() + 1);
        if member.deadline_ns.get() == NEVER {
            member.wake();
        } else {
            run.tally.borrow_mut().queued += 1;
        }
    }

    /// Gives up requests whose time is over.
    pub fn expire(&self, now_ns: u64) {
        for (member, _) in &self.0 {
            if member.deadline_ns.get() <= now_ns {
                member.given_up.set(true);
                member.wake();
            }
        }
    }

    /// Gives up everything: `run` ends at once.
    pub fn stop(&self, run: &Run) {
        run.stopping.set(true);
        for (member, _) in &self.0 {
            member.given_up.set(true);
            member.wake();
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for (_, task) in &self.0 {
            task.abort();
        }
    }
}

impl Member {
    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// The next slice.
    async fn next_run(&self) -> Rc<Run> {
        poll_fn(|_| match self.run.borrow_mut().take() {
            Some(run) => Poll::Ready(run),
            None => Poll::Pending,
        })
        .await
    }

    /// Lets others wake this task, before there is anything to wake it for. A task's waker stays the same.
    async fn can_be_woken(&self) {
        poll_fn(|cx| {
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Ready(())
        })
        .await;
    }
}

/// A connection's task, until it is aborted.
async fn live(member: Rc<Member>, mut wire: Wire) {
    member.can_be_woken().await;
    loop {
        let run = wire.idle_until(member.next_run()).await;
        let before = wire.connects;
        match run.schedule {
            Some(schedule) => run.open_loop(&member, &mut wire, &schedule).await,
            None => run.closed_loop(&member, &mut wire).await,
        }
        run.leave(wire.connects - before);
    }
}

impl Run {
    pub fn new(slice: SliceLoad, schedule: Option<Schedule>, start_ns: u64, tally: &Rc<RefCell<Tally>>) -> Self {
        let after = |d: Duration| start_ns.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        Self {
            start_ns,
            schedule,
            end_ns: after(slice.length),
            recorded_from_ns: after(slice.unrecorded),
            timeout_ns: u64::try_from(slice.request_timeout.as_nanos()).unwrap_or(u64::MAX),
            taken: Cell::new(0),
            stopping: Cell::new(false),
            working: Cell::new(0),
            finished: RefCell::default(),
            tally: Rc::clone(tally),
            slice,
        }
    }

    /// Returns when every connection has worked off its requests.
    pub async fn finished(&self) {
        poll_fn(|cx| {
            if self.working.get() == 0 {
                return Poll::Ready(());
            }
            *self.finished.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    pub fn interrupted(&self) -> bool {
        self.stopping.get()
    }

    fn leave(&self, connects: u64) {
        self.tally.borrow_mut().connects += connects;
        self.working.set(self.working.get().saturating_sub(1));
        if self.working.get() == 0
            && let Some(waker) = self.finished.borrow_mut().take()
        {
            waker.wake();
        }
    }

    async fn closed_loop(&self, member: &Member, wire: &mut Wire) {
        let limit = self.slice.limit.unwrap_or(u64::MAX);
        loop {
            let now = now_ns();
            if now >= self.end_ns || self.taken.get() >= limit || self.stopping.get() {
                return;
            }
            let index = self.taken.replace(self.taken.get() + 1);
            match self.exchange(member, wire, index, now).await {
                Ok(answer) => self.count(index, answer.sent_ns, answer),
                Err(fault) => {
                    self.count_fault(fault);
                    let pause = match fault {
                        Fault::Refused | Fault::Connect => Duration::from_nanos(REFUSED_FOR_NS),
                        _ => PAUSE_AFTER_FAULT,
                    };
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    async fn open_loop(&self, member: &Member, wire: &mut Wire, schedule: &Schedule) {
        let mut refused_until_ns = 0;
        let mut free_ns = 0;
        for turn in 0.. {
            let Some(index) = schedule.nth(member.index, turn) else { return };
            let falls_due = poll_fn(|_| {
                if self.stopping.get() || member.released.get() > turn { Poll::Ready(()) } else { Poll::Pending }
            });
            wire.idle_until(falls_due).await;
            if self.stopping.get() {
                return;
            }
            let due_ns = self.start_ns.saturating_add(schedule.due_ns(index));
            if due_ns < refused_until_ns {
                self.count_error("refused");
                continue;
            }
            if now_ns() >= due_ns.saturating_add(self.timeout_ns) {
                self.count_error("timeout");
                continue;
            }
            match self.exchange(member, wire, index, due_ns).await {
                Ok(answer) => {
                    if free_ns <= due_ns && due_ns >= self.recorded_from_ns {
                        let late_ns = answer.sent_ns.saturating_sub(due_ns);
                        self.tally.borrow_mut().recorder.lateness.record(late_ns);
                    }
                    free_ns = answer.done_ns;
                    self.count(index, due_ns, answer);
                }
                Err(fault) => {
                    self.count_fault(fault);
                    free_ns = now_ns();
                    if matches!(fault, Fault::Refused | Fault::Connect) {
                        refused_until_ns = free_ns.saturating_add(REFUSED_FOR_NS);
                    }
                }
            }
        }
    }

    async fn exchange(&self, member: &Member, wire: &mut Wire, index: u64, due_ns: u64) -> Result<Answer, Fault> {
        let requests = &self.slice.requests;
        let request = &requests[(index % requests.len() as u64) as usize];
        member.given_up.set(self.stopping.get());
        member.deadline_ns.set(due_ns.saturating_add(self.timeout_ns).min(NEVER - 1));
        let result = wire.exchange(request, &|| member.given_up.get()).await;
        member.deadline_ns.set(NEVER);
        result
    }

    fn count(&self, index: u64, due_ns: u64, answer: Answer) {
        let requests = &self.slice.requests;
        let request = &requests[(index % requests.len() as u64) as usize];
        let mut tally = self.tally.borrow_mut();
        tally.bytes += answer.bytes;
        tally.last_end_ns = tally.last_end_ns.max(answer.done_ns);
        if answer.status != request.expected_status() {
            *tally.errors.entry(format!("status {}", answer.status)).or_default() += 1;
            return;
        }
        if let Some(expected) = request.expected_bytes()
            && expected != answer.bytes
        {
            let kind = if answer.bytes < expected { "short body" } else { "long body" };
            *tally.errors.entry(kind.to_owned()).or_default() += 1;
            return;
        }
        tally.completed += 1;
        if due_ns >= self.recorded_from_ns {
            tally.recorder.latency.record(answer.done_ns.saturating_sub(due_ns));
            tally.recorder.uncorrected.record(answer.done_ns.saturating_sub(answer.sent_ns));
        }
    }

    fn count_fault(&self, fault: Fault) {
        let kind = match fault {
            Fault::Refused => "refused",
            Fault::Connect => "connect",
            Fault::Reset => "reset",
            Fault::ShortBody => "short body",
            Fault::Protocol => "protocol",
            // What was in flight when the run was stopped is not the peer's failure.
            Fault::GivenUp if self.stopping.get() => return,
            Fault::GivenUp => "timeout",
        };
        self.count_error(kind);
    }

    fn count_error(&self, kind: &str) {
        let mut tally = self.tally.borrow_mut();
        tally.last_end_ns = now_ns();
        *tally.errors.entry(kind.to_owned()).or_default() += 1;
    }
}

impl Tally {
    pub fn new() -> Self {
        Self {
            recorder: Recorder::new(),
            completed: 0,
            errors: BTreeMap::new(),
            queued: 0,
            bytes: 0,
            connects: 0,
            last_end_ns: 0,
        }
    }
}
