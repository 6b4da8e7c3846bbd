//! A stored baseline made fit to run beside base and head, or the reason why it stays out.

use std::path::Path;

use serde_json::Value;

use super::prepare::{Bench, Fit, example_ports};
use crate::baseline::{self, Baseline, redact};
use crate::cmd::progress::Progress;
use crate::envoy::Bootstrap;
use crate::exit::Failure;
use crate::files;
use crate::lab::ArmSetup;
use crate::probe;
use crate::problem::Problem;
use crate::record::{Arm, ProxyId, Replay, RequestLine, StoredBaseline, StoredFigure};
use crate::yaml::Document;

/// A baseline file that was read and is whole.
#[derive(Debug)]
pub struct Stored {
    /// As the user named it, or where it was found.
    pub file: String,
    pub baseline: Baseline,
}

impl Stored {
    /// The file that was named, or the target's own where there is one. A file that is there and broken is told, not
    /// passed over.
    pub fn find(given: Option<&Path>, target: &str) -> Result<Option<Self>, Problem> {
        let default = baseline::default_path(target);
        let path = match (given, &default) {
            (Some(path), _) => path,
            // A link to nowhere is a fault to tell, not a file that is absent.
            (None, Some(path)) if path.symlink_metadata().is_ok() => path,
            _ => return Ok(None),
        };
        Self::open(path)?.of(target).map(Some)
    }

    /// Refuses the baseline of another target.
    fn of(self, target: &str) -> Result<Self, Problem> {
        let stored = self;
        if stored.baseline.target != target {
            let of = &stored.baseline.target;
            let help = "give the baseline of this target, or name the target by --target";
            let message = format!("`target` is `{of}`, not `{target}`");
            return Err(Problem::new(&stored.file, message).help(help));
        }
        Ok(stored)
    }

    pub fn open(path: &Path) -> Result<Self, Problem> {
        let file = path.display().to_string();
        Self::parse(file, &files::read_text(path)?)
    }

    /// What a commit holds at the place of the target's baseline.
    pub fn committed(file: &str, text: &str, target: &str) -> Result<Self, Problem> {
        Self::parse(file.to_owned(), text)?.of(target)
    }

    fn parse(file: String, text: &str) -> Result<Self, Problem> {
        let baseline = Baseline::read(&file, text, env!("CARGO_PKG_VERSION"))?;
        Ok(Self { file, baseline })
    }

    /// The config as a document; its places are those of its JSON text.
    pub fn document(&self) -> Result<Document, Vec<Problem>> {
        let name = format!("{}#config.json", self.file);
        Document::parse(&name, &self.baseline.config.document.to_string())
    }
}

/// What head and base say about the run that the baseline joins.
pub(super) struct Company<'a> {
    pub base: Option<&'a Fit>,
    /// The proxy it will run on.
    pub envoy: &'a str,
    pub requests: &'a [RequestLine],
    pub concurrency: u32,
}

/// Never fails: what keeps the baseline out is told, and the gate goes on.
pub(super) fn join(
    bench: &Bench<'_>,
    stored: &Stored,
    company: &Company<'_>,
    progress: &mut Progress,
) -> Result<(StoredBaseline, Option<ArmSetup>), Failure> {
    let (replay, setup) = match fit(bench, stored, company, progress) {
        Ok(joined) => joined,
        Err(failure) if failure.code == crate::exit::USAGE => {
            let why = failure.problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ");
            progress.note(&format!("going on without the stored baseline: {why}"));
            (Replay::Left { why }, None)
        }
        Err(failure) => return Err(failure),
    };
    let proxy = setup.as_ref().map(|s| ProxyId {
        kind: "envoy".to_owned(),
        version: s.binary.version.clone(),
        sha256: s.binary.sha256.clone(),
    });
    let own = &stored.baseline;
    let not_comparable = not_comparable(own, proxy.as_ref().unwrap_or(&own.proxy), company);
    let figures = match not_comparable {
        Some(_) => Vec::new(),
        None => own.figures.iter().map(figure).collect(),
    };
    let joined = StoredBaseline {
        file: stored.file.clone(),
        recorded_at: own.recorded_at.clone(),
        config: own.config.file.clone(),
        replay,
        counts: None,
        not_comparable,
        figures,
    };
    Ok((joined, setup))
}

fn fit(
    bench: &Bench<'_>,
    stored: &Stored,
    company: &Company<'_>,
    progress: &mut Progress,
) -> Result<(Replay, Option<ArmSetup>), Failure> {
    let document = stored.document().map_err(Failure::usage)?;
    if let Some(base) = company.base {
        let bootstrap = Bootstrap::read(&document).map_err(Failure::usage)?;
        if rehosted(&bootstrap) == rehosted(&base.setup.bootstrap) {
            return Ok((Replay::IsBase, None));
        }
    }
    let sha256 = files::sha256(&stored.baseline.config.document.to_string());
    let fit = bench.fit_document(Arm::Baseline, &document, sha256, company.envoy, progress)?;
    Ok((Replay::Live { source: fit.source }, Some(fit.setup)))
}

/// The config as it would run, without its secrets: what makes two configs the same to us.
pub fn rehosted(bootstrap: &Bootstrap) -> Value {
    redact(&bootstrap.rehost(&example_ports(bootstrap.needs()))).document
}

fn not_comparable(own: &Baseline, proxy: &ProxyId, company: &Company<'_>) -> Option<String> {
    let host = probe::host();
    let mut why: Vec<String> = baseline::not_comparable((&own.host, &own.proxy), (&host, proxy)).into_iter().collect();
    if own.concurrency != company.concurrency {
        why.push(format!("the proxy had {} worker threads", own.concurrency));
    }
    if own.workload != company.requests {
        why.push("other requests were sent".to_owned());
    }
    (!why.is_empty()).then(|| why.join("; "))
}

fn figure(stored: &crate::baseline::StoredFigures) -> StoredFigure {
    StoredFigure {
        scenario: stored.scenario.clone(),
        metric: stored.metric,
        threshold_ms: stored.threshold_ms,
        value: stored.typical,
    }
}
