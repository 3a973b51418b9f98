//! The report as one self-contained page.

use std::fmt::{self, Write};

use nandex_html::chart::{self, CHART_STYLE};
use nandex_html::{BASE_STYLE, Escaped, Frame, shown};

use super::closeness::Closeness;
use super::plain::{named, origin_word, printed};
use super::{Ran, Report, compared};
use crate::experiment::{Origin, Row, Table};

const STYLE: &str = include_str!("page.css");

/// One HTML page with all tables and curves, for a browser at any width, light or dark. It loads nothing and
/// runs nothing.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, report);
    out
}

fn write_page(out: &mut String, report: &Report) -> fmt::Result {
    let styles = &[BASE_STYLE, CHART_STYLE, STYLE];
    let frame = Frame { title: "The paper's experiments again", styles };
    frame.open(out)?;
    write_header(out, report)?;
    for ran in &report.experiments {
        write_experiment(out, ran)?;
    }
    frame.close(
        out,
        "Written by nandex. Times are of simulated drives, in virtual time, and come out the same \
         on every run. A ratio is ours over the paper's. A fitted number comes from a constant \
         that was chosen so that a printed number comes out; for a predicted one none was; a \
         measured one is of a corpus that was given; a stated one is the paper's, not measured here.",
    )
}

fn write_header(out: &mut String, report: &Report) -> fmt::Result {
    let times = report.times;
    write!(
        out,
        "<header>\n<p class=\"eyebrow\">Experiments run again</p>\n<h1>Ours and the \
         paper's</h1>\n<p class=\"lead\">{}</p>\n<p class=\"notice\">At 1/{times} of the paper's \
         size, seed {}. {}</p>\n<nav>",
        Escaped(report.paper),
        report.scale.seed(),
        Escaped(report.scaled),
    )?;
    for ran in &report.experiments {
        write!(out, "<span>{}: {}</span>", Escaped(ran.name), Escaped(ran.title))?;
    }
    out.write_str("</nav>\n</header>\n")
}

fn write_experiment(out: &mut String, ran: &Ran) -> fmt::Result {
    writeln!(
        out,
        "<section id=\"{}\">\n<p class=\"eyebrow\">{}</p>\n<h2>{}</h2>",
        Escaped(ran.name),
        Escaped(ran.reference),
        Escaped(ran.title)
    )?;
    for sentence in &ran.outcome.setup {
        writeln!(out, "<p class=\"setup\">{}</p>", Escaped(sentence))?;
    }
    for chart in &ran.outcome.charts {
        chart::write(out, chart)?;
    }
    for table in &ran.outcome.tables {
        write_table(out, table)?;
    }
    out.write_str("</section>\n")
}

fn write_table(out: &mut String, table: &Table) -> fmt::Result {
    writeln!(
        out,
        "<h3>{}</h3>\n<div class=\"wide\"><table class=\"rows\">\n<thead><tr><th>What</th><th class=\"number\">Ours</th>\
         <th class=\"number\">Paper</th><th class=\"number\">Ratio</th><th>Origin</th><th>Where and why they differ</th></tr></thead>\n<tbody>",
        Escaped(&table.title)
    )?;
    table.rows.iter().try_for_each(|row| write_row(out, row))?;
    out.write_str("</tbody>\n</table></div>\n")?;
    compared::write(out, table)
}

fn write_row(out: &mut String, row: &Row) -> fmt::Result {
    let cell = |number: Option<f64>| number.map_or("\u{2013}".into(), shown);
    let exact = |number: Option<f64>| number.map_or("not measured".into(), |it| it.to_string());
    writeln!(
        out,
        "<tr><td class=\"what\">{}</td><td class=\"number ours\" title=\"{}\">{}</td>\
         <td class=\"number theirs\">{}</td><td class=\"number ratio {}\">{}</td>\
         <td class=\"origin\">{}</td><td class=\"why\">{}</td></tr>",
        Escaped(&named(row)),
        exact(row.ours),
        cell(row.ours),
        row.paper.map_or("\u{2013}".into(), printed),
        Closeness::of(row).map_or("none", Closeness::class),
        cell(row.ratio),
        origin(row.origin()),
        Escaped(&row.why)
    )
}

/// Where the number comes from; what it was fitted to stands next to it.
fn origin(origin: Origin) -> String {
    let word = origin_word(origin);
    match origin {
        Origin::Fitted { fitted_to } => {
            format!("<b class=\"fitted\">{word}</b> to {}", Escaped(fitted_to))
        }
        Origin::Predicted | Origin::Measured | Origin::Stated => word.into(),
    }
}
