//! Lookups of keys: RAM first, then pages.
//!
//! A lookup asks the buffers of a partition, then the information in RAM about the pages below. If RAM cannot answer,
//! the structure names pages, and the store's [pipeline](nandex_store::reads) reads them. A structure implements two
//! traits: [`KeyLookup`] does what precedes reads, and [`PageReads`] says which page to read and interprets it.
//! [`single`] lookups, a [`batch`], a [`stream`](stream()) and the [`LookupEngine`](crate::LookupEngine) use them.
//! [`Cached`] adds a table's cache of entries in between.

mod cached;
pub(crate) mod counts;
pub(crate) mod engine;
mod stream;

use std::sync::OnceLock;

use nandex_store::entries::KeyState;
use nandex_store::hash::KeyHash;
use nandex_store::reads::{LookupStep, PageReads, ReadPool, UserStep};

use crate::api::{TableStats, Value};
use crate::cache::EntryCache;
use crate::{Error, Result};

pub(crate) use cached::{Cached, TableCache, TableLookup};
use counts::{LookupCounters, LookupCounts};
pub(crate) use stream::{KeyStream, stream};

/// The width of the widest key of a table, in bytes.
const KEY_BYTES_MAX: usize = 32;

/// The state that all lookups of a structure share.
#[derive(Debug)]
pub(crate) struct Lookups {
    pub(crate) reads: ReadPool,
    pub(crate) counters: LookupCounters,
    /// A table's cache of entries, if it has one.
    pub(crate) cache: OnceLock<TableCache>,
}

impl Lookups {
    pub(crate) fn new(reads: ReadPool) -> Self {
        Self { reads, counters: LookupCounters::default(), cache: OnceLock::new() }
    }

    /// Gives a newly opened table its cache, before the first lookup.
    pub(crate) fn use_cache(&self, cache: Option<TableCache>) {
        // The cell is still empty.
        cache.into_iter().for_each(|cache| drop(self.cache.set(cache)));
    }

    /// Gives the newest of a table's parts the cache of the table.
    pub(crate) fn share_cache(&self, cache: Option<&TableCache>) {
        self.use_cache(cache.map(TableCache::of_newest));
    }

    /// Notes that another part of the table becomes the newest one, before that takes its first update.
    pub(crate) fn supersede(&self) {
        self.cache.get().into_iter().for_each(TableCache::supersede);
    }

    /// The cache that belongs to this table alone.
    fn own_cache(&self) -> Option<&EntryCache> {
        Some(&*self.cache.get().filter(|cache| !cache.is_shared())?.entries)
    }

    /// The RAM of queues and cache, in bytes.
    pub(crate) fn ram_bytes(&self) -> u64 {
        self.reads.ram_bytes() as u64 + self.own_cache().map_or(0, EntryCache::ram_bytes)
    }

    /// Returns the counters of lookups, as table statistics.
    pub(crate) fn stats(&self) -> TableStats {
        let LookupCounts { hits, misses, hit_reads, miss_reads, reads_histogram } =
            self.counters.read();
        TableStats {
            hits,
            misses,
            hit_reads,
            miss_reads,
            reads_histogram,
            cache_bytes: self.own_cache().map_or(0, EntryCache::ram_bytes),
            cache_bytes_max: self.own_cache().map_or(0, EntryCache::bytes_max),
            cache_entries_max: self.own_cache().map_or(0, EntryCache::entries_max),
            cache_hits: self.own_cache().map_or(0, EntryCache::hits),
            ..TableStats::default()
        }
    }
}

/// The part of a lookup that a structure does before pages are read.
pub(crate) trait KeyLookup: PageReads<Answer: Clone + Default, Error = Error> {
    /// The position of a key in RAM: its hash, and for instance its positions in filters.
    type KeyPlace;

    /// The number of keys of a batch whose places in RAM are prefetched together.
    const GROUP: usize = 16;

    fn lookups(&self) -> &Lookups;

    /// Fails for a key of another width than the structure's.
    fn check_key(&self, _key: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Returns the position of a key in RAM.
    fn locate(&self, key: &[u8]) -> Self::KeyPlace;

    /// Prefetches what [`search_ram`](Self::search_ram) will read.
    fn prefetch(&self, place: &Self::KeyPlace);

    /// Searches RAM for a key: returns the answer, or which pages to read.
    fn search_ram(&self, place: &Self::KeyPlace, key: &[u8]) -> UserStep<Self>;

    /// Returns whether the answer says that the key is present.
    fn is_found(answer: &Self::Answer) -> bool;

    /// Called after lookups, when no lock is held.
    fn after_lookups(&self) {}
}

/// The key of a lookup that reads pages. It outlives the call that passed it.
#[derive(Clone, Copy, Debug)]
pub struct LookupKey {
    /// Its hash.
    pub hash: KeyHash,
    bytes: [u8; KEY_BYTES_MAX],
    len: u8,
}

impl LookupKey {
    pub(crate) fn new(hash: KeyHash, key: &[u8]) -> Self {
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes[..key.len()].copy_from_slice(key);
        Self { hash, bytes, len: u8::try_from(key.len()).expect("keys have at most 32 bytes") }
    }

    /// The key.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A page's answer about a key, or `None` if the page was replaced since RAM was searched. Then RAM must be searched
/// again.
pub(crate) type PageAnswer = Option<KeyState<Value>>;

/// Looks up one key.
#[inline]
pub(crate) fn single<U: KeyLookup>(user: &U, key: &[u8]) -> Result<U::Answer> {
    user.check_key(key)?;
    let lookups = user.lookups();
    let (answer, reads) = match user.search_ram(&user.locate(key), key)? {
        LookupStep::Answer(answer) => (answer, 0),
        LookupStep::Read(probe) => lookups.reads.look_up(user, probe)?,
    };
    lookups.counters.count(U::is_found(&answer), reads);
    user.after_lookups();
    Ok(answer)
}

/// Looks up all of `keys`, with as many reads in flight as the structure was opened for.
pub(crate) fn batch<U: KeyLookup>(user: &U, keys: &[&[u8]]) -> Result<Vec<U::Answer>> {
    keys.iter().try_for_each(|key| user.check_key(key))?;
    let lookups = user.lookups();
    let mut answers = vec![U::Answer::default(); keys.len()];
    let mut counts = LookupCounts::default();
    lookups.reads.pipeline(user).batch(
        keys,
        U::GROUP,
        |key| locate_and_prefetch(user, key),
        |key, place| user.search_ram(place, key),
        |index, answer, reads| {
            counts.count(U::is_found(&answer), reads);
            answers[index] = answer;
        },
    )?;
    lookups.counters.add(&counts);
    user.after_lookups();
    Ok(answers)
}

#[inline]
fn locate_and_prefetch<U: KeyLookup>(user: &U, key: &[u8]) -> U::KeyPlace {
    let place = user.locate(key);
    user.prefetch(&place);
    place
}
