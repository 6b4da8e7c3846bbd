//! scratch
#![allow(clippy::print_stdout)]
use sidegate::{analysis::analyze, judge::judge, policy::Policy, simulate::*, stats::location::sd};
fn main() {
    let policy = Policy { profile: sidegate::policy::Profile::Quick, ..Policy::default() };
    for (name, noise) in [("steady", Noise::steady()), ("drift", Noise::drifting()), ("heavy", Noise::heavy_tailed())] {
        let t = std::time::Instant::now();
        let mut sum = std::collections::BTreeMap::<String, (f64, f64)>::new();
        let mut outcomes = std::collections::BTreeMap::<String, u32>::new();
        let mut gen_time = 0.0;
        let n = 200;
        let (mut early, mut dropped) = (0, 0);
        for seed in 0..n {
            let t = std::time::Instant::now();
            let target = run(seed, &policy, Effects::default(), noise);
            gen_time += t.elapsed().as_secs_f64();
            early += (target.end == sidegate::record::End::Early) as u32;
            for e in analyze(&target).effects {
                if !e.gated {
                    continue;
                }
                let k =
                    format!("{:?} {} {:?} few={}", e.scenario, e.metric.name(), e.threshold_ms, e.too_few.is_some());
                let s = sum.entry(k).or_default();
                s.0 += sd(&e.differences).unwrap_or(0.0);
                s.1 += 1.0;
            }
            let v = judge(&record(seed, target));
            dropped += (v.targets[0].alpha < 0.01) as u32;
            *outcomes.entry(format!("{:?}", v.verdict)).or_default() += 1;
            for f in &v.findings {
                if f.gated && f.verdict == sidegate::verdict::Call::Inconclusive {
                    *outcomes
                        .entry(format!("inc {} {} {:?}", f.scenario, f.metric.name(), f.threshold_ms))
                        .or_default() += 1;
                }
            }
            if seed == 0 {
                println!("{}", serde_json::to_string_pretty(&v.targets).unwrap());
            }
        }
        println!(
            "{name} {:?} runs/s {:.0} gen {:.3} early {early} dropped {dropped} {outcomes:?}",
            t.elapsed(),
            n as f64 / t.elapsed().as_secs_f64(),
            gen_time
        );
        for (k, (s, n)) in sum {
            println!("  {k}: sd {:.5} n {n}", s / n);
        }
    }
}
