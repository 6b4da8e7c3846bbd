//! `accept`: intended costs, scoped, capped, dated and with a reason.

use jiff::ToSpan;
use jiff::civil::Date;

use super::limits::{margin, metric};
use super::nearest::nearest;
use super::reader::{Node, Reader};
use crate::metric::Metric;
use crate::policy::Accept;

pub(super) const KEYS: [&str; 5] = ["target", "metric", "up_to", "until", "reason"];

/// How far ahead an acceptance may reach, in days: after that somebody looks again.
pub const MAX_DAYS: i64 = 180;
const MAX_REASON: usize = 200;

pub fn read(reader: &mut Reader<'_>, node: &Node<'_>, targets: &[String], today: Date) -> Vec<Accept> {
    let mut accepts: Vec<Accept> = Vec::new();
    for item in reader.items(node, "`accept`") {
        let Some(accept) = read_one(reader, &item, targets, today) else { continue };
        if accepts.iter().any(|a| a.target == accept.target && a.metric == accept.metric) {
            let message = format!("`{}` of `{}` is accepted twice", accept.metric.name(), accept.target);
            reader.complain(&item.pointer, message, "keep one entry for each target and metric");
        }
        accepts.push(accept);
    }
    accepts
}

fn read_one(reader: &mut Reader<'_>, item: &Node<'_>, targets: &[String], today: Date) -> Option<Accept> {
    let fields = reader.fields(item, "an `accept` entry", &KEYS, &[])?;
    let mut need = |key: &str, help: &str| reader.required(&fields, item, key, "an `accept` entry", help);
    let target_node = need("target", "say which target it is for");
    let metric_node = need("metric", "say which metric may rise, for example `metric: cpu_ns_per_request`");
    let up_to_node = need("up_to", "say how much is accepted, for example `up_to: 12%`");
    let until_node = need("until", "say how long it holds, for example `until: 2027-01-31`");
    let reason_node = need("reason", "say why the cost is worth it, and where that was decided");

    let target = target_node.and_then(|n| target(reader, &n, targets));
    let metric = metric_node.and_then(|n| {
        let known: Vec<String> = Metric::ALL.iter().map(|m| m.name().to_owned()).collect();
        let name = reader.text(&n, "`metric`")?;
        metric(reader, &n.pointer, name, &known)
    });
    let up_to = match (up_to_node, metric) {
        (Some(n), Some(metric)) => margin(reader, &n, "`up_to`", metric),
        _ => None,
    };
    let until = until_node.and_then(|n| until(reader, &n, today));
    let reason = reason_node.and_then(|n| reason(reader, &n));
    Some(Accept { target: target?, metric: metric?, up_to: up_to?, until: until?, reason: reason? })
}

fn target(reader: &mut Reader<'_>, node: &Node<'_>, targets: &[String]) -> Option<String> {
    let name = reader.text(node, "`target`")?;
    // Without a list of targets their names come from the command line: nothing to compare with.
    if !targets.is_empty() && !targets.iter().any(|t| t == name) {
        let help = match nearest(name, targets.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name one of `targets`".to_owned(),
        };
        reader.complain(&node.pointer, format!("no target is called `{name}`"), help);
        return None;
    }
    Some(name.to_owned())
}

/// A calendar day. One in the past is no fault: the entry has no effect any more.
fn until(reader: &mut Reader<'_>, node: &Node<'_>, today: Date) -> Option<String> {
    let Some(date) = node.value.as_str().and_then(|text| text.parse::<Date>().ok()) else {
        reader.wrong_type(node, "`until`", "a day, such as 2027-01-31");
        return None;
    };
    let last = today.saturating_add(MAX_DAYS.days());
    if date > last {
        let message = format!("`until: {date}` is more than {MAX_DAYS} days ahead");
        reader.complain(&node.pointer, message, format!("set it to {last} or earlier, and look again then"));
        return None;
    }
    Some(date.to_string())
}

fn reason(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<String> {
    let text = reader.text(node, "`reason`")?;
    if text.chars().count() > MAX_REASON {
        let message = format!("`reason` is longer than {MAX_REASON} characters");
        reader.complain(&node.pointer, message, "put the long story behind a link or a ticket");
        return None;
    }
    Some(text.to_owned())
}
