//! Lookups in a table with a cache of entries between its RAM and its pages.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;

use nandex_device::PageBuf;
use nandex_store::hash::KeyHash;
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace, UserStep};

use super::{KeyLookup, LookupKey, Lookups};
use crate::api::Value;
use crate::cache::{EntryCache, Leaving, Ticket};
use crate::model::text::bytes;
use crate::ram::SpareRam;
use crate::{Error, Result};

/// The information about its lookups that a table gives a cache.
pub(crate) trait TableLookup: KeyLookup<Answer = Option<Value>> {
    /// Returns the hash of a key that was located.
    fn hash_of(place: &Self::KeyPlace) -> KeyHash;

    /// Returns the key that a probe looks for.
    fn key_of(probe: &Self::Probe) -> &LookupKey;
}

/// The cache of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableCache {
    pub(crate) entries: Arc<EntryCache>,
    /// Whether another part has become the newest one, for a cache that parts of a table share. Each part may have
    /// another version of a key.
    superseded: Option<Arc<AtomicBool>>,
    /// The RAM that it borrows, unless the table accounts for it.
    _spare: Option<Arc<SpareRam>>,
}

impl TableCache {
    /// Creates a cache of at most `cache_bytes`; `None` if that is too little for any entry.
    ///
    /// # Errors
    /// [`Error::Config`] for more bytes than the machine has.
    pub(crate) fn new(
        cache_bytes: u64,
        (key_bytes, value_bytes): (usize, usize),
    ) -> Result<Option<Self>> {
        let most = nandex_device::ram_bytes();
        if cache_bytes > most {
            let reason = format!(
                "{cache_bytes} bytes ({}); this machine has {most} ({}) of RAM",
                bytes(cache_bytes),
                bytes(most)
            );
            return Err(Error::Config { field: "cache_bytes", reason });
        }
        let entries = EntryCache::new(cache_bytes, key_bytes, value_bytes);
        Ok(entries.map(|it| Self { entries: Arc::new(it), superseded: None, _spare: None }))
    }

    /// Creates a cache in the RAM that a table does not take.
    pub(crate) fn lent(spare: &SpareRam, (key_bytes, value_bytes): (usize, usize)) -> Option<Self> {
        let entries = EntryCache::lent(spare.bytes(), key_bytes, value_bytes).map(Arc::new)?;
        spare.lend_to(&entries);
        Some(Self { entries, superseded: None, _spare: None })
    }

    /// Creates a cache in RAM lent by a pool, of at most what was free when it was created.
    pub(crate) fn borrowed(spare: Arc<SpareRam>, widths: (usize, usize)) -> Option<Self> {
        let cache = Self::lent(&spare, widths)?;
        Some(Self { _spare: Some(spare), ..cache })
    }

    /// Returns the same cache, for the newest of a table's parts.
    pub(super) fn of_newest(&self) -> Self {
        Self { entries: Arc::clone(&self.entries), superseded: Some(Arc::default()), _spare: None }
    }

    /// Notes that another part is the newest one.
    pub(super) fn supersede(&self) {
        self.superseded.iter().for_each(|it| it.store(true, Release));
    }

    /// Returns whether parts of a table share it.
    pub(super) fn is_shared(&self) -> bool {
        self.superseded.is_some()
    }

    /// Begins to record the entries that leave RAM.
    pub(crate) fn leaving(&self) -> Leaving<'_> {
        self.entries.leaving_of(self.superseded.as_deref())
    }
}

/// A table whose lookups ask its cache before they read a page, and fill it with the answers of pages.
pub(crate) struct Cached<'t, T> {
    table: &'t T,
    cache: Option<&'t EntryCache>,
    /// Lookups that the cache has answered, not yet added to its counter.
    hits: Cell<u64>,
    asked: Asked,
}

/// The share of recent lookups that asked the cache: a moving mean. If buffers and filters answer nearly all lookups,
/// as for absent keys, prefetching the cache's lines would cost more than the wait that it saves.
struct Asked(Cell<u32>);

impl Asked {
    /// The weight of a lookup that asks; the mean covers about [`SPAN`](Self::SPAN) lookups.
    const ONE: u32 = 64;
    const SPAN: u32 = 16;

    /// Starts as if all lookups had asked.
    fn new() -> Self {
        Self(Cell::new(Self::ONE * Self::SPAN))
    }

    #[inline]
    fn note(&self, asks: bool) {
        let mean = self.0.get();
        self.0.set(mean - mean / Self::SPAN + if asks { Self::ONE } else { 0 });
    }

    /// Returns whether more than one in eight lookups asks.
    #[inline]
    fn is_often(&self) -> bool {
        self.0.get() > Self::ONE * Self::SPAN / 8
    }
}

/// A lookup that reads pages, and the permission to fill the cache with its answer.
pub(crate) struct CachedProbe<P> {
    probe: P,
    ticket: Option<Ticket>,
}

impl<'t, T: TableLookup> Cached<'t, T> {
    #[inline]
    pub(crate) fn new(table: &'t T) -> Self {
        let cache = table.lookups().cache.get().map(|cache| &*cache.entries);
        Self { table, cache, hits: Cell::new(0), asked: Asked::new() }
    }
}

impl<T> Cached<'_, T> {
    /// Adds the hits to the cache's counter.
    #[inline]
    pub(super) fn settle(&self) {
        if let Some(cache) = self.cache {
            cache.count_hits(self.hits.take());
        }
    }
}

impl<T> Drop for Cached<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.settle();
    }
}

impl<T: TableLookup> KeyLookup for Cached<'_, T> {
    type KeyPlace = T::KeyPlace;

    const GROUP: usize = T::GROUP;

    #[inline]
    fn lookups(&self) -> &Lookups {
        self.table.lookups()
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.table.check_key(key)
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> T::KeyPlace {
        self.table.locate(key)
    }

    #[inline]
    fn prefetch(&self, place: &T::KeyPlace) {
        self.table.prefetch(place);
        if let Some(cache) = self.cache
            && self.asked.is_often()
        {
            cache.prefetch(T::hash_of(place));
        }
    }

    #[inline]
    fn search_ram(&self, place: &T::KeyPlace, key: &[u8]) -> UserStep<Self> {
        // The ticket comes first: a buffer that leaves RAM after RAM was asked invalidates it.
        let ticket = self.cache.map(|cache| cache.ticket(T::hash_of(place)));
        let step = self.table.search_ram(place, key)?;
        self.asked.note(matches!(step, LookupStep::Read(_)));
        let probe = match step {
            LookupStep::Answer(answer) => return Ok(LookupStep::Answer(answer)),
            LookupStep::Read(probe) => probe,
        };
        if let Some(cache) = self.cache
            && let known = cache.find(T::hash_of(place), key)
            && known.is_known()
        {
            self.hits.set(self.hits.get() + 1);
            return Ok(LookupStep::Answer(known.value()));
        }
        Ok(LookupStep::Read(CachedProbe { probe, ticket }))
    }

    #[inline]
    fn is_found(answer: &Option<Value>) -> bool {
        T::is_found(answer)
    }

    #[inline]
    fn after_lookups(&self) {
        self.settle();
        self.table.after_lookups();
    }
}

impl<T: TableLookup> PageReads for Cached<'_, T> {
    type Probe = CachedProbe<T::Probe>;
    type Answer = Option<Value>;
    type Error = Error;

    const SORTS_BATCHES: bool = T::SORTS_BATCHES;

    #[inline]
    fn parts(&self, probe: &Self::Probe) -> u32 {
        self.table.parts(&probe.probe)
    }

    #[inline]
    fn place(&self, probe: &Self::Probe, part: u32) -> ReadPlace {
        self.table.place(&probe.probe, part)
    }

    #[inline]
    fn look(&self, probe: &mut Self::Probe, part: u32, pages: &PageBuf) -> Result<()> {
        self.table.look(&mut probe.probe, part, pages)
    }

    #[inline]
    fn next(&self, CachedProbe { probe, ticket }: &mut Self::Probe) -> NextStep<Self> {
        let step = self.table.next(probe)?;
        if let (LookupStep::Answer(answer), Some(cache), Some(ticket)) = (&step, self.cache, ticket)
        {
            let key = T::key_of(probe);
            cache.fill(*ticket, key.hash, key.bytes(), answer);
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_fetched_ahead_while_more_than_one_lookup_in_eight_asks() {
        let asked = Asked::new();
        let after = |lookups: u32, every: u32| {
            (0..lookups).for_each(|lookup| asked.note(lookup % every == 0));
            asked.is_often()
        };
        assert!(after(500, 1));
        assert!(!after(100, 101));
        assert!(after(500, 2));
        assert!(!after(500, 40));
        assert!(after(32, 1));
    }
}
