//! The lookups of tables: RAM first, then pages.
//!
//! A lookup asks the buffers of a partition, then whatever RAM knows of the pages below. Where RAM cannot
//! answer, the structure names pages, and the store's [pipeline](nandex_store::reads) reads them. A structure
//! is looked up in by two traits on its own type: [`PageReads`] says which page to read and what a page says,
//! [`TableLookup`] what comes before. Single lookups, batches, streams and the
//! [`LookupEngine`](crate::LookupEngine) are made of them.

pub(crate) mod counts;
pub(crate) mod engine;
mod stream;

use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;
use nandex_store::reads::{LookupStep, PageReads, UserStep};

use crate::api::Value;
use crate::intake::{Intake, Room};
use crate::{Error, Result};

use counts::LookupCounts;

/// The widest key of a table, in bytes.
const KEY_BYTES_MAX: usize = 32;

/// Keys of a batch whose places in RAM are fetched together.
const GROUP: usize = 16;

/// What a table's structure does for a lookup before pages are read.
pub(crate) trait TableLookup: PageReads<Answer = Option<Value>, Error = Error> {
    /// Where a key is in RAM below the buffers, for instance its positions in filters.
    type Positions: Copy;

    /// The positions of a key.
    fn positions(&self, hash: KeyHash) -> Self::Positions;

    /// Asks the processor to fetch what [`ask`](Self::ask) will look at.
    fn prefetch(&self, hash: KeyHash, positions: &Self::Positions);

    /// What RAM knows of a key: its value, that it is not there, or which pages to read.
    fn ask(&self, hash: KeyHash, positions: &Self::Positions, key: &[u8]) -> UserStep<Self>;

    /// Is called after lookups, when no lock is held.
    fn after_lookups(&self) {}
}

/// The key of a lookup that reads pages. It outlives the call that brought it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupKey {
    pub(crate) hash: KeyHash,
    bytes: [u8; KEY_BYTES_MAX],
    len: u8,
}

impl LookupKey {
    pub(crate) fn new(hash: KeyHash, key: &[u8]) -> Self {
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes[..key.len()].copy_from_slice(key);
        Self { hash, bytes, len: u8::try_from(key.len()).expect("keys have at most 32 bytes") }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// What the pages that a probe has read say of its key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum PageLookup {
    /// Nothing.
    #[default]
    Absent,
    /// Its newest value.
    Live(Value),
    /// That it was removed.
    Tombstone,
    /// A page was replaced since RAM was asked, so RAM has to be asked again.
    Stale,
}

impl PageLookup {
    /// What an entry page says that has this entry for the key, or none.
    pub(crate) fn of(entry: Option<Entry<'_>>) -> Self {
        entry.map_or(Self::Absent, |entry| match entry.state {
            SlotState::Live => Self::Live(Value::new(entry.value)),
            SlotState::Tombstone => Self::Tombstone,
        })
    }
}

impl<R: Room> Intake<R>
where
    Self: TableLookup,
{
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.check_key(key)?;
        let hash = self.hasher.hash(key);
        let (value, reads) = match self.ask(hash, &self.positions(hash), key)? {
            LookupStep::Answer(value) => (value, 0),
            LookupStep::Read(probe) => self.reads.look_up(self, probe)?,
        };
        self.counters.lookups.count(value.is_some(), reads);
        self.after_lookups();
        Ok(value)
    }

    /// Looks up a batch with up to `read_depth` reads in flight at any time.
    pub(crate) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        keys.iter().try_for_each(|key| self.check_key(key))?;
        let mut values = vec![None; keys.len()];
        let mut counts = LookupCounts::default();
        self.reads.pipeline(self).batch(
            keys,
            GROUP,
            |key| self.prepare(key),
            |key, (hash, positions)| self.ask(*hash, positions, key),
            |index, value, reads| {
                counts.count(value.is_some(), reads);
                values[index] = value;
            },
        )?;
        self.counters.lookups.add(&counts);
        self.after_lookups();
        Ok(values)
    }

    /// Hashes a key, and has its places in RAM fetched.
    fn prepare(&self, key: &[u8]) -> (KeyHash, <Self as TableLookup>::Positions) {
        let hash = self.hasher.hash(key);
        let positions = self.positions(hash);
        self.prefetch(hash, &positions);
        (hash, positions)
    }
}
