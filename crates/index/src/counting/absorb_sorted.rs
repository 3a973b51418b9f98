//! Adding a stream of counts in the table's order.

use super::change::Change;
use super::entries::{Entries, Listed, Source};
use super::merge::Extra;
use super::segment::SegmentSize;
use super::{Counting, Inner};
use crate::{Error, Result};

/// Adds counts of keys to a table in the order of their hash; see [`Counting::absorb_sorted`].
#[derive(Debug)]
pub struct Absorbing<'t> {
    inner: &'t Inner,
    /// The partition of the pending counts, which are not merged yet.
    partition: usize,
    waiting: Entries,
}

impl<'t> Absorbing<'t> {
    pub(super) fn new(table: &'t Counting) -> Self {
        let inner = &*table.core;
        Self { inner, partition: 0, waiting: Entries::new(inner.placing().width()) }
    }

    /// Adds to the count of a key, which must follow the last one in order of the `place` of the volume's
    /// [hash](nandex_store::hash::KeyHasher::hash), and for equal places of its bytes. Additions are durable after
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// A key of the wrong width or out of order; as [`Counting::compact`].
    pub fn push(&mut self, key: &[u8], amount: i64) -> Result<()> {
        let placing = self.inner.placing();
        placing.check(key)?;
        let stored = placing.stored(key);
        let stored = &stored[..placing.width()];
        let (partition, place) = placing.place(stored);
        self.check_order((partition, place), stored)?;
        if partition != self.partition {
            self.merge()?;
            self.partition = partition;
        }
        if amount != 0 {
            self.waiting.push(place, stored, Change::add(amount));
        }
        Ok(())
    }

    fn check_order(&self, (partition, place): (usize, u64), stored: &[u8]) -> Result<()> {
        let last = self.waiting.len().checked_sub(1);
        let place_of = |at: usize| (self.partition, self.waiting.places[at], self.waiting.key(at));
        let is_after = match last.map(place_of) {
            None => partition >= self.partition,
            Some(last) => last < (partition, place, stored),
        };
        if is_after {
            return Ok(());
        }
        let reason = "keys that do not ascend by their hash; sort them by the volume's hasher";
        Err(Error::Config { field: "absorb_sorted", reason: reason.into() })
    }

    /// Merges the pending counts with their partition.
    fn merge(&mut self) -> Result<()> {
        let entries = self.waiting.len() as u64;
        if entries == 0 {
            return Ok(());
        }
        let waiting =
            std::mem::replace(&mut self.waiting, Entries::new(self.inner.placing().width()));
        self.inner.merge_all(self.partition, &|| {
            let long_bytes = 0;
            let sources: Vec<Box<dyn Source>> = vec![Box::new(Listed::new(waiting.clone()))];
            Ok(Extra { sources, size: SegmentSize { entries, long_bytes } })
        })
    }

    /// Merges the remaining counts, and makes all of them durable.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self) -> Result<()> {
        self.merge()?;
        self.inner.flush_all()
    }
}
