//! Additions to keys whose count is not above 0.

use std::sync::Arc;

use super::buffer::KeyChange;
use super::change::Change;
use super::read::KeyPlace;
use super::segments::PartitionSegments;
use super::update::update;
use super::{CountingLayout, Inner, State};
use crate::Result;
use crate::write::AddsAbsent;

/// A key to insert if it is absent.
pub(crate) struct CountInsert {
    at: KeyPlace,
    /// The change in the partition's buffers before the lookup, and its segments at that time.
    buffered: Change,
    segments: Arc<PartitionSegments>,
}

impl AddsAbsent for CountingLayout {
    type Noted = CountInsert;

    fn note(core: &Inner, key: &[u8]) -> Result<(usize, CountInsert)> {
        core.placing().check(key)?;
        let at = core.locate(key);
        let state = core.partitions[at.partition].read();
        let buffered = state.buffered(at.place, &at.key[..core.placing().width()])?;
        let segments = Arc::clone(&state.level);
        Ok((at.partition, CountInsert { at, buffered, segments }))
    }

    fn are_there(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        Ok(core.sum_many(keys)?.into_iter().map(|sum| sum > 0).collect())
    }

    fn update<'n>(core: &Inner, insert: &'n CountInsert) -> KeyChange<'n> {
        update(&insert.at, Change::add(1), core.placing().width())
    }

    /// The key is absent if its count has not changed since before its lookup.
    fn is_absent(core: &Inner, insert: &CountInsert, state: &State) -> Option<bool> {
        let CountInsert { at, buffered, segments } = insert;
        let now = state.buffered(at.place, &at.key[..core.placing().width()]).ok()?;
        (Arc::ptr_eq(&state.level, segments) && now == *buffered).then_some(true)
    }
}
