//! Scheduler times of all threads of a proxy, cheap enough to be read at every slice border.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::probe::thread::{SchedClock, SchedStat};
use crate::record::ProxyTimes;

/// Cumulative since the proxy began. A thread that is on a CPU while it is read lags by up to a kernel tick: read when
/// the slice's last answer has come and the workers sleep.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// All threads, ended ones included.
    pub all: SchedStat,
    /// `wrk:worker_0`, `wrk:worker_1` ... in this order.
    pub workers: Vec<SchedStat>,
}

impl ThreadTimes {
    /// What happened since `earlier`, in the record's shape.
    pub fn since(&self, earlier: &Self) -> ProxyTimes {
        let before = earlier.workers.iter().copied().chain(std::iter::repeat(SchedStat::default()));
        let workers: Vec<SchedStat> = self.workers.iter().zip(before).map(|(now, then)| now.since(then)).collect();
        let all = self.all.since(earlier.all);
        ProxyTimes {
            cpu_ns: all.cpu_ns,
            worker_cpu_ns: workers.iter().map(|worker| worker.cpu_ns).collect(),
            worker_wait_ns: workers.iter().map(|worker| worker.wait_ns).sum(),
            context_switches: all.switches,
        }
    }
}

/// A thread of the proxy.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tid: i32,
    /// Number of the worker, if it is one.
    pub(super) worker: Option<usize>,
    clock: SchedClock,
    last: SchedStat,
}

/// The proxy's threads with their accounts held open.
#[derive(Debug)]
pub(super) struct Threads {
    folder: String,
    open: Vec<Thread>,
    ended: SchedStat,
    /// Links of the `task` folder when it was last listed: it has one for each thread.
    links: u64,
}

impl Threads {
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let mut threads =
            Self { folder: format!("/proc/{pid}/task"), open: Vec::new(), ended: SchedStat::default(), links: 0 };
        threads.refresh()?;
        Ok(threads)
    }

    pub(super) fn all(&self) -> &[Thread] {
        &self.open
    }

    /// Lists the threads again if their number has changed, and says whether there are new ones.
    pub(super) fn refresh(&mut self) -> io::Result<bool> {
        let links = fs::metadata(&self.folder)?.nlink();
        if links == self.links {
            return Ok(false);
        }
        self.links = links;
        let mut grew = false;
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(tid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            if self.open.iter().any(|thread| thread.tid == tid) {
                continue;
            }
            // A thread that ends between being listed and being opened is none of ours.
            let Ok(clock) = SchedClock::open(format!("{}/{tid}/schedstat", self.folder)) else { continue };
            self.open.push(Thread { tid, worker: self.worker(tid), clock, last: SchedStat::default() });
            grew = true;
        }
        Ok(grew)
    }

    /// Threads take their names shortly after they begin.
    pub(super) fn rename(&mut self) {
        for i in 0..self.open.len() {
            self.open[i].worker = self.worker(self.open[i].tid);
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.open.iter().filter(|thread| thread.worker.is_some()).count()
    }

    /// One `pread` a thread.
    pub(super) fn read(&mut self) -> ThreadTimes {
        let (mut ended, mut links) = (self.ended, self.links);
        self.open.retain_mut(|thread| match thread.clock.read() {
            Ok(now) => {
                thread.last = now;
                true
            }
            Err(_) => {
                ended = ended.plus(thread.last);
                // Another may have begun meanwhile, and their number be the same: list them again.
                links = 0;
                false
            }
        });
        (self.ended, self.links) = (ended, links);
        let mut times = ThreadTimes { all: ended, workers: Vec::new() };
        for thread in &self.open {
            times.all = times.all.plus(thread.last);
            if let Some(number) = thread.worker.filter(|&number| number < 1024) {
                times.workers.resize(times.workers.len().max(number + 1), SchedStat::default());
                times.workers[number] = thread.last;
            }
        }
        times
    }

    fn worker(&self, tid: i32) -> Option<usize> {
        let name = fs::read_to_string(format!("{}/{tid}/comm", self.folder)).ok()?;
        name.trim_end().strip_prefix("wrk:worker_")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(n: u64) -> SchedStat {
        SchedStat { cpu_ns: n, wait_ns: 10 * n, switches: 100 * n }
    }

    #[test]
    fn differences_are_of_each_worker() {
        let then = ThreadTimes { all: stat(5), workers: vec![stat(1)] };
        let now = ThreadTimes { all: stat(9), workers: vec![stat(3), stat(4)] };
        let times = now.since(&then);
        assert_eq!((times.cpu_ns, times.context_switches), (4, 400));
        assert_eq!((times.worker_cpu_ns.as_slice(), times.worker_wait_ns), (&[2, 4][..], 60));
    }

    #[test]
    fn ended_threads_stay_in_the_sum() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (say, told) = std::sync::mpsc::channel();
        let busy = std::thread::spawn(move || {
            say.send(crate::probe::thread::current()).unwrap();
            wait.recv().unwrap();
        });
        let tid = told.recv().unwrap();
        let mut threads = Threads::of(std::process::id()).unwrap();
        assert!(threads.all().iter().any(|thread| thread.tid == tid));
        let before = threads.read();
        go.send(()).unwrap();
        busy.join().unwrap();
        // The kernel may take a moment to let go of the thread after it was joined.
        let gone = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let now = threads.read();
            assert!(now.all.cpu_ns >= before.all.cpu_ns && now.all.switches >= before.all.switches);
            threads.all().iter().all(|thread| thread.tid != tid)
        });
        assert!(gone && threads.ended.switches > 0);
    }
}
