//! The claims of the papers, each with the row that answers it.
//!
//! `claims.txt` lists them, one a line. A claim comes out or does not, by its row and its condition; if the row's
//! agreement was arranged, by a fit or the like, it shows nothing; and some claims are not tried, for a reason. A
//! claim that does not come out is said first in the section of its experiment, and at its row.

use crate::{Outcome, Paper, Ran, Row};

/// A claim of a paper.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    /// Its number: a letter for the paper, and its place there from 1.
    pub number: &'static str,
    /// Its paper.
    pub paper: Paper,
    /// The section of the paper.
    pub section: &'static str,
    /// The claim, in short.
    pub says: &'static str,
    /// Its answer.
    pub answer: Answer,
}

/// The answer to a claim.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Answer {
    /// The row of an experiment, or one over another.
    Row {
        /// The experiment's name.
        experiment: &'static str,
        /// The row.
        above: Place,
        /// The row below it, for a ratio.
        below: Option<Place>,
        /// The condition of the number for the claim to come out.
        wanted: Wanted,
    },
    /// Nothing, for this reason.
    NotTried(&'static str),
}

/// The place of a row: the beginning of its table's title, and its quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The beginning of the table's title.
    pub table: &'static str,
    /// The quantity.
    pub row: &'static str,
}

/// The condition of a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wanted {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// This, or more or less by at most a factor.
    Within(f64, f64),
}

/// The outcome of a claim that was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The number is as wanted.
    ComesOut,
    /// It is not.
    DoesNot,
    /// It is as wanted, and was arranged to be.
    Arranged,
}

impl Verdict {
    /// Returns it in words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ComesOut => "comes out",
            Self::DoesNot => "does not come out",
            Self::Arranged => "arranged",
        }
    }
}

impl Wanted {
    /// Returns whether a number is as wanted.
    #[must_use]
    pub fn holds(self, number: f64) -> bool {
        match self {
            Self::AtLeast(least) => number >= least,
            Self::AtMost(most) => number <= most,
            Self::Within(value, times) => number >= value / times && number <= value * times,
        }
    }

    /// Returns it in words.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::AtLeast(least) => format!("at least {least}"),
            Self::AtMost(most) => format!("at most {most}"),
            Self::Within(value, times) => format!("{value}, within {times} times"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse().ok();
        match text.split_at_checked(2)? {
            (">=", least) => number(least).map(Self::AtLeast),
            ("<=", most) => number(most).map(Self::AtMost),
            ("= ", rest) => {
                let (value, times) = rest.split_once(" within ")?;
                Some(Self::Within(number(value)?, number(times)?))
            }
            _ => None,
        }
    }
}

impl Place {
    fn find(self, outcome: &Outcome) -> Option<&Row> {
        let mut tables = outcome.tables.iter().filter(|it| it.title.starts_with(self.table));
        tables.find_map(|table| table.rows.iter().find(|row| row.what == self.row))
    }

    fn find_mut(self, outcome: &mut Outcome) -> Option<&mut Row> {
        let mut tables = outcome.tables.iter_mut().filter(|it| it.title.starts_with(self.table));
        tables.find_map(|table| table.rows.iter_mut().find(|row| row.what == self.row))
    }
}

impl Answer {
    fn parse(answer: &'static str, condition: &'static str) -> Option<Self> {
        if answer == "not tried" {
            return Some(Self::NotTried(condition));
        }
        let place = |text: &'static str| {
            let mut parts = text.split(" > ");
            let (experiment, table, row) = (parts.next()?, parts.next()?, parts.next()?);
            parts.next().is_none().then_some((experiment, Place { table, row }))
        };
        let (above, below) = match answer.split_once(" // ") {
            Some((above, below)) => (place(above)?, Some(place(below)?)),
            None => (place(answer)?, None),
        };
        let (experiment, above) = above;
        if below.is_some_and(|it| it.0 != experiment) {
            return None;
        }
        let (below, wanted) = (below.map(|it| it.1), Wanted::parse(condition)?);
        Some(Self::Row { experiment, above, below, wanted })
    }
}

impl Claim {
    /// Parses a line of `claims.txt`. `None` if it is none of a claim.
    fn parse(line: &'static str) -> Option<Self> {
        let fields: Vec<&'static str> = line.split(" | ").collect();
        let [number, section, says, answer, condition] = fields[..] else { return None };
        let paper = match number.as_bytes().first()? {
            b'B' => Paper::BufferHash,
            b'C' => Paper::Cascade,
            b'H' => Paper::Counting,
            b'S' => Paper::SliceHash,
            b'R' => Paper::Rhik,
            _ => return None,
        };
        Some(Self { number, paper, section, says, answer: Answer::parse(answer, condition)? })
    }

    /// Returns the experiment that answers it, by name.
    #[must_use]
    pub const fn experiment(&self) -> Option<&'static str> {
        match self.answer {
            Answer::Row { experiment, .. } => Some(experiment),
            Answer::NotTried(_) => None,
        }
    }

    /// Returns its number in an outcome of its experiment, and the verdict. `None` if the rows do not exist.
    #[must_use]
    pub fn decide(&self, outcome: &Outcome) -> Option<(f64, Verdict)> {
        let Answer::Row { above, below, wanted, .. } = self.answer else { return None };
        let row = above.find(outcome)?;
        let (mut number, mut origin) = (row.ours?, row.origin());
        if let Some(below) = below {
            let row = below.find(outcome)?;
            number /= row.ours?;
            origin = origin.weaker(row.origin());
        }
        let verdict = match (wanted.holds(number), origin.is_evidence()) {
            (false, _) => Verdict::DoesNot,
            (true, true) => Verdict::ComesOut,
            (true, false) => Verdict::Arranged,
        };
        Some((number, verdict))
    }
}

/// Returns all claims, in the order of the papers.
#[must_use]
pub fn all_claims() -> Vec<Claim> {
    lines().filter_map(Claim::parse).collect()
}

/// Returns the lines of the list that are neither empty nor comments.
fn lines() -> impl Iterator<Item = &'static str> {
    let text = include_str!("../claims.txt");
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Says in an outcome which claims of the paper do not come out: first in its setup, and at their rows.
pub(crate) fn mark(paper: Paper, ran: &mut Ran) {
    let of_ran = |it: &Claim| it.paper == paper && it.experiment() == Some(ran.name);
    let claims: Vec<Claim> = all_claims().into_iter().filter(of_ran).collect();
    let mut failed = Vec::new();
    for claim in claims {
        let Answer::Row { above, wanted, .. } = claim.answer else { continue };
        let Some((number, Verdict::DoesNot)) = claim.decide(&ran.outcome) else { continue };
        let Claim { number: name, section, says, .. } = claim;
        failed.push(format!(
            "Does not come out ({name}, {section}): {says}. Wanted is {}, and it is {}.",
            wanted.shown(),
            nandex_html::shown(number),
        ));
        if let Some(row) = above.find_mut(&mut ran.outcome) {
            row.why = format!("Claim {name} does not come out. {}", row.why).trim_end().into();
        }
    }
    ran.outcome.setup.splice(0..0, failed);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Table, experiments};

    #[test]
    fn each_line_is_a_claim_of_its_own_number_and_names_an_experiment() {
        let all = all_claims();
        for line in lines() {
            assert!(Claim::parse(line).is_some(), "{line}");
        }
        assert!(all.len() >= 60, "{}", all.len());
        for paper in Paper::ALL {
            let names: BTreeSet<_> = experiments(paper).iter().map(|it| it.name()).collect();
            let of_paper: Vec<_> = all.iter().filter(|it| it.paper == paper).collect();
            assert!(!of_paper.is_empty(), "{paper:?}");
            for (place, claim) in (1..).zip(of_paper) {
                assert_eq!(claim.number[1..].parse(), Ok(place), "{}", claim.says);
                assert!(claim.experiment().is_none_or(|name| names.contains(name)), "{claim:?}");
            }
        }
    }

    fn ran(stores: f64, fitted: bool) -> Ran {
        let what = "values of 1024 B: RHIK over multi-level";
        let row = match fitted {
            true => Row::fitted(what, "", stores, "1"),
            false => Row::measured(what, "", stores),
        };
        let tables = vec![Table { title: "Asynchronous stores".into(), rows: vec![row] }];
        let outcome = Outcome { setup: vec!["Setup.".into()], tables, ..Outcome::default() };
        Ran { name: "figure-3", title: "T", reference: "3", outcome }
    }

    #[test]
    fn what_does_not_come_out_is_said_first_and_at_its_row() {
        let mut slower = ran(0.5, false);
        mark(Paper::Rhik, &mut slower);
        assert!(slower.outcome.setup[0].starts_with("Does not come out (R9, 3): Stores are"));
        assert_eq!(slower.outcome.setup[1], "Setup.");
        assert_eq!(slower.outcome.tables[0].rows[0].why, "Claim R9 does not come out.");
        let mut faster = ran(2.0, false);
        mark(Paper::Rhik, &mut faster);
        assert_eq!(faster, ran(2.0, false));
        mark(Paper::Counting, &mut slower);
        assert_eq!(slower.outcome.setup.len(), 2, "figure-3 of another paper");
    }

    #[test]
    fn what_was_arranged_shows_nothing() {
        let all = all_claims();
        let claim = all.iter().find(|it| it.number == "R9").unwrap();
        assert_eq!(claim.decide(&ran(2.0, true).outcome), Some((2.0, Verdict::Arranged)));
        assert_eq!(claim.decide(&ran(2.0, false).outcome), Some((2.0, Verdict::ComesOut)));
        assert_eq!(claim.decide(&ran(0.5, true).outcome), Some((0.5, Verdict::DoesNot)));
        assert_eq!(claim.decide(&Outcome::default()), None);
        let wanted = Wanted::parse("= 10 within 2").unwrap();
        assert!(wanted.holds(5.0) && wanted.holds(20.0) && !wanted.holds(21.0));
    }
}
