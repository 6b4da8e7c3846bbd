//! The simulated machine: what a block of slices would have looked like.

use std::collections::BTreeMap;

use super::noise::{Effects, Noise};
use crate::histogram::Histogram;
use crate::plan::{BlockPlan, On};
use crate::record::{Arm, ArmBlock, Block, Counters, Load, Memory, ProxyTimes, Scenario, Slice, Slot};
use crate::stats::normal::Normal;

/// Buckets of the body of a latency distribution.
const BODY: usize = 20;

/// Standard normal quantiles at (i + 1/2) / 20 of the lower 95 %.
const BODY_Z: [f64; BODY] = [
    -1.981, -1.467, -1.182, -0.970, -0.795, -0.642, -0.504, -0.375, -0.253, -0.135, -0.021, 0.093, 0.209, 0.327, 0.450,
    0.580, 0.722, 0.881, 1.070, 1.323,
];

/// Where the body ends.
const TAIL_Z: f64 = 1.645;
const TAIL_SHARE: f64 = 0.05;

/// Spread of the body, and of the tail beyond it, in logarithms.
const BODY_SPREAD: f64 = 0.25;
const TAIL_SPREAD: f64 = 0.35;

/// What a request costs at rest.
const CPU_NS: f64 = 36_000.0;
const LATENCY_NS: f64 = 280_000.0;
const DIRECT_NS: f64 = 90_000.0;

/// Makes blocks from plans. Blocks must be run in order: the machine's state goes on from one to the next.
#[derive(Debug, Clone)]
pub struct SimulatedLab {
    /// Of head, and of the stored baseline, against base.
    effects: Effects,
    baseline: Effects,
    noise: Noise,
    scenarios: Vec<Scenario>,
    draws: Normal,
    /// Shape of the body relative to its median.
    body: [f64; BODY],
    /// Autocorrelated state of CPU, latency and tail.
    state: [f64; 3],
    /// Sudden changes so far.
    level: f64,
    /// Slices run and, for the drift, to be run.
    done: f64,
    all: f64,
}

/// One proxy process's luck, in logarithms.
#[derive(Debug, Clone, Copy)]
struct Process {
    arm: Arm,
    slot: Slot,
    cpu: f64,
    latency: f64,
}

/// The machine during one slice, in logarithms but for the stall.
#[derive(Debug, Clone, Copy)]
struct Moment {
    cpu: f64,
    latency: f64,
    tail: f64,
    stall_ns: f64,
}

impl SimulatedLab {
    /// `blocks` is how many the longest run would have: the drift is spread over them.
    pub fn new(seed: u64, effects: Effects, noise: Noise, scenarios: Vec<Scenario>, blocks: u32) -> Self {
        let per_block: f64 = scenarios.iter().map(|s| 2.25 * f64::from(s.rounds)).sum();
        Self {
            effects,
            baseline: Effects::default(),
            noise,
            scenarios,
            // Not the stream of any block's plan.
            draws: Normal::new(seed, u64::MAX),
            body: BODY_Z.map(|z| (BODY_SPREAD * z).exp()),
            state: [0.0; 3],
            level: 0.0,
            done: 0.0,
            all: (per_block * f64::from(blocks)).max(1.0),
        }
    }

    /// What the stored baseline's config costs more than base's.
    #[must_use]
    pub fn with_baseline(mut self, effects: Effects) -> Self {
        self.baseline = effects;
        self
    }

    pub fn run_block(&mut self, plan: &BlockPlan) -> Block {
        let seats: Vec<(Slot, Arm)> = Slot::ALL.into_iter().zip(plan.seats.iter().copied()).collect();
        let processes: Vec<Process> = seats.into_iter().map(|(slot, arm)| self.start(slot, arm)).collect();
        let slices: Vec<Slice> = plan
            .steps
            .iter()
            .filter_map(|step| {
                let scenario = self.scenarios.get(usize::try_from(step.scenario).ok()?)?.clone();
                let process = match step.on {
                    On::Slot(slot) => Some(*processes.get(slot.index())?),
                    On::Direct => None,
                };
                Some(self.slice(step.scenario, &scenario, step.round, process))
            })
            .collect();
        let mut arms: Vec<ArmBlock> = processes.iter().map(|p| self.arm_block(p, &slices)).collect();
        arms.sort_by_key(|a| a.arm);
        Block {
            index: plan.index,
            base_slot: plan.base_slot(),
            baseline_slot: plan.slot_of(Arm::Baseline),
            void: None,
            arms,
            slices,
        }
    }

    fn effects_on(&self, arm: Arm) -> Effects {
        match arm {
            Arm::Head => self.effects,
            Arm::Baseline => self.baseline,
            Arm::Base | Arm::Direct => Effects::default(),
        }
    }

    fn start(&mut self, slot: Slot, arm: Arm) -> Process {
        let unlucky = self.draws.uniform() < 0.5 * self.noise.outliers;
        let outlier = if unlucky { self.noise.outlier_size * self.draws.exponential() } else { 0.0 };
        // Slot C, where it is used, is as far from A as A is from B.
        let bias = [0.0, self.noise.slot, -self.noise.slot][slot.index()];
        let half = std::f64::consts::FRAC_1_SQRT_2;
        Process {
            arm,
            slot,
            cpu: half * self.noise.process_cpu * self.draws.draw() + outlier + bias,
            latency: half * self.noise.process_latency * self.draws.draw() + outlier + bias,
        }
    }

    /// Lets the machine go on by one slice.
    fn moment(&mut self) -> Moment {
        let rho = self.noise.autocorrelation;
        for state in &mut self.state {
            *state = rho * *state + (1.0 - rho * rho).sqrt() * self.draws.draw();
        }
        if self.noise.steps > 0.0 && self.draws.uniform() < 0.01 {
            self.level = self.noise.steps * self.draws.draw();
        }
        self.done += 1.0;
        let machine = self.level + self.noise.drift * self.done / self.all;
        let stalled = self.draws.uniform() < self.noise.stalls;
        Moment {
            cpu: machine + self.noise.slice_cpu * self.state[0],
            latency: machine + self.noise.slice_latency * self.state[1],
            tail: self.noise.slice_tail * self.state[2],
            stall_ns: if stalled { 3e6 * (1.0 + self.draws.uniform()) } else { 0.0 },
        }
    }

    fn slice(&mut self, index: u32, scenario: &Scenario, round: u32, process: Option<Process>) -> Slice {
        let now = self.moment();
        let arm = process.map_or(Arm::Direct, |p| p.arm);
        let effects = self.effects_on(arm);
        let cpu = now.cpu + process.map_or(0.0, |p| p.cpu) + effects.cpu.ln_1p();
        let seconds = scenario.slice_ns as f64 / 1e9;
        let closed_rps = if process.is_some() { 16_500.0 } else { 60_000.0 } * (-cpu).exp();
        let (rps, busy, base_latency) = match scenario.load {
            Load::Open { rate_rps } => (rate_rps, 0.0, if process.is_some() { LATENCY_NS } else { DIRECT_NS }),
            Load::Closed => (closed_rps, cpu, f64::from(scenario.connections) / 16_500.0 * 1e9),
        };
        let requests = (rps * seconds).round();
        let shift = now.latency + process.map_or(0.0, |p| p.latency) + effects.p50.ln_1p() + busy;
        let recorded = (0.9 * requests).round();
        let latency = self.latencies(scenario, recorded, base_latency * shift.exp(), &now, &effects);
        let failed = (effects.errors * requests).round();
        let elapsed_ns = scenario.slice_ns as f64 + base_latency * shift.exp();
        let count = |x: f64| x.max(0.0) as u64;
        Slice {
            scenario: index,
            round,
            arm,
            elapsed_ns: count(elapsed_ns),
            completed: count(requests - failed),
            errors: if failed > 0.0 {
                BTreeMap::from([("status 503".to_owned(), count(failed))])
            } else {
                BTreeMap::new()
            },
            uncorrected_p50_ns: latency.quantile(0.5).unwrap_or(0),
            uncorrected_p99_ns: latency.quantile(0.99).unwrap_or(0),
            latency,
            lateness_p99_ns: 15_000,
            generator_cpu_ns: count(0.4 * elapsed_ns),
            backend_cpu_ns: count(0.3 * elapsed_ns),
            upstream_connections: 0,
            upstream_requests: count(requests),
            proxy: process.map(|_| proxy_times(CPU_NS * cpu.exp() * requests, now.stall_ns)),
        }
    }

    /// A log-normal body, a tail that is sampled, and what a stall or a slow filter delays.
    fn latencies(&mut self, scenario: &Scenario, n: f64, median_ns: f64, now: &Moment, effects: &Effects) -> Histogram {
        let tail = (n * TAIL_SHARE + (n * TAIL_SHARE).sqrt() * self.draws.draw()).round().clamp(0.0, n);
        let mut pairs = Vec::with_capacity(BODY + tail as usize + 4);
        let each = (n - tail) / BODY as f64;
        let mut given = 0.0;
        for (i, shape) in self.body.iter().enumerate() {
            let upto = (each * (i + 1) as f64).round();
            // Jitter within a bucket: quantiles of real histograms are not fixed multiples of each other.
            let jitter = 1.0 + 0.02 * (self.draws.uniform() - 0.5);
            pairs.push(((median_ns * shape * jitter) as u64, (upto - given) as u64));
            given = upto;
        }
        let edge = median_ns * (BODY_SPREAD * TAIL_Z + now.tail).exp() * (1.0 + effects.tail);
        for _ in 0..tail as u64 {
            pairs.push(((edge * (TAIL_SPREAD * self.draws.exponential()).exp()) as u64, 1));
        }
        if now.stall_ns > 0.0 {
            self.stall(scenario, now.stall_ns, median_ns, &mut pairs);
        }
        let expected = effects.slow_share * n;
        let slow = (expected + expected.sqrt() * self.draws.draw()).round().max(0.0);
        pairs.push(((effects.slow_ms * 1e6 + median_ns) as u64, slow as u64));
        Histogram::from_pairs(pairs)
    }

    /// Open loop: everything due during the stall waits for its rest. Closed loop: each connection waits once.
    fn stall(&mut self, scenario: &Scenario, stall_ns: f64, median_ns: f64, pairs: &mut Vec<(u64, u64)>) {
        let Load::Open { rate_rps } = scenario.load else {
            pairs.push(((median_ns + stall_ns) as u64, scenario.connections.into()));
            return;
        };
        let quarter = (rate_rps * stall_ns / 1e9 / 4.0).round() as u64;
        for rest in [0.125, 0.375, 0.625, 0.875] {
            pairs.push(((median_ns + rest * stall_ns) as u64, quarter));
        }
    }

    fn arm_block(&mut self, process: &Process, slices: &[Slice]) -> ArmBlock {
        let effects = self.effects_on(process.arm);
        let mut around =
            |value: f64, spread: f64, effect: f64| (value * (1.0 + effect) * (spread * self.draws.draw()).exp()) as u64;
        let rss = around(21e6, 0.008, effects.memory);
        let loaded = Memory {
            allocated_bytes: Some(around(4.2e6, 0.0005, effects.memory)),
            rss_anon_bytes: rss,
            rss_bytes: rss + 30_000_000,
            rss_peak_bytes: rss + 31_000_000,
        };
        let startup_ns = around(180e6, 0.06, effects.startup);
        let counters = (0_u32..)
            .zip(&self.scenarios)
            .map(|(index, _)| {
                let own = slices.iter().filter(|s| s.arm == process.arm && s.scenario == index);
                let requests: f64 = own.map(|s| s.completed as f64).sum();
                Counters { retries: Some((effects.retries * requests) as u64), timeouts: Some(0), overflow: Some(0) }
            })
            .collect();
        ArmBlock { arm: process.arm, slot: process.slot, startup_ns, idle: loaded, loaded, counters }
    }
}

fn proxy_times(cpu_ns: f64, stall_ns: f64) -> ProxyTimes {
    ProxyTimes {
        cpu_ns: cpu_ns as u64,
        worker_cpu_ns: vec![(0.97 * cpu_ns) as u64],
        worker_wait_ns: stall_ns as u64,
        context_switches: 100,
    }
}
