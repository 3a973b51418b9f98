//! The storage of blocks of runs and of the state of the index: values of a table of large values.

use std::ops::Range;

use nandex::raw::store::hash::KeyHasher;
use nandex::{AnyTable, LargeTable};
use nandex_corpus::tables::is_full;

use crate::corpus::ranked::Section;
use crate::tokenise::TermKey;
use crate::{Error, Result};

/// The key of the state; keys of blocks are longer.
const STATE_KEY: &[u8] = b"state";

/// The content of a block. The letters are on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::corpus) enum Kind {
    /// Terms of a run.
    Terms,
    /// The place of the first term of each block of a run.
    Firsts,
    /// Documents of a batch.
    Documents,
    /// A section of a rank index.
    Ranked(Section),
}

impl Kind {
    fn letter(self) -> u8 {
        match self {
            Self::Terms => b't',
            Self::Firsts => b'f',
            Self::Documents => b'd',
            Self::Ranked(Section::Postings) => b'p',
            Self::Ranked(Section::Nodes) => b'n',
            Self::Ranked(Section::Documents) => b'l',
            Self::Ranked(Section::Ids) => b'i',
        }
    }

    /// Returns the key of the block of this number of a run.
    fn key(self, run: u64, number: u32) -> [u8; 13] {
        let mut key = [0; 13];
        key[0] = self.letter();
        key[1..9].copy_from_slice(&run.to_le_bytes());
        key[9..].copy_from_slice(&number.to_le_bytes());
        key
    }
}

/// The blocks of all runs.
#[derive(Debug)]
pub(in crate::corpus) struct Blocks {
    table: LargeTable<AnyTable>,
    hasher: KeyHasher,
}

impl Blocks {
    pub(in crate::corpus) fn new(table: LargeTable<AnyTable>, hasher: KeyHasher) -> Self {
        Self { table, hasher }
    }

    #[cfg(test)]
    pub(in crate::corpus) fn table(&self) -> &LargeTable<AnyTable> {
        &self.table
    }

    pub(in crate::corpus) fn into_table(self) -> LargeTable<AnyTable> {
        self.table
    }

    /// Returns the bytes of RAM.
    pub(in crate::corpus) fn ram_bytes(&self) -> u64 {
        self.table.stats().ram_bytes
    }

    /// Returns the position of a term in a run: in the order of the volume's hash, as in counting tables.
    #[inline]
    pub(in crate::corpus) fn place(&self, key: &TermKey) -> u64 {
        self.hasher.hash(&key.0).place
    }

    pub(in crate::corpus) fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    pub(in crate::corpus) fn put(
        &self,
        kind: Kind,
        (run, number): (u64, u32),
        block: &[u8],
    ) -> Result<()> {
        self.table.put(&kind.key(run, number), block).map_err(refused)
    }

    pub(in crate::corpus) fn get(&self, kind: Kind, run: u64, number: u32) -> Result<Vec<u8>> {
        let found = self.table.get(&kind.key(run, number))?;
        found.ok_or_else(|| missing(kind, run, number))
    }

    /// Returns consecutive blocks. Their reads overlap.
    pub(in crate::corpus) fn get_many(
        &self,
        kind: Kind,
        run: u64,
        numbers: Range<u32>,
    ) -> Result<Vec<Vec<u8>>> {
        let keys: Vec<[u8; 13]> = numbers.clone().map(|number| kind.key(run, number)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let found = self.table.get_many(&keys)?.into_iter().zip(numbers);
        found.map(|(block, number)| block.ok_or_else(|| missing(kind, run, number))).collect()
    }

    /// Returns the bytes of a block in this range of it; fewer if it ends earlier.
    pub(in crate::corpus) fn part(
        &self,
        kind: Kind,
        (run, number): (u64, u32),
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        let found = self.table.get_part(&kind.key(run, number), range)?;
        found.map(|part| part.bytes).ok_or_else(|| missing(kind, run, number))
    }

    /// Returns the number of read operations since the opening, and of the pages that these read.
    pub(in crate::corpus) fn reads(&self) -> (u64, u64) {
        let stats = self.table.stats();
        let lookups = stats.table.hit_reads + stats.table.miss_reads;
        (stats.values.reads + lookups, stats.values.pages_read + lookups)
    }

    /// Removes a block, if it exists.
    pub(in crate::corpus) fn remove(&self, kind: Kind, run: u64, number: u32) -> Result<()> {
        Ok(self.table.remove(&kind.key(run, number))?)
    }

    /// Makes all blocks durable.
    pub(in crate::corpus) fn sync(&self) -> Result<()> {
        Ok(self.table.sync()?)
    }

    /// Replaces the state, durably: a crash leaves the old one or the new one, whole. On [`Error::NoSpace`] the old one
    /// stays.
    pub(in crate::corpus) fn put_state(&self, state: &[u8]) -> Result<()> {
        self.table.put(STATE_KEY, state).map_err(refused)?;
        self.sync()
    }

    pub(in crate::corpus) fn state(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.table.get(STATE_KEY)?)
    }
}

fn missing(kind: Kind, run: u64, number: u32) -> Error {
    let reason = format!("block {number} of run {run} ({kind:?}) is not there");
    Error::Contradiction { reason }
}

/// Converts the error of a put; a lack of space that changed nothing becomes [`Error::NoSpace`].
fn refused(error: nandex::Error) -> Error {
    if is_full(&error) { Error::NoSpace(error) } else { error.into() }
}
