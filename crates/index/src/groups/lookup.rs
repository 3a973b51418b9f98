//! Lookups below the buffers: they read the record tables that the structure names.

use std::sync::Arc;

use nandex_device::PageBuf;
use nandex_store::hash::KeyHash;
use nandex_store::page::RawPage;
use nandex_store::reads::{LookupStep, NextStep, PageReads, ReadPlace};

use super::{Group, GroupPlace, GroupStep, GroupStructure, Grouped};
use crate::api::Value;
use crate::lookup::{KeyLookup, LookupKey, Lookups, TableLookup};
use crate::write::Core;
use crate::{Error, Result};

/// A lookup that reads a record table.
#[derive(Clone, Debug)]
pub(crate) struct GroupProbe<W> {
    key: LookupKey,
    /// Keeps the group's pages from being reused.
    group: Arc<Group>,
    table: u32,
    /// The table's answer.
    found: Option<Value>,
    way: W,
}

/// Turns a step of the structure into a lookup of this key.
#[inline]
fn probe<W>(key: LookupKey, step: GroupStep<W>) -> LookupStep<GroupProbe<W>, Option<Value>> {
    step.map_read(|GroupPlace { group, table, way }| GroupProbe {
        key,
        group,
        table,
        found: None,
        way,
    })
}

impl<S: GroupStructure> KeyLookup for Core<Grouped<S>> {
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
        state.prefetch_active(|buffer| buffer.prefetch(*hash));
        S::prefetch(&state.level, *hash);
    }

    #[inline]
    fn search_ram(
        &self,
        hash: &KeyHash,
        key: &[u8],
    ) -> Result<LookupStep<GroupProbe<S::Way>, Option<Value>>> {
        let hash = *hash;
        let state = self.partitions[self.partition_of(hash)].read();
        // Its cache lines arrive while the buffers are searched, whose pages take as long to arrive.
        S::prefetch(&state.level, hash);
        let known = state.buffered(hash, key)?;
        if known.is_known() {
            return Ok(LookupStep::Answer(known.value().map(Value::new)));
        }
        let key = LookupKey::new(hash, key);
        Ok(probe(key, self.layout.own.first(&state.level, &key)))
    }

    #[inline]
    fn is_found(value: &Option<Value>) -> bool {
        value.is_some()
    }
}

impl<S: GroupStructure> TableLookup for Core<Grouped<S>> {
    #[inline]
    fn hash_of(place: &KeyHash) -> KeyHash {
        *place
    }

    #[inline]
    fn key_of(probe: &GroupProbe<S::Way>) -> &LookupKey {
        &probe.key
    }
}

impl<S: GroupStructure> PageReads for Core<Grouped<S>> {
    type Probe = GroupProbe<S::Way>;
    type Answer = Option<Value>;
    type Error = Error;

    #[inline]
    fn place(&self, probe: &Self::Probe, _part: u32) -> ReadPlace {
        let start = probe.group.place.extent.start;
        ReadPlace::page(start.plus(probe.table.into()), start)
    }

    fn look(&self, probe: &mut Self::Probe, _part: u32, page: &PageBuf) -> Result<()> {
        let label = probe.group.place.label(probe.table.into());
        let body = RawPage::new(page).check(label)?.body();
        let records = &self.layout.records;
        let slot = records.find(body, probe.key.hash, probe.key.bytes());
        probe.found = slot.map(|slot| Value::new(records.value(body, slot)));
        self.layout.own.note_page(label, page);
        Ok(())
    }

    #[inline]
    fn next(&self, probe: &mut Self::Probe) -> NextStep<Self> {
        if probe.found.is_some() {
            return Ok(LookupStep::Answer(probe.found));
        }
        let key = probe.key;
        Ok(self::probe(key, self.layout.own.next(&probe.way, &key)).replace(probe))
    }
}
