//! The bytes of terms in a block; see [the format](../../../../../../docs/reference/format.md).

use std::ops::Range;

use crate::varint::{put_varint, varint};

/// The change of a term's counts by some documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Delta {
    /// The number of documents that have it; negative for removed documents.
    pub(crate) documents: i64,
    /// The number of its occurrences in these.
    pub(crate) occurrences: i64,
}

impl Delta {
    /// Returns the sum of both changes; `None` if a sum is past 2^63 - 1.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let documents = self.documents.checked_add(other.documents)?;
        let occurrences = self.occurrences.checked_add(other.occurrences)?;
        Some(Self { documents, occurrences })
    }

    /// Returns the change that undoes this one. No batch has 2^63 occurrences.
    pub(crate) fn negated(self) -> Self {
        Self { documents: -self.documents, occurrences: -self.occurrences }
    }

    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// The place of the counts of a run's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CountsIn {
    /// Behind each text.
    Run,
    /// In counting tables.
    Tables,
}

/// The most bytes that a term takes in addition to its text.
pub(super) const OVERHEAD_BYTES: usize = 3 + 10 + 10;

/// Appends a term.
pub(super) fn encode(block: &mut Vec<u8>, text: &[u8], delta: Delta, counts: CountsIn) {
    put_varint(block, text.len() as u64);
    block.extend_from_slice(text);
    if counts == CountsIn::Run {
        put_varint(block, zigzag(delta.documents));
        put_varint(block, zigzag(delta.occurrences));
    }
}

/// A term of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Decoded {
    /// The position of its text.
    pub(super) text: Range<usize>,
    /// `None` if tables have the counts.
    pub(super) delta: Delta,
    /// The beginning of the next term.
    pub(super) end: usize,
}

/// Decodes the term that begins at `at`; `None` if the block has none there.
#[inline]
pub(super) fn decode(block: &[u8], at: usize, counts: CountsIn) -> Option<Decoded> {
    let (bytes, start) = varint(block, at)?;
    let text_end = start.checked_add(usize::try_from(bytes).ok()?)?;
    if text_end > block.len() {
        return None;
    }
    let (mut delta, mut end) = (Delta::default(), text_end);
    if counts == CountsIn::Run {
        let (documents, after) = varint(block, end)?;
        let (occurrences, after) = varint(block, after)?;
        delta = Delta { documents: unzigzag(documents), occurrences: unzigzag(occurrences) };
        end = after;
    }
    Some(Decoded { text: start..text_end, delta, end })
}

/// Maps numbers near 0 to small ones, whatever their sign.
#[inline]
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[inline]
fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_as_they_were_written_and_bytes_that_are_none_are_refused() {
        let deltas = [0, 1, -1, 127, -128, i64::MAX, i64::MIN];
        for counts in [CountsIn::Run, CountsIn::Tables] {
            let mut block = Vec::new();
            for (bytes, number) in deltas.into_iter().enumerate() {
                let delta = Delta { documents: number, occurrences: -(number / 2) };
                encode(&mut block, &vec![b'x'; bytes * 40], delta, counts);
            }
            let mut at = 0;
            for (bytes, number) in deltas.into_iter().enumerate() {
                let found = decode(&block, at, counts).unwrap();
                let delta = Delta { documents: number, occurrences: -(number / 2) };
                assert_eq!(found.text.len(), bytes * 40);
                assert_eq!(
                    found.delta,
                    if counts == CountsIn::Run { delta } else { Delta::default() }
                );
                for end in at..found.end {
                    assert_eq!(decode(&block[..end], at, counts), None, "{number} ends at {end}");
                }
                at = found.end;
            }
            assert_eq!(at, block.len());
        }
    }

    /// The example of docs/reference/format.md: a change here makes every index unreadable.
    #[test]
    fn a_term_is_the_bytes_that_the_format_says() {
        let mut block = Vec::new();
        encode(&mut block, b"fish", Delta { documents: 2, occurrences: 5 }, CountsIn::Run);
        encode(&mut block, b"cat", Delta { documents: -1, occurrences: -70 }, CountsIn::Run);
        assert_eq!(block, *b"\x04fish\x04\x0a\x03cat\x01\x8b\x01");
    }
}
