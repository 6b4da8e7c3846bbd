//! A bootstrap whose own periodic work is put off: counting sees requests, not clocks.

use serde_json::{Map, Value, json};

use super::node::is_named;

/// As long as Envoy takes: statistics must be flushed within five minutes.
const FLUSH: &str = "299s";
/// Each thread proves that it lives at half the shortest of these.
const WATCHDOG: &str = "3600s";

/// Puts off what Envoy does from time to time beside requests: flushing statistics, and threads that prove that they
/// live. Neither lies on the way of a request.
pub fn lengthen(config: &mut Value) {
    let Some(root) = config.as_object_mut() else { return };
    if !root.keys().any(|key| is_named(key, "stats_flush_on_admin")) {
        set(root, "stats_flush_interval", json!(FLUSH));
    }
    root.retain(|key, _| !is_named(key, "watchdog"));
    let patient = json!({"miss_timeout": WATCHDOG, "megamiss_timeout": WATCHDOG});
    set(root, "watchdogs", json!({"main_thread_watchdog": patient, "worker_watchdog": patient}));
}

fn set(root: &mut Map<String, Value>, field: &str, value: Value) {
    root.retain(|key, _| !is_named(key, field));
    root.insert(field.to_owned(), value);
}
