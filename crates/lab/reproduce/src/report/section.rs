//! An experiment as a part of a page: its curves, its rows, and the command that makes them.

use std::fmt::{self, Write};

use nandex_html::chart;
use nandex_html::{Escaped, shown};
use serde::{Deserialize, Serialize};

use super::closeness::{Closeness, Distance};
use super::plain::{named, origin_word, printed};
use super::{Ran, compared};
use crate::conclusions::NAME as CONCLUSIONS;
use crate::experiment::{Origin, Row, Table};
use crate::{Paper, Scale};

/// The part of an experiment's result that the pages need. It can be stored in a file while others run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Its paper.
    pub paper: Paper,
    /// The experiment's name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The distances of its numbers from the paper's.
    pub counted: Counted,
    /// Its section of the paper's page, as markup.
    pub(super) section: String,
}

/// The numbers of rows by their distance from the paper's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counted {
    /// Numbers within a tenth of the paper's number.
    pub near: usize,
    /// Numbers within twice.
    pub off: usize,
    /// Numbers further off.
    pub far: usize,
    /// Bounds of the paper.
    pub bounds: Bounds,
    /// Fitted rows, whose distance says nothing.
    pub fitted: usize,
    /// Rows that rest on an assumed constant.
    pub assumed: usize,
    /// Rows that the load was made with, and the paper's own formulas.
    pub given: usize,
    /// Only printed by the paper, not measured here.
    pub stated: usize,
    /// Rows of nandex alone, without a number of the paper.
    pub own: usize,
}

/// The bounds of the paper: "at least as fast", "at most one page".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// Kept, by a tenth or less.
    pub by_tenth: usize,
    /// Kept, by twice or less.
    pub by_twice: usize,
    /// Kept, by more.
    pub by_more: usize,
    /// Not kept.
    pub missed: usize,
}

impl Bounds {
    /// Returns the number of bounds that are kept.
    #[must_use]
    pub const fn kept(self) -> usize {
        self.by_tenth + self.by_twice + self.by_more
    }

    const fn and(self, other: Self) -> Self {
        Self {
            by_tenth: self.by_tenth + other.by_tenth,
            by_twice: self.by_twice + other.by_twice,
            by_more: self.by_more + other.by_more,
            missed: self.missed + other.missed,
        }
    }
}

impl Counted {
    /// Counts the rows of these tables.
    #[must_use]
    pub fn of(tables: &[Table]) -> Self {
        let mut counted = Self::default();
        for row in tables.iter().flat_map(|table| &table.rows) {
            *counted.kind_mut(row) += 1;
        }
        counted
    }

    fn kind_mut(&mut self, row: &Row) -> &mut usize {
        match Closeness::of(row) {
            Some(Closeness::Near) => &mut self.near,
            Some(Closeness::Off) => &mut self.off,
            Some(Closeness::Far) => &mut self.far,
            Some(Closeness::Keeps(Distance::Tenth)) => &mut self.bounds.by_tenth,
            Some(Closeness::Keeps(Distance::Twice)) => &mut self.bounds.by_twice,
            Some(Closeness::Keeps(Distance::More)) => &mut self.bounds.by_more,
            Some(Closeness::Misses) => &mut self.bounds.missed,
            Some(Closeness::Arranged) => match row.origin() {
                Origin::Fitted { .. } => &mut self.fitted,
                Origin::Assumed { .. } => &mut self.assumed,
                _ => &mut self.given,
            },
            None if row.ours.is_none() => &mut self.stated,
            None => &mut self.own,
        }
    }

    /// Adds both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            near: self.near + other.near,
            off: self.off + other.off,
            far: self.far + other.far,
            bounds: self.bounds.and(other.bounds),
            fitted: self.fitted + other.fitted,
            assumed: self.assumed + other.assumed,
            given: self.given + other.given,
            stated: self.stated + other.stated,
            own: self.own + other.own,
        }
    }
}

impl Part {
    /// Adds the counts of these parts. Conclusions are left out: they are relations of rows that are counted
    /// already, next to bounds that were chosen here.
    pub fn sum<'p>(parts: impl IntoIterator<Item = &'p Self>) -> Counted {
        let counted = parts.into_iter().filter(|part| part.name != CONCLUSIONS);
        counted.fold(Counted::default(), |sum, part| sum.and(part.counted))
    }

    /// Returns the part of an experiment of a paper that ran at a scale.
    #[must_use]
    pub fn of(paper: Paper, ran: &Ran, scale: Scale) -> Self {
        let mut section = String::new();
        // Writing to a string cannot fail.
        let _ = write_experiment(&mut section, ran, &command(paper, ran.name, scale));
        Self {
            paper,
            name: ran.name.into(),
            title: ran.title.into(),
            counted: Counted::of(&ran.outcome.tables),
            section,
        }
    }
}

/// Returns the command that runs one experiment again.
pub(super) fn command(paper: Paper, name: &str, scale: Scale) -> String {
    let mut text = format!(
        "nandex-lab reproduce {} --only {name} --scale {}",
        paper.structure(),
        scale.times()
    );
    if scale.seed() != Scale::default().seed() {
        let _ = write!(text, " --seed {}", scale.seed());
    }
    text
}

fn write_experiment(out: &mut String, ran: &Ran, command: &str) -> fmt::Result {
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
    writeln!(
        out,
        "<p class=\"setup\"><code>{}</code> runs this alone, and <code>--row 1.2</code> with it prints the \
         row 1.2 only.</p>",
        Escaped(command)
    )?;
    for chart in &ran.outcome.charts {
        chart::write(out, chart)?;
    }
    for (number, table) in (1..).zip(&ran.outcome.tables) {
        write_table(out, number, table)?;
    }
    out.write_str("</section>\n")
}

fn write_table(out: &mut String, number: usize, table: &Table) -> fmt::Result {
    writeln!(
        out,
        "<h3>{}</h3>\n<div class=\"wide\"><table class=\"rows\">\n<thead><tr><th>What</th><th class=\"number\">Ours</th>\
         <th class=\"number\">Paper</th><th class=\"number\">Ratio</th><th>Origin</th><th>Where and why they differ</th></tr></thead>\n<tbody>",
        Escaped(&table.title)
    )?;
    for (place, row) in (1..).zip(&table.rows) {
        write_row(out, (number, place), row)?;
    }
    out.write_str("</tbody>\n</table></div>\n")?;
    compared::write(out, table)
}

fn write_row(out: &mut String, (table, place): (usize, usize), row: &Row) -> fmt::Result {
    let cell = |number: Option<f64>| number.map_or("\u{2013}".into(), shown);
    let exact = |number: Option<f64>| number.map_or("not measured".into(), |it| it.to_string());
    writeln!(
        out,
        "<tr><td class=\"what\"><span class=\"place\">{table}.{place}</span> {}</td>\
         <td class=\"number ours\" title=\"{}\">{}</td>\
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

/// Formats the origin of the number, with the number that it was fitted to.
fn origin(origin: Origin) -> String {
    let word = origin_word(origin);
    match origin {
        Origin::Fitted { fitted_to } => {
            format!("<b class=\"fitted\">{word}</b> to {}", Escaped(fitted_to))
        }
        Origin::Assumed { assumed } => format!("{word}: {}", Escaped(assumed)),
        Origin::Recorded { recorded_on } => format!("{word} on {}", Escaped(recorded_on)),
        _ => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[test]
    fn a_part_has_a_number_for_each_row_and_the_command_that_makes_it() {
        let rows = vec![
            Row::measured("a", "", 1.0).paper(1.0),
            Row::measured("b", "", 1.5).paper(1.0),
            Row::measured("c", "", 3.0).paper(1.0),
            Row::fitted("d", "", 1.0, "1, Table 1").paper(1.0),
            Row::stated("e", "", 1.0),
            Row::measured("f", "", 1.0),
            Row::assumed("g", "", 1.0, "ram-jump").paper(1.0),
            Row::input("h", "", 1.0).paper(1.0),
            Row::measured("i", "", 1.0).paper_at_least(1.0),
            Row::measured("j", "", 1.5).paper_at_least(1.0),
            Row::measured("k", "", 32.9).paper_at_least(1.0),
            Row::measured("l", "", 0.9).paper_at_least(1.0),
        ];
        let outcome =
            Outcome { tables: vec![Table { title: "t".into(), rows }], ..Outcome::default() };
        let ran = Ran { name: "figure-1", title: "T", reference: "section 1", outcome };
        let part = Part::of(Paper::Rhik, &ran, Scale::new(64, 7).unwrap());
        let bounds = Bounds { by_tenth: 1, by_twice: 1, by_more: 1, missed: 1 };
        let (near, off, far, fitted, assumed, given, stated, own) = (1, 1, 1, 1, 1, 1, 1, 1);
        let one_each = Counted { near, off, far, bounds, fitted, assumed, given, stated, own };
        assert_eq!(part.counted, one_each);
        let conclusions = Part { name: CONCLUSIONS.into(), ..part.clone() };
        assert_eq!(Part::sum([&part, &conclusions]), one_each);
        assert_eq!(one_each.bounds.kept(), 3);
        assert!(
            part.section.contains("nandex-lab reproduce rhik --only figure-1 --scale 64 --seed 7<")
        );
        assert!((1..=12).all(|row| part.section.contains(&format!(">1.{row}</span>"))));
        let kept = serde_json::to_string(&part).unwrap();
        assert_eq!(serde_json::from_str::<Part>(&kept).unwrap(), part);
    }
}
