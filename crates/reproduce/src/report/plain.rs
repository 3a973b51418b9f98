//! The report for a terminal.

use std::fmt::Write;

use super::{Report, shown};
use crate::experiment::{Printed, Row, Sense};

/// A number of the paper, with its meaning.
pub(super) fn printed(paper: Printed) -> String {
    let sign = match paper.sense {
        Sense::Exactly => "",
        Sense::AtMost => "at most ",
        Sense::AtLeast => "at least ",
    };
    format!("{sign}{}", shown(paper.value))
}

/// What the row measures, with its unit.
pub(super) fn named(row: &Row) -> String {
    if row.unit.is_empty() { row.what.clone() } else { format!("{}, {}", row.what, row.unit) }
}

/// The tables, with our number, the paper's and their ratio, and reasons below.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = format!("{}\n1/{} of the paper's size\n", report.paper, report.scale.times());
    for ran in &report.experiments {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{}: {} ({})", ran.name, ran.title, ran.reference);
        for table in &ran.outcome.tables {
            let _ = writeln!(out, "\n  {}", table.title);
            let width = table.rows.iter().map(|row| named(row).chars().count()).max().unwrap_or(0);
            let _ =
                writeln!(out, "  {:width$}  {:>10}  {:>14}  {:>6}", "", "ours", "paper", "ratio");
            for row in &table.rows {
                let cell = |number: Option<f64>| number.map_or("-".into(), shown);
                let paper = row.paper.map_or("-".into(), printed);
                let _ = writeln!(
                    out,
                    "  {:width$}  {:>10}  {paper:>14}  {:>6}",
                    named(row),
                    cell(row.ours),
                    cell(row.ratio)
                );
            }
            for row in table.rows.iter().filter(|row| !row.why.is_empty()) {
                let _ = writeln!(out, "    {}: {}", row.what, row.why);
            }
        }
    }
    out
}
