//! Inserts of keys that are not there: as tables do it, a lookup without a lock, then an insert under the partition's
//! lock if the lookup's answer still stands.

use super::format::Fingerprint;
use super::update::RESERVED_MAX;
use super::{Inner, State};
use crate::Result;
use crate::write::{LogCodec, by_partition};

/// A key to be inserted.
struct Insert {
    /// Its place in the batch.
    position: usize,
    index: usize,
    fingerprint: Fingerprint,
    /// Buffers that had left its partition before it was looked up.
    buffers_left: u64,
}

impl Inner {
    /// Adds each key that is not there, in order, and returns which these are.
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

    /// Looks up the keys at these positions and adds those that are absent. Returns the positions of those that have
    /// to be looked up again.
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
        let absent: Vec<_> = absent.map(|((number, insert), _)| (insert.index, number)).collect();
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let logged: Vec<_> = inserts.iter().map(|insert| insert.fingerprint).collect();
        let _reservation = self.wait_for_log(self.codec.logged_bytes(&logged))?;
        let mut open = Vec::new();
        by_partition(self.partitions.len(), absent.iter().copied(), |index, numbers| {
            let some: Vec<_> = numbers.iter().map(|number| &inserts[*number as usize]).collect();
            let updates: Vec<_> = some.iter().map(|insert| insert.fingerprint).collect();
            self.apply_where(index, &updates, |state, number| {
                let may = some[number].may(state);
                is_new[some[number].position] = may == Some(true);
                if may.is_none() {
                    open.push(some[number].position);
                }
                may == Some(true)
            })
        })?;
        // Of equal keys the first is added.
        open.sort_unstable();
        Ok(open)
    }

    fn insert_of(&self, key: &[u8], position: usize) -> Insert {
        let (index, fingerprint) = self.place(key);
        let buffers_left = self.partitions[index].read().buffers_left;
        Insert { position, index, fingerprint, buffers_left }
    }
}

impl Insert {
    /// Is the key, which was absent, absent for certain? `None` if it has to be looked up again: a buffer that may
    /// have it has left for flash.
    fn may(&self, state: &State) -> Option<bool> {
        if state.has(self.fingerprint) {
            return Some(false);
        }
        (state.buffers_left == self.buffers_left).then_some(true)
    }
}
