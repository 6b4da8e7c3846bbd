//! Configs made from others, counted under valgrind: what `explain` and the gate's blame stand on.

use std::time::{Duration, Instant};

use crate::cmd::gate::prepare::example_ports;
use crate::cost::{Candidate, CostFailure, Counter, Effort};
use crate::envoy::{Bootstrap, rejection, workload};
use crate::explain::{self, Bench};
use crate::problem::Problem;
use crate::proxy::{Envoy, ProxyBinary, Spawner, ValidateError};
use crate::record::{Counted, RequestClass};
use crate::stop::Stop;
use crate::yaml::Document;

/// `--mode validate` of a config whose like has been accepted.
const VALIDATE_DEADLINE: Duration = Duration::from_secs(60);

/// One class of requests on configs like one another.
pub struct CountingBench<'a> {
    pub counter: &'a Counter,
    pub spawner: &'a Spawner,
    pub binary: &'a ProxyBinary,
    pub class: &'a RequestClass,
    /// The listener that gets the requests, where a config's own routes do not say.
    pub listener: usize,
    /// How much is sent to each.
    pub effort: Effort,
    pub stop: &'a Stop,
    began: Instant,
    /// What no config is to blame for; nothing is counted after it.
    failure: Option<CostFailure>,
}

impl<'a> CountingBench<'a> {
    pub fn new(
        counter: &'a Counter,
        spawner: &'a Spawner,
        (binary, listener): (&'a ProxyBinary, usize),
        class: &'a RequestClass,
        stop: &'a Stop,
    ) -> Self {
        // Longer windows than the gate's: prices are differences of counts, and some are small.
        let gate = Effort::default();
        let (instructions, most) = (gate.instructions * 3 / 2, gate.most * 3 / 2);
        let effort = Effort { instructions, most, connections: 0, ..gate };
        Self { counter, spawner, binary, class, listener, effort, stop, began: Instant::now(), failure: None }
    }

    /// Why counting itself failed, if it did.
    pub fn failure(self) -> Option<CostFailure> {
        self.failure
    }

    /// The config as it runs, and its listener that gets the requests.
    fn fit(&self, config: &Document) -> Result<(Bootstrap, usize), String> {
        let bootstrap = Bootstrap::read(config).map_err(|problems| sentences(&problems))?;
        let listener = workload::derive(&bootstrap).map_or(self.listener, |workload| workload.listener);
        Ok((bootstrap, listener))
    }

    /// Why the proxy did not start with it, at the config's own line where it is the config's fault. Looked at only then:
    /// most configs are accepted.
    fn why(&self, config: &Document, bootstrap: &Bootstrap, failed: String) -> String {
        let rehosted = bootstrap.rehost(&example_ports(bootstrap.needs()));
        match Envoy::validate(self.spawner, self.binary, &rehosted, VALIDATE_DEADLINE, self.stop) {
            Err(ValidateError::Rejected { output }) => rejection::problem(config, &output).message,
            Ok(()) | Err(ValidateError::NotJudged(_)) => failed,
        }
    }
}

impl Bench for CountingBench<'_> {
    fn width(&self) -> usize {
        self.counter.lanes()
    }

    fn count(&mut self, configs: &[Document]) -> Vec<Counted> {
        let fits: Vec<Result<(Bootstrap, usize), String>> = configs.iter().map(|config| self.fit(config)).collect();
        let candidates: Vec<Candidate> = fits
            .iter()
            .flatten()
            .map(|(bootstrap, listener)| Candidate { binary: self.binary, bootstrap, listener: *listener })
            .collect();
        let classes = std::slice::from_ref(self.class);
        let costs = match self.counter.count(&candidates, classes, &self.effort, &mut |_| {}) {
            Ok(costs) => costs,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                return vec![Counted::Untried; configs.len()];
            }
        };
        let mut costs = costs.into_iter();
        let mut counted = |(config, fit): (&Document, Result<(Bootstrap, usize), String>)| match fit {
            Ok((bootstrap, _)) => match costs.next().as_deref() {
                Some([cost, ..]) => match explain::count_of(cost) {
                    Counted::Failed { why } => Counted::Failed { why: self.why(config, &bootstrap, why) },
                    counted => counted,
                },
                _ => Counted::Untried,
            },
            Err(why) => Counted::Failed { why },
        };
        configs.iter().zip(fits).map(&mut counted).collect()
    }

    fn spent(&self) -> Duration {
        self.began.elapsed()
    }

    fn stopped(&self) -> Option<&'static str> {
        self.stop.requested().or(self.failure.as_ref().map(|_| "a fault of the counting"))
    }
}

fn sentences(problems: &[Problem]) -> String {
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    messages.join("; ")
}
