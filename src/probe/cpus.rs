//! Which processors do what: the proxies' workers alone on theirs, everything else on the others.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::problem::Problem;
use crate::record::CpuLayout;
use crate::thread;

/// The CPUs the calling thread may run on, in ascending order.
pub fn allowed() -> nix::Result<Vec<u32>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| set.is_set(cpu) == Ok(true))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect())
}

/// Shares out the CPUs this thread may use for proxies with `concurrency` worker threads each: the last ones to the
/// workers, at least one to the rest. With too few CPUs the workers share what one for the rest leaves.
///
/// # Errors
/// Fewer than two CPUs: an environment problem: the machine is at fault, not the user's files.
pub fn layout(concurrency: u32) -> Result<CpuLayout, Problem> {
    let cpus = allowed().map_err(|e| Problem::new("", format!("cannot read this process's CPU affinity: {e}")))?;
    Ok(CpuLayout { realtime: thread::may_be_realtime(), ..divide(&cpus, concurrency)? })
}

fn divide(cpus: &[u32], concurrency: u32) -> Result<CpuLayout, Problem> {
    if cpus.len() < 2 {
        let found = cpus.len();
        return Err(Problem::new(
            "",
            format!("needs two CPUs, one for the proxies' workers and one for the load, found {found}"),
        )
        .help("allow this process more CPUs: a larger runner, `docker run --cpuset-cpus`, or `taskset`"));
    }
    let workers = usize::try_from(concurrency).unwrap_or(usize::MAX).clamp(1, cpus.len() - 1);
    let (rest, workers) = cpus.split_at(cpus.len() - workers);
    Ok(CpuLayout { workers: workers.to_vec(), rest: rest.to_vec(), realtime: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Failure;

    #[test]
    fn one_cpu_is_too_few() {
        let problem = divide(&[3], 1).unwrap_err();
        assert!(problem.message.contains("needs two CPUs") && problem.message.ends_with("found 1"), "{problem}");
        assert_eq!(Failure::environment(problem).code, crate::exit::INVALID);
    }

    #[test]
    fn workers_take_the_last_and_never_all() {
        let workers = |cpus: &[u32], n| divide(cpus, n).unwrap().workers;
        assert_eq!(workers(&[0, 1], 1), [1]);
        assert_eq!(workers(&[0, 1], 4), [1]);
        assert_eq!(workers(&[2, 4, 6, 8], 2), [6, 8]);
        assert_eq!(workers(&[2, 4, 6, 8], 0), [8]);
        assert_eq!(divide(&[2, 4, 6, 8], 9).unwrap().rest, [2]);
    }
}
