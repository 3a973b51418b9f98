//! Lookups below the buffers: they read runs of the front table if there are any, then one slice.

use nandex_device::{PageBuf, PageId};
use nandex_store::entries::KeyState;
use nandex_store::hash::KeyHash;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace};
use nandex_store::ring::SegmentId;

use super::older::SlicetablePlace;
use super::{Inner, Level, Slicetables, State};
use crate::api::Value;
use crate::lookup::{KeyLookup, LookupKey, Lookups, PageAnswer, TableLookup};
use crate::write::TableLayout;
use crate::{Error, Result};

/// The next step of a lookup.
type Step = LookupStep<SliceProbe, Option<Value>>;

/// A lookup that reads runs and a slice.
#[derive(Clone, Debug)]
pub(crate) struct SliceProbe {
    key: LookupKey,
    at: ProbePlace,
    /// The answer from the pages of `at`.
    found: PageAnswer,
    /// Runs still to read, newest last.
    older: Vec<SegmentId>,
    /// The slicetable, if it is still to be read.
    slicetable: Option<SlicetablePlace>,
}

/// The place that a probe reads.
#[derive(Clone, Debug)]
enum ProbePlace {
    /// A page of a run of the front table.
    Run(SegmentId),
    /// All parts of a slice.
    Slice(SlicetablePlace),
}

impl SliceProbe {
    /// The key that is looked up.
    #[inline]
    pub(super) fn key(&self) -> &LookupKey {
        &self.key
    }

    /// Reads the newest of these; if there are none, the key is absent.
    fn newest(
        key: LookupKey,
        mut older: Vec<SegmentId>,
        slicetable: Option<SlicetablePlace>,
    ) -> Step {
        let found = Some(KeyState::Unknown);
        let (at, slicetable) = match (older.pop(), slicetable) {
            (Some(run), slicetable) => (ProbePlace::Run(run), slicetable),
            (None, Some(slicetable)) => (ProbePlace::Slice(slicetable), None),
            (None, None) => return LookupStep::Answer(None),
        };
        LookupStep::Read(Self { key, at, found, older, slicetable })
    }
}

impl KeyLookup for Inner {
    type KeyPlace = KeyHash;

    #[inline]
    fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    #[inline]
    fn check_key(&self, key: &[u8]) -> Result<()> {
        self.check_key_width(key)
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    #[inline]
    fn prefetch(&self, hash: &KeyHash) {
        self.partitions[self.partition_of(*hash)].read().prefetch_active(|it| it.prefetch(*hash));
    }

    #[inline]
    fn search_ram(&self, hash: &KeyHash, key: &[u8]) -> Result<Step> {
        let hash = *hash;
        let index = self.partition_of(hash);
        let state = self.partitions[index].read();
        let known = Self::known(&state, hash, key)?;
        if known.is_known() {
            return Ok(LookupStep::Answer(known.value()));
        }
        let runs = state.level.runs_of(hash);
        let own = self.block_for(index, &state, hash);
        let mut slicetable = own.map(|block| SlicetablePlace { block, older: None });
        if slicetable.is_none() {
            let in_older = |older| Self::known_in_older(older, hash, key);
            match self.older_of(index).map(in_older).transpose()? {
                Some(LookupStep::Answer(answer)) => return Ok(LookupStep::Answer(answer)),
                Some(LookupStep::Read(place)) => slicetable = Some(place),
                None if self.layout.shadow.block(index as u32).is_some() => {
                    drop(state);
                    self.missed(index);
                }
                None => {}
            }
        }
        Ok(SliceProbe::newest(LookupKey::new(hash, key), runs, slicetable))
    }

    #[inline]
    fn is_found(value: &Option<Value>) -> bool {
        value.is_some()
    }
}

impl TableLookup for Inner {
    #[inline]
    fn hash_of(place: &KeyHash) -> KeyHash {
        *place
    }

    #[inline]
    fn key_of(probe: &SliceProbe) -> &LookupKey {
        &probe.key
    }
}

impl PageReads for Inner {
    type Probe = SliceProbe;
    type Answer = Option<Value>;
    type Error = Error;

    /// All parts of a slice are read at once.
    fn parts(&self, probe: &SliceProbe) -> u32 {
        match probe.at {
            ProbePlace::Run(_) => 1,
            ProbePlace::Slice(_) => self.layout.config.slice_parts,
        }
    }

    #[inline]
    fn place(&self, probe: &SliceProbe, part: u32) -> ReadPlace {
        let hash = probe.key.hash;
        match &probe.at {
            &ProbePlace::Run(id) => {
                ReadPlace::page(self.layout.front.page(id, hash), self.layout.front.page_at(id, 0))
            }
            ProbePlace::Slice(SlicetablePlace { block, older }) => {
                let index = self.layout.slicing.page(self.layout.slicing.slice_of_key(hash), part);
                let shadow = &older.as_deref().unwrap_or(self).layout.shadow;
                ReadPlace::page(shadow.page(*block, index), shadow.page(*block, 0))
            }
        }
    }

    fn look(&self, probe: &mut SliceProbe, part: u32, page: &PageBuf) -> Result<()> {
        let found = match &probe.at {
            &ProbePlace::Run(id) => self.look_in_run(page, &probe.key, id)?,
            ProbePlace::Slice(place) => self.look_in_slice(page, &probe.key, place, part)?,
        };
        // At most one part has the key. A stale part invalidates the others' answers.
        match (&probe.found, &found) {
            (None, _) | (_, Some(KeyState::Unknown)) => {}
            _ => probe.found = found,
        }
        Ok(())
    }

    fn next(&self, probe: &mut SliceProbe) -> NextStep<Self> {
        let key = probe.key;
        let step = match probe.found {
            None => self.search_ram(&key.hash, key.bytes())?,
            Some(KeyState::Unknown) => {
                if let ProbePlace::Slice(_) = probe.at {
                    self.missed(self.partition_of(key.hash));
                }
                let slicetable = probe.slicetable.take();
                SliceProbe::newest(key, std::mem::take(&mut probe.older), slicetable)
            }
            Some(known) => return Ok(LookupStep::Answer(known.value())),
        };
        Ok(step.replace(probe))
    }
}

impl TableLayout for Slicetables {
    fn may_be_older(core: &Inner, index: usize, state: &State, hash: KeyHash, key: &[u8]) -> bool {
        let is_above = state.in_frozen(hash, key) || state.level.overflow.find(key).is_some();
        if is_above || !state.level.runs.is_empty() {
            return true;
        }
        core.block_for(index, state, hash).is_some() || core.older_of(index).is_some()
    }

    fn entries_below(state: &State) -> u64 {
        let Level { entries, overflow, .. } = &state.level;
        entries + overflow.len() as u64 + Self::entries_waiting(state)
    }

    /// A partition is not blank if it takes over from an older table that may have its keys.
    fn is_blank(core: &Inner, state: &State) -> bool {
        Self::entries_below(state) == 0 && core.older().is_none()
    }

    fn entries_waiting(state: &State) -> u64 {
        state.level.runs.iter().map(|run| u64::from(run.entries)).sum()
    }
}

impl Inner {
    /// Returns what a partition knows of a key without runs and slicetable.
    #[inline]
    pub(super) fn known(state: &State, hash: KeyHash, key: &[u8]) -> Result<KeyState<Value>> {
        let overflow = || state.level.overflow.find(key).map_or(KeyState::Unknown, KeyState::Live);
        Ok(state.buffered(hash, key)?.map(Value::new).or_else(overflow))
    }

    fn look_in_slice(
        &self,
        page: &PageBuf,
        key: &LookupKey,
        place: &SlicetablePlace,
        part: u32,
    ) -> Result<PageAnswer> {
        let slice = self.layout.slicing.slice_of_key(key.hash);
        let index = self.layout.slicing.page(slice, part);
        let owner = place.older.as_deref().unwrap_or(self);
        let label = owner.layout.shadow.label(place.block, index, PageKind::Slice);
        let body = match RawPage::new(page).check(label) {
            Ok(page) => page.body(),
            Err(_) if !self.is_current(self.partition_of(key.hash), place) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let layout = self.layout.slices;
        let Some(count) = layout.count(body) else { return Err(self.overfull(label.page)) };
        let slot = layout.find(body, count, key.bytes());
        let value = slot.map(|at| Value::new(layout.value(body, at)));
        Ok(Some(value.map_or(KeyState::Unknown, KeyState::Live)))
    }

    /// Returns whether this is still a partition's slicetable. An older table's is until the partition has its own.
    pub(super) fn is_current(&self, index: usize, place: &SlicetablePlace) -> bool {
        let shadow = &self.layout.shadow;
        let Some(older) = &place.older else {
            return shadow.is_current(index as u32, place.block);
        };
        let from = self.index_in(older, index) as u32;
        shadow.block(index as u32).is_none() && older.layout.shadow.is_current(from, place.block)
    }

    /// The error of a page that claims more entries than it can hold.
    fn overfull(&self, page: PageId) -> Error {
        let most = format!("at most {} entries", self.layout.slices.capacity());
        nandex_store::Error::corrupt("slice", page, most, "more").into()
    }

    fn look_in_run(&self, page: &PageBuf, key: &LookupKey, id: SegmentId) -> Result<PageAnswer> {
        let label = self.layout.front.label(id, key.hash);
        let bytes = match RawPage::new(page).check(label) {
            Ok(page) => page.bytes(),
            Err(_) if !self.has_run(self.partition_of(key.hash), id) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Some(self.entry_layout().look_up(bytes, key.bytes(), key.hash).map(Value::new)))
    }
}
