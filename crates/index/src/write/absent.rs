//! Inserts of keys that may not be there: of several threads that insert the same key, one does.
//!
//! The lookup may read flash, so it holds no lock. Its answer "absent" still stands under the lock if no buffer has
//! the key and no buffer has left for flash since: an update that came meanwhile would be in one of them. Otherwise
//! the key is looked up again.

use nandex_store::entries::{Entry, KeyState, SlotState};

use super::update::LOCKED_MAX;
use super::{Core, EntryUpdate, PartitionState, TableLayout, by_partition};
use crate::api::Value;
use crate::lookup::{self, Cached, TableLookup};
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
    /// Is the key, which was absent, absent for certain? Notes what is there if it is not. `None` if the key
    /// has to be looked up again.
    fn may<L: TableLayout>(
        &self,
        state: &PartitionState<L>,
        found: &mut [Option<Value>],
    ) -> Option<bool> {
        let EntryUpdate { hash, entry } = self.update;
        // Where it is written, nothing is lost.
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

/// Pairs of which is not known yet whether their keys are absent.
#[derive(Debug, Default)]
pub(crate) struct Undecided {
    /// Their places in the batch.
    pub(crate) positions: Vec<usize>,
    /// The refusal of a full table, if one stopped the batch.
    pub(crate) full: Option<Error>,
}

impl Undecided {
    /// The positions, or the refusal.
    fn unless_full(self) -> Result<Vec<usize>> {
        self.full.map_or(Ok(self.positions), Err)
    }
}

impl<L: TableLayout> Core<L>
where
    Self: TableLookup,
{
    /// Puts each pair whose key is not there, in order, and returns the values of those that are.
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
        // Of equal keys the later one notes first: it is never certain where the earlier one is not.
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
                // The last one that was asked about did not fit.
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
