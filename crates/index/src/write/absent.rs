//! Inserts of keys that may be absent: if several threads insert the same key, exactly one succeeds.
//!
//! The lookup may read flash, so it holds no lock. Its answer "absent" is still valid under the lock if no buffer has
//! the key and no buffer has left for flash since: any later update would be in one of them. Otherwise the key is
//! looked up again.

use nandex_store::entries::{Entry, KeyState, SlotState};

use super::update::LOCKED_MAX;
use super::{Core, EntryUpdate, PartitionState, TableLayout, by_partition};
use crate::api::Value;
use crate::lookup::{self, Cached, TableLookup};
use crate::{Error, Result};

/// A pair to insert.
struct Insert<'p> {
    /// Its position in the batch.
    position: usize,
    update: EntryUpdate<'p>,
    index: usize,
    /// The number of buffers that had left its partition before it was looked up.
    buffers_left: u64,
}

impl Insert<'_> {
    /// Returns whether the key, which was absent, is certainly still absent; records its value if it is not. `None` if
    /// the key must be looked up again.
    fn may<L: TableLayout>(
        &self,
        state: &PartitionState<L>,
        found: &mut [Option<Value>],
    ) -> Option<bool> {
        let EntryUpdate { hash, entry } = self.update;
        // The device is written, so nothing is lost.
        match state.buffered(hash, entry.key).unwrap_or_default() {
            KeyState::Removed => Some(true),
            KeyState::Live(value) => {
                found[self.position] = Some(Value::new(value));
                Some(false)
            }
            KeyState::Unknown => (state.buffers_left == self.buffers_left).then_some(true),
        }
    }
}

/// Pairs whose keys are not yet known to be absent or present.
#[derive(Debug, Default)]
pub(crate) struct Undecided {
    /// Their positions in the batch.
    pub(crate) positions: Vec<usize>,
    /// The error of a full table, if one stopped the batch.
    pub(crate) full: Option<Error>,
}

impl Undecided {
    /// Returns the positions, or the error of a full table.
    fn unless_full(self) -> Result<Vec<usize>> {
        self.full.map_or(Ok(self.positions), Err)
    }
}

impl<L: TableLayout> Core<L>
where
    Self: TableLookup,
{
    /// Inserts each pair whose key is absent, in order, and returns the values of the keys that are present.
    pub(crate) fn get_or_insert_many(
        &self,
        pairs: &[(&[u8], &[u8])],
    ) -> Result<Vec<Option<Value>>> {
        self.check_pairs(pairs)?;
        let mut found = vec![None; pairs.len()];
        for (pairs, found) in pairs.chunks(self.batch_len()).zip(found.chunks_mut(self.batch_len()))
        {
            let mut waiting: Vec<_> = (0..pairs.len()).collect();
            while !waiting.is_empty() {
                let undecided = self.insert_absent(pairs, &waiting, found, |keys| {
                    lookup::batch(&Cached::new(self), keys)
                })?;
                waiting = undecided.unless_full()?;
            }
        }
        self.acknowledge()?;
        Ok(found)
    }
}

impl<L: TableLayout> Core<L> {
    /// Looks up the pairs at these positions with `look_up` and inserts those that are absent.
    pub(crate) fn insert_absent(
        &self,
        pairs: &[(&[u8], &[u8])],
        positions: &[usize],
        found: &mut [Option<Value>],
        look_up: impl Fn(&[&[u8]]) -> Result<Vec<Option<Value>>>,
    ) -> Result<Undecided> {
        // Of equal keys the later one is noted first: it is never certain if the earlier one is not.
        let mut inserts: Vec<_> =
            positions.iter().rev().map(|at| self.insert_of(pairs, *at)).collect();
        inserts.reverse();
        let keys: Vec<_> = inserts.iter().map(|insert| insert.update.entry.key).collect();
        for (insert, value) in inserts.iter().zip(look_up(&keys)?) {
            found[insert.position] = value;
        }
        let absent = (0u32..).zip(&inserts).filter(|(_, it)| found[it.position].is_none());
        let absent: Vec<_> = absent.map(|(number, insert)| (insert.index, number)).collect();
        if absent.is_empty() {
            return Ok(Undecided::default());
        }
        let _reservation = self.volume.reserve(self.batch_bytes(absent.len()))?;
        let mut is_open = vec![true; inserts.len()];
        let walked = by_partition(self.partitions.len(), absent.iter().copied(), |index, some| {
            some.chunks(LOCKED_MAX).try_for_each(|numbers| {
                let insert = |number: &u32| &inserts[*number as usize];
                let updates: Vec<_> = numbers.iter().map(|it| insert(it).update).collect();
                let mut asked = 0;
                let applied = self.apply_where(index, &updates, |state, at| {
                    asked = numbers[at] as usize;
                    let may = inserts[asked].may(state, found);
                    is_open[asked] = may.is_none();
                    may == Some(true)
                });
                // The last pair that was checked did not fit.
                is_open[asked] |= applied.is_err();
                applied
            })
        });
        let full = match walked {
            Err(error @ Error::Full { .. }) => Some(error),
            other => other.map(|()| None)?,
        };
        let open = absent.iter().map(|(_, number)| *number as usize).filter(|it| is_open[*it]);
        Ok(Undecided { positions: open.map(|it| inserts[it].position).collect(), full })
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
