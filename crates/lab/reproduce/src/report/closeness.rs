//! The distance of nandex's number from the paper's, as a colour.

use crate::experiment::{Origin, Row, Sense};

/// The distance of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closeness {
    /// Within a tenth, or on the promised side of a bound.
    Near,
    /// Within twice.
    Off,
    /// Further.
    Far,
    /// A fitted number, whose distance says nothing.
    Fitted,
}

impl Closeness {
    /// Returns the distance of a row; `None` if one of the two numbers is missing, or the paper's is 0.
    pub(super) fn of(row: &Row) -> Option<Self> {
        let (ratio, paper) = (row.ratio?, row.paper?);
        if let Origin::Fitted { .. } = row.origin() {
            return Some(Self::Fitted);
        }
        let keeps = match paper.sense {
            Sense::Exactly => false,
            Sense::AtMost => ratio <= 1.0,
            Sense::AtLeast => ratio >= 1.0,
        };
        let times = ratio.max(1.0 / ratio);
        Some(match times {
            _ if keeps => Self::Near,
            _ if times <= 1.1 => Self::Near,
            _ if times <= 2.0 => Self::Off,
            _ => Self::Far,
        })
    }

    /// Returns its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Off => "off",
            Self::Far => "far",
            Self::Fitted => "fitted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_near_twice_is_off_and_a_bound_is_kept_or_not() {
        let of = |row: Row| Closeness::of(&row);
        let ours = |number| Row::predicted("a", "", number);
        assert_eq!(of(ours(1.09).paper(1.0)), Some(Closeness::Near));
        assert_eq!(of(ours(0.6).paper(1.0)), Some(Closeness::Off));
        assert_eq!(of(ours(0.4).paper(1.0)), Some(Closeness::Far));
        assert_eq!(of(ours(0.01).paper_at_most(1.0)), Some(Closeness::Near));
        assert_eq!(of(ours(3.0).paper_at_most(1.0)), Some(Closeness::Far));
        assert_eq!(of(ours(3.0).paper_at_least(1.0)), Some(Closeness::Near));
        assert_eq!(of(Row::fitted("a", "", 1.0, "1").paper(1.0)), Some(Closeness::Fitted));
        assert_eq!((of(ours(1.0)), of(ours(1.0).paper(0.0))), (None, None));
    }
}
