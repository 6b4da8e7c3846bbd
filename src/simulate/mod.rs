//! A seeded simulator of a target's whole run: blocks, early looks, end. What the error rates of the gate are measured
//! on, thousands of runs at a time; no proxy is started and no time passes.

mod lab;
mod noise;

pub use lab::SimulatedLab;
pub use noise::{Effects, Noise};

use crate::judge;
use crate::plan::{self, BlockPlan, On};
use crate::policy::Policy;
use crate::record::{
    CpuLayout, End, Host, Load, ProxyId, Record, Replay, RequestLine, SCHEMA, Scenario, Scope, Source, StoredBaseline,
    TargetRecord,
};

/// How a run is laid out; everything but `Interleaved` is wrong on purpose, to show what the design is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Design {
    /// As the gate does it.
    #[default]
    Interleaved,
    /// Base sits in slot A in every block.
    CoinDisabled,
    /// All of a block's base slices, then all of its head slices.
    BaseThenHead,
}

/// One run to simulate.
#[derive(Debug, Clone)]
pub struct Simulation {
    pub seed: u64,
    pub policy: Policy,
    pub effects: Effects,
    pub noise: Noise,
    pub design: Design,
    /// What a stored baseline's config costs more than base's (less: negative); it runs as a third arm.
    pub baseline: Option<Effects>,
    /// Whether the run may stop at its early looks.
    pub early: bool,
}

/// Simulates one run of the gate as it is.
pub fn run(seed: u64, policy: &Policy, effects: Effects, noise: Noise) -> TargetRecord {
    Simulation {
        seed,
        policy: policy.clone(),
        effects,
        noise,
        design: Design::Interleaved,
        baseline: None,
        early: true,
    }
    .run()
}

/// A record of one target, for `judge`.
pub fn record(seed: u64, target: TargetRecord) -> Record {
    Record {
        schema: SCHEMA,
        tool: "simulator".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        host: Host::default(),
        seed,
        scope: Scope::default(),
        targets: vec![target],
    }
}

impl Simulation {
    pub fn run(&self) -> TargetRecord {
        let mut target = empty_target(&self.policy);
        let last = target.looks.last().copied().unwrap_or(0);
        let rounds: Vec<u32> = target.scenarios.iter().map(|s| s.rounds).collect();
        target.baseline = self.baseline.map(|_| replayed());
        let arms = target.arms();
        let mut lab = SimulatedLab::new(self.seed, self.effects, self.noise, target.scenarios.clone(), last)
            .with_baseline(self.baseline.unwrap_or_default());
        for index in 0..last {
            let plan = self.design.apply(plan::block(self.seed, index, &rounds, &arms));
            target.blocks.push(lab.run_block(&plan));
            if self.early && judge::may_stop(&target) {
                target.end = End::Early;
                break;
            }
        }
        target
    }
}

impl Design {
    fn apply(self, mut plan: BlockPlan) -> BlockPlan {
        match self {
            Design::Interleaved => {}
            Design::CoinDisabled => plan.seats.sort(),
            Design::BaseThenHead => {
                let base = On::Slot(plan.base_slot());
                plan.steps.sort_by_key(|s| (s.scenario, s.on != base));
            }
        }
        plan
    }
}

fn source(file: &str) -> Source {
    Source {
        file: file.to_owned(),
        sha256: String::new(),
        proxy: ProxyId { kind: "simulated".to_owned(), version: "0".to_owned(), sha256: String::new() },
        changes: Vec::new(),
    }
}

fn replayed() -> StoredBaseline {
    StoredBaseline {
        file: "baselines/simulated.json".to_owned(),
        recorded_at: "2026-01-01T00:00:00Z".to_owned(),
        config: "accepted.yaml".to_owned(),
        replay: Replay::Live { source: source("accepted.yaml") },
        counts: None,
        not_comparable: None,
        figures: Vec::new(),
    }
}

fn empty_target(policy: &Policy) -> TargetRecord {
    TargetRecord {
        name: "simulated".to_owned(),
        base: Some(source("base.yaml")),
        no_base: None,
        head: source("head.yaml"),
        policy: policy.clone(),
        concurrency: 1,
        cpus: CpuLayout { workers: vec![1], rest: vec![0], realtime: true },
        workload: vec![RequestLine {
            method: "GET".to_owned(),
            authority: "simulated".to_owned(),
            path: "/".to_owned(),
            route: "/".to_owned(),
        }],
        scenarios: scenarios(),
        looks: policy.profile.looks().to_vec(),
        cost: None,
        baseline: None,
        blocks: Vec::new(),
        end: End::Complete,
    }
}

/// One open-loop scenario at 45 % of capacity and one closed-loop scenario, as each profile has them.
fn scenarios() -> Vec<Scenario> {
    let scenario = |name: &str, load: Load, rounds: u32| Scenario {
        name: name.to_owned(),
        path: "one".to_owned(),
        protocol: "http1".to_owned(),
        connections: 32,
        load,
        response_bytes: 1024,
        slice_ns: 75_000_000,
        rounds,
        capacity_rps: Some(16_500.0),
    };
    vec![scenario("open", Load::Open { rate_rps: 7_425.0 }, 16), scenario("closed", Load::Closed, 8)]
}
