//! The distance of nandex's number from the paper's, as a colour.

use crate::experiment::{Row, Sense};

/// The statement of a row on the paper's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closeness {
    /// A number within a tenth of the paper's.
    Near,
    /// A number within twice the paper's.
    Off,
    /// A number further off.
    Far,
    /// A bound of the paper that is kept, and by how far.
    Keeps(Distance),
    /// A bound of the paper that is not kept.
    Misses,
    /// A number whose agreement was arranged, by a fit, an assumption, the load or the paper's own formula.
    Arranged,
}

/// The distance of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Distance {
    /// Within a tenth.
    Tenth,
    /// Within twice.
    Twice,
    /// Further.
    More,
}

impl Distance {
    fn of(ratio: f64) -> Self {
        let times = ratio.max(1.0 / ratio);
        match times {
            _ if times <= 1.1 => Self::Tenth,
            _ if times <= 2.0 => Self::Twice,
            _ => Self::More,
        }
    }
}

impl Closeness {
    /// Returns what a row says; `None` if one of the two numbers is missing, or the paper's is 0.
    pub(super) fn of(row: &Row) -> Option<Self> {
        let (ratio, paper) = (row.ratio?, row.paper?);
        if !row.origin().is_evidence() {
            return Some(Self::Arranged);
        }
        let distance = Distance::of(ratio);
        let is_kept = match paper.sense {
            Sense::Exactly => {
                return Some(match distance {
                    Distance::Tenth => Self::Near,
                    Distance::Twice => Self::Off,
                    Distance::More => Self::Far,
                });
            }
            Sense::AtMost => ratio <= 1.0,
            Sense::AtLeast => ratio >= 1.0,
        };
        Some(if is_kept { Self::Keeps(distance) } else { Self::Misses })
    }

    /// Returns its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Off => "off",
            Self::Far => "far",
            Self::Keeps(_) => "keeps",
            Self::Misses => "misses",
            Self::Arranged => "fitted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_a_number_next_to_a_number_and_a_bound_is_kept_or_not() {
        let of = |row: Row| Closeness::of(&row);
        let ours = |number| Row::measured("a", "", number);
        assert_eq!(of(ours(1.09).paper(1.0)), Some(Closeness::Near));
        assert_eq!(of(ours(0.6).paper(1.0)), Some(Closeness::Off));
        assert_eq!(of(ours(0.4).paper(1.0)), Some(Closeness::Far));
        for (kept, distance) in [
            (ours(0.95).paper_at_most(1.0), Distance::Tenth),
            (ours(1.6).paper_at_least(1.0), Distance::Twice),
            (ours(32.9).paper_at_least(1.0), Distance::More),
        ] {
            assert_eq!(of(kept), Some(Closeness::Keeps(distance)));
        }
        assert_eq!(of(ours(1.05).paper_at_most(1.0)), Some(Closeness::Misses));
        assert_eq!((of(ours(1.0)), of(ours(1.0).paper(0.0))), (None, None));
    }

    #[test]
    fn what_was_arranged_is_not_near() {
        for row in [
            Row::fitted("a", "", 1.0, "1"),
            Row::assumed("a", "", 1.0, "a-constant"),
            Row::input("a", "", 1.0),
            Row::formula("a", "", 1.0),
        ] {
            assert_eq!(Closeness::of(&row.clone().paper(1.0)), Some(Closeness::Arranged));
            assert_eq!(Closeness::of(&row.paper_at_least(0.5)), Some(Closeness::Arranged));
        }
    }
}
