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
        // Twice the gate's windows: prices are differences of counts, and some are small.
        let gate = Effort::default();
        let effort = Effort { instructions: 2 * gate.instructions, most: 2 * gate.most, ..gate };
        Self { counter, spawner, binary, class, listener, effort, stop, began: Instant::now(), failure: None }
    }

    /// Why counting itself failed, if it did.
    pub fn failure(self) -> Option<CostFailure> {
        self.failure
    }

    fn fit(&self, config: &Document) -> Result<(Bootstrap, usize), String> {
        let bootstrap = Bootstrap::read(config).map_err(|problems| sentences(&problems))?;
        let rehosted = bootstrap.rehost(&example_ports(bootstrap.needs()));
        match Envoy::validate(self.spawner, self.binary, &rehosted, VALIDATE_DEADLINE, self.stop) {
            Ok(()) => {}
            Err(ValidateError::Rejected { output }) => return Err(rejection::problem(config, &output).message),
            Err(ValidateError::NotJudged(e)) => return Err(e.to_string()),
        }
        let listener = workload::derive(&bootstrap).map_or(self.listener, |workload| workload.listener);
        Ok((bootstrap, listener))
    }
}

impl Bench for CountingBench<'_> {
    fn width(&self) -> usize {
        self.counter.lanes()
    }

    fn count(&mut self, configs: &[Document]) -> Vec<Counted> {
        let fits: Vec<Result<(Bootstrap, usize), String>> = configs.iter().map(|config| self.fit(config)).collect();
        let candidate = |(bootstrap, listener): &'_ (Bootstrap, usize)| (bootstrap.clone(), *listener);
        let fit: Vec<(Bootstrap, usize)> = fits.iter().flatten().map(candidate).collect();
        let candidates: Vec<Candidate> = fit
            .iter()
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
        let mut costs = costs.into_iter().map(|classes| match classes.first() {
            Some(cost) => explain::count_of(cost),
            None => Counted::Untried,
        });
        fits.into_iter()
            .map(|fit| match fit {
                Ok(_) => costs.next().unwrap_or(Counted::Untried),
                Err(why) => Counted::Failed { why },
            })
            .collect()
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
