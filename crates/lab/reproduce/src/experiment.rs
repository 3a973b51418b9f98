//! An experiment, and its outcome: nandex's numbers and those of the paper.

use nandex_html::chart::Chart;
use serde::Serialize;

use crate::{Result, Scale};

/// A figure, table or paragraph of a paper that can be measured again. Several may run at once, each on its
/// thread.
pub trait Experiment: Send + Sync {
    /// Returns its name on the command line and in JSON: lower case, with hyphens.
    fn name(&self) -> &'static str;

    /// Returns its subject, in a few words.
    fn title(&self) -> &'static str;

    /// Returns its place in the paper.
    fn reference(&self) -> &'static str;

    /// Runs it. The same scale gives the same outcome.
    ///
    /// # Errors
    /// Returns any failure; a structure on a simulated drive has no reason to fail.
    fn run(&self, scale: Scale) -> Result<Outcome>;
}

/// The outcome of an experiment.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Outcome {
    /// The setup, in plain sentences.
    pub setup: Vec<String>,
    /// Numbers with the paper's.
    pub tables: Vec<Table>,
    /// Curves, with points if the paper printed one.
    pub charts: Vec<Chart>,
}

impl Outcome {
    /// Returns the outcome with only one row, which is given by its table and its place there, both from 1.
    #[must_use]
    pub fn only(mut self, (table, row): (usize, usize)) -> Option<Self> {
        let table = self.tables.get(table.checked_sub(1)?)?;
        let row = table.rows.get(row.checked_sub(1)?)?.clone();
        self.tables = vec![Table { title: table.title.clone(), rows: vec![row] }];
        self.charts.clear();
        Some(self)
    }
}

/// Related rows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// The subject of its rows.
    pub title: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A number, its origin, the paper's number for it, and the reason why they differ.
///
/// No row is without its [`Origin`]: each has its own function here, and there is no other way to create one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The measured quantity.
    pub what: String,
    /// Its unit; empty for counts and ratios.
    pub unit: &'static str,
    /// The number of nandex; `None` if only the paper has one.
    pub ours: Option<f64>,
    /// The origin of the number.
    #[serde(flatten)]
    origin: Origin,
    /// The paper's number; `None` if it has none.
    pub paper: Option<Printed>,
    /// The number of nandex over the paper's.
    pub ratio: Option<f64>,
    /// The difference between the two and its reason, in a sentence; may be empty.
    pub why: String,
}

/// The origin of a row's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "origin", rename_all = "kebab-case")]
pub enum Origin {
    /// It was counted or timed on what ran here: a structure, or requests, on a simulated drive. The drive's
    /// times are constants, which are all listed.
    Measured,
    /// It was measured on a corpus that the user gave; the paper's number is of another one.
    Corpus,
    /// It was computed by a model without a constant that was chosen for it.
    Predicted,
    /// It is what the load was made with, so agreement with the paper was arranged.
    Input,
    /// It is computed with a constant that nobody printed or measured, but that was taken by judgement.
    Assumed {
        /// The constant's name in the list of constants.
        assumed: &'static str,
    },
    /// A constant was chosen so that a printed number comes out, so agreement proves nothing.
    Fitted {
        /// The printed number, and its place.
        fitted_to: &'static str,
    },
    /// It follows from CPU times, which were measured once and kept: a simulated drive has no processor.
    Recorded {
        /// The processor, and the day.
        recorded_on: &'static str,
    },
    /// It is the paper's own formula with the paper's numbers: agreement shows that it was copied correctly.
    Formula,
    /// It was not measured here: it is the paper's number.
    Stated,
}

impl Origin {
    /// Returns the origin of a number that is computed from two others: the one that proves less.
    #[must_use]
    pub const fn weaker(self, other: Self) -> Self {
        if self.rank() >= other.rank() { self } else { other }
    }

    /// Returns whether the number can agree or disagree with the paper's: nothing was arranged so that it does.
    #[must_use]
    pub const fn is_evidence(self) -> bool {
        matches!(self, Self::Measured | Self::Corpus | Self::Predicted | Self::Recorded { .. })
    }

    /// Returns how little a number of this origin proves, from 0.
    const fn rank(self) -> u8 {
        match self {
            Self::Measured => 0,
            Self::Corpus => 1,
            Self::Predicted => 2,
            Self::Recorded { .. } => 3,
            Self::Formula => 4,
            Self::Input => 5,
            Self::Assumed { .. } => 6,
            Self::Fitted { .. } => 7,
            Self::Stated => 8,
        }
    }
}

/// A number as the paper printed it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Printed {
    /// The number.
    pub value: f64,
    /// Its meaning.
    pub sense: Sense,
}

/// The meaning of a printed number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// The measured value.
    Exactly,
    /// The number of nandex should not be above it.
    AtMost,
    /// The number of nandex should not be below it.
    AtLeast,
}

impl Table {
    /// Returns the same rows as measured on a corpus of the user, of which the paper has no number.
    pub(crate) fn of_corpus(mut self) -> Self {
        self.rows.iter_mut().for_each(|row| row.origin = Origin::Corpus);
        self
    }
}

impl Row {
    /// Creates a number with this origin.
    #[must_use]
    pub fn of(origin: Origin, what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self::new(what.into(), unit, Some(ours), origin)
    }

    /// Creates a number that was counted or timed on what ran here.
    #[must_use]
    pub fn measured(what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self::of(Origin::Measured, what, unit, ours)
    }

    /// Creates a number of a corpus of the user.
    #[must_use]
    pub fn of_corpus(what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self::of(Origin::Corpus, what, unit, ours)
    }

    /// Creates a number of a model without a constant that was chosen for it.
    #[must_use]
    pub fn predicted(what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self::of(Origin::Predicted, what, unit, ours)
    }

    /// Creates a number that the load was made with.
    #[must_use]
    pub fn input(what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self::of(Origin::Input, what, unit, ours)
    }

    /// Creates a number of the paper's own formula.
    #[must_use]
    pub fn formula(what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self::of(Origin::Formula, what, unit, ours)
    }

    /// Creates a number that rests on a constant taken by judgement, `assumed` in the list of constants.
    #[must_use]
    pub fn assumed(
        what: impl Into<String>,
        unit: &'static str,
        ours: f64,
        assumed: &'static str,
    ) -> Self {
        Self::of(Origin::Assumed { assumed }, what, unit, ours)
    }

    /// Creates a number for which a constant was chosen: so that `fitted_to`, a printed number and its place,
    /// comes out.
    #[must_use]
    pub fn fitted(
        what: impl Into<String>,
        unit: &'static str,
        ours: f64,
        fitted_to: &'static str,
    ) -> Self {
        Self::of(Origin::Fitted { fitted_to }, what, unit, ours)
    }

    /// Creates a number that follows from CPU times, measured once on a given processor.
    #[must_use]
    pub fn recorded(
        what: impl Into<String>,
        unit: &'static str,
        ours: f64,
        recorded_on: &'static str,
    ) -> Self {
        Self::of(Origin::Recorded { recorded_on }, what, unit, ours)
    }

    /// Creates a number of the paper that was not measured here.
    #[must_use]
    pub fn stated(what: impl Into<String>, unit: &'static str, paper: f64) -> Self {
        Self::new(what.into(), unit, None, Origin::Stated).with(paper, Sense::Exactly)
    }

    fn new(what: String, unit: &'static str, ours: Option<f64>, origin: Origin) -> Self {
        Self { what, unit, ours, origin, paper: None, ratio: None, why: String::new() }
    }

    /// Returns the origin of the number.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Sets the paper's number for it.
    #[must_use]
    pub fn paper(self, value: f64) -> Self {
        self.with(value, Sense::Exactly)
    }

    /// Sets the paper's upper bound.
    #[must_use]
    pub fn paper_at_most(self, value: f64) -> Self {
        self.with(value, Sense::AtMost)
    }

    /// Sets the paper's lower bound.
    #[must_use]
    pub fn paper_at_least(self, value: f64) -> Self {
        self.with(value, Sense::AtLeast)
    }

    /// Sets the reason why the number differs from the paper's, or a caveat.
    #[must_use]
    pub fn why(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    fn with(self, value: f64, sense: Sense) -> Self {
        let ratio = self.ours.filter(|_| value != 0.0).map(|ours| ours / value);
        Self { paper: Some(Printed { value, sense }), ratio, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_ours_over_the_papers_where_both_are() {
        let row = Row::predicted("a", "ms", 3.0).paper(2.0);
        assert_eq!(row.ratio, Some(1.5));
        assert_eq!(Row::stated("a", "ms", 2.0).ratio, None);
        assert_eq!(Row::predicted("a", "ms", 3.0).paper(0.0).ratio, None);
        assert_eq!(
            Row::predicted("a", "ms", 1.0).paper_at_most(2.0).paper.unwrap().sense,
            Sense::AtMost
        );
    }

    #[test]
    fn a_number_of_two_others_has_the_origin_that_proves_less() {
        let fitted = Origin::Fitted { fitted_to: "2 ms, Table 1" };
        assert_eq!(Origin::Measured.weaker(fitted), fitted);
        assert_eq!(fitted.weaker(Origin::Measured), fitted);
        assert_eq!(Origin::Input.weaker(Origin::Formula), Origin::Input);
        assert!(Origin::Measured.is_evidence() && !Origin::Input.is_evidence());
    }

    #[test]
    fn one_row_alone_is_named_by_its_table_and_its_place() {
        let rows = |names: &[&str]| names.iter().map(|it| Row::predicted(*it, "", 1.0)).collect();
        let table = |title: &str, names| Table { title: title.into(), rows: rows(names) };
        let outcome = Outcome {
            tables: vec![table("first", &["a"]), table("second", &["b", "c"])],
            ..Outcome::default()
        };
        let only = outcome.clone().only((2, 2)).unwrap();
        assert_eq!((only.tables.len(), only.tables[0].title.as_str()), (1, "second"));
        assert_eq!(only.tables[0].rows, outcome.tables[1].rows[1..]);
        for none in [(0, 1), (1, 0), (1, 2), (3, 1)] {
            assert_eq!(outcome.clone().only(none), None);
        }
    }

    #[test]
    fn data_say_where_a_number_comes_from_and_what_it_was_fitted_to() {
        let json = |row: Row| serde_json::to_value(row).unwrap();
        let fitted = json(Row::fitted("a", "ms", 3.0, "3 ms, Table 1"));
        assert_eq!(
            (&fitted["origin"], &fitted["fitted_to"]),
            (&"fitted".into(), &"3 ms, Table 1".into())
        );
        for (row, origin) in [
            (Row::predicted("a", "ms", 3.0), "predicted"),
            (Row::measured("a", "ms", 3.0), "measured"),
            (Row::of_corpus("a", "ms", 3.0), "corpus"),
            (Row::input("a", "ms", 3.0), "input"),
            (Row::formula("a", "ms", 3.0), "formula"),
            (Row::assumed("a", "ms", 3.0, "a-constant"), "assumed"),
            (Row::recorded("a", "ms", 3.0, "a processor"), "recorded"),
            (Row::stated("a", "ms", 3.0), "stated"),
        ] {
            let row = json(row);
            assert_eq!(row["origin"], origin);
            assert_eq!(row.get("fitted_to"), None);
        }
    }
}
