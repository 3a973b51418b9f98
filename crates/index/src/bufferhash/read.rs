//! Lookups below the buffers: they read pages of the incarnations that the filters name, newest first.

use nandex_device::PageBuf;
use nandex_store::buffer::page_of;
use nandex_store::entries::KeyState;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace, UserStep};
use nandex_store::ring::SegmentId;

use super::table::{Candidates, Job, KeyPlace, State};
use super::{Incarnations, Inner, Policy};
use crate::api::Value;
use crate::lookup::{KeyLookup, LookupKey, Lookups, PageAnswer, TableLookup};
use crate::write::TableLayout;
use crate::{Error, Result};

/// A lookup that reads incarnations.
#[derive(Clone, Debug)]
pub(crate) struct IncarnationProbe {
    key: LookupKey,
    candidates: Candidates,
    /// The answer of the newest candidate.
    found: PageAnswer,
}

impl IncarnationProbe {
    fn new(key: LookupKey, candidates: Candidates) -> Self {
        Self { key, candidates, found: Some(KeyState::Unknown) }
    }
}

impl KeyLookup for Inner {
    type KeyPlace = KeyPlace;

    #[inline]
    fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.check_key_width(key)
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> KeyPlace {
        self.key_place(self.hasher.hash(key))
    }

    #[inline]
    fn prefetch(&self, place: &KeyPlace) {
        self.partitions[self.partition_of(place.hash)].prefetch(&self.layout.filter, place);
    }

    #[inline]
    fn search_ram(&self, place: &KeyPlace, key: &[u8]) -> UserStep<Self> {
        Ok(self.known_in_ram(place, key)?.map_answer(KeyState::value))
    }

    #[inline]
    fn is_found(value: &Option<Value>) -> bool {
        value.is_some()
    }

    /// Under LRU, puts back entries that lookups have found, if no background thread does.
    #[inline]
    fn after_lookups(&self) {
        if self.layout.config.policy == Policy::Lru {
            // The lookup has its answer. A failure has poisoned the volume; the next update reports it.
            let _ = self.catch_up_now();
        }
    }
}

impl TableLookup for Inner {
    #[inline]
    fn hash_of(place: &KeyPlace) -> KeyHash {
        place.hash
    }

    #[inline]
    fn key_of(probe: &IncarnationProbe) -> &LookupKey {
        &probe.key
    }
}

impl PageReads for Inner {
    type Probe = IncarnationProbe;
    type Answer = Option<Value>;
    type Error = Error;

    #[inline]
    fn place(&self, probe: &IncarnationProbe, _part: u32) -> ReadPlace {
        self.place_of(probe.key.hash, probe.candidates.next)
    }

    fn look(&self, probe: &mut IncarnationProbe, _part: u32, page: &PageBuf) -> Result<()> {
        probe.found = self.look_in(page, &probe.key, probe.candidates.next)?;
        Ok(())
    }

    fn next(&self, probe: &mut IncarnationProbe) -> NextStep<Self> {
        Ok(self.known_after_page(probe)?.map_answer(KeyState::value))
    }
}

impl TableLayout for Incarnations {
    fn may_be_older(core: &Inner, _index: usize, state: &State, hash: KeyHash, key: &[u8]) -> bool {
        if !state.level.filters_loaded || state.in_frozen(hash, key) {
            return true;
        }
        let live = state.level.window.live_mask();
        core.layout.filter.candidates(&state.level.slices, hash.filter, &live) != [0; 4]
    }

    fn entries_below(state: &State) -> u64 {
        state.level.entries()
    }

    fn keys(core: &Inner, state: &State) -> u64 {
        if core.layout.config.counts_keys() {
            return core.keys_of(state);
        }
        state.entries_buffered() + Self::entries_below(state)
    }
}

impl IncarnationProbe {
    /// The key that it looks for.
    pub(super) fn key(&self) -> &LookupKey {
        &self.key
    }
}

impl Inner {
    /// Searches RAM for a key. Loads the filters if they are not loaded yet.
    #[inline]
    pub(super) fn known_in_ram(
        &self,
        place: &KeyPlace,
        key: &[u8],
    ) -> Result<LookupStep<IncarnationProbe, KeyState<Value>>> {
        let index = self.partition_of(place.hash);
        loop {
            let partition = &self.partitions[index];
            if let Some(step) = partition.search_ram(&self.layout.filter, place, key)? {
                let probe =
                    |candidates| IncarnationProbe::new(LookupKey::new(place.hash, key), candidates);
                return Ok(step.map_read(probe));
            }
            self.load_filters(index)?;
        }
    }

    /// Returns the answer after a page was searched, or the next page.
    pub(super) fn known_after_page(
        &self,
        probe: &mut IncarnationProbe,
    ) -> Result<LookupStep<(), KeyState<Value>>> {
        let IncarnationProbe { key, candidates, found } = probe;
        let next = match found {
            Some(KeyState::Unknown) => {
                self.partitions[self.partition_of(key.hash)].next_candidate(candidates)
            }
            Some(known) => {
                if let KeyState::Live(value) = known {
                    self.used(key, value, candidates);
                }
                return Ok(LookupStep::Answer(*known));
            }
            None => None,
        };
        if let Some(step) = next {
            return Ok(step.replace(candidates));
        }
        Ok(self.known_in_ram(&self.key_place(key.hash), key.bytes())?.replace(probe))
    }

    /// Returns whether the table may hold a version of this key. It certainly does not if RAM says so.
    ///
    /// # Errors
    /// A lost page that may have the key.
    pub(super) fn may_hold(&self, hash: KeyHash, key: &[u8]) -> Result<bool> {
        let index = self.partition_of(hash);
        let state = self.partitions[index].read();
        Ok(state.buffered(hash, key)?.is_known()
            || Incarnations::may_be_older(self, index, &state, hash, key))
    }

    #[inline]
    pub(super) fn key_place(&self, hash: KeyHash) -> KeyPlace {
        let filter = &self.layout.filter;
        let filter_entries = filter.shape().entries_max();
        KeyPlace { hash, positions: filter.positions(hash.filter), filter_entries }
    }

    /// Returns the place of a key here, given its place in a table whose filters may be made for other entries.
    #[inline]
    pub(super) fn place_here(&self, place: &KeyPlace) -> KeyPlace {
        if place.filter_entries == self.layout.filter.shape().entries_max() {
            return *place;
        }
        self.key_place(place.hash)
    }

    /// Returns the place of a key's page in an incarnation.
    #[inline]
    fn place_of(&self, hash: KeyHash, id: SegmentId) -> ReadPlace {
        // An incarnation is written front to back, like a slicetable.
        let start = self.layout.rings.of(self.partition_of(hash)).page(id, 0);
        ReadPlace::page(start.plus(self.page_index(hash)), start)
    }

    fn page_index(&self, hash: KeyHash) -> u64 {
        page_of(hash, self.layout.config.buffer_pages as usize) as u64
    }

    /// Verifies a page and returns its answer about the key.
    fn look_in(&self, page: &PageBuf, key: &LookupKey, id: SegmentId) -> Result<PageAnswer> {
        let index = self.partition_of(key.hash);
        let label =
            self.layout.rings.of(index).label(id, self.page_index(key.hash), PageKind::Data);
        let page = match RawPage::new(page).check(label) {
            Ok(page) => page.bytes(),
            Err(_) if !self.partitions[index].read().level.holds(id) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Some(self.entry_layout().look_up(page, key.bytes(), key.hash).map(Value::new)))
    }

    /// Under LRU, asks the background to put an entry that was found on flash back into the buffer.
    fn used(&self, key: &LookupKey, value: &Value, found: &Candidates) {
        if self.layout.config.policy == Policy::Lru {
            let table = self.partition_of(key.hash);
            let (source, newest_sequence) = (found.next, found.newest_when_asked);
            let (key, value) = (key.bytes().to_vec(), value.to_vec());
            self.work.push_optional(Job::Reinsert { table, key, value, source, newest_sequence });
        }
    }
}

/// Reads the page of an incarnation whose filter named a key, and returns whether the key is in it.
pub(super) struct Verification<'t>(pub(super) &'t Inner);

/// A key and the incarnation that may hold it.
pub(super) struct KeyCandidate {
    pub(super) key: LookupKey,
    pub(super) id: SegmentId,
    pub(super) is_held: bool,
}

impl PageReads for Verification<'_> {
    type Probe = KeyCandidate;
    type Answer = bool;
    type Error = Error;

    fn place(&self, candidate: &KeyCandidate, _part: u32) -> ReadPlace {
        self.0.place_of(candidate.key.hash, candidate.id)
    }

    fn look(&self, candidate: &mut KeyCandidate, _part: u32, page: &PageBuf) -> Result<()> {
        let found = self.0.look_in(page, &candidate.key, candidate.id)?;
        candidate.is_held = found.is_some_and(|found| found.is_known());
        Ok(())
    }

    fn next(&self, candidate: &mut KeyCandidate) -> NextStep<Self> {
        Ok(LookupStep::Answer(candidate.is_held))
    }
}
