//! Adding all that another table holds, or a sorted stream.

use super::change::Change;
use super::entries::{Entries, Listed, Source};
use super::keys::Placing;
use super::merge::Extra;
use super::segment::SegmentSize;
use super::{Counting, Inner};
use crate::{Error, Result};

/// Entries of another table for one partition of this one.
struct Window {
    source: Box<dyn Source>,
    /// Where keys belong in this table, and the partition that is wanted.
    placing: Placing,
    partition: usize,
    batch: Entries,
}

impl Source for Window {
    fn next_batch(&mut self, out: &mut Entries) -> Result<bool> {
        let from = out.len();
        while out.len() == from {
            self.batch.clear();
            if !self.source.next_batch(&mut self.batch)? {
                return Ok(false);
            }
            for at in 0..self.batch.len() {
                let key = self.batch.key(at);
                let (partition, place) = self.placing.place(key);
                // What is removed there was never here.
                let change = Change::add(self.batch.changes[at].amount);
                if partition == self.partition && !change.is_nothing() {
                    out.push(place, key, change);
                }
            }
        }
        Ok(true)
    }
}

/// Adds counts of keys in the order of their hash to a table; see [`Counting::absorb_sorted`].
#[derive(Debug)]
pub struct Absorbing<'t> {
    inner: &'t Inner,
    /// The partition of the counts at hand, which are not merged yet.
    partition: usize,
    waiting: Entries,
}

impl<'t> Absorbing<'t> {
    pub(super) fn new(table: &'t Counting) -> Self {
        let inner = &*table.handle.core;
        Self { inner, partition: 0, waiting: Entries::new(inner.placing().width()) }
    }

    /// Adds to the count of a key, which comes after the last one: by the `place` of the volume's
    /// [hash](nandex_store::hash::KeyHasher::hash), of equal places by its bytes. What is added is durable after
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

    /// Merges the counts at hand with their partition.
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

    /// Merges what is left, and makes all of it durable.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self) -> Result<()> {
        self.merge()?;
        self.inner.flush_all()
    }
}

impl Inner {
    /// Adds what the other table holds, as it is at one moment of each of its partitions.
    pub(super) fn absorb(&self, other: &Self) -> Result<()> {
        self.check_alike(other)?;
        self.merge_each(&|index| {
            let mut extra = Extra::default();
            for theirs in self.partitions_with_share(index, other) {
                let (sources, segments) = other.sources_of(theirs)?;
                extra.size.entries +=
                    segments.entries() + other.partitions[theirs].read().entries_buffered();
                let merged = super::entries::Merge::new(self.placing().width(), sources, true);
                extra.sources.push(Box::new(Window {
                    source: Box::new(merged),
                    placing: *self.placing(),
                    partition: index,
                    batch: Entries::new(self.placing().width()),
                }));
            }
            extra.size = SegmentSize { entries: extra.size.entries, ..extra.size };
            Ok(extra)
        })
    }

    /// Partitions of the other table that have keys of this one's partition: both divide one range of hashes.
    fn partitions_with_share(&self, index: usize, other: &Self) -> std::ops::Range<usize> {
        let (ours, theirs) = (self.partitions.len() as u128, other.partitions.len() as u128);
        let first = index as u128 * theirs / ours;
        let end = ((index as u128 + 1) * theirs).div_ceil(ours);
        first as usize..end as usize
    }

    fn check_alike(&self, other: &Self) -> Result<()> {
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if std::ptr::eq(self, other) {
            return refuse("other", "a table cannot absorb itself".into());
        }
        let (ours, theirs) = (self.layout.config.keys, other.layout.config.keys);
        if ours != theirs {
            let reason =
                format!("{theirs:?} there, {ours:?} here; only tables that store keys alike merge");
            return refuse("keys", reason);
        }
        let [one, two] = [self, other].map(|it| (it.hasher.kind(), it.hasher.key()));
        if one != two {
            let reason =
                "the volumes hash keys differently; create both with one hash and one hash key";
            return refuse("hash_key", reason.into());
        }
        Ok(())
    }
}
