//! Our numbers and the paper's, row by row: a bar and a mark on the same axis.
//!
//! A curve needs a variable. What a table compares is drawn here, so that no number of a paper is only printed.

use std::fmt::{self, Write};

use nandex_html::Escaped;
use nandex_html::draw::{close, legend, line, open, word};

use super::closeness::Closeness;
use super::plain::printed;
use super::shown;
use crate::experiment::{Row, Table};

const WIDTH: f64 = 1000.0;
/// Space left and right of the axis; the right one is for the numbers.
const LEFT: f64 = 6.0;
const RIGHT: f64 = 190.0;
/// A row: its name, and its bar below.
const ROW: f64 = 36.0;
const BAR_TOP: f64 = 19.0;
const BAR: f64 = 11.0;
/// Numbers that are further apart than this are drawn on a logarithmic axis.
const LINEAR_SPAN_MAX: f64 = 30.0;

/// Where numbers of one unit are along their axis.
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

    /// The place of a number; what is 0 is at the left end.
    fn x(&self, number: f64) -> f64 {
        let at = match self.is_logarithmic {
            true if number > 0.0 => number.log10(),
            true => self.low,
            false => number,
        };
        let part = ((at - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }
}

/// Draws the rows of the table that have a number of the paper, a drawing for each unit.
pub(super) fn write(out: &mut String, table: &Table) -> fmt::Result {
    let printed: Vec<&Row> = table.rows.iter().filter(|row| row.paper.is_some()).collect();
    let mut units: Vec<&str> = Vec::new();
    for row in &printed {
        if !units.contains(&row.unit) {
            units.push(row.unit);
        }
    }
    if !units.is_empty() {
        let entries = [
            ("near", "ours: within a tenth"),
            ("off", "within twice"),
            ("far", "further off"),
            ("fitted", "fitted"),
            ("printed", "the paper's"),
        ];
        legend(out, &entries)?;
    }
    for unit in units {
        let rows: Vec<&Row> = printed.iter().copied().filter(|row| row.unit == unit).collect();
        write_unit(out, &table.title, unit, &rows)?;
    }
    Ok(())
}

fn write_unit(out: &mut String, title: &str, unit: &str, rows: &[&Row]) -> fmt::Result {
    let numbers = |row: &&Row| [row.ours, row.paper.map(|it| it.value)].into_iter().flatten();
    let axis = Axis::over(rows.iter().flat_map(numbers));
    let height = ROW * rows.len() as f64 + 18.0;
    open(out, WIDTH, height, &format!("{title}: ours and the paper's"))?;
    for (at, row) in rows.iter().enumerate() {
        write_row(out, row, &axis, at as f64 * ROW)?;
    }
    let scale = if axis.is_logarithmic { "logarithmic" } else { "from 0" };
    let unit = if unit.is_empty() { String::new() } else { format!("{unit}, ") };
    word(out, (LEFT, height - 4.0), "start", &format!("{unit}{scale}"))?;
    close(out)
}

fn write_row(out: &mut String, row: &Row, axis: &Axis, top: f64) -> fmt::Result {
    let (middle, name) = (top + BAR_TOP + BAR / 2.0, Escaped(&row.what));
    word(out, (LEFT, top + BAR_TOP - 5.0), "start", &row.what)?;
    line(out, "grid", (LEFT, middle), (WIDTH - RIGHT, middle))?;
    if let (Some(ours), Some(closeness)) = (row.ours, Closeness::of(row)) {
        let (class, width) = (closeness.class(), (axis.x(ours) - LEFT).max(1.0));
        writeln!(
            out,
            "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{width:.1}\" \
             height=\"{BAR}\" rx=\"2\"><title>{name}: {}</title></rect>",
            top + BAR_TOP,
            shown(ours)
        )?;
    }
    if let Some(paper) = row.paper {
        writeln!(
            out,
            "<circle class=\"printed\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"6\"><title>{name}, the \
             paper: {}</title></circle>",
            axis.x(paper.value),
            printed(paper)
        )?;
        let ours = row.ours.map_or_else(|| "\u{2013}".into(), shown);
        word(out, (WIDTH - 4.0, middle + 4.0), "end", &format!("{ours} / {}", printed(paper)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_with_a_number_of_the_paper_has_its_mark_and_none_leaves_the_axis() {
        let rows = vec![
            Row::predicted("slow", "ms", 0.003).paper(30.0),
            Row::fitted("fast", "ms", 2.0, "2 ms, Table 1").paper(2.0),
            Row::predicted("share", "", 0.5).paper(0.4),
            Row::predicted("our own", "ms", 7.0),
            Row::stated("theirs", "", 0.0),
        ];
        let mut out = String::new();
        write(&mut out, &Table { title: "t".into(), rows }).unwrap();
        assert_eq!(out.matches("<svg").count(), 2, "one for each unit");
        assert_eq!(out.matches("<circle class=\"printed\"").count(), 4);
        assert_eq!(out.matches("<rect").count(), 3, "no bar for what was not measured");
        assert!(!out.contains("our own"));
        for place in out.split("cx=\"").skip(1) {
            let x: f64 = place.split('"').next().unwrap().parse().unwrap();
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{x}");
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
