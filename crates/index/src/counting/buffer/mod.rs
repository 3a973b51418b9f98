//! The write buffer, the paper's H_R: changes of keys, added up, until they are staged or merged.

mod sums;

use std::sync::Arc;

use super::change::Change;
use super::entries::{Entries, Source};
use super::format::ChangeCodec;
use super::keys::KeyPlacing;
use super::snapshot::SegmentSnapshots;
use crate::Result;
use crate::write::{BufferRam, WriteBuffer};

pub(super) use sums::Sums;

/// The number of updates ahead whose slots are prefetched.
const AHEAD: usize = 12;

/// The state that all buffers of a table share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferShape {
    pub placing: KeyPlacing,
    /// The number of keys at which a buffer is full.
    pub entries_max: u64,
}

impl BufferShape {
    /// Returns the RAM that the buffers of all partitions may take, in bytes. They fill up one after another, so it is
    /// the mean of all, plus two full ones: one that is being written and one that waits.
    pub(super) fn bytes_max(&self) -> u64 {
        let width = self.placing.width();
        let mean = sums::ram_bytes(width, self.entries_max.div_ceil(2), true);
        self.placing.partitions * mean + 2 * sums::ram_bytes(width, self.entries_max, false)
    }
}

/// One change of a key; `key` is in the stored form.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyChange<'k> {
    pub place: u64,
    pub key: &'k [u8],
    pub change: Change,
}

/// The buffer of a partition.
#[derive(Debug)]
pub(crate) struct SumBuffer {
    ram: Arc<BufferRam<BufferShape>>,
    sums: Sums,
    /// The bytes and entries that were last noted in `ram`.
    noted: (u64, u64),
    entries_max: u64,
    /// The number of subtractions and removals that it has taken.
    pub deletes: u64,
}

impl SumBuffer {
    pub(super) fn new(ram: &Arc<BufferRam<BufferShape>>) -> Self {
        let mut buffer = Self {
            ram: Arc::clone(ram),
            sums: Sums::new(ram.shape.placing),
            noted: (0, 0),
            entries_max: ram.shape.entries_max,
            deletes: 0,
        };
        buffer.note();
        buffer
    }

    /// Returns whether it may take another key, after growing if necessary. A replay puts back the buffer's updates up
    /// to its boundary.
    fn has_space(&mut self) -> bool {
        let is_recovering = self.ram.is_recovering();
        if self.sums.len() >= self.entries_max && !is_recovering {
            return false;
        }
        if self.sums.is_tight() {
            if !self.ram.may_take(self.sums.growth_bytes()) {
                return false;
            }
            self.sums.grow();
            self.note();
        }
        true
    }

    /// Notes its current RAM and entries.
    fn note(&mut self) {
        let now = (self.sums.ram_bytes(), self.sums.len());
        self.ram.note(self.noted, now);
        self.noted = now;
    }

    /// Returns the change of a key in it.
    #[inline]
    pub(super) fn change(&self, place: u64, key: &[u8]) -> Option<Change> {
        self.sums.get(place, key)
    }

    pub(super) fn prefetch(&self, place: u64) {
        self.sums.prefetch(place);
    }

    pub(super) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Returns its contents in ascending order.
    pub(super) fn sorted(&self) -> Entries {
        self.sums.sorted()
    }

    /// Adds the contents of a snapshot with `entries` entries to an empty buffer.
    ///
    /// # Errors
    /// A failed read, damage.
    pub(super) fn load(&mut self, snapshot: &mut dyn Source, entries: u64) -> Result<()> {
        // They arrive in the order of their places: a table that grew along would have them all in its first slots.
        self.sums.reserve(entries);
        let mut batch = Entries::new(self.ram.shape.placing.width());
        while snapshot.next_batch(&mut batch)? {
            for at in 0..batch.len() {
                if self.sums.is_tight() {
                    self.sums.grow();
                }
                self.sums.apply(batch.places[at], batch.key(at), batch.changes[at], true)?;
            }
            batch.clear();
        }
        self.note();
        Ok(())
    }
}

/// A buffer may be freed by a thread that still had a reference when it was flushed.
impl Drop for SumBuffer {
    fn drop(&mut self) {
        self.ram.note(self.noted, (0, 0));
    }
}

impl WriteBuffer for SumBuffer {
    type Update<'u> = KeyChange<'u>;
    type Codec = ChangeCodec;
    type Snapshots = SegmentSnapshots;

    const ADDS_UP: bool = true;

    fn apply(&mut self, updates: &[KeyChange<'_>]) -> Result<usize> {
        let mut done = 0;
        for (number, KeyChange { place, key, change }) in updates.iter().enumerate() {
            let soon = if number == 0 {
                &updates[..updates.len().min(AHEAD)]
            } else {
                ahead(updates, number)
            };
            soon.iter().for_each(|update| self.sums.prefetch(update.place));
            let takes_new = self.has_space();
            match self.sums.apply(*place, key, *change, takes_new) {
                Ok(true) => {}
                Err(error) if done == 0 => return Err(error),
                Ok(false) | Err(_) => break,
            }
            self.deletes += u64::from(change.removes || change.amount < 0);
            done += 1;
        }
        self.note();
        Ok(done)
    }

    fn entries(&self) -> u64 {
        self.sums.len()
    }

    fn limit(&mut self, entries_max: u64) {
        self.entries_max = entries_max.min(self.ram.shape.entries_max);
    }

    fn clear(&mut self) {
        self.sums = Sums::new(self.ram.shape.placing);
        self.note();
        (self.entries_max, self.deletes) = (self.ram.shape.entries_max, 0);
    }

    fn ram_bytes(&self) -> u64 {
        self.sums.ram_bytes()
    }
}

/// Returns the update to prefetch while this one is applied.
fn ahead<'u, 'k>(updates: &'u [KeyChange<'k>], number: usize) -> &'u [KeyChange<'k>] {
    let at = (number + AHEAD - 1).min(updates.len());
    &updates[at..updates.len().min(at + 1)]
}
