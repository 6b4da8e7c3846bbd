//! Progress of a gate run on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::run::Event;

pub struct Progress {
    bar: Option<ProgressBar>,
    last_line: u32,
}

/// Without a terminal a line is printed for every so many blocks.
const LINE_EVERY: u32 = 4;

impl Default for Progress {
    /// A bar if standard error is a terminal.
    fn default() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} [{bar:24}] {pos}/{len} blocks, {prefix}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(0).with_style(style);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, last_line: 0 }
    }
}

impl Progress {
    /// A step that has no count: fetching, checking, calibrating.
    pub fn step(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => say(text),
        }
    }

    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Calibrated { capacity_rps, rate_rps } => {
                let rate = rate_rps.map(|r| format!("; open loop at {r:.0}")).unwrap_or_default();
                self.line(&format!("capacity {capacity_rps:.0} requests/s{rate}"));
            }
            Event::BlockDone { done, of, left } => self.block(*done, *of, *left),
            Event::BlockVoided { index, why } => self.line(&format!("block {index} does not count: {why}")),
            Event::BaselineLeft { why } => self.line(&format!("going on without the stored baseline: {why}")),
            Event::StoppedEarly { done } => self.line(&format!("every metric surely passes after {done} blocks")),
        }
    }

    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Something the user should know that changes nothing.
    pub fn note(&mut self, text: &str) {
        self.line(text);
    }

    fn block(&mut self, done: u32, of: u32, left: Duration) {
        let left = format!("at most {} s left", left.as_secs());
        match &self.bar {
            Some(bar) => {
                bar.set_length(of.into());
                bar.set_position(done.into());
                bar.set_message("measuring");
                bar.set_prefix(left);
            }
            None if done >= self.last_line + LINE_EVERY || done == of => {
                self.last_line = done;
                say(&format!("{done}/{of} blocks, {left}"));
            }
            None => {}
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("sidegate: {text}")),
            None => say(text),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Progress is a courtesy: a closed standard error must not end the run.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "sidegate: {text}");
}
