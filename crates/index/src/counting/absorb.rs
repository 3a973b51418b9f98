//! Adding the contents of another table.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Inner;
use super::change::Change;
use super::entries::{Entries, Merge, Source};
use super::keys::KeyPlacing;
use super::merge::Extra;
use super::segment::SegmentSize;
use crate::{Error, Result};

/// A callback that receives the share that is done, and may cancel the work.
type Watch<'w> = dyn Fn(f64) -> ControlFlow<()> + Sync + 'w;

/// The progress of an absorption.
struct Progress<'w> {
    watch: &'w Watch<'w>,
    /// The number of partitions of this table, and the one that is being merged.
    partitions: usize,
    index: usize,
    /// The maximum number of entries of the other table for it, and the number that were read.
    entries_max: u64,
    read: AtomicU64,
}

impl Progress<'_> {
    fn note(&self, entries: u64) -> Result<()> {
        let read = self.read.fetch_add(entries, Relaxed) + entries;
        let within = (read as f64 / self.entries_max.max(1) as f64).min(1.0);
        match (self.watch)((self.index as f64 + within) / self.partitions as f64) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped),
        }
    }
}

/// Entries of another table for one partition of this one.
struct Window<'w> {
    source: Box<dyn Source>,
    progress: Arc<Progress<'w>>,
    /// The placement of keys in this table, and the partition that is being merged.
    placing: KeyPlacing,
    partition: usize,
    batch: Entries,
}

impl Source for Window<'_> {
    fn next_batch(&mut self, out: &mut Entries) -> Result<bool> {
        let from = out.len();
        while out.len() == from {
            self.batch.clear();
            if !self.source.next_batch(&mut self.batch)? {
                return Ok(false);
            }
            self.progress.note(self.batch.len() as u64)?;
            for at in 0..self.batch.len() {
                let key = self.batch.key(at);
                let (partition, place) = self.placing.place(key);
                // A key that is removed there was never here.
                let change = Change::add(self.batch.changes[at].amount);
                if partition == self.partition && !change.is_nothing() {
                    out.push(place, key, change);
                }
            }
        }
        Ok(true)
    }
}

impl Inner {
    /// Adds the contents of the other table, as they are at one moment of each of its partitions.
    pub(super) fn absorb(&self, other: &Self, watch: &Watch<'_>) -> Result<()> {
        self.check_alike(other)?;
        self.merge_each(&|index| self.share_of(other, index, watch))
    }

    /// Returns the entries of the other table for a partition.
    fn share_of<'w>(&self, other: &Self, index: usize, watch: &'w Watch<'_>) -> Result<Extra<'w>> {
        let width = self.placing().width();
        let (mut found, mut entries_max) = (Vec::new(), 0);
        for theirs in self.partitions_with_share(index, other) {
            let (sources, segments) = other.sources_of(theirs)?;
            entries_max += segments.entries() + other.partitions[theirs].read().entries_buffered();
            found.push(Merge::new(width, sources, true));
        }
        let partitions = self.partitions.len();
        let progress =
            Arc::new(Progress { watch, partitions, index, entries_max, read: AtomicU64::new(0) });
        let window = |source| Window {
            source: Box::new(source),
            progress: Arc::clone(&progress),
            placing: *self.placing(),
            partition: index,
            batch: Entries::new(width),
        };
        let sources = found.into_iter().map(|it| Box::new(window(it)) as Box<dyn Source + 'w>);
        let size = SegmentSize { entries: entries_max, ..SegmentSize::default() };
        Ok(Extra { sources: sources.collect(), size })
    }

    /// Returns the partitions of the other table that have keys of this one's partition: both divide one range of
    /// hashes.
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
