//! A waker that keeps quiet while its task is being polled.
//!
//! A request's sender and its connection live in one task and wake each other all the time: sending wakes the
//! connection, which is polled next anyway. Passed on to the runtime, each such call would schedule the task once more
//! for nothing, a third of all polls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// After so many rounds the task lets others run.
const ROUNDS: u32 = 8;

/// Of one task, on one thread: what is polled with it must not be woken from other threads.
pub(super) struct Mute {
    state: Arc<State>,
    waker: Waker,
}

#[derive(Default)]
struct State {
    task: OnceLock<Waker>,
    polling: AtomicBool,
    called: AtomicBool,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.polling.load(Ordering::Relaxed) {
            self.called.store(true, Ordering::Relaxed);
        } else if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

impl Mute {
    pub fn new() -> Self {
        let state = Arc::<State>::default();
        Self { waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Polls `step` quietly, again while it calls for itself.
    pub fn poll<T>(&self, cx: &Context<'_>, mut step: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let mut quiet = self.context(cx);
        for _ in 0..ROUNDS {
            self.state.called.store(false, Ordering::Relaxed);
            self.state.polling.store(true, Ordering::Relaxed);
            let polled = step(&mut quiet);
            self.state.polling.store(false, Ordering::Relaxed);
            if polled.is_ready() || !self.state.called.load(Ordering::Relaxed) {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Within a step: whatever was called for so far is about to be done.
    pub fn forget_calls(&self) {
        self.state.called.store(false, Ordering::Relaxed);
    }

    /// A context that wakes the task of `cx`, quiet only within `poll`.
    pub fn context(&self, cx: &Context<'_>) -> Context<'_> {
        self.state.task.get_or_init(|| cx.waker().clone());
        Context::from_waker(&self.waker)
    }
}
