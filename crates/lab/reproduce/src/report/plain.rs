//! The report for a terminal.

use std::fmt::Write;

use super::Report;
use crate::experiment::{Origin, Printed, Row, Sense};
use nandex_html::shown;

/// Formats a number of the paper, with its meaning.
pub(super) fn printed(paper: Printed) -> String {
    let sign = match paper.sense {
        Sense::Exactly => "",
        Sense::AtMost => "at most ",
        Sense::AtLeast => "at least ",
    };
    format!("{sign}{}", shown(paper.value))
}

/// Returns the quantity of the row, with its unit.
pub(super) fn named(row: &Row) -> String {
    if row.unit.is_empty() { row.what.clone() } else { format!("{}, {}", row.what, row.unit) }
}

/// Returns the origin of the row's number, in a word.
pub(super) fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "measured",
        Origin::Corpus => "measured on your corpus",
        Origin::Predicted => "predicted",
        Origin::Input => "input",
        Origin::Assumed { .. } => "assumed",
        Origin::Fitted { .. } => "fitted",
        Origin::Formula => "formula",
        Origin::Recorded { .. } => "recorded",
        Origin::Stated => "stated",
    }
}

/// Returns the remark on a row below the table: the number that it was fitted to, and the reason why it
/// differs.
fn remark(row: &Row) -> Option<String> {
    let origin = match row.origin() {
        Origin::Fitted { fitted_to } => format!("fitted to {fitted_to}. "),
        Origin::Recorded { recorded_on } => format!("recorded on {recorded_on}. "),
        Origin::Assumed { assumed } => format!("assumed: constant {assumed}. "),
        _ => String::new(),
    };
    let text = format!("{origin}{}", row.why);
    (!text.is_empty()).then(|| format!("{}: {}", row.what, text.trim_end()))
}

/// Returns the tables, with nandex's number, the paper's and their ratio, and reasons below.
#[must_use]
pub fn text(report: &Report) -> String {
    let times = report.of.times_smaller(report.scale);
    let mut out = format!("{}\n1/{times} of the paper's size\n", report.paper);
    for ran in &report.experiments {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{}: {} ({})", ran.name, ran.title, ran.reference);
        for table in &ran.outcome.tables {
            let _ = writeln!(out, "\n  {}", table.title);
            let width = table.rows.iter().map(|row| named(row).chars().count()).max().unwrap_or(0);
            let _ = writeln!(
                out,
                "  {:width$}  {:>10}  {:>14}  {:>6}  origin",
                "", "ours", "paper", "ratio"
            );
            for row in &table.rows {
                let cell = |number: Option<f64>| number.map_or("-".into(), shown);
                let paper = row.paper.map_or("-".into(), printed);
                let _ = writeln!(
                    out,
                    "  {:width$}  {:>10}  {paper:>14}  {:>6}  {}",
                    named(row),
                    cell(row.ours),
                    cell(row.ratio),
                    origin_word(row.origin())
                );
            }
            for remark in table.rows.iter().filter_map(remark) {
                let _ = writeln!(out, "    {remark}");
            }
        }
    }
    out
}
