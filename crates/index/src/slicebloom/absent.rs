//! Inserts of absent keys.

use super::format::Fingerprint;
use super::{BloomSlicetables, Inner, State};
use crate::Result;
use crate::write::AddsAbsent;

/// A key to insert.
pub(crate) struct BloomInsert {
    fingerprint: Fingerprint,
    /// The number of buffers that had left its partition before it was looked up.
    buffers_left: u64,
}

impl AddsAbsent for BloomSlicetables {
    type Noted = BloomInsert;

    fn note(core: &Inner, key: &[u8]) -> Result<(usize, BloomInsert)> {
        let (index, fingerprint) = core.place(key);
        let buffers_left = core.partitions[index].read().buffers_left;
        Ok((index, BloomInsert { fingerprint, buffers_left }))
    }

    fn are_there(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        core.contains_many(keys)
    }

    fn update(_core: &Inner, insert: &BloomInsert) -> Fingerprint {
        insert.fingerprint
    }

    /// The key is absent if no buffer has it, and no buffer that may have it has left for flash.
    fn is_absent(_core: &Inner, insert: &BloomInsert, state: &State) -> Option<bool> {
        if state.has(insert.fingerprint).ok()? {
            return Some(false);
        }
        (state.buffers_left == insert.buffers_left).then_some(true)
    }
}
