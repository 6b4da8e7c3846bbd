//! The real lab: proxies, backend and generator on loopback, one block at a time.

use std::sync::Arc;
use std::time::Duration;

use super::meter::Meter;
use super::slots::{CONNECT_DEADLINE, Launcher, SlotRun};
use super::{Lab, LabFailure, void};
use crate::backend::{Authority, Backend, BackendSpec, ListenerSpec};
use crate::envoy::Bootstrap;
use crate::load::{Generator, Pool, Request, SliceLoad, SliceOutcome};
use crate::plan::{BlockPlan, On, Step};
use crate::proxy::{ProxyBinary, Spawner};
use crate::record::{Arm, ArmBlock, Block, Counters, CpuLayout, Load, RequestLine, Scenario, Slice, Slot};
use crate::stop::Stop;
use crate::thread;
use crate::upstream::{Speaks, Upstreams};

/// One config, ready to be launched in whichever slot the coin says.
#[derive(Debug)]
pub struct ArmSetup {
    pub arm: Arm,
    pub binary: ProxyBinary,
    pub bootstrap: Bootstrap,
    /// Which of its listeners takes the load.
    pub listener: usize,
}

/// Everything a lab needs to know.
#[derive(Debug)]
pub struct Setup {
    /// Base, if there is one, head, and the stored baseline, if it runs.
    pub arms: Vec<ArmSetup>,
    pub concurrency: u32,
    pub cpus: CpuLayout,
    pub requests: Vec<RequestLine>,
    pub connections: u32,
    pub response_bytes: u64,
    pub spawner: Spawner,
    pub stop: Stop,
}

/// Share of the slower slot's capacity at which open-loop latency is measured: high enough that queueing shows, low
/// enough that it stays stable (METHODOLOGY.md, *Load*).
const OPEN_SHARE: f64 = 0.45;

/// A slice holds at least this many recorded requests, within the two lengths.
const REQUESTS_PER_SLICE: f64 = 100.0;
const SHORTEST_SLICE: Duration = Duration::from_millis(75);
const LONGEST_SLICE: Duration = Duration::from_millis(300);

/// Trimmed means and medians over rounds need a few.
const FEWEST_ROUNDS: u32 = 4;

/// The first tenth of a slice is sent but not recorded.
const UNRECORDED_SHARE: u32 = 10;

const WARM_UP: Duration = Duration::from_millis(125);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// After the last answer a worker still has its log lines and bookkeeping to do; they belong to the slice.
const SETTLE: Duration = Duration::from_micros(300);

/// Rounds of closed-loop slices from which capacity is found.
const CALIBRATION_ROUNDS: usize = 5;

/// The calibration's draws come from a block number no run reaches.
const CALIBRATION_BLOCK: u32 = u32::MAX;

pub struct RealLab {
    launcher: Launcher,
    generator: Generator,
    backend: Backend,
    meter: Meter,
    direct: Pool,
    requests: Arc<[Request]>,
    scenarios: Vec<Scenario>,
    setup: Setup,
    seed: u64,
}

impl RealLab {
    /// Starts the backend and the generator. Errors: what of ours could not start.
    pub fn start(setup: Setup, seed: u64) -> Result<Self, LabFailure> {
        let launcher = Launcher::new(&setup);
        // Endpoint ports of slot A, then of the others, then the direct path's.
        let mut speaks = setup.arms.iter().flat_map(|_| launcher.upstreams().each()).collect::<Vec<_>>();
        let direct_listener = speaks.len();
        speaks.push(Speaks::Http1);
        let backend = Backend::start(BackendSpec {
            listeners: speaks.into_iter().zip(0..).map(|(speaks, tag)| ListenerSpec::speaking(speaks, tag)).collect(),
            body_bytes: usize::try_from(setup.response_bytes).unwrap_or(usize::MAX),
            cpus: setup.cpus.rest.clone(),
            names: setup.arms.iter().flat_map(|arm| arm.bootstrap.names().clone()).collect(),
        })
        .map_err(|e| ours(format!("cannot start the backend: {e}")))?;
        let generator =
            Generator::start(&setup.cpus.rest).map_err(|e| ours(format!("cannot start the generator: {e}")))?;
        if setup.cpus.realtime {
            for id in [generator.thread_id(), backend.thread_id()] {
                thread::realtime(id).map_err(|e| ours(format!("cannot prioritise our own threads: {e}")))?;
            }
        }
        let direct = generator
            .connect(backend.addr(direct_listener), setup.connections, CONNECT_DEADLINE)
            .map_err(|e| ours(format!("cannot connect to the backend: {e}")))?;
        let meter = Meter::new(generator.thread_id(), backend.thread_id())
            .map_err(|e| ours(format!("cannot read the scheduler's times of our own threads: {e}")))?;
        Ok(Self {
            launcher,
            requests: requests(&setup.requests)?,
            generator,
            backend,
            meter,
            direct,
            scenarios: Vec::new(),
            setup,
            seed,
        })
    }

    /// What blocks run from now on: for a rate that is known already.
    pub fn set_scenarios(&mut self, scenarios: &[Scenario]) {
        self.scenarios = scenarios.to_vec();
    }

    /// Starts what the plan says, in its order, and connects and warms all slots equally.
    fn start_slots(&mut self, plan: &BlockPlan) -> Result<Vec<SlotRun>, LabFailure> {
        let order = plan.start.clone();
        let (mut runs, mut failures) = (Vec::with_capacity(order.len()), Vec::new());
        for slot in order {
            let upstreams = self.upstreams(slot)?;
            let setup = self.seated(plan, slot)?;
            match self.launcher.start(slot, setup, &upstreams, &self.generator) {
                Ok(run) => runs.push(run),
                Err(failure) => failures.push(failure),
            }
        }
        // All are tried: what neither can do is not head's doing, whichever the draw starts first.
        if let Some(failure) = failures.into_iter().min_by_key(LabFailure::rank) {
            return Err(failure);
        }
        for at in (0..runs.len()).chain(0..runs.len()) {
            if let Err(failure) = self.warm_up(&mut runs[at]) {
                return Err(self.blame(failure, &mut runs));
            }
        }
        Ok(runs)
    }

    /// A failure of head counts against it only where base, asked the same, answers. Without this the draw would decide
    /// between a regression and an invalid run when neither answers as expected.
    fn blame(&self, failure: LabFailure, runs: &mut [SlotRun]) -> LabFailure {
        let of_head = matches!(failure, LabFailure::Arm { arm: Some(Arm::Head), .. });
        let Some(base) = runs.iter_mut().find(|run| of_head && run.arm == Arm::Base) else { return failure };
        match self.load(&base.pool, Load::Closed, WARM_UP) {
            Err(other) => other,
            Ok(_) if !self.backend.is_alive() => ours("the backend has ended".to_owned()),
            Ok(outcome) => match base.check_alive() {
                Ok(()) if outcome.errors.is_empty() && outcome.completed > 0 => failure,
                Ok(()) => base.unfit(&outcome),
                Err(died) => died,
            },
        }
    }

    /// Whoever the plan seats in `slot`.
    fn seated(&self, plan: &BlockPlan, slot: Slot) -> Result<&ArmSetup, LabFailure> {
        let setup = plan.arm_in(slot).and_then(|arm| self.setup.arms.iter().find(|setup| setup.arm == arm));
        setup.ok_or_else(|| ours("the plan seats an arm that was not set up".to_owned()))
    }

    fn upstreams(&self, slot: Slot) -> Result<Upstreams, LabFailure> {
        let counts = self.launcher.upstreams();
        let first = slot.index() * counts.total();
        let at = (first..first + counts.total()).map(|k| self.backend.addr(k)).collect();
        let trust = Authority::trust_for(counts).map_err(|e| ours(e.to_string()))?;
        Ok(Upstreams::new(counts, at, trust))
    }

    fn warm_up(&self, run: &mut SlotRun) -> Result<(), LabFailure> {
        let outcome = self.load(&run.pool, Load::Closed, WARM_UP)?;
        run.check_alive()?;
        if outcome.completed == 0 {
            return Err(run.unfit(&outcome));
        }
        Ok(())
    }

    fn load(&self, pool: &Pool, load: Load, length: Duration) -> Result<SliceOutcome, LabFailure> {
        self.check_stop()?;
        let slice = SliceLoad {
            requests: Arc::clone(&self.requests),
            load,
            length,
            unrecorded: length / UNRECORDED_SHARE,
            request_timeout: REQUEST_TIMEOUT,
            limit: None,
            stop: self.setup.stop.clone(),
        };
        let outcome = self.generator.run(pool, &slice).map_err(|e| ours(format!("the generator failed: {e}")))?;
        // A slice that a signal cut short is no slice.
        self.check_stop()?;
        Ok(outcome)
    }

    fn check_stop(&self) -> Result<(), LabFailure> {
        match self.setup.stop.requested() {
            Some(by) => Err(LabFailure::Interrupted { by: by.to_owned(), partial: None }),
            None => Ok(()),
        }
    }

    /// One slice of the plan, with everything read at its borders.
    fn slice(&mut self, step: Step, runs: &mut [SlotRun]) -> Result<Slice, LabFailure> {
        let scenario = &self.scenarios[step.scenario as usize];
        let (load, length) = (scenario.load, Duration::from_nanos(scenario.slice_ns));
        let mut run = match step.on {
            On::Direct => None,
            On::Slot(slot) => runs.iter_mut().find(|r| r.slot == slot),
        };
        let before = self.meter.read(run.as_deref_mut(), &self.backend)?;
        let pool = run.as_ref().map_or(&self.direct, |r| &r.pool);
        let outcome = self.load(pool, load, length)?;
        if !self.backend.is_alive() {
            return Err(ours("the backend has ended".to_owned()));
        }
        std::thread::sleep(SETTLE);
        let spent = self.meter.read(run.as_deref_mut(), &self.backend)?.since(&before);
        let arm = run.as_ref().map_or(Arm::Direct, |r| r.arm);
        if let Some(run) = run {
            run.check_alive()?;
            if outcome.completed == 0 {
                return Err(run.unfit(&outcome));
            }
        }
        Ok(Slice {
            scenario: step.scenario,
            round: step.round,
            arm,
            elapsed_ns: nanos(outcome.elapsed),
            completed: outcome.completed,
            uncorrected_p50_ns: outcome.uncorrected.quantile(0.50).unwrap_or(0),
            uncorrected_p99_ns: outcome.uncorrected.quantile(0.99).unwrap_or(0),
            lateness_p99_ns: outcome.lateness.quantile(0.99).unwrap_or(0),
            errors: outcome.errors,
            latency: outcome.latency,
            generator_cpu_ns: spent.generator_cpu_ns,
            backend_cpu_ns: spent.backend_cpu_ns,
            upstream_connections: spent.upstream_connections,
            upstream_requests: spent.upstream_requests,
            proxy: spent.proxy,
        })
    }

    /// Runs the plan's steps; what ran before a failure stays in `slices`.
    fn steps(
        &mut self,
        plan: &BlockPlan,
        runs: &mut [SlotRun],
        slices: &mut Vec<Slice>,
        counters: &mut [Vec<Counters>],
    ) -> Result<(), LabFailure> {
        for scenario in 0..self.scenarios.len() as u32 {
            let before = runs.iter().map(SlotRun::counters).collect::<Result<Vec<_>, _>>()?;
            for step in plan.steps.iter().filter(|s| s.scenario == scenario) {
                slices.push(self.slice(*step, runs).map_err(|failure| self.blame(failure, runs))?);
            }
            for ((run, kept), before) in runs.iter().zip(counters.iter_mut()).zip(before) {
                kept.push(run.counters()?.since(&before));
            }
        }
        Ok(())
    }

    fn measure_block(&mut self, plan: &BlockPlan, slices: &mut Vec<Slice>) -> Result<Vec<ArmBlock>, LabFailure> {
        let mut runs = self.start_slots(plan)?;
        let idle = runs.iter().map(SlotRun::memory).collect::<Result<Vec<_>, _>>()?;
        let mut counters = vec![Vec::new(); runs.len()];
        self.steps(plan, &mut runs, slices, &mut counters)?;
        let mut arms = Vec::with_capacity(runs.len());
        for ((run, idle), counters) in runs.iter().zip(idle).zip(counters) {
            let loaded = run.memory()?;
            arms.push(ArmBlock {
                arm: run.arm,
                slot: run.slot,
                startup_ns: nanos(run.startup()),
                idle,
                loaded,
                counters,
            });
        }
        // The order of start is a draw; the order in the record is base, head, baseline.
        arms.sort_by_key(|a| a.arm);
        for run in runs {
            self.generator.close(run.stop());
        }
        Ok(arms)
    }
}

impl Lab for RealLab {
    fn calibrate(&mut self, scenarios: &mut [Scenario], arms: &[Arm]) -> Result<(), LabFailure> {
        let plan = crate::plan::block(self.seed, CALIBRATION_BLOCK, &[], arms);
        let mut runs = self.start_slots(&plan)?;
        let mut rates = vec![Vec::new(); runs.len()];
        for _ in 0..CALIBRATION_ROUNDS {
            for (run, rates) in runs.iter_mut().zip(&mut rates) {
                let outcome = self.load(&run.pool, Load::Closed, SHORTEST_SLICE)?;
                run.check_alive()?;
                if outcome.completed == 0 {
                    return Err(run.unfit(&outcome));
                }
                rates.push(outcome.completed as f64 / outcome.elapsed.as_secs_f64().max(1e-9));
            }
        }
        for run in runs {
            self.generator.close(run.stop());
        }
        let capacity = rates.iter().filter_map(|r| median(r)).fold(f64::INFINITY, f64::min);
        if !capacity.is_finite() || capacity < 1.0 {
            return Err(ours("no capacity could be measured".to_owned()));
        }
        for scenario in scenarios.iter_mut() {
            settle_scenario(scenario, capacity);
        }
        self.set_scenarios(scenarios);
        Ok(())
    }

    fn run_block(&mut self, plan: &BlockPlan) -> Result<Block, LabFailure> {
        let steal = void::Steal::now();
        let mut slices = Vec::with_capacity(plan.steps.len());
        let measured = self.measure_block(plan, &mut slices);
        let block = |void, arms, slices| Block {
            index: plan.index,
            base_slot: plan.base_slot(),
            baseline_slot: plan.slot_of(Arm::Baseline),
            void,
            arms,
            slices,
        };
        match measured {
            Ok(arms) => Ok(block(void::reason(&steal, &slices, &self.scenarios), arms, slices)),
            Err(LabFailure::Interrupted { by, .. }) => {
                let block = block(Some(format!("interrupted by {by}")), Vec::new(), slices);
                Err(LabFailure::Interrupted { by, partial: Some(Box::new(block)) })
            }
            Err(other) => Err(other),
        }
    }
}

/// Sets rate and slice length from the capacity.
fn settle_scenario(scenario: &mut Scenario, capacity_rps: f64) {
    scenario.capacity_rps = Some(capacity_rps);
    let rate = match &mut scenario.load {
        Load::Open { rate_rps } => {
            *rate_rps = (OPEN_SHARE * capacity_rps).max(1.0);
            *rate_rps
        }
        Load::Closed => capacity_rps,
    };
    let recorded_share = 1.0 - 1.0 / f64::from(UNRECORDED_SHARE);
    let wanted = Duration::from_secs_f64(REQUESTS_PER_SLICE / recorded_share / rate);
    let slice = wanted.clamp(SHORTEST_SLICE, LONGEST_SLICE);
    scenario.slice_ns = nanos(slice);
    // Longer slices, fewer rounds: a slow proxy must not make a block longer.
    let stretch = slice.as_secs_f64() / SHORTEST_SLICE.as_secs_f64();
    scenario.rounds = ((f64::from(scenario.rounds) / stretch).round() as u32).max(FEWEST_ROUNDS);
}

fn requests(lines: &[RequestLine]) -> Result<Arc<[Request]>, LabFailure> {
    let build = |line: &RequestLine| {
        Request::new(&line.method, &line.authority, &line.path)
            .map_err(|e| ours(format!("the request for route {} cannot be sent: {e}", line.route)))
    };
    lines.iter().map(build).collect()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn ours(message: String) -> LabFailure {
    LabFailure::Arm { arm: None, message }
}
