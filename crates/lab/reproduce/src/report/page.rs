//! The report of a paper as one self-contained page.

use std::fmt::{self, Write};

use nandex_html::chart::CHART_STYLE;
use nandex_html::{BASE_STYLE, Escaped, Frame};

use super::{Part, Report};
use crate::{Paper, Scale};

const STYLE: &str = include_str!("page.css");

/// The styles of all pages.
pub(super) const STYLES: &[&str] = &[BASE_STYLE, CHART_STYLE, STYLE];

/// The footer of each page.
pub(super) const FOOTER: &str = "Written by nandex. Times are of simulated drives, in virtual time, and come out the \
     same on every run. A ratio is ours over the paper's. A measured number was counted \
     or timed on \
     what ran here; a predicted one comes from a model without chosen constants. Neither fits nor \
     assumptions, inputs or formulas are compared: a fitted number comes from a constant that was \
     chosen so that a printed number comes out, an assumed one from a constant of our \
     judgement, an \
     input is what the load was made with, and a formula is the paper's own. A recorded number \
     follows from times of a processor that were measured once and kept; a stated one is the \
     paper's, not measured here.";

/// Returns an HTML page with all tables and curves, for a browser at any width, light or dark. It loads
/// nothing and runs nothing.
#[must_use]
pub fn html(report: &Report) -> String {
    let part = |ran| Part::of(report.of, ran, report.scale);
    let parts: Vec<Part> = report.experiments.iter().map(part).collect();
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, report.of, report.scale, &parts.iter().collect::<Vec<_>>(), "");
    out
}

/// Writes the page of a paper with these parts; `more` is markup below the title.
pub(super) fn write(
    out: &mut String,
    paper: Paper,
    scale: Scale,
    parts: &[&Part],
    more: &str,
) -> fmt::Result {
    let frame = Frame { title: "The paper's experiments again", styles: STYLES };
    frame.open(out)?;
    write_header(out, paper, scale, parts, more)?;
    parts.iter().try_for_each(|part| out.write_str(&part.section))?;
    frame.close(out, FOOTER)
}

fn write_header(
    out: &mut String,
    paper: Paper,
    scale: Scale,
    parts: &[&Part],
    more: &str,
) -> fmt::Result {
    write!(
        out,
        "<header>\n<p class=\"eyebrow\">Experiments run again</p>\n<h1>Ours and the \
         paper's</h1>\n<p class=\"lead\">{}</p>\n{more}<p class=\"notice\">At 1/{} of the paper's \
         size, seed {}. {}</p>\n<nav>",
        Escaped(paper.title()),
        paper.times_smaller(scale),
        scale.seed(),
        Escaped(paper.scaled()),
    )?;
    for Part { name, title, .. } in parts {
        let (name, title) = (Escaped(name), Escaped(title));
        write!(out, "<a href=\"#{name}\">{name}: {title}</a>")?;
    }
    out.write_str("</nav>\n</header>\n")
}
