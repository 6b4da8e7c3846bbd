//! A target's own `limits`: margins by metric, and absolute limits on what a metric may be.

use std::collections::BTreeMap;

use serde_json::Value;

use super::nearest::nearest;
use super::reader::{Node, Reader};
use super::value::{parse_bytes, parse_duration, parse_share};
use crate::metric::{Metric, Scale};
use crate::policy::{LimitOverride, LimitSet, margins};

pub(super) const KEYS: [&str; 4] = ["notice", "limit", "rule_out", "max"];

const ADDED: &str = "added_";

/// What one target sets over its limit set. Units as in `policy::Policy`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    pub margins: BTreeMap<Metric, LimitOverride>,
    pub max: BTreeMap<Metric, f64>,
    pub added_max: BTreeMap<Metric, f64>,
}

/// All keys that `limits` knows.
pub fn names() -> Vec<String> {
    let own = Metric::ALL.iter().map(|m| m.name().to_owned());
    let added = Metric::ALL.iter().filter(|m| is_latency(**m)).map(|m| format!("{ADDED}{}", m.name()));
    own.chain(added).collect()
}

/// `set` is the file's default set, against which single margins are checked.
pub fn read(reader: &mut Reader<'_>, node: &Node<'_>, set: LimitSet) -> Limits {
    let mut limits = Limits::default();
    let Value::Object(map) = node.value else {
        reader.wrong_type(
            node,
            "a target's `limits`",
            "a mapping of metrics to limits, `{cpu_ns_per_request: {limit: 8%}}`",
        );
        return limits;
    };
    for (key, value) in map {
        let child = node.entry(key, value);
        if let Some(metric) = key.strip_prefix(ADDED).and_then(find).filter(|m| is_latency(*m)) {
            if let Some(max) = read_added(reader, &child, key, metric) {
                limits.added_max.insert(metric, max);
            }
        } else if let Some(metric) = metric(reader, &child.pointer, key, &names()) {
            read_metric(reader, &child, metric, set, &mut limits);
        }
    }
    limits
}

/// The metric called `name`; complains with the nearest of `known` otherwise.
pub fn metric(reader: &mut Reader<'_>, pointer: &str, name: &str, known: &[String]) -> Option<Metric> {
    let found = find(name);
    if found.is_none() {
        let help = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", known.join(", ")),
        };
        reader.complain(pointer, format!("unknown metric `{name}`"), help);
    }
    found
}

/// A margin in the metric's scale: `8%` for ratios and for the slow share (points), a size
/// (`64B`) for heap that stays behind, a plain number for other counts a request.
pub fn margin(reader: &mut Reader<'_>, node: &Node<'_>, what: &str, metric: Metric) -> Option<f64> {
    let in_percent = metric.scale() == Scale::Ratio || metric == Metric::SlowShare;
    let (parsed, wanted) = if in_percent {
        (node.value.as_str().and_then(parse_share), "a percentage with its sign, such as 8%")
    } else if metric.unit() == "bytes" {
        (node.value.as_str().and_then(parse_bytes), "a size with its unit, such as 64B")
    } else {
        // Fractions are text in the tree, as Envoy reads them.
        let number = node.value.as_f64().or_else(|| node.value.as_str()?.parse().ok());
        (number.filter(|n: &f64| n.is_finite() && *n >= 0.0), "a number of events a request, such as 0.1")
    };
    if parsed.is_none() {
        reader.wrong_type(node, what, wanted);
    }
    parsed
}

fn find(name: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|m| m.name() == name)
}

fn is_latency(metric: Metric) -> bool {
    matches!(metric, Metric::LatencyP50Ns | Metric::LatencyP90Ns | Metric::LatencyP99Ns | Metric::LatencyP999Ns)
}

fn read_added(reader: &mut Reader<'_>, node: &Node<'_>, key: &str, metric: Metric) -> Option<f64> {
    let fields = reader.fields(node, &format!("`{key}`"), &["max"], &[])?;
    let help = format!("write `{key}: {{max: 500us}}`");
    let max = reader.required(&fields, node, "max", &format!("`{key}`"), &help)?;
    absolute(reader, &max, metric)
}

fn read_metric(reader: &mut Reader<'_>, node: &Node<'_>, metric: Metric, set: LimitSet, limits: &mut Limits) {
    let what = format!("`{}`", metric.name());
    let Some(fields) = reader.fields(node, &what, &KEYS, &[]) else { return };
    let mut get = |key: &str| fields.get(key).and_then(|n| margin(reader, n, &format!("`{key}`"), metric));
    let own = LimitOverride { notice: get("notice"), limit: get("limit"), rule_out: get("rule_out") };
    if own != LimitOverride::default() {
        check_order(reader, node, metric, own, set);
        limits.margins.insert(metric, own);
    }
    if let Some(n) = fields.get("max") {
        if metric.higher_is_better() {
            reader.complain(
                &n.pointer,
                format!("{what} has no `max`: more of it is better"),
                "set a `limit` on its fall",
            );
        } else if let Some(max) = absolute(reader, n, metric) {
            limits.max.insert(metric, max);
        }
    }
}

/// A pass must exclude more than what fails, and what fails is not less than what is noticed.
fn check_order(reader: &mut Reader<'_>, node: &Node<'_>, metric: Metric, own: LimitOverride, set: LimitSet) {
    let of_set = margins(metric, set).filter(|_| metric != Metric::SlowShare);
    let Some(limit) = own.limit.or(of_set.map(|m| m.limit)) else {
        if metric != Metric::SlowShare {
            let message = format!("`{}` is reported only, and these margins set no `limit`", metric.name());
            reader.complain(&node.pointer, message, "give it a `limit` to gate it");
        }
        return;
    };
    let place = |key: &str| format!("{}/{key}", node.pointer);
    if own.rule_out.is_some_and(|rule_out| rule_out <= limit) {
        let message = "`rule_out` is not above `limit`, so nothing could ever pass";
        reader.complain(&place("rule_out"), message, "set it to about twice the limit, or leave it out");
    }
    if own.notice.is_some_and(|notice| notice > limit) {
        let message = "`notice` is above `limit`: what fails would not be noticed";
        reader.complain(&place("notice"), message, "set it to the limit or below");
    }
}

/// An absolute limit in the metric's own unit.
fn absolute(reader: &mut Reader<'_>, node: &Node<'_>, metric: Metric) -> Option<f64> {
    let text = node.value.as_str();
    let duration = || text.and_then(parse_duration);
    let (parsed, wanted) = match metric.unit() {
        "ns" => (duration().map(|d| d.as_secs_f64() * 1e9), "a duration with its unit, such as 500us"),
        "ms" => (duration().map(|d| d.as_secs_f64() * 1e3), "a duration with its unit, such as 800ms"),
        "bytes" => (text.and_then(parse_bytes), "a size with its unit, such as 80MiB"),
        "share" => (text.and_then(parse_share), "a percentage with its sign, such as 0.5%"),
        _ => {
            // Fractions are text in the tree, as Envoy reads them.
            let number = node.value.as_f64().or_else(|| text?.parse().ok());
            (number.filter(|n: &f64| n.is_finite() && *n >= 0.0), "a number, such as 0.1")
        }
    };
    if parsed.is_none() {
        reader.wrong_type(node, "`max`", wanted);
    }
    // Nanoseconds and milliseconds come through a float of seconds: the last bits are not the user's.
    parsed.map(|value| (value * 1e6).round() / 1e6)
}
