//! Reads a run from front to back, and finds terms in it.

use nandex::raw::counting::Counts;

use super::RunInfo;
use super::blocks::{Blocks, Kind};
use super::format::{self, CountsIn, Decoded, Delta};
use crate::tokenise::TermKey;
use crate::{Error, Result};

/// A position in a run: the current term. It needs one block of RAM.
pub(in crate::corpus) struct RunReader<'c> {
    blocks: &'c Blocks,
    info: RunInfo,
    /// The counts of its terms, if tables have them: documents, occurrences.
    tables: Option<[Counts; 2]>,
    next_block: u32,
    block: Vec<u8>,
    decoded: Decoded,
    is_begun: bool,
    pub(super) place: u64,
    pub(super) key: TermKey,
    pub(super) delta: Delta,
}

impl<'c> RunReader<'c> {
    /// Creates a reader before the first term of a run.
    pub(in crate::corpus) fn new(
        blocks: &'c Blocks,
        info: RunInfo,
        tables: Option<[Counts; 2]>,
    ) -> Self {
        let (block, decoded) = (Vec::new(), Decoded::default());
        let (place, key, delta) = (0, TermKey([0; 16]), Delta::default());
        let (next_block, is_begun) = (0, false);
        Self { blocks, info, tables, next_block, block, decoded, is_begun, place, key, delta }
    }

    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.block[self.decoded.text.clone()]
    }

    /// Advances to the next term; returns false at the end.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.decoded.end == self.block.len() {
            if self.next_block == self.info.blocks {
                return Ok(false);
            }
            self.block = self.blocks.get(Kind::Terms, self.info.id, self.next_block)?;
            self.next_block += 1;
            self.decoded.end = 0;
        }
        let counts = if self.tables.is_some() { CountsIn::Tables } else { CountsIn::Run };
        let decoded = format::decode(&self.block, self.decoded.end, counts);
        self.decoded = decoded.ok_or_else(|| self.refuse("a term", "other bytes"))?;
        let key = TermKey::of(self.text());
        let place = self.blocks.place(&key);
        if self.is_begun && (place, key) <= (self.place, self.key) {
            return Err(self.refuse("terms in the order of their hash", "another order"));
        }
        (self.place, self.key, self.is_begun) = (place, key, true);
        self.delta = self.counts()?;
        Ok(true)
    }

    /// Returns the counts of the current term.
    fn counts(&mut self) -> Result<Delta> {
        let Some([documents, occurrences]) = &mut self.tables else {
            return Ok(self.decoded.delta);
        };
        let key = &self.key;
        let next = |counts: &mut Counts| match counts.next().transpose()? {
            Some((found, count)) if found == key.0 => Ok(count),
            found => {
                let found = found.map(|(key, _)| key);
                let reason = format!("expected the count of {key:?}, found that of {found:?}");
                Err(Error::Contradiction { reason })
            }
        };
        Ok(Delta { documents: next(documents)?, occurrences: next(occurrences)? })
    }

    fn refuse(&self, expected: &str, found: &str) -> Error {
        let (run, block) = (self.info.id, self.next_block.saturating_sub(1));
        let reason = format!("expected {expected} in block {block} of run {run}, found {found}");
        Error::Contradiction { reason }
    }
}

/// Adds to `deltas` the counts in a run of these terms, which are given with their places. Costs a block read for each,
/// and one for all.
pub(in crate::corpus) fn add_found(
    blocks: &Blocks,
    run: &RunInfo,
    terms: &[(u64, &[u8])],
    deltas: &mut [Delta],
) -> Result<()> {
    let firsts = blocks.get(Kind::Firsts, run.id, 0)?;
    let (firsts, _) = firsts.as_chunks::<8>();
    for ((place, text), delta) in terms.iter().zip(deltas) {
        let after = firsts.partition_point(|first| u64::from_le_bytes(*first) <= *place);
        let Some(number) = after.checked_sub(1).and_then(|it| u32::try_from(it).ok()) else {
            continue;
        };
        let block = blocks.get(Kind::Terms, run.id, number)?;
        if let Some(found) = find(&block, text) {
            *delta = delta.plus(found).ok_or_else(|| too_many(text))?;
        }
    }
    Ok(())
}

/// Returns the counts of a term in a block.
fn find(block: &[u8], text: &[u8]) -> Option<Delta> {
    let mut at = 0;
    while let Some(decoded) = format::decode(block, at, CountsIn::Run) {
        if &block[decoded.text.clone()] == text {
            return Some(decoded.delta);
        }
        at = decoded.end;
    }
    None
}

/// The error of an impossibly large count.
pub(super) fn too_many(text: &[u8]) -> Error {
    let text = String::from_utf8_lossy(text);
    Error::Contradiction { reason: format!("a count of {text:?} past 2^63 - 1") }
}
