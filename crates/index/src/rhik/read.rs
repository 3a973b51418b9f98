//! What a lookup reads below the buffers: the page that the directory names, and no other.

use std::sync::Arc;

use nandex_device::PageBuf;
use nandex_store::hash::KeyHash;
use nandex_store::page::RawPage;
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace};

use super::{Inner, Records, State};
use crate::api::Value;
use crate::lookup::{KeyLookup, LookupKey, Lookups, TableLookup};
use crate::model::text::bytes;
use crate::write::TableLayout;
use crate::write::groups::Group;
use crate::{Error, Result};

/// A lookup that reads a record table.
#[derive(Clone, Debug)]
pub(crate) struct RecordProbe {
    key: LookupKey,
    /// Keeps the group's pages as they are.
    group: Arc<Group>,
    table: u32,
    /// What the table said.
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
        let state = self.partitions[self.partition_of(*hash)].read();
        state.active.prefetch(*hash);
        state.level.prefetch(*hash);
    }

    #[inline]
    fn search_ram(
        &self,
        hash: &KeyHash,
        key: &[u8],
    ) -> Result<LookupStep<RecordProbe, Option<Value>>> {
        let hash = *hash;
        let state = self.partitions[self.partition_of(hash)].read();
        if let Some(answer) = state.answer(hash, key)? {
            return Ok(LookupStep::Answer(answer));
        }
        let Some((group, table)) = state.level.find(hash) else {
            return Ok(LookupStep::Answer(None));
        };
        let group = Arc::clone(group);
        Ok(LookupStep::Read(RecordProbe {
            key: LookupKey::new(hash, key),
            group,
            table,
            found: None,
        }))
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
    fn key_of(probe: &RecordProbe) -> &LookupKey {
        &probe.key
    }
}

impl PageReads for Inner {
    type Probe = RecordProbe;
    type Answer = Option<Value>;
    type Error = Error;

    #[inline]
    fn place(&self, probe: &RecordProbe, _part: u32) -> ReadPlace {
        let start = probe.group.place.extent.start;
        ReadPlace::page(start.plus(probe.table.into()), start)
    }

    fn look(&self, probe: &mut RecordProbe, _part: u32, page: &PageBuf) -> Result<()> {
        let label = probe.group.place.label(probe.table.into());
        let body = RawPage::new(page).check(label)?.body();
        let records = &self.layout.records;
        let slot = records.find(body, probe.key.hash, probe.key.bytes());
        probe.found = slot.map(|slot| Value::new(records.value(body, slot)));
        Ok(())
    }

    #[inline]
    fn next(&self, probe: &mut RecordProbe) -> NextStep<Self> {
        Ok(LookupStep::Answer(probe.found))
    }
}

impl TableLayout for Records {
    fn may_be_older(
        _core: &Inner,
        _index: usize,
        state: &State,
        hash: KeyHash,
        key: &[u8],
    ) -> bool {
        state.in_frozen(hash, key) || !state.level.is_empty()
    }

    fn entries_below(state: &State) -> u64 {
        state.level.entries
    }

    fn refusal(core: &Inner, entries: u64, _flash_bytes: u64) -> Error {
        let most = core.layout.config.ram_bytes_max.map_or("its RAM".into(), bytes);
        let reason =
            format!("its directory would outgrow {most}, which it may take; open it with more RAM");
        Error::GrowthStopped { entries, reason }
    }
}
