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
use nandex_store::reads::{LookupStep, PageReads, ReadPool, UserStep};

use crate::api::Value;
use crate::{Error, Result};

use counts::{LookupCounters, LookupCounts};
pub(crate) use stream::stream;

/// The widest key of a table, in bytes.
const KEY_BYTES_MAX: usize = 32;

/// Keys of a batch whose places in RAM are fetched together.
const GROUP: usize = 16;

/// What the lookups of a structure share.
#[derive(Debug)]
pub(crate) struct Lookups {
    pub(crate) reads: ReadPool,
    pub(crate) counters: LookupCounters,
}

impl Lookups {
    pub(crate) fn new(reads: ReadPool) -> Self {
        Self { reads, counters: LookupCounters::default() }
    }
}

/// What a table does for a lookup before pages are read.
pub(crate) trait TableLookup: PageReads<Answer = Option<Value>, Error = Error> {
    /// Where a key is in RAM: its hash, and for instance its positions in filters.
    type KeyPlace: Copy;

    fn lookups(&self) -> &Lookups;

    /// Where a key is in RAM. Refuses one of another width than the table's.
    fn locate(&self, key: &[u8]) -> Result<Self::KeyPlace>;

    /// Asks the processor to fetch what [`ask`](Self::ask) will look at.
    fn prefetch(&self, place: &Self::KeyPlace);

    /// What RAM knows of a key: its value, that it is not there, or which pages to read.
    fn ask(&self, place: &Self::KeyPlace, key: &[u8]) -> UserStep<Self>;

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

/// The value under `key`.
#[inline]
pub(crate) fn get<T: TableLookup>(table: &T, key: &[u8]) -> Result<Option<Value>> {
    let lookups = table.lookups();
    let (value, reads) = match table.ask(&table.locate(key)?, key)? {
        LookupStep::Answer(value) => (value, 0),
        LookupStep::Read(probe) => lookups.reads.look_up(table, probe)?,
    };
    lookups.counters.count(value.is_some(), reads);
    table.after_lookups();
    Ok(value)
}

/// The values under all of `keys`, with as many reads in flight as the table was opened for.
pub(crate) fn get_many<T: TableLookup>(table: &T, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
    let lookups = table.lookups();
    let mut values = vec![None; keys.len()];
    let mut counts = LookupCounts::default();
    lookups.reads.pipeline(table).batch(
        keys,
        GROUP,
        |key| locate_and_prefetch(table, key),
        |key, place| table.ask(&place?, key),
        |index, value, reads| {
            counts.count(value.is_some(), reads);
            values[index] = value;
        },
    )?;
    lookups.counters.add(&counts);
    table.after_lookups();
    Ok(values)
}

fn locate_and_prefetch<T: TableLookup>(table: &T, key: &[u8]) -> Result<T::KeyPlace> {
    let place = table.locate(key)?;
    table.prefetch(&place);
    Ok(place)
}
