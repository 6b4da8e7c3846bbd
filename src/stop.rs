//! SIGINT and SIGTERM as a question anyone may ask: long work looks at it between steps and while it waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Shared by everything that can be stopped; clones see the same signal.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// A token that the process's SIGINT and SIGTERM set. The signals no longer end the process by themselves.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(
                signal,
                Arc::clone(&stop.0),
                usize::try_from(signal).unwrap_or(usize::MAX),
            )?;
        }
        Ok(stop)
    }

    /// The name of the signal that asked us to stop, if one did.
    pub fn requested(&self) -> Option<&'static str> {
        match i32::try_from(self.0.load(Ordering::Relaxed)) {
            Ok(0) => None,
            Ok(SIGINT) => Some("SIGINT"),
            _ => Some("SIGTERM"),
        }
    }
}
