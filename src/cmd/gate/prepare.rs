//! From files to arms: reads, re-hosts and validates both configs before anything is measured.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::backend::Authority;
use crate::cmd::gate::order::{CONNECTIONS, Counting, Order, RESPONSE_BYTES};
use crate::cmd::gate::replay::{self, Company};
use crate::cmd::input;
use crate::cmd::progress::Progress;
use crate::envoy::rehost::Needs;
use crate::envoy::workload::{self, Workload};
use crate::envoy::{Bootstrap, Ports, rejection};
use crate::exit::Failure;
use crate::files::ConfigFile;
use crate::lab::{ArmSetup, Setup};
use crate::probe;
use crate::problem::Problem;
use crate::proxy::{Envoy, ProxyBinary, ProxySpec, Spawner, StartFailure, Store, ValidateError, install};
use crate::record::{Arm, CpuLayout, End, ProxyId, Source, TargetRecord};
use crate::stop::Stop;
use crate::upstream::Upstreams;
use crate::yaml::Document;

/// `--mode validate` loads the whole config; the largest take seconds.
const VALIDATE_DEADLINE: Duration = Duration::from_secs(60);

/// Everything a run needs, and the record it will fill.
pub struct Prepared {
    pub setup: Setup,
    pub target: TargetRecord,
}

/// One config that is fit to be measured.
pub struct Fit {
    pub setup: ArmSetup,
    pub source: Source,
    pub workload: Workload,
}

/// What all arms are prepared with.
pub(super) struct Bench<'a> {
    spawner: Spawner,
    store: Store,
    stop: &'a Stop,
}

/// Refuses what cannot be measured: head's faults end the gate, base's leave head to be measured alone.
pub fn prepare(order: &Order, stop: &Stop, progress: &mut Progress) -> Result<Prepared, Failure> {
    let cpus = cpus(order).map_err(Failure::environment)?;
    let bench = Bench::open(stop, progress)?;
    let head = bench.fit(Arm::Head, &order.head, &order.head_envoy, progress)?;
    let (base, no_base) = match &order.base {
        Err(why) => (None, Some(why.clone())),
        Ok(file) => match bench.fit(Arm::Base, file, &order.base_envoy, progress) {
            Ok(fit) => (Some(fit), None),
            Err(failure) if failure.code == crate::exit::USAGE && file.path.exists() => {
                let why = failure.problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ");
                progress.note(&format!("no base: {why}"));
                (None, Some(format!("the base cannot be loaded: {why}")))
            }
            Err(failure) => return Err(failure),
        },
    };
    // What base answers, head must answer: a route that the change takes away shows as an error on head.
    let requests = base.as_ref().unwrap_or(&head).workload.requests.clone();
    let envoy = order.head_envoy.as_str();
    let company = Company { base: base.as_ref(), envoy, requests: &requests, concurrency: order.concurrency };
    let joined = order.baseline.as_ref().map(|stored| replay::join(&bench, stored, &company, progress)).transpose()?;
    let mut prepared = assemble(order, bench, base, no_base, head, cpus);
    if let Some((baseline, setup)) = joined {
        prepared.target.baseline = Some(baseline);
        prepared.setup.arms.extend(setup);
    }
    Ok(prepared)
}

/// One config by itself, fit to be measured, and what its proxies are started with.
pub fn one(config: &ConfigFile, envoy: &str, stop: &Stop, progress: &mut Progress) -> Result<(Fit, Spawner), Failure> {
    let bench = Bench::open(stop, progress)?;
    let fit = bench.fit(Arm::Head, config, envoy, progress)?;
    Ok((fit, bench.spawner))
}

/// Counting needs one CPU; the clock needs two, and the kernel's own accounts.
fn cpus(order: &Order) -> Result<CpuLayout, Problem> {
    if order.counting != Counting::Only {
        probe::thread::available()?;
        return probe::cpus::layout(order.concurrency);
    }
    let all = probe::cpus::allowed()
        .map_err(|e| Problem::new("", format!("cannot read this process's CPU affinity: {e}")))?;
    Ok(CpuLayout { workers: all, ..CpuLayout::default() })
}

fn assemble(
    order: &Order,
    bench: Bench,
    base: Option<Fit>,
    no_base: Option<String>,
    head: Fit,
    cpus: CpuLayout,
) -> Prepared {
    let workload = base.as_ref().unwrap_or(&head).workload.requests.clone();
    let (base_setup, base_source) = base.map(|b| (b.setup, b.source)).unzip();
    let target = TargetRecord {
        name: order.target.clone(),
        base: base_source,
        no_base,
        head: head.source,
        policy: order.policy.clone(),
        concurrency: order.concurrency,
        cpus: cpus.clone(),
        workload: workload.clone(),
        scenarios: order.scenarios.clone(),
        looks: order.looks.clone(),
        cost: None,
        baseline: None,
        blocks: Vec::new(),
        end: End::Complete,
    };
    let setup = Setup {
        arms: base_setup.into_iter().chain([head.setup]).collect(),
        concurrency: order.concurrency,
        cpus,
        requests: workload,
        connections: CONNECTIONS,
        response_bytes: RESPONSE_BYTES,
        spawner: bench.spawner,
        stop: bench.stop.clone(),
    };
    Prepared { setup, target }
}

impl<'a> Bench<'a> {
    fn open(stop: &'a Stop, progress: &mut Progress) -> Result<Self, Failure> {
        let spawner = Spawner::new().map_err(|e| {
            Failure::environment(
                Problem::new("", format!("cannot make a folder for the proxies: {e}"))
                    .help("free some space in the temporary folder, or point TMPDIR elsewhere"),
            )
        })?;
        for why in spawner.uncontained_because() {
            progress.note(&format!("proxies run as this user: {why}"));
        }
        Ok(Self { store: Store::from_env(&spawner), spawner, stop })
    }

    /// Reads, re-hosts and validates one config.
    fn fit(&self, arm: Arm, config: &ConfigFile, envoy: &str, progress: &mut Progress) -> Result<Fit, Failure> {
        let (document, sha256) = input::read(config)?;
        self.fit_document(arm, &document, sha256, envoy, progress)
    }

    /// Re-hosts and validates a config that is read already.
    pub(super) fn fit_document(
        &self,
        arm: Arm,
        document: &Document,
        sha256: String,
        envoy: &str,
        progress: &mut Progress,
    ) -> Result<Fit, Failure> {
        let bootstrap = Bootstrap::read(document).map_err(Failure::usage)?;
        let workload = workload::derive(&bootstrap)?;
        let binary = self.binary(envoy, progress)?;
        progress.step(&format!("checking {} with envoy {}", arm.name(), binary.version));
        self.validate(document, &bootstrap, &binary)?;
        let source = Source {
            file: document.file.clone(),
            sha256,
            proxy: ProxyId { kind: "envoy".to_owned(), version: binary.version.clone(), sha256: binary.sha256.clone() },
            changes: bootstrap.changes(),
        };
        let setup = ArmSetup { arm, binary, bootstrap, listener: workload.listener };
        Ok(Fit { setup, source, workload })
    }

    fn binary(&self, envoy: &str, progress: &mut Progress) -> Result<ProxyBinary, Failure> {
        let spec: ProxySpec = envoy.parse()?;
        let request = install::Request { spec: &spec, sha256: None, download: true, stop: self.stop };
        install::resolve(&request, &self.store, &mut |step| progress.step(step))
    }

    /// Envoy itself judges the re-hosted config. Its rejection is told at the user's line.
    fn validate(&self, document: &Document, bootstrap: &Bootstrap, binary: &ProxyBinary) -> Result<(), Failure> {
        let config = bootstrap.rehost(&example_ports(bootstrap.needs()));
        let judge =
            |binary: &ProxyBinary| Envoy::validate(&self.spawner, binary, &config, VALIDATE_DEADLINE, self.stop);
        match judge(binary) {
            Ok(()) => Ok(()),
            Err(ValidateError::Rejected { output }) => {
                let mut problem = rejection::problem(document, &output);
                if let Some(field) = rejection::unknown_field(&output) {
                    let knows = |other: &&ProxyBinary| other.version != binary.version && judge(other).is_ok();
                    let help = match self.store.installed_versions().iter().find(knows) {
                        Some(other) => format!(
                            "envoy {} does not know `{field}`, but the installed {} does: use --envoy {}",
                            binary.version, other.version, other.version
                        ),
                        None => format!(
                            "no installed version of envoy knows `{field}`; check its spelling, or install the version \
                             you run: sidegate proxy install envoy@VERSION"
                        ),
                    };
                    problem = problem.help(help);
                }
                Err(problem.into())
            }
            Err(ValidateError::NotJudged(e)) => Err(Failure::environment(not_judged(document, &e))),
        }
    }
}

/// Envoy gave no judgement: whose config it was given, and what it needs.
fn not_judged(document: &Document, failure: &StartFailure) -> Problem {
    let problem = Problem::new(&document.file, failure.to_string());
    match failure {
        StartFailure::Stopped { .. } => problem,
        StartFailure::NotStarted(_) | StartFailure::NotPinned(_) => problem
            .help("give the proxies what is missing: space in TMPDIR, open files and processes (`ulimit -n`, `-u`)"),
        StartFailure::Exited { .. } | StartFailure::NotReady { .. } => problem.help(
            "`envoy --mode validate` must accept the config within a minute: look at code in it that runs when it is \
             loaded (Lua, Wasm), at memory limits (`ulimit -v`), and at the binary itself",
        ),
    }
}

/// Upstream ports from `first` on, for a config that never runs. The certificates are those of this run.
pub fn example_upstreams(needs: Needs, first: SocketAddr) -> Upstreams {
    let port = |i: usize| first.port().saturating_add(u16::try_from(i).unwrap_or(u16::MAX));
    let at = (0..needs.endpoints).map(|i| SocketAddr::new(first.ip(), port(i))).collect();
    // Without randomness there are none: the proxy then says what it misses.
    let trust = Authority::trust_for(needs.upstreams).ok().flatten();
    Upstreams::new(needs.upstreams, at, trust)
}

/// Ports for a config that is judged but never run: `--mode validate` binds none.
pub(super) fn example_ports(needs: Needs) -> Ports {
    let at = |port: usize| SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap_or(u16::MAX)));
    Ports {
        admin: at(9000),
        listeners: (0..needs.listeners).map(|i| at(10_000 + i)).collect(),
        upstreams: example_upstreams(needs, at(20_000)),
        log_dir: ".".into(),
    }
}
