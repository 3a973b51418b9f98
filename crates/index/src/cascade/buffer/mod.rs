//! The write buffer: fingerprints in RAM until they are merged with a part's levels.
//!
//! The deck's buffer is a quotient filter, whose inserts move slots and miss caches. This one is designed for inserts:
//! an update goes into short lists that stay in a processor's nearest caches ([`Recent`](recent::Recent)), and several
//! thousand of them at a time are moved into packed buckets in one pass ([`Buckets`](buckets::Buckets)). It takes RAM
//! as it fills up, so parts whose buffers were just merged leave theirs to the others.
//!
//! ```text
//!   insert, delete       recent                        buckets
//!       |                +---+                         +-------+-----+---------+-- - -
//!       +--------------> |   | full: one pass -------> | f f f | f f | f f f f |
//!                        +---+                         +-------+-----+---------+-- - -
//!                                                          full: sorted bucket by bucket, and merged
//! ```

mod bits;
mod buckets;
mod content;
mod recent;
mod shape;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use nandex_store::run::{Entry, Source};

use super::format::FingerprintCodec;
use super::snapshot::RunSnapshots;
use crate::Result;
use crate::write::{BufferRam, WriteBuffer};

pub(super) use content::Content;
pub(crate) use shape::BufferShape;

/// Fingerprints in RAM.
#[derive(Debug)]
pub(crate) struct FingerprintBuffer {
    ram: Arc<BufferRam<BufferShape>>,
    content: Content,
    /// The bytes and entries that were last noted in `ram`.
    noted: (u64, u64),
    entries_max: u64,
    /// The number of deletes that it has accepted.
    pub deletes: u64,
    /// Whether it may contain tombstones.
    pub has_tombstones: bool,
}

impl FingerprintBuffer {
    pub(super) fn new(ram: &Arc<BufferRam<BufferShape>>) -> Self {
        Self {
            ram: Arc::clone(ram),
            content: Content::new(ram.shape),
            noted: (0, 0),
            entries_max: ram.shape.entries_max,
            deletes: 0,
            has_tombstones: false,
        }
    }

    /// Applies updates up to the first that does not fit, and returns how many.
    fn apply_fitting(&mut self, updates: &[Entry]) -> Result<usize> {
        let mut done = 0;
        while done < updates.len() && self.has_space() {
            let space = match self.ram.is_recovering() {
                true => u64::MAX,
                false => self.entries_max - self.entries(),
            };
            let some = &updates[done..];
            let some = &some[..usize::try_from(space).unwrap_or(usize::MAX).min(some.len())];
            let taken = match self.content.add_some(some) {
                Err(_) if done > 0 => break,
                taken => taken?,
            };
            done += taken;
            if taken < some.len() && !self.settle() {
                break;
            }
        }
        Ok(done)
    }

    /// Returns whether there is space for another update, after making some if necessary. A replay puts back the
    /// buffer's updates up to its boundary, whatever it has settled and put in order since.
    fn has_space(&mut self) -> bool {
        self.ram.is_recovering() || self.entries() < self.entries_max || self.make_space()
    }

    /// Moves recent updates into buckets, if there is RAM for that.
    fn settle(&mut self) -> bool {
        let may = self.ram.may_take(self.content.settle_bytes());
        if may {
            self.content.settle();
            self.note();
        }
        may
    }

    /// Makes space in a full buffer: recent updates of fingerprints that are in buckets take no space there if counts
    /// are stored, and updates that cancel out take none.
    fn make_space(&mut self) -> bool {
        let worth = self.entries() / 64;
        if self.content.may_cancel() {
            self.content.put_in_order();
        } else if self.ram.shape.counts() && self.content.recent() as u64 > worth {
            self.content.settle();
        } else {
            return false;
        }
        self.note();
        // A little space would be full at once, and making it costs a pass.
        self.entries() + worth < self.entries_max
    }

    /// Notes its current RAM and entries.
    fn note(&mut self) {
        let now = (self.content.ram_bytes(), self.content.entries());
        self.ram.note(self.noted, now);
        self.noted = now;
    }

    /// Adds the contents of a snapshot to an empty buffer.
    ///
    /// # Errors
    /// A failed read, damage.
    pub(super) fn load(&mut self, snapshot: &mut dyn Source) -> Result<()> {
        let mut batch = Vec::new();
        while snapshot.next_batch(&mut batch)? {
            self.content.load(&batch);
            batch.clear();
        }
        self.note();
        Ok(())
    }

    pub(super) fn count(&self, fingerprint: u64) -> i64 {
        self.content.count(fingerprint)
    }

    pub(super) fn prefetch(&self, fingerprint: u64) {
        self.content.prefetch(fingerprint);
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// Returns its contents in ascending order.
    pub(super) fn source(&self) -> Box<dyn Source + '_> {
        Box::new(self.content.source())
    }

    /// Returns the number of different fingerprints in it; one with a large count may take several entries. Reads the
    /// whole buffer.
    pub(super) fn fingerprints(&self) -> u64 {
        self.content.size().entries
    }

    /// Returns a copy of its contents in ascending order.
    pub(super) fn sorted(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(usize::try_from(self.entries()).unwrap_or(0));
        let mut source = self.content.source();
        while source.next_batch(&mut entries).expect("RAM is read without errors") {}
        entries
    }
}

/// A buffer may be freed by a thread that still had a reference when it was flushed.
impl Drop for FingerprintBuffer {
    fn drop(&mut self) {
        self.ram.note(self.noted, (0, 0));
    }
}

impl WriteBuffer for FingerprintBuffer {
    type Update<'u> = Entry;
    type Codec = FingerprintCodec;
    type Snapshots = RunSnapshots;

    const ADDS_UP: bool = true;

    fn apply(&mut self, updates: &[Entry]) -> Result<usize> {
        let applied = self.apply_fitting(updates);
        self.note();
        let count = applied?;
        let deletes = updates[..count].iter().filter(|entry| entry.count < 0).count() as u64;
        self.deletes += deletes;
        self.has_tombstones |= deletes > 0;
        Ok(count)
    }

    fn entries(&self) -> u64 {
        self.content.entries()
    }

    fn limit(&mut self, entries_max: u64) {
        self.entries_max = entries_max.min(self.ram.shape.entries_max);
    }

    fn clear(&mut self) {
        self.content = Content::new(self.ram.shape);
        self.note();
        (self.entries_max, self.deletes) = (self.ram.shape.entries_max, 0);
        self.has_tombstones = false;
    }

    fn ram_bytes(&self) -> u64 {
        self.content.ram_bytes()
    }
}
