//! Inserts of keys that may not be there: of several threads that insert the same key, one does.
//!
//! The lookup may read flash, so it holds no lock. Its answer "absent" still stands under the lock if no buffer has
//! the key and no buffer has left for flash since: an update that came meanwhile would be in one of them. Otherwise
//! the key is looked up again.

use nandex_store::entries::{Entry, SlotState};
use nandex_store::reads::PageReads;

use super::update::LOCKED_MAX;
use super::{Core, EntryUpdate, PartitionState, TableLayout, by_partition};
use crate::api::Value;
use crate::lookup::{self, KeyLookup};
use crate::{Error, Result};

/// A pair to be inserted.
struct Insert<'p> {
    /// Its place in the batch.
    position: usize,
    update: EntryUpdate<'p>,
    index: usize,
    /// Buffers that had left its partition before it was looked up.
    buffers_left: u64,
}

impl Insert<'_> {
    /// Is the key, which was absent, absent for certain? Otherwise notes what is there, or that it is not
    /// certain.
    fn may<L: TableLayout>(
        &self,
        state: &PartitionState<L>,
        found: &mut [Option<Value>],
        uncertain: &mut Vec<usize>,
    ) -> bool {
        let EntryUpdate { hash, entry } = self.update;
        match state.answer(hash, entry.key) {
            Some(None) => true,
            Some(there) => {
                found[self.position] = there;
                false
            }
            None if state.buffers_left == self.buffers_left => true,
            None => {
                uncertain.push(self.position);
                false
            }
        }
    }
}

impl<L: TableLayout> Core<L>
where
    Self: KeyLookup<KeyPlace: Sized> + PageReads<Answer = Option<Value>, Error = Error>,
{
    /// Puts each pair whose key is not there, in order, and returns the values of those that are.
    pub(crate) fn get_or_insert_many(
        &self,
        pairs: &[(&[u8], &[u8])],
    ) -> Result<Vec<Option<Value>>> {
        for (key, value) in pairs {
            self.check_key_width(key)?;
            self.check_value(value)?;
        }
        let mut found = vec![None; pairs.len()];
        for (pairs, found) in pairs.chunks(self.batch_len()).zip(found.chunks_mut(self.batch_len()))
        {
            let mut waiting: Vec<_> = (0..pairs.len()).collect();
            while !waiting.is_empty() {
                waiting = self.insert_absent(pairs, &waiting, found)?;
            }
        }
        self.acknowledge()?;
        Ok(found)
    }

    /// Looks up the pairs at these positions and inserts those that are absent. Returns the positions of which
    /// it is not certain.
    fn insert_absent(
        &self,
        pairs: &[(&[u8], &[u8])],
        positions: &[usize],
        found: &mut [Option<Value>],
    ) -> Result<Vec<usize>> {
        let inserts: Vec<_> = positions.iter().map(|at| self.insert_of(pairs, *at)).collect();
        let keys: Vec<_> = inserts.iter().map(|insert| insert.update.entry.key).collect();
        for (insert, value) in inserts.iter().zip(lookup::batch(self, &keys)?) {
            found[insert.position] = value;
        }
        let absent = (0u32..).zip(&inserts).filter(|(_, it)| found[it.position].is_none());
        let absent: Vec<_> = absent.map(|(number, insert)| (insert.index, number)).collect();
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let _reservation = self.volume.reserve(self.batch_bytes(absent.len()))?;
        let mut uncertain = Vec::new();
        by_partition(self.partitions.len(), absent.iter().copied(), |index, numbers| {
            for numbers in numbers.chunks(LOCKED_MAX) {
                let some: Vec<_> =
                    numbers.iter().map(|number| &inserts[*number as usize]).collect();
                let updates: Vec<_> = some.iter().map(|insert| insert.update).collect();
                self.apply_where(index, &updates, |state, number| {
                    some[number].may(state, found, &mut uncertain)
                })?;
            }
            Ok(())
        })?;
        Ok(uncertain)
    }

    fn insert_of<'p>(&self, pairs: &[(&'p [u8], &'p [u8])], position: usize) -> Insert<'p> {
        let (key, value) = pairs[position];
        let hash = self.hasher.hash(key);
        let index = self.partition_of(hash);
        let buffers_left = self.partitions[index].read().buffers_left;
        let entry = Entry { state: SlotState::Live, key, value };
        Insert { position, update: EntryUpdate { hash, entry }, index, buffers_left }
    }
}
