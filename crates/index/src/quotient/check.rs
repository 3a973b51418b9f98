//! Proof that slots are a quotient filter: every invariant of the [module](super), by looking at all of them.

use std::ops::Range;

use super::QuotientFilter;
use super::counts::Held;
use super::iter::Walk;
use super::slots::{SlotArray, Stored};
use crate::{Error, Result};

/// Looks at a whole filter.
///
/// # Errors
/// [`Error::FilterDamaged`] with the first thing that cannot be.
pub fn check(filter: &QuotientFilter) -> Result<()> {
    let shape = filter.shape;
    let quotients = usize::try_from(shape.split().quotients()).expect("less than slots");
    metadata(&filter.slots, quotients)?;
    let used = (0..filter.slots.len()).filter(|&at| !filter.slots.is_empty(at)).count() as u64;
    expect(used == filter.entries, "slots in use", filter.entries, used)?;
    let (entries_max, outliers_max) = (shape.entries_max(), shape.outliers_max());
    expect(used <= entries_max, "slots in use, at most", entries_max, used)?;
    let outliers = filter.outliers.len() as u64;
    expect(outliers <= outliers_max, "outliers, at most", outliers_max, outliers)?;
    let told = bodies(filter)?;
    expect(told == outliers, "outliers that slots tell of", outliers, told)
}

/// Invariants 1 to 4: the three bits of each slot say where runs and clusters lie, and this is what they say.
///
/// What cannot be is found slot by slot, with the occupied quotients whose run has not begun as all memory.
pub fn metadata(slots: &SlotArray, quotients: usize) -> Result<()> {
    // Quotients up to this slot that have a run, and how many of these runs have begun.
    let (mut occupied, mut begun) = (0, 0);
    for at in 0..slots.len() {
        let Stored { is_continuation, is_shifted, body } = slots.stored(at);
        if slots.is_occupied(at) {
            expect(at < quotients, "quotients below", quotients, at)?;
            occupied += 1;
        }
        if slots.is_empty(at) {
            expect(body == 0, "nothing in empty slot", at, body)?;
        }
        match (is_continuation, is_shifted) {
            // A cluster begins, or nothing is here: then all runs before have been seen.
            (false, false) => {
                begun += usize::from(slots.is_occupied(at));
                expect(begun == occupied, "a run for each quotient left of slot", at, begun)?;
            }
            // A run begins, of a quotient on the left.
            (false, true) => {
                begun += 1;
                let left = occupied - usize::from(slots.is_occupied(at));
                expect(begun <= left, "runs of quotients left of slot", at, begun)?;
            }
            (true, true) => {
                let follows = at > 0 && !slots.is_empty(at - 1);
                expect(follows, "something before what continues it in slot", at, "nothing")?;
            }
            (true, false) => {
                return Err(damaged("a shifted continuation in slot", at, "one not shifted"));
            }
        }
    }
    expect(begun == occupied, "runs for so many quotients", occupied, begun)
}

/// Invariants 5 and 6: remainders ascend in each run, and each count is held in the one way there is for it.
/// Gives how many outliers the slots tell of.
fn bodies(filter: &QuotientFilter) -> Result<u64> {
    let mut walk = Walk::new(&filter.slots).peekable();
    let mut last = None;
    let mut outliers = 0;
    while let Some((quotient, start)) = walk.next() {
        let remainder = filter.remainder(start);
        let this = Some((quotient, remainder));
        expect(last < this, "ascending remainders, in slot", start, remainder)?;
        last = this;
        let mut same = start..start + 1;
        let is_same = |&(of, at): &_| of == quotient && filter.remainder(at) == remainder;
        while let Some((_, at)) = walk.next_if(is_same) {
            let (code, first) = (filter.code(at), filter.code(start));
            expect(code == first, "one code for one fingerprint, in slot", at, code)?;
            same.end += 1;
        }
        outliers += u64::from(count(filter, quotient, remainder, &same)?);
    }
    Ok(outliers)
}

/// Looks at the slots of one fingerprint, and says whether something of it stands among the outliers.
fn count(
    filter: &QuotientFilter,
    quotient: usize,
    remainder: u64,
    same: &Range<usize>,
) -> Result<bool> {
    let (split, counts) = (filter.shape.split(), filter.shape.counts());
    let fingerprint = split.join(quotient as u64, remainder);
    let is_one = fingerprint < split.universe().size()
        && split.split(fingerprint) == (quotient as u64, remainder);
    expect(is_one, "the remainder of a fingerprint in slot", same.start, remainder)?;
    let held = filter.held(fingerprint, same);
    let count = held.count(counts);
    let is_right = count != i64::MIN && Held::of(counts, count) == held;
    expect(is_right, "a count as it is held, in slot", same.start, format!("{held:?}"))?;
    Ok(held.beside != 0)
}

fn expect(
    is_so: bool,
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Result<()> {
    if is_so { Ok(()) } else { Err(damaged(what, expected, found)) }
}

/// The error for what cannot be.
pub fn damaged(
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Error {
    Error::FilterDamaged { expected: format!("{what} {expected}"), found: found.to_string() }
}
