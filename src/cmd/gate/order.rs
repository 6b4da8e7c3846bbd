//! The arguments of a gate, checked: command line over target over defaults of `sidegate.yaml`.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::cmd::gate::Args;
use crate::cmd::gate::replay::Stored;
use crate::exit::Failure;
use crate::files::{self, ConfigFile};
use crate::plan;
use crate::policy::{Policy, Profile};
use crate::problem::{Problem, on_one_line};
use crate::record::{Load, Scenario};
use crate::spec::{self, Overrides, Spec};
use crate::units;
use crate::yaml::Document;

pub const DEFAULT_ENVOY: &str = "1.40.0";
pub const DEFAULT_SPEC: &str = "sidegate.yaml";
const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

/// Connections of every scenario.
pub const CONNECTIONS: u32 = 32;
/// Body of every answer of the backend.
pub const RESPONSE_BYTES: u64 = 1024;

/// Rounds of a block. Open loop carries the latency verdicts and gets twice as many (METHODOLOGY.md).
const OPEN_ROUNDS: u32 = 16;
const CLOSED_ROUNDS: u32 = 6;

/// Until capacity is known.
const SLICE: Duration = Duration::from_millis(75);

/// Start, warm-up and stop of a block, beside its slices; for estimates only.
const BLOCK_OVERHEAD: Duration = Duration::from_millis(900);

/// Starting a pair of proxies under valgrind, and counting one kind of request; for estimates only.
const COUNTING_START: Duration = Duration::from_secs(10);
const COUNTING_KIND: Duration = Duration::from_secs(3);

/// Whether instructions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    Never,
    /// Where the machine can; else it is said.
    IfPossible,
    Required,
    /// And nothing else is measured.
    Only,
}

/// One target, and where its configs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub target: String,
    /// Or why there is none.
    pub base: Result<ConfigFile, String>,
    pub head: ConfigFile,
}

#[derive(Debug)]
pub struct Order {
    pub target: String,
    /// Or why there is none.
    pub base: Result<ConfigFile, String>,
    pub head: ConfigFile,
    pub base_envoy: String,
    pub head_envoy: String,
    pub concurrency: u32,
    /// The stored baseline that was given or found.
    pub baseline: Option<Stored>,
    pub policy: Policy,
    pub scenarios: Vec<Scenario>,
    pub looks: Vec<u32>,
    pub counting: Counting,
    pub budget: Duration,
    pub seed: u64,
}

impl Order {
    /// Of two files, with the stored baseline of their target.
    pub fn of_files(args: &Args, head: &Path) -> Result<Self, Failure> {
        let order = Self::alone(args, head)?;
        let baseline = Stored::find(args.baseline.as_deref(), &order.target)?;
        Ok(Self { baseline, ..order })
    }

    /// Of two files, whatever baseline is stored.
    pub fn alone(args: &Args, head: &Path) -> Result<Self, Failure> {
        let spec = read_spec(args.spec.as_deref())?;
        let base = args.base.as_deref().map(ConfigFile::at);
        let subject = Subject {
            target: args.target.clone().unwrap_or_else(|| target_name(head)),
            base: base.ok_or_else(|| "no base was given".to_owned()),
            head: ConfigFile::at(head),
        };
        Self::checked(args, &spec, subject)
    }

    /// All faults at once. The stored baseline is the caller's to add.
    pub fn checked(args: &Args, spec: &Spec, subject: Subject) -> Result<Self, Failure> {
        let name = subject.target;
        let own = spec.target(&name);
        let overrides = Overrides { profile: args.profile, limits: args.limits, on_inconclusive: args.on_inconclusive };
        let policy = spec.policy_for(&name, overrides);
        let mut problems = Vec::new();
        let budget = budget(args, spec, &mut problems);
        let scenarios = scenarios(args, spec, &mut problems);
        if !problems.is_empty() {
            return Err(Failure::usage(problems));
        }
        let envoy = args
            .envoy
            .clone()
            .or_else(|| own.and_then(|t| t.envoy.clone()))
            .or_else(|| spec.defaults.envoy.clone())
            .unwrap_or_else(|| DEFAULT_ENVOY.to_owned());
        Ok(Self {
            base: subject.base,
            head: subject.head,
            base_envoy: args.base_envoy.clone().unwrap_or_else(|| envoy.clone()),
            head_envoy: args.head_envoy.clone().unwrap_or(envoy),
            concurrency: args.concurrency.or(own.and_then(|t| t.concurrency)).unwrap_or(1),
            looks: policy.profile.looks().to_vec(),
            baseline: None,
            counting: counting(args),
            target: name,
            policy,
            scenarios,
            budget,
            seed: args.seed.unwrap_or_else(seed_from_clock),
        })
    }

    /// What would run, for people.
    pub fn print_plan(&self) {
        let mut out = anstream::stdout().lock();
        let looks: Vec<String> = self.looks.iter().map(u32::to_string).collect();
        let _ = writeln!(out, "target       {}", on_one_line(&self.target));
        let base = self.base.as_ref().map_or("none".to_owned(), |b| on_one_line(&b.name));
        let _ = writeln!(out, "base         {base} (envoy {})", self.base_envoy);
        let _ = writeln!(out, "head         {} (envoy {})", on_one_line(&self.head.name), self.head_envoy);
        if let Some(stored) = &self.baseline {
            let _ = writeln!(out, "baseline     {}", on_one_line(&stored.file));
        }
        let _ = writeln!(out, "profile      {}, limits {}", self.policy.profile.name(), self.policy.limits.name());
        let count = match self.counting {
            Counting::Never => "not counted",
            Counting::IfPossible => "counted under valgrind, where it is installed",
            Counting::Required => "counted under valgrind",
            Counting::Only => "counted under valgrind, and nothing else is measured",
        };
        let most = classes(self.policy.profile);
        let _ = writeln!(out, "instructions {count}, at most {most} kinds of requests");
        if self.counting == Counting::Only {
            return;
        }
        let _ = writeln!(out, "looks        after {} blocks", looks.join(", "));
        for s in &self.scenarios {
            let load = match s.load {
                Load::Closed => "closed loop",
                Load::Open { .. } => "open loop at 45 % of the capacity found first",
            };
            let (ms, rounds, connections) = (s.slice_ns / 1_000_000, s.rounds, s.connections);
            let _ = writeln!(
                out,
                "scenario     {}: {load}, {connections} connections, {rounds} rounds of {ms} ms slices a block",
                s.name
            );
        }
        let _ = writeln!(out, "time         at most about {} s", self.longest().as_secs());
        let _ = writeln!(out, "seed         {}", self.seed);
    }

    /// Time until the last look, by what counting and blocks usually take.
    pub fn longest(&self) -> Duration {
        let kinds = u32::try_from(classes(self.policy.profile)).unwrap_or(u32::MAX);
        let counting = COUNTING_START + COUNTING_KIND * kinds;
        let blocks = self.block_time() * self.looks.last().copied().unwrap_or(0);
        match self.counting {
            Counting::Never => blocks,
            Counting::Only => counting,
            Counting::IfPossible | Counting::Required => counting + blocks,
        }
    }

    fn block_time(&self) -> Duration {
        let third = |rounds: u32| if self.baseline.is_some() { rounds.div_ceil(plan::THIRD_EVERY) } else { 0 };
        let slices: Duration = self
            .scenarios
            .iter()
            .map(|s| Duration::from_nanos(s.slice_ns) * (2 * s.rounds + s.rounds.div_ceil(4) + third(s.rounds)))
            .sum();
        slices + BLOCK_OVERHEAD
    }
}

/// Most kinds of requests whose instructions are counted: a kind takes about two seconds.
pub fn classes(profile: Profile) -> usize {
    match profile {
        Profile::Quick => 3,
        Profile::Standard => 5,
        Profile::Deep => 8,
    }
}

fn counting(args: &Args) -> Counting {
    match (args.no_cost, args.cost_only, args.require_cost) {
        (true, ..) => Counting::Never,
        (_, true, _) => Counting::Only,
        (_, _, true) => Counting::Required,
        _ => Counting::IfPossible,
    }
}

/// Head's path as given, `/` as `__`, without extension and control characters.
pub fn target_name(head: &Path) -> String {
    let stem = head.with_extension("");
    let text = stem.to_string_lossy();
    text.trim_start_matches("./").trim_matches('/').replace('/', "__").replace(char::is_control, "_")
}

fn read_spec(given: Option<&Path>) -> Result<Spec, Failure> {
    let path = match given {
        Some(path) => path,
        // A link to nowhere is a fault to tell, not a file that is absent.
        None if Path::new(DEFAULT_SPEC).symlink_metadata().is_ok() => Path::new(DEFAULT_SPEC),
        None => return Ok(Spec::default()),
    };
    parse_spec(&path.display().to_string(), &files::read_text(path)?)
}

/// `name` is what messages call the file.
pub fn parse_spec(name: &str, text: &str) -> Result<Spec, Failure> {
    let document = Document::parse(name, text).map_err(Failure::usage)?;
    let today = jiff::Timestamp::now().to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
    Spec::read(&document.value, &|pointer| document.span(pointer), name, today).map_err(Failure::usage)
}

pub fn budget(args: &Args, spec: &Spec, problems: &mut Vec<Problem>) -> Duration {
    match args.budget.as_deref().map(units::parse_duration) {
        Some(Ok(budget)) => budget,
        Some(Err(e)) => {
            problems.push(Problem::new("", format!("--budget: {e}")).help("write a time such as 90s or 10m"));
            DEFAULT_BUDGET
        }
        None => spec.defaults.budget.unwrap_or(DEFAULT_BUDGET),
    }
}

/// The built-in scenarios, or those of them that were named.
fn scenarios(args: &Args, spec: &Spec, problems: &mut Vec<Problem>) -> Vec<Scenario> {
    let wanted = if args.scenario.is_empty() { &spec.scenarios } else { &args.scenario };
    for name in wanted.iter().filter(|n| !spec::SCENARIOS.contains(&n.as_str())) {
        problems.push(
            Problem::new("", format!("--scenario: there is no scenario `{name}`"))
                .help(format!("there are: {}", spec::SCENARIOS.join(", "))),
        );
    }
    let open = scenario("open", Load::Open { rate_rps: 0.0 }, OPEN_ROUNDS);
    let closed = scenario("closed", Load::Closed, CLOSED_ROUNDS);
    [open, closed].into_iter().filter(|s| wanted.is_empty() || wanted.contains(&s.name)).collect()
}

fn scenario(name: &str, load: Load, rounds: u32) -> Scenario {
    Scenario {
        name: name.to_owned(),
        path: "one".to_owned(),
        protocol: "http1".to_owned(),
        connections: CONNECTIONS,
        load,
        response_bytes: RESPONSE_BYTES,
        slice_ns: u64::try_from(SLICE.as_nanos()).unwrap_or(u64::MAX),
        rounds,
        capacity_rps: None,
    }
}

fn seed_from_clock() -> u64 {
    jiff::Timestamp::now().as_nanosecond().unsigned_abs() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_after_the_path_of_head() {
        assert_eq!(target_name(Path::new("./envoy/checkout.yaml")), "envoy__checkout");
        assert_eq!(target_name(Path::new("a.b.json")), "a.b");
    }
}
