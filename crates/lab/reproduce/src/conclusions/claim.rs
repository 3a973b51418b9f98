//! A conclusion of a paper as a number and its bound.

use crate::experiment::Origin;
use crate::{Outcome, Row};

/// A conclusion of a paper: "x times faster than y".
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    /// The paper's statement, in a sentence.
    pub says: &'static str,
    /// The experiment whose rows decide.
    pub experiment: &'static str,
    /// The number.
    pub number: Number,
    /// The bound that the number must keep for the conclusion to hold.
    pub bound: Bound,
    /// Whether it follows from a drive's times. If not, it is the same on any drive.
    pub on: On,
}

/// A number of an outcome: rows are named by the beginning of their table's title, and by their quantity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// A row.
    Row(&'static str, &'static str),
    /// A row over another one.
    Over((&'static str, &'static str), (&'static str, &'static str)),
}

/// The bound of a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// The number must be at least this.
    AtLeast(f64),
    /// The number must be at most this.
    AtMost(f64),
}

/// The decisive part of a conclusion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// An SSD, which can be replaced by another one.
    Drive,
    /// The structure or the processor alone.
    Structure,
}

impl Bound {
    /// Returns whether this number keeps the bound.
    pub fn holds(self, number: f64) -> bool {
        match self {
            Self::AtLeast(least) => number >= least,
            Self::AtMost(most) => number <= most,
        }
    }

    /// Returns the worse of two numbers.
    pub fn worse(self, a: f64, b: f64) -> f64 {
        match self {
            Self::AtLeast(_) => a.min(b),
            Self::AtMost(_) => a.max(b),
        }
    }

    /// Returns the row with its bound as the paper's number.
    pub fn on(self, row: Row) -> Row {
        match self {
            Self::AtLeast(least) => row.paper_at_least(least),
            Self::AtMost(most) => row.paper_at_most(most),
        }
    }
}

impl Number {
    /// Returns its value in an outcome, and its origin: of two rows the one that proves less. `None` if the
    /// rows do not exist or were not measured.
    pub fn of(self, outcome: &Outcome) -> Option<(f64, Origin)> {
        match self {
            Self::Row(table, row) => value(outcome, table, row),
            Self::Over((table, row), (below_table, below_row)) => {
                let (above, origin) = value(outcome, table, row)?;
                let (below, other) = value(outcome, below_table, below_row)?;
                (below != 0.0).then(|| (above / below, origin.weaker(other)))
            }
        }
    }
}

fn value(outcome: &Outcome, table: &str, what: &str) -> Option<(f64, Origin)> {
    let table = outcome.tables.iter().find(|it| it.title.starts_with(table))?;
    let row = table.rows.iter().find(|it| it.what == what)?;
    Some((row.ours?, row.origin()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn a_number_is_a_row_or_one_over_another_and_has_the_weaker_origin() {
        let rows = vec![
            Row::measured("a", "ms", 6.0),
            Row::fitted("b", "ms", 2.0, "2 ms, Table 1"),
            Row::stated("c", "ms", 1.0),
        ];
        let outcome = Outcome {
            tables: vec![Table { title: "First table".into(), rows }],
            ..Outcome::default()
        };
        assert_eq!(Number::Row("First", "a").of(&outcome), Some((6.0, Origin::Measured)));
        let over = Number::Over(("First", "a"), ("First", "b"));
        let fitted = Origin::Fitted { fitted_to: "2 ms, Table 1" };
        assert_eq!(over.of(&outcome), Some((3.0, fitted)));
        for none in
            [Number::Row("Second", "a"), Number::Row("First", "c"), Number::Row("First", "d")]
        {
            assert_eq!(none.of(&outcome), None);
        }
    }

    #[test]
    fn the_worse_number_is_the_one_that_breaks_the_bound_first() {
        assert!(Bound::AtLeast(2.0).holds(2.0) && !Bound::AtLeast(2.0).holds(1.9));
        assert!(Bound::AtMost(2.0).holds(2.0) && !Bound::AtMost(2.0).holds(2.1));
        assert_eq!(
            (Bound::AtLeast(0.0).worse(1.0, 3.0), Bound::AtMost(0.0).worse(1.0, 3.0)),
            (1.0, 3.0)
        );
    }
}
