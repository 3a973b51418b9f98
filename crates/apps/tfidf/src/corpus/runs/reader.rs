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

/// Adds the counts that a run has of these terms, which are given with their places, to `deltas`. Reads each block that
/// may have some of them once, and one block in addition.
pub(in crate::corpus) fn add_found(
    blocks: &Blocks,
    run: &RunInfo,
    terms: &[(u64, &[u8])],
    deltas: &mut [Delta],
) -> Result<()> {
    let firsts = blocks.get(Kind::Firsts, run.id, 0)?;
    let (firsts, _) = firsts.as_chunks::<8>();
    let block_of = |place: u64| {
        let after = firsts.partition_point(|first| u64::from_le_bytes(*first) <= place);
        after.checked_sub(1).and_then(|number| u32::try_from(number).ok())
    };
    let mut wanted = Vec::with_capacity(terms.len());
    for (index, &(place, text)) in terms.iter().enumerate() {
        wanted.extend(block_of(place).map(|number| Wanted { number, text, index }));
    }
    wanted.sort_unstable();
    for wanted in wanted.chunk_by(|one, other| one.number == other.number) {
        let block = blocks.get(Kind::Terms, run.id, wanted[0].number)?;
        add_found_in(&block, wanted, deltas)?;
    }
    Ok(())
}

/// A term that is looked for: the only block of a run that may have it, and its index among those asked for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Wanted<'t> {
    number: u32,
    text: &'t [u8],
    index: usize,
}

/// Adds the counts that one block has of `wanted`, which are in the order of their texts.
fn add_found_in(block: &[u8], wanted: &[Wanted<'_>], deltas: &mut [Delta]) -> Result<()> {
    let (mut at, mut found) = (0, 0);
    while found < wanted.len()
        && let Some(decoded) = format::decode(block, at, CountsIn::Run)
    {
        let text = &block[decoded.text.clone()];
        let first = wanted.partition_point(|it| it.text < text);
        for it in wanted[first..].iter().take_while(|it| it.text == text) {
            let delta = &mut deltas[it.index];
            *delta = delta.plus(decoded.delta).ok_or_else(|| too_many(text))?;
            found += 1;
        }
        at = decoded.end;
    }
    Ok(())
}

/// The error of an impossibly large count.
pub(super) fn too_many(text: &[u8]) -> Error {
    let text = String::from_utf8_lossy(text);
    Error::Contradiction { reason: format!("a count of {text:?} past 2^63 - 1") }
}
