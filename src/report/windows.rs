//! The counts behind the table: every window of every arm, and what they may be compared with.

use super::clean::{cell_code, cell_sentence, code, sentence};
use super::phrase;
use crate::record::{ArmCost, ClassCost, Cost, Window};

pub fn windows(cost: &Cost) -> String {
    let mut out = String::new();
    if let Some(missing) = &cost.missing {
        out.push_str(&format!("Nothing was counted: {}; {}\n\n", sentence(&missing.why), sentence(&missing.help)));
    }
    if let Some(m) = &cost.machine {
        let parts = [&m.architecture, &m.instruction_set, &m.libc, &m.valgrind].map(|p| code(p)).join(", ");
        out.push_str(&format!(
            "Counts travel between machines of this class: {parts}, workload {}.\n\n",
            m.workload_version
        ));
    }
    if !cost.classes.is_empty() {
        out.push_str(
            "Instructions and system calls of the worker thread per request, window by window; heap gained per request and \
             held per connection.\n\n\
             | request | arm | instructions | system calls | requests a window | heap | answers |\n\
             |---|---|---|---|--:|---|---|\n",
        );
    }
    for (index, class) in cost.classes.iter().enumerate() {
        for arm in &cost.arms {
            if let Some(counted) = arm.classes.get(index) {
                out.push_str(&row(&class.name, arm, counted));
            }
        }
    }
    if !cost.classes.is_empty() {
        out.push('\n');
    }
    for name in &cost.left_out {
        out.push_str(&format!("- not counted for lack of time: {}\n", code(name)));
    }
    if !cost.left_out.is_empty() {
        out.push('\n');
    }
    out
}

fn row(class: &str, arm: &ArmCost, counted: &ClassCost) -> String {
    let each = |of: &dyn Fn(&Window) -> String| counted.windows.iter().map(of).collect::<Vec<_>>().join(", ");
    let requests: Vec<u64> = counted.windows.iter().map(|w| w.requests).collect();
    let cells = [
        cell_code(class),
        arm.arm.name().to_owned(),
        each(&|w| per_request(w.instructions, w, 0)),
        each(&|w| per_request(w.syscalls, w, 3)),
        requests.iter().max().map_or_else(|| phrase::NONE.to_owned(), u64::to_string),
        heap(counted),
        answers(counted),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn per_request(count: u64, window: &Window, digits: usize) -> String {
    format!("{:.digits$}", count as f64 / window.requests.max(1) as f64)
}

fn heap(counted: &ClassCost) -> String {
    let requests: f64 = counted.windows.iter().map(|w| w.requests as f64).sum();
    let kept = counted.heap_growth_bytes.map(|b| phrase::bytes(b as f64 / requests.max(1.0)));
    let held = counted.heap_bytes_per_connection.map(phrase::bytes);
    [kept, held].map(|v| v.unwrap_or_else(|| phrase::NONE.to_owned())).join(", ")
}

fn answers(counted: &ClassCost) -> String {
    let given: Vec<String> = counted.statuses.iter().map(|(status, n)| format!("{n} of {status}")).collect();
    let failed = counted.failed.iter().map(|why| cell_sentence(why));
    given.into_iter().chain(failed).collect::<Vec<_>>().join(", ")
}
