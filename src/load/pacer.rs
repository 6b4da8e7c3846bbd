//! Wakes the generator's thread at a point in time, exactly. The runtime's own timers tick every millisecond, which is
//! longer than most answers take; a `timerfd` is as exact as the kernel's high-resolution timers.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use crate::thread::now_ns;

pub(super) struct Pacer(AsyncFd<Timer>);

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Pacer {
    /// Needs a running runtime.
    #[expect(
        deprecated,
        reason = "its successor is unsafe; the timer owns its descriptor for as long as it is registered"
    )]
    pub fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        Ok(Self(AsyncFd::with_interest(Timer(timer), tokio::io::Interest::READABLE)?))
    }

    /// Returns at `deadline_ns` of the monotonic clock, having let other tasks run at least once.
    pub async fn until(&self, deadline_ns: u64) -> io::Result<()> {
        // Zero would disarm the timer.
        let at = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(deadline_ns.max(1))));
        loop {
            self.0.get_ref().0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            // Setting the timer clears its count and every expiry is a new edge, so it need not be read.
            poll_fn(|cx| self.0.poll_read_ready(cx).map_ok(|mut guard| guard.clear_ready())).await?;
            if now_ns() >= deadline_ns {
                return Ok(());
            }
        }
    }
}
