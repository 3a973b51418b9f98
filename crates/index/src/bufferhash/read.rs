//! What a lookup finds below the buffers: pages of the incarnations that the filters name, newest first.

use nandex_device::PageBuf;
use nandex_store::buffer::page_of;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::reads::{LookupStep, PageReads, ReadPlace};
use nandex_store::ring::SegmentId;

use super::table::{Job, KeyPlace, Probe, State, Step};
use super::{Inner, Policy};
use crate::api::Value;
use crate::lookup::{LookupKey, Lookups, PageLookup, TableLookup};
use crate::{Error, Result};

impl TableLookup for Inner {
    type KeyPlace = KeyPlace;

    #[inline]
    fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> Result<KeyPlace> {
        self.check_key(key)?;
        Ok(self.key_place(self.hasher.hash(key)))
    }

    #[inline]
    fn prefetch(&self, place: &KeyPlace) {
        self.partitions[self.partition_of(place.hash)].prefetch(&self.room.filter, place);
    }

    /// Loads the filters where they have not been yet.
    #[inline]
    fn ask(&self, place: &KeyPlace, key: &[u8]) -> Result<Step> {
        let index = self.partition_of(place.hash);
        loop {
            match self.partitions[index].ask(&self.room.filter, place, key) {
                Some(step) => return Ok(step),
                None => self.load_filters(index)?,
            }
        }
    }

    /// Under LRU, puts back what a lookup has found, where no thread in the background does.
    #[inline]
    fn after_lookups(&self) {
        if self.room.config.policy == Policy::Lru {
            // The lookup has its answer. A failure has poisoned the volume; the next update reports it.
            let _ = self.catch_up_now();
        }
    }
}

impl PageReads for Inner {
    type Probe = Probe;
    type Answer = Option<Value>;
    type Error = Error;

    #[inline]
    fn place(&self, probe: &Probe, _part: u32) -> ReadPlace {
        self.place_of(probe.key.hash, probe.candidates.next)
    }

    fn look(&self, probe: &mut Probe, _part: u32, page: &PageBuf) -> Result<()> {
        probe.found = self.look_in(page, &probe.key, probe.candidates.next)?;
        Ok(())
    }

    fn next(&self, probe: Probe) -> Result<Step> {
        let key = probe.key;
        let step = match probe.found {
            PageLookup::Live(value) => {
                self.used(&probe, &value);
                Some(LookupStep::Answer(Some(value)))
            }
            PageLookup::Tombstone => Some(LookupStep::Answer(None)),
            PageLookup::Absent => {
                self.partitions[self.partition_of(key.hash)].next_candidate(probe)
            }
            PageLookup::Stale => None,
        };
        let ask_again = || self.ask(&self.key_place(key.hash), key.bytes());
        step.map_or_else(ask_again, Ok)
    }
}

impl Inner {
    #[inline]
    fn key_place(&self, hash: KeyHash) -> KeyPlace {
        KeyPlace { hash, positions: self.room.filter.positions(hash.filter) }
    }

    /// May a version of this key be below the active buffer?
    pub(super) fn may_be_older(
        &self,
        index: usize,
        state: &State,
        hash: KeyHash,
        key: &[u8],
    ) -> bool {
        if !state.level.filters_loaded || state.in_frozen(hash, key) {
            return true;
        }
        let live = state.level.window.live_mask();
        let slices = &self.partitions[index].beside;
        self.room.filter.candidates(slices, hash.filter, &live) != [0; 4]
    }

    /// Where an incarnation has the page of a key.
    #[inline]
    fn place_of(&self, hash: KeyHash, id: SegmentId) -> ReadPlace {
        // An incarnation is written front to back, as a slicetable is.
        let start = self.room.rings.of(self.partition_of(hash)).page(id, 0);
        ReadPlace::page(start.plus(self.page_index(hash)), start)
    }

    fn page_index(&self, hash: KeyHash) -> u64 {
        page_of(hash, self.room.config.buffer_pages as usize) as u64
    }

    /// Proves a page and looks for the key in it.
    fn look_in(&self, page: &PageBuf, key: &LookupKey, id: SegmentId) -> Result<PageLookup> {
        let index = self.partition_of(key.hash);
        let label = self.room.rings.of(index).label(id, self.page_index(key.hash), PageKind::Data);
        let page = match RawPage::new(page).check(label) {
            Ok(page) => page.bytes(),
            Err(_) if !self.partitions[index].lock().level.holds(id) => {
                return Ok(PageLookup::Stale);
            }
            Err(error) => return Err(error.into()),
        };
        let slot = self.layout.find(page, key.bytes(), self.layout.buckets_of(key.hash));
        Ok(PageLookup::of(slot.and_then(|slot| self.layout.entry(page, slot))))
    }

    /// Under LRU, asks the background to put an entry that was found on flash back into the buffer.
    fn used(&self, probe: &Probe, value: &Value) {
        if self.room.config.policy == Policy::Lru {
            let table = self.partition_of(probe.key.hash);
            let (key, value) = (probe.key.bytes().to_vec(), value.to_vec());
            let (source, newest_sequence) = (probe.candidates.next, probe.newest_when_asked);
            self.work.push_optional(Job::Reinsert { table, key, value, source, newest_sequence });
        }
    }
}

/// Reads the page of an incarnation whose filter named a key, and tells whether the key is in it.
pub(super) struct Verification<'t>(pub(super) &'t Inner);

/// A key and the incarnation that may hold it.
pub(super) struct MaybeHeld {
    pub(super) key: LookupKey,
    pub(super) id: SegmentId,
    pub(super) is_held: bool,
}

impl PageReads for Verification<'_> {
    type Probe = MaybeHeld;
    type Answer = bool;
    type Error = Error;

    fn place(&self, maybe: &MaybeHeld, _part: u32) -> ReadPlace {
        self.0.place_of(maybe.key.hash, maybe.id)
    }

    fn look(&self, maybe: &mut MaybeHeld, _part: u32, page: &PageBuf) -> Result<()> {
        let found = self.0.look_in(page, &maybe.key, maybe.id)?;
        maybe.is_held = matches!(found, PageLookup::Live(_) | PageLookup::Tombstone);
        Ok(())
    }

    fn next(&self, maybe: MaybeHeld) -> Result<LookupStep<MaybeHeld, bool>> {
        Ok(LookupStep::Answer(maybe.is_held))
    }
}
