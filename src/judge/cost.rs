//! Head's counts against base's, or against a stored baseline's, one class of request after the other.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::accepted::{Standing, standing};
use super::count::{Change, Counted, MAX_RANGE, WINDOWS};
use super::finding::{said, unjudged};
use super::rule::Ruling;
use super::{status, wording};
use crate::metric::{Metric, Scale};
use crate::policy::{Margins, Policy};
use crate::record::{Arm, ArmCost, Blame, BlamePart, ClassCost, RequestClass, TargetRecord};
use crate::verdict::{COUNTED, Call, Finding};

/// Two arms' counts and what they are held to.
pub struct Comparison<'a> {
    pub target: &'a str,
    /// Head's config, for people.
    pub file: &'a str,
    /// What was sent; both arms' classes stand in this order.
    pub classes: &'a [RequestClass],
    /// `None`, or a class without windows: head is shown by itself.
    pub base: Option<&'a ArmCost>,
    pub head: &'a ArmCost,
    /// `base` or `baseline`.
    pub against: &'a str,
    /// Whose acceptances hold.
    pub policy: &'a Policy,
    /// The day as of which they do.
    pub day: Option<Date>,
    /// `None` for what is reported only.
    pub margins: &'a dyn Fn(Metric) -> Option<Margins>,
}

/// Counts of a target: head against base, and against the target's absolute limits.
pub fn findings(target: &TargetRecord, day: Option<Date>) -> Vec<Finding> {
    let Some(cost) = &target.cost else { return Vec::new() };
    let arm = |wanted: Arm| cost.arms.iter().find(|a| a.arm == wanted);
    let Some(head) = arm(Arm::Head) else { return Vec::new() };
    let comparison = Comparison {
        target: &target.name,
        file: &target.head.file,
        classes: &cost.classes,
        base: target.base.as_ref().and_then(|_| arm(Arm::Base)),
        head,
        against: "base",
        policy: &target.policy,
        day,
        margins: &|metric| target.policy.margins(metric),
    };
    let mut findings = compare(&comparison);
    findings.extend(comparison.absolutes(&target.policy.max));
    if let Some(blame) = &cost.blame {
        point(blame, &cost.classes, &mut findings);
    }
    findings
}

/// The class whose instructions grew most among those that surely grew beyond the limit, as an index into the classes;
/// acceptances are not asked. Whether it is worth looking for the change that did it.
pub fn cost_regressed(target: &TargetRecord) -> Option<u32> {
    let findings = findings(target, None);
    let regressed = |f: &&Finding| {
        f.metric == Metric::InstructionsPerRequest && f.verdict == Call::Regression && f.against == "base"
    };
    let by_ratio = |f: &&Finding| f.ratio.unwrap_or(f64::INFINITY);
    let worst = findings.iter().filter(regressed).max_by(|a, b| by_ratio(a).total_cmp(&by_ratio(b)))?;
    let classes = target.cost.as_ref().map_or(&[][..], |c| &c.classes);
    let index = classes.iter().position(|c| Some(c.name.as_str()) == worst.request_class())?;
    u32::try_from(index).ok()
}

/// Head against `base`, class by class: what failed, answers of a new status, instructions, system calls, heap.
pub fn compare(comparison: &Comparison<'_>) -> Vec<Finding> {
    let all = comparison.classes.iter().enumerate();
    all.flat_map(|(index, class)| comparison.of_class(index, class)).collect()
}

/// Names the change that weighs most, with its line, on the class that was looked into.
fn point(blame: &Blame, classes: &[RequestClass], findings: &mut [Finding]) {
    let class = usize::try_from(blame.class).ok().and_then(|i| classes.get(i));
    let Some(part) = weightiest(blame) else { return };
    let cost = wording::value("instructions", part.instructions.unwrap_or_default());
    let of_class = |f: &&mut Finding| {
        f.metric == Metric::InstructionsPerRequest && class.is_some_and(|c| f.request_class() == Some(&c.name))
    };
    for finding in findings.iter_mut().filter(of_class) {
        if matches!(finding.verdict, Call::Regression | Call::Costlier | Call::Accepted) {
            finding.line = part.span.map(|span| span.line);
            let place = match (finding.line, &finding.file) {
                (Some(line), Some(file)) => format!("line {line} of {file}"),
                _ => format!("`{}`", part.pointer),
            };
            finding.advice = format!("look at {place}: {} costs {cost} instructions per request", part.what);
        }
    }
}

/// The change that costs most; `None` where none costs anything.
fn weightiest(blame: &Blame) -> Option<&BlamePart> {
    let costly = blame.parts.iter().filter_map(|p| Some((p, p.instructions.filter(|i| *i > 0.0)?)));
    costly.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(part, _)| part)
}

impl Comparison<'_> {
    fn of_class(&self, index: usize, class: &RequestClass) -> Vec<Finding> {
        let unknown = ClassCost::default();
        let head = self.head.classes.get(index).unwrap_or(&unknown);
        let base = self.base.and_then(|b| b.classes.get(index)).filter(|b| b.failed.is_some() || !b.windows.is_empty());
        let failure = |cost: &ClassCost, arm: &str| cost.failed.as_ref().map(|why| format!("{arm} failed: {why}"));
        match (base.and_then(|b| failure(b, self.against)), failure(head, "head")) {
            (Some(why), _) => return vec![self.undone(class, Call::Invalid, &why)],
            (None, Some(why)) if base.is_some() => return vec![self.undone(class, Call::Regression, &why)],
            (None, Some(why)) => return vec![self.undone(class, Call::Invalid, &why)],
            (None, None) => {}
        }
        let error = base.and_then(|b| self.new_status(class, b, head));
        // Answers of another kind are other work: less of it is no improvement.
        let other = base.is_some_and(|b| status::differ(b, head));
        let figures = [
            Metric::InstructionsPerRequest,
            Metric::SyscallsPerRequest,
            Metric::HeapBytesPerRequest,
            Metric::HeapBytesPerConnection,
        ];
        let mut findings: Vec<Finding> = error.into_iter().collect();
        for metric in figures {
            let mut found = match metric {
                Metric::InstructionsPerRequest | Metric::SyscallsPerRequest => self.counted(class, base, head, metric),
                _ => self.heap(class, base, head, metric),
            };
            if let Some(finding) = found.as_mut().filter(|f| f.gated && other) {
                let shown = self.shown(class, metric, finding.head);
                *finding = Finding {
                    base: finding.base,
                    n: finding.n,
                    reason: format!("{}; not compared: the answers differ", shown.reason),
                    ..shown
                };
            }
            findings.extend(found);
        }
        findings
    }

    fn counted(
        &self,
        class: &RequestClass,
        base: Option<&ClassCost>,
        head: &ClassCost,
        metric: Metric,
    ) -> Option<Finding> {
        let Some(head) = Counted::of(head, metric) else {
            let alone = metric == Metric::InstructionsPerRequest;
            return alone.then(|| self.undone(class, Call::Inconclusive, "nothing was counted on head"));
        };
        let mut finding = self.shown(class, metric, Some(head.typical));
        finding.n = count(head.n);
        let Some(base) = base.and_then(|b| Counted::of(b, metric)) else { return Some(finding) };
        let change = Change { base, head };
        finding.n = count(change.n());
        finding.base = Some(base.typical);
        finding.added = Some(head.typical - base.typical);
        if let Some((ratio, low, high)) = change.ratio() {
            (finding.ratio, finding.low, finding.high) = (finite(ratio), finite(low), finite(high));
        }
        finding.reason = said(&finding);
        let Some(margins) = (self.margins)(metric) else { return Some(finding) };
        hold(&mut finding, &margins);
        finding.mde = finite(change.detectable(&margins));
        match change.rule(&margins) {
            Ruling::Inconclusive if !change.steady() => {
                finding.verdict = Call::Inconclusive;
                finding.reason += &scattered(&change);
            }
            ruling => {
                self.call(&mut finding, ruling, &|margin| change.surely_beyond(margin));
                if !change.steady() {
                    let range = 100.0 * change.range();
                    finding.reason += &format!("; far beyond the {range:.1} % by which repeats scatter");
                }
            }
        }
        Some(finding)
    }

    /// One value an arm, not a range of windows: decides only where the target sets a limit.
    fn heap(
        &self,
        class: &RequestClass,
        base: Option<&ClassCost>,
        head: &ClassCost,
        metric: Metric,
    ) -> Option<Finding> {
        let value = heap_of(head, metric)?;
        let mut finding = self.shown(class, metric, Some(value));
        finding.n = 1;
        let Some(base) = base.and_then(|b| heap_of(b, metric)) else { return Some(finding) };
        (finding.base, finding.added) = (Some(base), Some(value - base));
        let change = match metric.scale() {
            Scale::Difference => value - base,
            // Of nothing there is no share.
            Scale::Ratio if base <= 0.0 => return Some(finding),
            Scale::Ratio => value / base - 1.0,
        };
        if metric.scale() == Scale::Ratio {
            finding.ratio = finite(1.0 + change);
        }
        let end = finding.ratio.or(finding.added);
        (finding.low, finding.high) = (end, end);
        let (label, by) = (wording::label(metric, None), wording::change(metric, change));
        finding.reason = format!("{COUNTED}{}: {label} {by}", class.name);
        let Some(margins) = (self.margins)(metric) else { return Some(finding) };
        hold(&mut finding, &margins);
        let ruling = match change {
            c if c > margins.limit => Ruling::Regression,
            c if c > margins.notice => Ruling::Costlier,
            c if c < -margins.limit => Ruling::Improved,
            _ => Ruling::Pass,
        };
        self.call(&mut finding, ruling, &|margin| change > margin);
        Some(finding)
    }

    fn call(&self, finding: &mut Finding, ruling: Ruling, surely_beyond: &dyn Fn(f64) -> bool) {
        let margin = |m: Option<f64>| wording::margin(finding.metric, m.unwrap_or_default());
        let (limit, rule_out) = (margin(finding.limit), margin(finding.rule_out));
        let (call, more) = match ruling {
            Ruling::Regression => (Call::Regression, format!(", limit {limit}")),
            Ruling::Pass => (Call::Pass, format!(", more than {rule_out} is ruled out")),
            Ruling::Improved => (Call::Improved, ", surely better".to_owned()),
            Ruling::Costlier => (Call::Costlier, format!(", surely costlier, not surely beyond the limit of {limit}")),
            Ruling::Inconclusive => (Call::Inconclusive, format!("; a change of {rule_out} cannot be ruled out")),
        };
        finding.verdict = call;
        finding.reason += &more;
        if call == Call::Regression {
            self.weigh_acceptance(finding, surely_beyond);
        }
    }

    fn weigh_acceptance(&self, finding: &mut Finding, surely_beyond: &dyn Fn(f64) -> bool) {
        let up_to = |m: f64| wording::margin(finding.metric, m);
        match standing(self.policy, self.target, finding.metric, self.day, surely_beyond) {
            Standing::None => {}
            Standing::Within(a) => {
                let more = format!("; accepted up to {} until {}: {}", up_to(a.up_to), a.until, a.reason);
                finding.verdict = Call::Accepted;
                finding.reason += &more;
            }
            Standing::Exceeded(a) => {
                let more = format!("; beyond the {} accepted until {}", up_to(a.up_to), a.until);
                finding.reason += &more;
            }
            Standing::Expired(a) => finding.reason += &format!("; its acceptance ended on {}", a.until),
        }
    }

    /// A status that base's answers never have is a new kind of error.
    fn new_status(&self, class: &RequestClass, base: &ClassCost, head: &ClassCost) -> Option<Finding> {
        let new = status::new_errors(base, head)?;
        let mut finding = self.shown(class, Metric::ErrorsPerRequest, Some(new.share));
        (finding.base, finding.added) = (Some(0.0), Some(new.share));
        (finding.low, finding.high) = (Some(new.share), Some(new.share));
        finding.n = count(head.windows.len());
        finding.reason = format!("{COUNTED}{}: {}", class.name, new.said);
        if let Some(margins) = (self.margins)(Metric::ErrorsPerRequest) {
            hold(&mut finding, &margins);
        }
        finding.gated = true;
        finding.verdict = Call::Regression;
        self.weigh_acceptance(&mut finding, &|up_to| new.share > up_to);
        Some(finding)
    }

    /// A class without figures, and why.
    fn undone(&self, class: &RequestClass, call: Call, why: &str) -> Finding {
        let metric = match call {
            Call::Regression => Metric::ErrorsPerRequest,
            _ => Metric::InstructionsPerRequest,
        };
        let mut finding = self.shown(class, metric, None);
        finding.gated = true;
        finding.verdict = call;
        finding.reason = format!("{COUNTED}{}: {why}", class.name);
        finding
    }

    /// The finding of head alone.
    fn shown(&self, class: &RequestClass, metric: Metric, head: Option<f64>) -> Finding {
        let unit = metric.unit();
        let reason = head.map_or_else(String::new, |head| {
            format!("{COUNTED}{}: {} {}", class.name, wording::label(metric, None), wording::value(unit, head))
        });
        let scenario = format!("{COUNTED}{}", class.name);
        Finding { head, reason, ..unjudged(self.target, self.file, &scenario, metric, self.against) }
    }

    /// Head's own counts against absolute limits.
    fn absolutes(&self, max: &BTreeMap<Metric, f64>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (class, head) in self.classes.iter().zip(&self.head.classes).filter(|(_, h)| h.failed.is_none()) {
            for (&metric, &max) in max {
                let counted = match metric {
                    Metric::InstructionsPerRequest | Metric::SyscallsPerRequest => Counted::of(head, metric),
                    Metric::HeapBytesPerRequest | Metric::HeapBytesPerConnection => {
                        heap_of(head, metric).map(|v| Counted { low: v, typical: v, high: v, n: 1, steady: true })
                    }
                    _ => None,
                };
                findings.extend(counted.map(|c| self.absolute(class, metric, &c, max)));
            }
        }
        findings
    }

    fn absolute(&self, class: &RequestClass, metric: Metric, head: &Counted, max: f64) -> Finding {
        let mut finding = self.shown(class, metric, Some(head.typical));
        finding.gated = true;
        finding.against = "absolute".to_owned();
        (finding.low, finding.high) = (Some(head.low), Some(head.high));
        (finding.limit, finding.rule_out) = (Some(max), Some(max));
        finding.n = count(head.n);
        finding.verdict = match head {
            h if h.low > max => Call::Regression,
            h if h.high <= max => Call::Pass,
            _ => Call::Inconclusive,
        };
        finding.reason += &format!(", absolute limit {}", wording::value(metric.unit(), max));
        if finding.verdict == Call::Inconclusive {
            finding.reason += "; too close to tell";
        }
        finding
    }
}

fn hold(finding: &mut Finding, margins: &Margins) {
    finding.gated = true;
    finding.notice = Some(margins.notice);
    finding.limit = Some(margins.limit);
    finding.rule_out = Some(margins.rule_out);
}

fn scattered(change: &Change) -> String {
    if change.n() < WINDOWS {
        return format!("; {} windows are too few to decide", change.n());
    }
    format!(
        "; not decided: repeats of the same requests scatter by {:.1} %, more than {:.1} %",
        100.0 * change.range(),
        100.0 * MAX_RANGE
    )
}

/// Heap an arm gained per request, or holds per connection; `None` where its allocator does not tell.
fn heap_of(cost: &ClassCost, metric: Metric) -> Option<f64> {
    match metric {
        Metric::HeapBytesPerConnection => cost.heap_bytes_per_connection.filter(|b| b.is_finite()),
        _ => {
            let requests: f64 = cost.windows.iter().map(|w| w.requests as f64).sum();
            cost.heap_growth_bytes.filter(|_| requests > 0.0).map(|bytes| bytes as f64 / requests)
        }
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
