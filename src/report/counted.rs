//! What was counted, class by class of request, and which change costs what: rows for every form of report.

use super::phrase;
use crate::metric::Metric;
use crate::record::{Blame, BlamePart, RequestClass, TargetRecord};
use crate::verdict::{Call, Finding};

/// Changes listed one by one; smaller ones are summed up.
const LISTED: usize = 10;

/// One row of the table of counts.
#[derive(Debug, Clone, Copy)]
pub struct Row<'f> {
    /// The class of request.
    pub class: &'f str,
    /// What stands beneath the class; `None` for its instructions, or for why it has none.
    pub figure: Option<&'static str>,
    pub finding: &'f Finding,
}

/// Every class's instructions, beneath them what else changed, failed, or has a limit.
pub fn rows<'f>(findings: &[&'f Finding]) -> Vec<Row<'f>> {
    let mut classes: Vec<&str> = Vec::new();
    for class in findings.iter().filter_map(|f| f.request_class()) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    let mut rows: Vec<Row<'f>> = Vec::new();
    for class in classes {
        let own = || findings.iter().copied().filter(|f| f.request_class() == Some(class));
        let first = own().find(|f| heads_class(f)).or_else(|| own().find(|f| is_shown(f)));
        let Some(first) = first else { continue };
        rows.push(Row { class, figure: None, finding: first });
        let others = own().filter(|f| is_shown(f) && !std::ptr::eq(*f, first));
        rows.extend(others.map(|finding| Row { class, figure: Some(figure(finding)), finding }));
    }
    rows
}

fn heads_class(finding: &Finding) -> bool {
    finding.metric == Metric::InstructionsPerRequest && finding.against == "base"
}

fn figure(finding: &Finding) -> &'static str {
    match (finding.metric, finding.against.as_str()) {
        (Metric::InstructionsPerRequest, "base") => "instructions",
        (Metric::InstructionsPerRequest, "absolute") => "absolute limit",
        (Metric::InstructionsPerRequest, _) => "to baseline",
        (Metric::SyscallsPerRequest, _) => "system calls",
        (Metric::HeapBytesPerRequest, _) => "heap kept",
        (Metric::HeapBytesPerConnection, _) => "heap/connection",
        _ => "errors",
    }
}

fn is_shown(finding: &Finding) -> bool {
    match finding.metric {
        Metric::SyscallsPerRequest => finding.gated && !is_quiet(finding),
        _ => finding.gated || heads_class(finding),
    }
}

/// System calls that did not change: one line for all classes is enough.
pub fn is_quiet(finding: &Finding) -> bool {
    let moved = finding.ratio.map_or(finding.added.unwrap_or(0.0), |ratio| ratio - 1.0);
    finding.metric == Metric::SyscallsPerRequest
        && finding.verdict == Call::Pass
        && finding.against != "absolute"
        && moved.abs() <= finding.notice.unwrap_or(0.0)
}

/// One change of a blamed difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Instructions per request, signed; `?` where it could not be run by itself.
    pub amount: String,
    /// `None` for what no single change accounts for.
    pub place: Option<Place>,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Of head's file.
    Line(u32),
    /// JSON pointer of what was removed: the config's own words.
    Pointer(String),
}

/// A difference taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    pub class: String,
    pub base: String,
    pub head: String,
    pub parts: Vec<Part>,
    pub untried: Vec<String>,
}

/// Which change costs what, largest first, the remainder last; `None` where nobody looked.
pub fn parts(target: &TargetRecord) -> Option<Parts> {
    let cost = target.cost.as_ref()?;
    let blame = cost.blame.as_ref()?;
    let class = usize::try_from(blame.class).ok().and_then(|i| cost.classes.get(i));
    let mut sorted: Vec<&BlamePart> = blame.parts.iter().collect();
    let size = |p: &BlamePart| p.instructions.unwrap_or(0.0).abs();
    sorted.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut parts: Vec<Part> = sorted.iter().take(LISTED).map(|p| part(p)).collect();
    let smaller: Vec<f64> = sorted.iter().skip(LISTED).filter_map(|p| p.instructions).collect();
    if sorted.len() > LISTED {
        let what = format!("{} smaller changes", sorted.len() - LISTED);
        parts.push(Part { amount: amount(smaller.iter().sum()), place: None, what });
    }
    parts.extend(remainder(blame));
    Some(Parts {
        class: class.map_or_else(String::new, |c: &RequestClass| c.name.clone()),
        base: phrase::quantity(blame.base, "instructions"),
        head: phrase::quantity(blame.head, "instructions"),
        parts,
        untried: blame.untried.clone(),
    })
}

fn part(part: &BlamePart) -> Part {
    let place = Some(match part.span {
        Some(span) => Place::Line(span.line),
        None => Place::Pointer(part.pointer.clone()),
    });
    match part.instructions {
        Some(instructions) => Part { amount: amount(instructions), place, what: part.what.clone() },
        None => Part { amount: "?".to_owned(), place, what: format!("{}, could not run by itself", part.what) },
    }
}

/// What the parts do not add up to. Nothing is said of less than repeats differ by.
fn remainder(blame: &Blame) -> Option<Part> {
    let whole = blame.head - blame.base;
    let rest = whole - blame.parts.iter().filter_map(|p| p.instructions).sum::<f64>();
    let told = !blame.parts.is_empty() && rest.abs() > NOISE * blame.base.abs();
    told.then(|| {
        let open = !blame.untried.is_empty() || blame.parts.iter().any(|p| p.instructions.is_none());
        let why = if open { "not accounted for" } else { "from changes acting on each other" };
        Part { amount: amount(rest), place: None, what: why.to_owned() }
    })
}

/// Range of repeats that still counts as the same, as a share of the request.
const NOISE: f64 = 0.002;

fn amount(instructions: f64) -> String {
    phrase::signed_quantity(instructions, "instructions")
}
