//! Windows of one class to one count.

use crate::record::{ClassCost, Count, Counted, Window};
use crate::stats::location::typical;

/// What is typical of the windows; where there are none, why.
pub fn count_of(cost: &ClassCost) -> Counted {
    let per_request = |of: fn(&Window) -> u64| -> Vec<f64> {
        let windows = cost.windows.iter().filter(|window| window.requests > 0);
        windows.map(|window| of(window) as f64 / window.requests as f64).collect()
    };
    let instructions = per_request(|window| window.instructions);
    let (Some(middle), Some(syscalls)) = (typical(&instructions), typical(&per_request(|window| window.syscalls)))
    else {
        let why = cost.failed.clone().unwrap_or_else(|| "nothing was counted".to_owned());
        return Counted::Failed { why };
    };
    let most = instructions.iter().copied().fold(f64::MIN, f64::max);
    let least = instructions.iter().copied().fold(f64::MAX, f64::min);
    let spread = if middle > 0.0 { (most - least) / middle } else { 0.0 };
    let statuses = cost.statuses.iter().map(|(status, _)| *status).collect();
    Counted::Done(Count { instructions: middle, syscalls, spread, statuses })
}
