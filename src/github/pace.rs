//! How long publishing may take: everything together, one call, and the pauses between attempts.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use crate::github::fault::Fault;
use crate::stop::Stop;

/// Times for a whole publication.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Everything together.
    pub whole: Duration,
    /// One call, connection included.
    pub call: Duration,
    /// The first pause after a fault; each further one is twice as long.
    pub pause: Duration,
    /// Attempts at one thing.
    pub attempts: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            whole: Duration::from_secs(60),
            call: Duration::from_secs(10),
            pause: Duration::from_millis(500),
            attempts: 5,
        }
    }
}

/// A pace under way: when it ends, and whether someone wants us to end before.
#[derive(Debug)]
pub struct Patience {
    pace: Pace,
    until: Instant,
    stop: Stop,
    /// What the time was spent on so far.
    last: RefCell<Option<Fault>>,
}

/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(50);

impl Patience {
    pub fn start(pace: &Pace, stop: &Stop) -> Self {
        Self { pace: pace.clone(), until: Instant::now() + pace.whole, stop: stop.clone(), last: RefCell::new(None) }
    }

    /// Runs one call, not longer than a call may take.
    pub async fn call<T>(&self, call: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let left = self.left();
        if left.is_zero() {
            return Err(Fault::Late { last: self.last.take().map(Box::new) });
        }
        let most = self.pace.call.min(left);
        tokio::select! {
            done = tokio::time::timeout(most, call) => match done {
                Ok(answer) => answer,
                Err(_) if most < self.pace.call => Err(Fault::Late { last: Some(Box::new(Fault::Silent)) }),
                Err(_) => Err(Fault::Silent),
            },
            by = self.stopped() => Err(Fault::Stopped { by }),
        }
    }

    /// Waits before attempt number `attempt` (the first repetition is 1), as long as the fault asks for or a doubling
    /// pause with jitter. Gives the fault back where waiting is of no use: it will not pass, the attempts are used up,
    /// or the wait would last beyond the end.
    pub async fn pause(&self, attempt: u32, fault: Fault) -> Result<(), Fault> {
        if !fault.passes() || attempt >= self.pace.attempts {
            return Err(fault);
        }
        let wait = match &fault {
            Fault::Limited { wait: Some(wait) } => *wait,
            // Without a word about how long, GitHub asks for at least a minute.
            Fault::Limited { wait: None } => Duration::from_secs(60),
            _ => jittered(self.pace.pause * 2_u32.saturating_pow(attempt - 1)),
        };
        if wait >= self.left() {
            return Err(match fault {
                Fault::Limited { .. } => fault,
                fault => Fault::Late { last: Some(Box::new(fault)) },
            });
        }
        self.last.replace(Some(fault));
        tokio::select! {
            () = tokio::time::sleep(wait) => Ok(()),
            by = self.stopped() => Err(Fault::Stopped { by }),
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    async fn stopped(&self) -> &'static str {
        loop {
            if let Some(by) = self.stop.requested() {
                return by;
            }
            tokio::time::sleep(TICK).await;
        }
    }
}

/// Between half of the pause and one and a half, so that many jobs that failed together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1024;
    pause / 2 + pause * u32::try_from(random).unwrap_or(0) / 1024
}
