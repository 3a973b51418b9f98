//! What a lookup reads below the buffers: the key's page of each level that has entries there, from the first on.

use std::sync::Arc;

use nandex_device::PageBuf;
use nandex_store::hash::KeyHash;
use nandex_store::page::RawPage;
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace};

use super::levels::{FoundPage, LevelMap};
use super::{Inner, Leveled, State};
use crate::api::Value;
use crate::lookup::{KeyLookup, LookupKey, Lookups, TableLookup};
use crate::model::text::bytes;
use crate::write::TableLayout;
use crate::{Error, Result};

/// A lookup that reads pages of levels.
#[derive(Clone, Debug)]
pub(crate) struct LevelProbe {
    key: LookupKey,
    /// The levels that it saw; its groups keep their pages meanwhile.
    map: Arc<LevelMap>,
    page: FoundPage,
    /// What the page said.
    found: Option<Value>,
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
        self.partitions[self.partition_of(*hash)].read().active.prefetch(*hash);
    }

    #[inline]
    fn search_ram(
        &self,
        hash: &KeyHash,
        key: &[u8],
    ) -> Result<LookupStep<LevelProbe, Option<Value>>> {
        let hash = *hash;
        let state = self.partitions[self.partition_of(hash)].read();
        if let Some(answer) = state.answer(hash, key)? {
            return Ok(LookupStep::Answer(answer));
        }
        let map = Arc::clone(&state.level);
        drop(state);
        Ok(self.descend(map, LookupKey::new(hash, key), 0))
    }

    #[inline]
    fn is_found(value: &Option<Value>) -> bool {
        value.is_some()
    }
}

impl Inner {
    /// Goes on from a level: through pages that RAM keeps, to the answer or to the next page to read.
    fn descend(
        &self,
        map: Arc<LevelMap>,
        key: LookupKey,
        mut from: usize,
    ) -> LookupStep<LevelProbe, Option<Value>> {
        while let Some(page) = map.next_page(self.layout.plan, from, key.hash) {
            let label = page.group.place.label(page.index as u64);
            match self.layout.cache.with(label, |body| self.find(body, &key)) {
                None => return LookupStep::Read(LevelProbe { key, map, page, found: None }),
                Some(None) => from = page.level + 1,
                Some(found) => return LookupStep::Answer(found),
            }
        }
        LookupStep::Answer(None)
    }

    fn find(&self, body: &[u8], key: &LookupKey) -> Option<Value> {
        let records = &self.layout.records;
        let slot = records.find(body, key.hash, key.bytes())?;
        Some(Value::new(records.value(body, slot)))
    }
}

impl TableLookup for Inner {
    #[inline]
    fn hash_of(place: &KeyHash) -> KeyHash {
        *place
    }

    #[inline]
    fn key_of(probe: &LevelProbe) -> &LookupKey {
        &probe.key
    }
}

impl PageReads for Inner {
    type Probe = LevelProbe;
    type Answer = Option<Value>;
    type Error = Error;

    #[inline]
    fn place(&self, probe: &LevelProbe, _part: u32) -> ReadPlace {
        let start = probe.page.group.place.extent.start;
        ReadPlace::page(start.plus(probe.page.index as u64), start)
    }

    fn look(&self, probe: &mut LevelProbe, _part: u32, page: &PageBuf) -> Result<()> {
        let label = probe.page.group.place.label(probe.page.index as u64);
        let body = RawPage::new(page).check(label)?.body();
        probe.found = self.find(body, &probe.key);
        self.layout.cache.put(label, page);
        Ok(())
    }

    #[inline]
    fn next(&self, probe: &mut LevelProbe) -> NextStep<Self> {
        if probe.found.is_some() {
            return Ok(LookupStep::Answer(probe.found));
        }
        let (map, from) = (Arc::clone(&probe.map), probe.page.level + 1);
        Ok(self.descend(map, probe.key, from).replace(probe))
    }
}

impl TableLayout for Leveled {
    fn may_be_older(core: &Inner, _index: usize, state: &State, hash: KeyHash, key: &[u8]) -> bool {
        state.in_frozen(hash, key) || state.level.reaches(core.layout.plan, 0, hash)
    }

    fn entries_below(state: &State) -> u64 {
        state.level.entries
    }

    fn refusal(core: &Inner, entries: u64, _flash_bytes: u64) -> Error {
        let most = core.layout.config.ram_bytes_max.map_or("its RAM".into(), bytes);
        let reason = format!(
            "the map of its pages would outgrow {most}, which it may take; open it with more RAM"
        );
        Error::GrowthStopped { entries, reason }
    }
}
