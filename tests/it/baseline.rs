//! Stored baselines: what is in a file, what is kept out of it, and what a gate makes of one.

use sidegate::judge::judge;
use sidegate::metric::Metric;
use sidegate::policy::{Policy, Profile};
use sidegate::record::{Arm, End, TargetRecord};
use sidegate::simulate::{Design, Effects, Noise, Simulation, record};
use sidegate::verdict::{Call, Outcome, Verdict};

fn simulated(seed: u64, profile: Profile, cpu: f64, baseline: Option<f64>) -> TargetRecord {
    let of = |cpu: f64| Effects { cpu, ..Effects::default() };
    Simulation {
        seed,
        policy: Policy { profile, ..Policy::default() },
        effects: of(cpu),
        noise: Noise::steady(),
        design: Design::Interleaved,
        baseline: baseline.map(of),
        early: true,
    }
    .run()
}

#[test]
fn probe() {
    let t = std::time::Instant::now();
    let mut tally = std::collections::BTreeMap::new();
    for seed in 0..40 {
        let target = simulated(seed, Profile::Quick, 0.0, Some(0.0));
        let early = target.end == End::Early;
        let v = judge(&record(seed, target));
        let inc: Vec<String> = v
            .findings
            .iter()
            .filter(|f| f.against == "baseline" && f.verdict != Call::Pass && f.gated)
            .map(|f| format!("{:?} {} {:?}", f.verdict, f.metric.name(), f.threshold_ms))
            .collect();
        println!("{seed} {:?} early {early} {:?} {}", v.verdict, inc, v.targets[0].family_size);
        *tally.entry((v.verdict, early)).or_insert(0) += 1;
    }
    println!("{tally:?} {:?}", t.elapsed());
}
