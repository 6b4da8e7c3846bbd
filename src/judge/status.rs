//! Statuses of the answers that were counted: what head answers and base never does.

use crate::record::ClassCost;

/// Answers of a kind that base does not give.
#[derive(Debug, Clone, PartialEq)]
pub struct NewErrors {
    /// Of head's answers.
    pub share: f64,
    /// `413 instead of 200`.
    pub said: String,
}

/// Statuses at which an answer is an error.
const FIRST_ERROR: u16 = 400;

/// What head's answers have and base's have not. `None` where there is nothing new, where base's answers are not known,
/// and where base has errors only and head's new answers are none.
pub fn new_errors(base: &ClassCost, head: &ClassCost) -> Option<NewErrors> {
    let known = given(base);
    let only_errors = !known.is_empty() && known.iter().all(|s| *s >= FIRST_ERROR);
    let is_new = |status: u16| !known.contains(&status) && (status >= FIRST_ERROR || !only_errors);
    let new: Vec<(u16, u64)> = head.statuses.iter().copied().filter(|(s, n)| *n > 0 && is_new(*s)).collect();
    if known.is_empty() || new.is_empty() {
        return None;
    }
    let count = |pairs: &[(u16, u64)]| pairs.iter().map(|p| p.1 as f64).sum::<f64>();
    let (bad, all) = (count(&new), count(&head.statuses));
    let names =
        |statuses: &mut dyn Iterator<Item = u16>| statuses.map(|s| s.to_string()).collect::<Vec<_>>().join(" and ");
    let (new, old) = (names(&mut new.iter().map(|p| p.0)), names(&mut known.iter().copied()));
    let said = if bad >= all {
        format!("{new} instead of {old}")
    } else {
        format!("{new} in {bad} of {all} answers, base gives {old}")
    };
    Some(NewErrors { share: bad / all, said })
}

/// Whether the arms gave different kinds of answers, so that their costs are of different work.
pub fn differ(base: &ClassCost, head: &ClassCost) -> bool {
    given(base) != given(head) && !base.statuses.is_empty() && !head.statuses.is_empty()
}

fn given(cost: &ClassCost) -> Vec<u16> {
    let mut given: Vec<u16> = cost.statuses.iter().filter(|(_, n)| *n > 0).map(|(s, _)| *s).collect();
    given.sort_unstable();
    given.dedup();
    given
}
