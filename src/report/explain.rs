//! The prices of a config's blocks: a table with bars for a terminal and for Markdown, and JSON for programs.

use serde_json::{Value, json};

use super::clean::{cell_sentence, code, fit, line, sentence, width};
use crate::record::{BlockPrice, Count, Counted, Price, Prices};
use crate::units::show_percent;

const COLUMNS: usize = 80;
/// Instructions, instructions alone, share, system calls, bar; one space between.
const CELLS: [usize; 5] = [12, 10, 7, 6, 8];
/// Repeated counts of one config differ by up to this share (`METHODOLOGY.md`): smaller prices may be none.
const NOISE: f64 = 0.002;
/// Most characters of a reason.
const REASON: usize = 400;

/// For a terminal of 80 columns.
pub fn text(prices: &Prices) -> String {
    let mut out = format!("{}: {}\n", line(&prices.file, 120), line(&prices.class.name, 120));
    for sentence in summary(prices) {
        wrap(&sentence, &mut out);
    }
    let rows = rows(prices);
    if !rows.is_empty() {
        out.push_str("\nprice of a block = the whole config minus the config without it, per request\n");
        out.push_str("alone = the block added to the config without any: more, where blocks share work\n");
        out.push_str(&row(["instructions", "alone", "share", "calls", ""], "line  block"));
        rows.iter().for_each(|row| out.push_str(&row.text()));
        totals(prices).iter().for_each(|row| out.push_str(&row.text()));
    }
    let notes = notes(prices);
    if !notes.is_empty() {
        out.push('\n');
        notes.iter().for_each(|note| wrap(note, &mut out));
    }
    out
}

/// For a job summary or a comment. Text from configs stands in code spans only.
pub fn markdown(prices: &Prices) -> String {
    let mut out = format!("# Price of each block of {}\n\n", code(&prices.file));
    out.push_str(&format!("Requests: {}.", code(&prices.class.name)));
    for text in summary(prices) {
        out.push_str(&format!(" {}", sentence(&text)));
    }
    out.push_str("\n\n");
    let rows = rows(prices);
    if !rows.is_empty() {
        out.push_str("Price of a block: the whole config minus the config without it, per request. ");
        out.push_str("Alone: the block added to the config without any; more, where blocks share work.\n\n");
        out.push_str("| block | line | instructions | alone | share | system calls | |\n");
        out.push_str("|---|---:|---:|---:|---:|---:|---|\n");
        rows.iter().chain(&totals(prices)).for_each(|row| out.push_str(&row.markdown()));
        out.push('\n');
    }
    notes(prices).iter().for_each(|note| out.push_str(&format!("- {}\n", sentence(note))));
    out
}

/// The counts as they are, with what follows from them.
pub fn json(prices: &Prices) -> Value {
    let price = |price: Option<Price>| {
        price.map(|p| json!({"instructions": p.instructions, "syscalls": p.syscalls, "share": p.share}))
    };
    let block = |block: &BlockPrice| {
        json!({
            "what": block.what,
            "pointer": block.pointer,
            "line": block.span.map(|span| span.line),
            "column": block.span.map(|span| span.column),
            "price": price(prices.price(block)),
            "alone": price(prices.alone(block)),
            "answers_differ": prices.answers_differ(block),
            "without": block.without,
            "with_it_alone": block.alone,
        })
    };
    json!({
        "schema": 1,
        "file": prices.file,
        "proxy": prices.proxy,
        "machine": prices.machine,
        "class": prices.class,
        "whole": prices.whole,
        "bare": prices.bare,
        "blocks": sorted(prices).into_iter().map(block).collect::<Vec<_>>(),
        "all": price(prices.all()),
        "sum": price(prices.sum()),
        "interactions": price(prices.interactions()),
        "elsewhere": prices.elsewhere,
        "ended_by": prices.ended_by,
    })
}

/// The dearest first; what is not known last, in the order of the file.
fn sorted(prices: &Prices) -> Vec<&BlockPrice> {
    let mut blocks: Vec<&BlockPrice> = prices.blocks.iter().collect();
    let key = |block: &BlockPrice| prices.price(block).map_or(f64::NEG_INFINITY, |price| price.instructions);
    blocks.sort_by(|a, b| key(b).total_cmp(&key(a)));
    blocks
}

fn summary(prices: &Prices) -> Vec<String> {
    let told = |what: &str, counted: &Counted| match counted {
        Counted::Done(count) => {
            format!(
                "{what}: {} instructions and {:.1} system calls a request.",
                grouped(count.instructions),
                count.syscalls
            )
        }
        Counted::Failed { why } => format!("{what} could not be counted: {}.", line(why, REASON)),
        Counted::Untried => format!("{what} was not counted."),
    };
    let mut out = vec![told(&format!("The whole config, {}", line(&prices.proxy, 40)), &prices.whole)];
    match prices.blocks.len() {
        0 => out.push("It has no block that could be taken away.".to_owned()),
        _ => out.push(told("Without all of its blocks", &prices.bare)),
    }
    out
}

/// One line of the table.
struct Row {
    price: Option<Price>,
    /// In instructions.
    alone: Option<f64>,
    bar: String,
    line: String,
    what: String,
}

impl Row {
    fn text(&self) -> String {
        let [instructions, alone, share, calls] = self.numbers();
        let what = short(&line(&self.what, 400));
        row([&instructions, &alone, &share, &calls, &self.bar], &format!("{:>4}  {what}", self.line))
    }

    fn markdown(&self) -> String {
        let [instructions, alone, share, calls] = self.numbers();
        let what = cell_sentence(&self.what);
        format!("| {what} | {} | {instructions} | {alone} | {share} | {calls} | {} |\n", self.line, self.bar)
    }

    fn numbers(&self) -> [String; 4] {
        let alone = self.alone.map(grouped).unwrap_or_default();
        match self.price {
            Some(p) => [grouped(p.instructions), alone, show_percent(p.share), format!("{:+.1}", p.syscalls)],
            None => ["?".to_owned(), alone, String::new(), String::new()],
        }
    }
}

fn rows(prices: &Prices) -> Vec<Row> {
    let blocks = sorted(prices);
    let most = blocks.iter().filter_map(|b| prices.price(b)).map(|p| p.instructions).fold(0.0, f64::max);
    let row = |block: &&BlockPrice| {
        let price = prices.price(block);
        Row {
            price,
            alone: prices.alone(block).map(|p| p.instructions),
            bar: bar(price.map_or(0.0, |p| p.instructions), most),
            line: block.span.map(|span| span.line.to_string()).unwrap_or_default(),
            what: block.what.clone(),
        }
    };
    blocks.iter().filter(|block| block.without != Counted::Untried).map(row).collect()
}

fn totals(prices: &Prices) -> Vec<Row> {
    // Of one block there is nothing to add up.
    if prices.blocks.len() < 2 {
        return Vec::new();
    }
    let rows: [Option<Row>; 3] = [
        total(prices.sum(), "sum of the prices"),
        total(prices.all(), "all blocks together"),
        total(prices.interactions(), "interactions: together less the sum"),
    ];
    rows.into_iter().flatten().collect()
}

fn total(price: Option<Price>, what: &str) -> Option<Row> {
    Some(Row { price: Some(price?), alone: None, bar: String::new(), line: String::new(), what: what.to_owned() })
}

/// Eight characters at the dearest block, in eighths.
fn bar(value: f64, most: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if !(value > 0.0 && most > 0.0) {
        return String::new();
    }
    let eighths = (value / most * 64.0).round().clamp(0.0, 64.0) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn row(cells: [&str; 5], rest: &str) -> String {
    let mut out = String::new();
    for (at, (cell, columns)) in cells.iter().zip(CELLS).enumerate() {
        let cell = fit(cell, columns);
        let pad = " ".repeat(columns - cell.chars().count().min(columns));
        out.push_str(&if at == 4 { format!("{cell}{pad} ") } else { format!("{pad}{cell} ") });
    }
    let used: usize = CELLS.iter().map(|columns| columns + 1).sum();
    out.push_str(&fit(rest, COLUMNS - used));
    format!("{}\n", out.trim_end())
}

fn notes(prices: &Prices) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(Count { instructions, .. }) = prices.whole.count().filter(|_| !prices.blocks.is_empty()) {
        let below = grouped((instructions * NOISE).round());
        notes.push(format!(
            "Counts of the same config agree within {}: a price below {below} instructions may be none.",
            show_percent(NOISE)
        ));
    }
    for block in sorted(prices) {
        let what = line(&block.what, 200);
        if let Counted::Failed { why } = &block.without {
            notes.push(format!("No price of {what}: without it, {}.", line(why, REASON)));
        } else if prices.answers_differ(block) {
            let of = |counted: &Counted| counted.count().map(|c| statuses(&c.statuses)).unwrap_or_default();
            let (whole, without) = (of(&prices.whole), of(&block.without));
            notes.push(format!(
                "Without {what} requests are answered {without} instead of {whole}: its price is the difference of two \
                 paths."
            ));
        }
    }
    let untried = prices.blocks.iter().filter(|b| b.without == Counted::Untried).count();
    if let (Some(by), true) = (&prices.ended_by, untried > 0) {
        notes.push(format!("{untried} of {} blocks were not tried: ended by {}.", prices.blocks.len(), line(by, 60)));
    }
    let untried = prices.blocks.iter().filter(|b| b.alone == Counted::Untried && b.without != Counted::Untried).count();
    if let (Some(by), true) = (&prices.ended_by, untried > 0) {
        notes.push(format!("{untried} blocks were not counted alone: ended by {}.", line(by, 60)));
    }
    if prices.elsewhere > 0 {
        notes.push(format!(
            "Not looked at: {} in listeners that these requests do not pass.",
            if prices.elsewhere == 1 { "1 block".to_owned() } else { format!("{} blocks", prices.elsewhere) }
        ));
    }
    notes
}

fn statuses(statuses: &[u16]) -> String {
    let list: Vec<String> = statuses.iter().map(u16::to_string).collect();
    if list.is_empty() { "with nothing".to_owned() } else { list.join(", ") }
}

/// Whole instructions in groups of three: `171 700`.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    if value < 0.0 && digits != "0" { format!("-{out}") } else { out }
}

/// Without the prefixes that all names of a kind share.
fn short(what: &str) -> String {
    ["envoy.filters.http.", "envoy.filters.network.", "envoy.filters.listener.", "envoy.access_loggers."]
        .iter()
        .fold(what.to_owned(), |what, prefix| what.replace(prefix, ""))
}

/// Words in lines of 80 columns, those after the first indented.
fn wrap(text: &str, out: &mut String) {
    let mut current = String::new();
    for word in line(text, 2000).split(' ') {
        let word = fit(word, COLUMNS - 2);
        if width(&current) + 1 + width(&word) > COLUMNS && !current.trim().is_empty() {
            out.push_str(current.trim_end());
            out.push('\n');
            current = " ".to_owned();
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(&word);
    }
    out.push_str(current.trim_end());
    out.push('\n');
}
