//! Changes of keys: each becomes a change of its stored bytes, and enters the write path.

use std::sync::Arc;

use nandex_store::Durability;

use super::buffer::KeyChange;
use super::change::Change;
use super::format::record_bytes;
use super::read::KeyPlace;
use super::segments::PartitionSegments;
use super::{Config, Inner, State};
use crate::write::{LogCodec, by_partition};
use crate::{Error, Result};

/// Changes of a batch that are sorted by partition at a time.
const BATCH: usize = 4096;

/// Changes that share one reservation in the log.
const RESERVED_MAX: usize = 512;

/// A key to be inserted if it is absent.
struct Insert {
    /// Its place in the batch.
    position: usize,
    at: KeyPlace,
    /// What the partition's buffers said before the lookup, and its segments then.
    buffered: Change,
    segments: Arc<PartitionSegments>,
}

impl Insert {
    /// Has the key's count not changed since before its lookup?
    fn is_as_before(&self, state: &State, width: usize) -> bool {
        Arc::ptr_eq(&state.level, &self.segments)
            && state.buffered(self.at.place, &self.at.key[..width]) == self.buffered
    }
}

impl Inner {
    /// Applies each change to its key, in order, and acknowledges.
    pub(super) fn change_keys<'k>(
        &self,
        mut changes: impl Iterator<Item = (&'k [u8], Change)>,
    ) -> Result<()> {
        let width = self.placing().width();
        // As long as the batch from the start: a key and its place take 64 bytes, and growing would copy them.
        let most = changes.size_hint().0.min(BATCH);
        let mut located: Vec<(KeyPlace, Change)> = Vec::with_capacity(most);
        let mut records = Vec::new();
        loop {
            located.clear();
            for (key, change) in changes.by_ref().take(BATCH) {
                self.placing().check(key)?;
                if change.amount == i64::MIN {
                    return Err(Error::CountRange { count: 0, amount: change.amount });
                }
                located.push((self.locate(key), change));
            }
            if located.is_empty() {
                return self.acknowledge();
            }
            let updates = located.iter().filter(|(_, change)| !change.is_nothing());
            let updates = updates.map(|(at, change)| (at.partition, update(at, *change, width)));
            by_partition(self.partitions.len(), updates, |index, updates| {
                self.change_partition(index, updates, &mut records)
            })?;
        }
    }

    /// Applies a change to one key, and acknowledges.
    pub(super) fn change_key(&self, key: &[u8], change: Change) -> Result<()> {
        self.change_keys(std::iter::once((key, change)))
    }

    fn change_partition(
        &self,
        index: usize,
        updates: &[KeyChange<'_>],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        for updates in updates.chunks(RESERVED_MAX) {
            let _reservation = self.wait_for_log(self.codec.logged_bytes(updates))?;
            self.apply(index, updates, records)?;
        }
        Ok(())
    }

    /// Adds 1 to each key whose count is not above 0, in order, and returns which these are.
    pub(super) fn add_absent(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let mut is_new = vec![false; keys.len()];
        for (keys, is_new) in keys.chunks(RESERVED_MAX).zip(is_new.chunks_mut(RESERVED_MAX)) {
            let mut waiting: Vec<_> = (0..keys.len()).collect();
            while !waiting.is_empty() {
                waiting = self.add_where_absent(keys, &waiting, is_new)?;
            }
        }
        self.acknowledge()?;
        Ok(is_new)
    }

    /// Looks up the keys at these positions and adds those that are absent. Returns the positions whose counts have
    /// changed meanwhile.
    fn add_where_absent(
        &self,
        keys: &[&[u8]],
        positions: &[usize],
        is_new: &mut [bool],
    ) -> Result<Vec<usize>> {
        let width = self.placing().width();
        let inserts: Vec<_> =
            positions.iter().map(|at| self.insert_of(keys[*at], *at)).collect::<Result<_>>()?;
        let asked: Vec<_> = positions.iter().map(|position| keys[*position]).collect();
        let sums = self.sum_many(&asked)?;
        let absent = (0u32..).zip(&inserts).zip(sums).filter(|(_, sum)| *sum <= 0);
        let absent: Vec<_> =
            absent.map(|((number, insert), _)| (insert.at.partition, number)).collect();
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let all: Vec<_> = inserts.iter().map(|it| update(&it.at, Change::add(1), width)).collect();
        let _reservation = self.wait_for_log(self.codec.logged_bytes(&all))?;
        let mut changed = Vec::new();
        by_partition(self.partitions.len(), absent.iter().copied(), |index, numbers| {
            let some: Vec<_> = numbers.iter().map(|number| &inserts[*number as usize]).collect();
            let updates: Vec<_> = numbers.iter().map(|number| all[*number as usize]).collect();
            self.apply_where(index, &updates, |state, number| {
                let may = some[number].is_as_before(state, width);
                is_new[some[number].position] = may;
                if !may {
                    changed.push(some[number].position);
                }
                may
            })
        })?;
        Ok(changed)
    }

    fn insert_of(&self, key: &[u8], position: usize) -> Result<Insert> {
        self.placing().check(key)?;
        let at = self.locate(key);
        let state = self.partitions[at.partition].read();
        let buffered = state.buffered(at.place, &at.key[..self.placing().width()]);
        let segments = Arc::clone(&state.level);
        drop(state);
        Ok(Insert { position, at, buffered, segments })
    }

    /// Refuses a table whose buffers the log cannot cover. Without durability it need not cover them: if the table is
    /// opened with durability later, it saves its buffers before they are full.
    pub(super) fn check_log(volume: &nandex_store::Volume, config: &Config) -> Result<()> {
        if volume.durability() == Durability::Never {
            return Ok(());
        }
        let (short, _) = record_bytes(config.keys.stored_bytes());
        let bytes = config.buffer_entries.saturating_mul(short as u64);
        let log_bytes = volume.log().capacity_bytes();
        if log_bytes < bytes.saturating_mul(2) {
            let reason = format!(
                "the volume's log of {} is too small for buffers of {} keys; create the volume with a log of at least \
                 {}, or the table with smaller buffers",
                crate::model::text::bytes(log_bytes),
                config.buffer_entries,
                crate::model::text::bytes(bytes.saturating_mul(4))
            );
            return Err(Error::Config { field: "log_bytes", reason });
        }
        Ok(())
    }
}

fn update(at: &KeyPlace, change: Change, width: usize) -> KeyChange<'_> {
    KeyChange { place: at.place, key: &at.key[..width], change }
}
