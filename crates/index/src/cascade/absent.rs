//! Inserts of keys that are not there: as tables do it, a lookup without a lock, then an insert under the part's
//! lock if the lookup's answer still stands.

use std::sync::Arc;

use nandex_store::run::Entry;

use super::levels::Levels;
use super::update::RESERVED_MAX;
use super::{Inner, Part};
use crate::Result;
use crate::write::{LogCodec, by_partition};

/// A key to be inserted.
struct Insert {
    /// Its place in the batch.
    position: usize,
    part: usize,
    fingerprint: u64,
    /// What the part's buffers said before the lookup, and its levels then.
    buffered: i64,
    levels: Arc<Levels>,
}

impl Inner {
    /// Adds one of each key that is not there, in order, and returns which these are.
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

    /// Looks up the keys at these positions and adds those that are absent. Returns the positions whose counts
    /// have changed meanwhile.
    fn add_where_absent(
        &self,
        keys: &[&[u8]],
        positions: &[usize],
        is_new: &mut [bool],
    ) -> Result<Vec<usize>> {
        let inserts: Vec<_> = positions.iter().map(|at| self.insert_of(keys[*at], *at)).collect();
        let asked: Vec<_> = positions.iter().map(|position| keys[*position]).collect();
        let found = self.contains_many(&asked)?;
        let absent = (0u32..).zip(&inserts).zip(found).filter(|(_, found)| !found);
        let absent: Vec<_> = absent.map(|((number, insert), _)| (insert.part, number)).collect();
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<_> = inserts.iter().map(Insert::entry).collect();
        let _reservation = self.wait_for_log(self.codec.logged_bytes(&entries))?;
        let mut changed = Vec::new();
        by_partition(self.partitions.len(), absent.iter().copied(), |part, numbers| {
            let some: Vec<_> = numbers.iter().map(|number| &inserts[*number as usize]).collect();
            let entries: Vec<_> = some.iter().map(|insert| insert.entry()).collect();
            self.check_keys(&entries)?;
            self.apply_where(part, &entries, |state, number| {
                let may = some[number].is_as_before(state);
                is_new[some[number].position] = may;
                if !may {
                    changed.push(some[number].position);
                }
                may
            })
        })?;
        Ok(changed)
    }

    fn insert_of(&self, key: &[u8], position: usize) -> Insert {
        let (part, fingerprint) = self.place(key);
        let state = self.partitions[part].read();
        let (buffered, levels) = (state.buffered(fingerprint), Arc::clone(&state.level));
        Insert { position, part, fingerprint, buffered, levels }
    }
}

impl Insert {
    fn entry(&self) -> Entry {
        Entry { fingerprint: self.fingerprint, count: 1 }
    }

    /// Has the key's count not changed since before its lookup?
    fn is_as_before(&self, state: &Part) -> bool {
        Arc::ptr_eq(&state.level, &self.levels) && state.buffered(self.fingerprint) == self.buffered
    }
}
