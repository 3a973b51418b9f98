//! Inserts of absent keys.

use std::sync::Arc;

use nandex_store::run::Entry;

use super::levels::Levels;
use super::{CascadeLayout, Inner, Part};
use crate::Result;
use crate::write::AddsAbsent;

/// A key to insert.
pub(crate) struct FingerprintInsert {
    fingerprint: u64,
    /// The count in the part's buffers before the lookup, and its levels at that time.
    buffered: i64,
    levels: Arc<Levels>,
}

impl AddsAbsent for CascadeLayout {
    type Noted = FingerprintInsert;

    fn note(core: &Inner, key: &[u8]) -> Result<(usize, FingerprintInsert)> {
        let (part, fingerprint) = core.place(key);
        let state = core.partitions[part].read();
        let (buffered, levels) = (state.buffered(fingerprint)?, Arc::clone(&state.level));
        Ok((part, FingerprintInsert { fingerprint, buffered, levels }))
    }

    fn are_there(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        core.contains_many(keys)
    }

    fn update(_core: &Inner, insert: &FingerprintInsert) -> Entry {
        Entry { fingerprint: insert.fingerprint, count: 1 }
    }

    fn check_space(core: &Inner, entries: &[Entry]) -> Result<()> {
        core.check_keys(entries)
    }

    /// The key is absent if its count has not changed since before its lookup.
    fn is_absent(_core: &Inner, insert: &FingerprintInsert, state: &Part) -> Option<bool> {
        let is_as_before = Arc::ptr_eq(&state.level, &insert.levels)
            && state.buffered(insert.fingerprint).ok()? == insert.buffered;
        is_as_before.then_some(true)
    }
}
