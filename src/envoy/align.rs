//! Which items of two lists are the same: by what they are, not by where they stand.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::block::identity;
use super::node::Node;

/// One step through both lists, in order: an item of the first, one of the second, or one of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    First(usize),
    Second(usize),
    Both(usize, usize),
}

/// Most cells of the table of the exact alignment; longer lists are paired by name.
const CELLS: usize = 1 << 20;

/// An order-keeping alignment of two lists: equal items first, then items of the same name.
pub(super) fn align(first: &[Node], second: &[Node]) -> Vec<Step> {
    let (a, b): (Vec<Mark>, Vec<Mark>) = (first.iter().map(Mark::of).collect(), second.iter().map(Mark::of).collect());
    let prefix = a.iter().zip(&b).take_while(|(a, b)| a.content == b.content).count();
    let (rest_a, rest_b) = (&a[prefix..], &b[prefix..]);
    let equal_ends = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a.content == b.content).count();
    let (mid_a, mid_b) = (&rest_a[..rest_a.len() - equal_ends], &rest_b[..rest_b.len() - equal_ends]);
    let pairs = match mid_a.len().saturating_mul(mid_b.len()) <= CELLS {
        true => best(mid_a, mid_b),
        false => by_name(mid_a, mid_b),
    };
    let before = (0..prefix).map(|at| (at, at));
    let middle = pairs.into_iter().map(|(x, y)| (x + prefix, y + prefix));
    let after = (0..equal_ends).map(|at| (a.len() - equal_ends + at, b.len() - equal_ends + at));
    steps(before.chain(middle).chain(after), a.len(), b.len())
}

fn steps(pairs: impl Iterator<Item = (usize, usize)>, first: usize, second: usize) -> Vec<Step> {
    let mut out = Vec::with_capacity(first.max(second));
    let (mut x, mut y) = (0, 0);
    for (to_x, to_y) in pairs {
        out.extend((x..to_x).map(Step::First));
        out.extend((y..to_y).map(Step::Second));
        out.push(Step::Both(to_x, to_y));
        (x, y) = (to_x + 1, to_y + 1);
    }
    out.extend((x..first).map(Step::First));
    out.extend((y..second).map(Step::Second));
    out
}

/// What is compared of an item.
#[derive(Debug)]
struct Mark {
    name: String,
    content: u64,
}

impl Mark {
    fn of(node: &Node) -> Self {
        let mut hasher = DefaultHasher::new();
        node.value.to_string().hash(&mut hasher);
        Self { name: identity(node), content: hasher.finish() }
    }

    fn likeness(&self, other: &Self) -> u32 {
        if self.name != other.name {
            return 0;
        }
        if self.content == other.content { 4 } else { 1 }
    }
}

/// The pairs with the largest sum of likeness (Needleman and Wunsch's table).
fn best(a: &[Mark], b: &[Mark]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    let mut table = vec![0_u32; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            let like = a[x].likeness(&b[y]);
            let both = if like > 0 { like + table[(x + 1) * width + y + 1] } else { 0 };
            table[x * width + y] = both.max(table[(x + 1) * width + y]).max(table[x * width + y + 1]);
        }
    }
    let (mut x, mut y, mut pairs) = (0, 0, Vec::new());
    while x < a.len() && y < b.len() {
        let here = table[x * width + y];
        let like = a[x].likeness(&b[y]);
        if like > 0 && here == like + table[(x + 1) * width + y + 1] {
            pairs.push((x, y));
            (x, y) = (x + 1, y + 1);
        } else if here == table[(x + 1) * width + y] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

/// The nth item of a name with the nth of the same name; of those pairs the longest ascending row.
fn by_name(a: &[Mark], b: &[Mark]) -> Vec<(usize, usize)> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    b.iter().enumerate().rev().for_each(|(at, mark)| places.entry(&mark.name).or_default().push(at));
    let pairs: Vec<(usize, usize)> =
        a.iter().enumerate().filter_map(|(x, mark)| Some((x, places.get_mut(mark.name.as_str())?.pop()?))).collect();
    ascending(&pairs)
}

/// The longest subsequence whose second numbers ascend (patience sorting).
fn ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let pile = tails.partition_point(|&tail| pairs[tail].1 < pair.1);
        before[at] = pile.checked_sub(1).map(|pile| tails[pile]);
        match tails.get_mut(pile) {
            Some(tail) => *tail = at,
            None => tails.push(at),
        }
    }
    let mut out = Vec::with_capacity(tails.len());
    let mut at = tails.last().copied();
    while let Some(here) = at {
        out.push(pairs[here]);
        at = before[here];
    }
    out.reverse();
    out
}
