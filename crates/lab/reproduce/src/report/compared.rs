//! The numbers of nandex and of the paper, row by row: a bar and a mark on the same axis.
//!
//! A curve needs a variable. The numbers that a table compares are drawn here, so that no number of a paper
//! is only printed. Words belong to the page and not to the drawings, so that they are readable at any width.

use std::fmt::{self, Write};

use nandex_html::draw::legend;
use nandex_html::{Escaped, shown};

use super::closeness::Closeness;
use super::plain::printed;
use crate::experiment::{Row, Table};

/// The ratio above which numbers are drawn on a logarithmic axis.
const LINEAR_SPAN_MAX: f64 = 30.0;
/// The width of the paper's mark, in percent.
const MARK: f64 = 0.8;

/// The positions of numbers of one unit along their axis.
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    fn over(numbers: impl Iterator<Item = f64>) -> Self {
        let positive = numbers.filter(|it| it.is_finite() && *it > 0.0);
        let (low, high) =
            positive.fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(it), high.max(it)));
        let is_logarithmic = high > low * LINEAR_SPAN_MAX;
        match is_logarithmic {
            true => Self { low: low.log10() - 0.3, high: high.log10(), is_logarithmic },
            false => Self { low: 0.0, high: high.max(f64::MIN_POSITIVE), is_logarithmic },
        }
    }

    /// Returns the position of a number, in percent; 0 is at the left end.
    fn x(&self, number: f64) -> f64 {
        let at = match self.is_logarithmic {
            true if number > 0.0 => number.log10(),
            true => self.low,
            false => number,
        };
        let part = ((at - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        part * (100.0 - MARK)
    }
}

/// Draws the rows of the table that have a number of the paper, those of a unit on the same axis.
pub(super) fn write(out: &mut String, table: &Table) -> fmt::Result {
    let printed: Vec<&Row> = table.rows.iter().filter(|row| row.paper.is_some()).collect();
    let mut units: Vec<&str> = Vec::new();
    for row in &printed {
        if !units.contains(&row.unit) {
            units.push(row.unit);
        }
    }
    if !units.is_empty() {
        write_legend(out)?;
    }
    for unit in units {
        let rows: Vec<&Row> = printed.iter().copied().filter(|row| row.unit == unit).collect();
        write_unit(out, unit, &rows)?;
    }
    Ok(())
}

fn write_legend(out: &mut String) -> fmt::Result {
    let entries = [
        ("near", "ours, within a tenth"),
        ("off", "within twice"),
        ("far", "further off"),
        ("keeps", "keeps a bound"),
        ("misses", "misses a bound"),
        ("fitted", "fitted, assumed or given"),
        ("printed", "the paper's"),
    ];
    legend(out, &entries)
}

fn write_unit(out: &mut String, unit: &str, rows: &[&Row]) -> fmt::Result {
    let numbers = |row: &&Row| [row.ours, row.paper.map(|it| it.value)].into_iter().flatten();
    let axis = Axis::over(rows.iter().flat_map(numbers));
    let scale = if axis.is_logarithmic { "logarithmic" } else { "from 0" };
    let unit = if unit.is_empty() { String::new() } else { format!("{unit}, ") };
    writeln!(out, "<div class=\"pairs\">\n<p class=\"note\">{}{scale}</p>", Escaped(&unit))?;
    rows.iter().try_for_each(|row| write_row(out, row, &axis))?;
    out.write_str("</div>\n")
}

fn write_row(out: &mut String, row: &Row, axis: &Axis) -> fmt::Result {
    let paper = row.paper.map_or_else(|| "\u{2013}".into(), printed);
    let ours = row.ours.map_or_else(|| "\u{2013}".into(), shown);
    write!(
        out,
        "<div class=\"pair\"><span>{}</span><span>{ours} / {paper}</span>\
         <svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"ours {ours}, the paper {paper}\">\
         <rect class=\"track\" y=\"4\" width=\"100\" height=\"2\"/>",
        Escaped(&row.what)
    )?;
    if let Some(ours) = row.ours {
        let class = Closeness::of(row).map_or("fitted", Closeness::class);
        let width = axis.x(ours).max(0.2);
        write!(out, "<rect class=\"{class}\" y=\"2\" width=\"{width:.2}\" height=\"6\"/>")?;
    }
    if let Some(paper) = row.paper {
        let x = axis.x(paper.value);
        write!(out, "<rect class=\"printed\" x=\"{x:.2}\" width=\"{MARK}\" height=\"10\"/>")?;
    }
    out.write_str("</svg></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_with_a_number_of_the_paper_has_its_mark_and_none_leaves_the_axis() {
        let rows = vec![
            Row::measured("slow", "ms", 0.003).paper(30.0),
            Row::fitted("fast", "ms", 2.0, "2 ms, Table 1").paper(2.0),
            Row::predicted("share", "", 0.5).paper(0.4),
            Row::predicted("our own", "ms", 7.0),
            Row::stated("theirs", "", 0.0),
        ];
        let mut out = String::new();
        write(&mut out, &Table { title: "t".into(), rows }).unwrap();
        assert_eq!(out.matches("<div class=\"pairs\">").count(), 2, "one for each unit");
        assert_eq!(out.matches("<rect class=\"printed\"").count(), 4);
        assert_eq!(out.matches("y=\"2\"").count(), 3, "no bar for what was not measured");
        assert!(!out.contains("our own"));
        for place in out.split("class=\"printed\" x=\"").skip(1) {
            let x: f64 = place.split('"').next().unwrap().parse().unwrap();
            assert!((0.0..=100.0 - MARK).contains(&x), "{x}");
        }
        assert!(out.contains("class=\"far\"") && out.contains("class=\"fitted\""));
        assert!(out.contains("ms, logarithmic") && out.contains("from 0"));
    }

    #[test]
    fn a_table_without_numbers_of_the_paper_is_not_drawn() {
        let table = Table { title: "t".into(), rows: vec![Row::predicted("a", "", 1.0)] };
        let mut out = String::new();
        write(&mut out, &table).unwrap();
        assert_eq!(out, "");
    }
}
