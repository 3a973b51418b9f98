//! The table's main operations: staging a full buffer in the change segment, and merging staged segments with the data
//! segment.
//!
//! The discipline chooses between the two. With `MB` each full buffer is merged. With `MDB` a partition, its `k` data
//! blocks, has its own share of the change segment, and is merged when that is full. With `MDB-L` the change segment is
//! one log for all: while it has space every full buffer is staged, and when it is full, each partition whose buffer is
//! full is merged with its staged segments, which makes space.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nandex_device::PAGE_BYTES;

use super::buffer::SumBuffer;
use super::entries::{Entries, Listed, Merge, Source};
use super::segment::{Segment, SegmentContent, SegmentShape, SegmentSize};
use super::segments::{PartitionSegments, STAGED_MAX};
use super::{Discipline, Inner};
use crate::Result;
use crate::write::{AllFrozen, WriteBuffer};

/// The share of partitions flushed between two checkpoints: an eighth. These have old segments in addition to the new
/// ones.
const CHECKPOINT_SHARE: usize = 8;

/// Opens additional inputs of a merge: sources newer than the partition's buffers, whose removals precede them.
type OpenExtra<'b> = &'b dyn Fn() -> Result<Extra<'b>>;

/// Additional sources and their approximate size.
#[derive(Default)]
pub(super) struct Extra<'b> {
    pub sources: Vec<Box<dyn Source + 'b>>,
    pub size: SegmentSize,
}

/// No additional sources.
const NO_EXTRA: OpenExtra<'static> = &|| Ok(Extra::default());

/// Opens the additional sources of a partition.
type OpenExtraOf<'b> = &'b dyn Fn(usize) -> Result<Extra<'b>>;

/// No additional sources, for any partition.
pub(super) const NO_EXTRA_OF_ANY: OpenExtraOf<'static> = &|_| Ok(Extra::default());

impl Inner {
    /// Flushes a partition's oldest frozen buffer, unless another merge has already taken it.
    pub(super) fn put_on_flash(&self, index: usize, buffer: Arc<SumBuffer>) -> Result<()> {
        {
            let _lock = self.partitions[index].maintain();
            let (oldest, segments) = {
                let state = self.partitions[index].read();
                let oldest = state.frozen.front().map(|frozen| Arc::clone(&frozen.buffer));
                (oldest.filter(|it| Arc::ptr_eq(it, &buffer)), Arc::clone(&state.level))
            };
            // With a second reference the buffer could not be returned to the pool.
            drop(buffer);
            let Some(buffer) = oldest else { return Ok(()) };
            if self.may_stage(&segments, &buffer) {
                self.stage(index, &segments, buffer)?;
            } else {
                self.merge(index, &segments, vec![buffer], NO_EXTRA)?;
            }
        }
        let flushes = self.counters.flushes.load(Relaxed);
        if flushes.is_multiple_of((self.partitions.len() / CHECKPOINT_SHARE).max(1) as u64) {
            self.volume.checkpoint()?;
        }
        Ok(())
    }

    /// Returns whether the change segment has space for this buffer. Its size is a share of the data segment's.
    fn may_stage(&self, segments: &PartitionSegments, buffer: &SumBuffer) -> bool {
        let config = &self.layout.config;
        let size = SegmentSize { entries: buffer.entries(), long_bytes: 0 };
        let pages =
            SegmentShape::new(size, self.layout.segments.placing.width(), u32::MAX, 0).slot_pages();
        let share = |pages: u64| pages * u64::from(config.change_permille) / 1000;
        let (taken, allowed) = match config.discipline {
            Discipline::Mb => return false,
            Discipline::Mdb => (segments.staged_pages(), share(segments.data_pages())),
            Discipline::MdbL => {
                let counters = &self.layout.counters;
                (counters.staged_pages.load(Relaxed), share(counters.data_pages.load(Relaxed)))
            }
        };
        segments.staged.len() < STAGED_MAX && taken + pages <= allowed
    }

    /// Writes a buffer to the change segment.
    fn stage(
        &self,
        index: usize,
        segments: &PartitionSegments,
        buffer: Arc<SumBuffer>,
    ) -> Result<()> {
        let entries = buffer.sorted();
        let mut content = SegmentContent::default();
        entries.changes.iter().for_each(|change| content.add(*change));
        let begin = || Ok(Listed::new(entries.clone()));
        let total = content.entries.max(1) as f64;
        let progress = |done: u64| self.pace.progress(done as f64 / total);
        let layout = &self.layout;
        let written = layout.segments.write(
            &|| self.take_generation(),
            content.size(),
            true,
            begin,
            progress,
        )?;
        let pages = written.as_ref().map_or(0, Segment::pages);
        self.count_written(pages * PAGE_BYTES as u64);
        drop(buffer);
        let mut after = segments.clone();
        after.staged.extend(written.map(Arc::new));
        layout.counters.stages.fetch_add(1, Relaxed);
        self.swap(index, after, 1);
        Ok(())
    }

    /// Writes a data segment from all segments of a partition, its oldest buffers, and the additional sources. The
    /// caller holds the maintenance lock.
    fn merge(
        &self,
        index: usize,
        segments: &PartitionSegments,
        buffers: Vec<Arc<SumBuffer>>,
        open_extra: OpenExtra<'_>,
    ) -> Result<()> {
        let mut extra = Some(open_extra()?);
        let mut size = extra.as_ref().map(|it| it.size).unwrap_or_default();
        for segment in segments.newest_first() {
            size.entries += segment.content.entries;
            size.long_bytes += segment.content.long_bytes;
        }
        size.entries += buffers.iter().map(|buffer| buffer.entries()).sum::<u64>();
        let buffered: Vec<_> = buffers.iter().map(|buffer| buffer.sorted()).collect();
        let begin = || {
            let extra = extra.take().map_or_else(open_extra, Ok)?;
            let mut sources: Vec<Box<dyn Source + '_>> = Vec::new();
            let count = segments.newest_first().count();
            for segment in segments.data.iter().chain(&segments.staged) {
                sources.push(Box::new(self.layout.segments.reader_among(count, segment)?));
            }
            let listed = |it: &Entries| Box::new(Listed::new(it.clone())) as Box<dyn Source>;
            sources.extend(buffered.iter().map(listed));
            sources.extend(extra.sources);
            Ok(Merge::new(self.layout.segments.placing.width(), sources, true))
        };
        let total = size.entries.max(1) as f64;
        let progress = |done: u64| self.pace.progress(done as f64 / total);
        let next_number = || self.take_generation();
        let written = self.layout.segments.write(&next_number, size, false, begin, progress)?;
        let pages_read = segments.data_pages() + segments.staged_pages();
        let counters = &self.layout.counters;
        counters.merge_bytes_read.fetch_add(pages_read * PAGE_BYTES as u64, Relaxed);
        counters.merges.fetch_add(1, Relaxed);
        self.count_written(written.as_ref().map_or(0, Segment::pages) * PAGE_BYTES as u64);
        let taken = buffers.len();
        drop(buffers);
        let data = written.map(Arc::new);
        self.swap(index, PartitionSegments { data, staged: Vec::new(), ..segments.clone() }, taken);
        Ok(())
    }

    /// Replaces a partition's segments, and returns the `taken` oldest buffers, which the new ones include, to the
    /// pool.
    fn swap(&self, index: usize, mut after: PartitionSegments, taken: usize) {
        let _maps = self.layout.hold_maps();
        let mut state = self.partitions[index].write();
        let flushed: Vec<_> = (0..taken).map(|_| state.take_flushed()).collect();
        after.deletes += flushed.iter().map(|frozen| frozen.buffer.deletes).sum::<u64>();
        let after = Arc::new(after);
        let before = std::mem::replace(&mut state.level, Arc::clone(&after));
        drop(state);
        self.layout.counters.replaced(&before, &after);
        let is_out = |old: &&Arc<Segment>| !after.newest_first().any(|it| Arc::ptr_eq(it, old));
        let snapshots = flushed.iter().filter_map(|it| it.snapshot.as_ref()?.place.clone());
        self.layout.retired.retire(before.newest_first().filter(is_out).cloned().chain(snapshots));
        self.counters.flushes.fetch_add(1, Relaxed);
        self.moved.store(true, SeqCst);
        flushed.into_iter().for_each(|frozen| self.recycle(frozen.buffer));
    }

    /// Merges everything of each partition, including buffers, into its data segment, and makes that durable.
    pub(super) fn merge_each(&self, open_extra: OpenExtraOf<'_>) -> Result<()> {
        self.volume.poison().check()?;
        self.finish_flushes()?;
        for index in 0..self.partitions.len() {
            self.merge_all(index, &|| open_extra(index))?;
            if (index + 1).is_multiple_of((self.partitions.len() / CHECKPOINT_SHARE).max(1)) {
                self.volume.checkpoint()?;
            }
        }
        self.flush_all()
    }

    /// Merges a partition's segments, all of its buffers, and the additional sources. A buffer that was left out would
    /// be newer than the merge: its removals would apply to additional entries that came after them.
    pub(super) fn merge_all(&self, index: usize, open_extra: OpenExtra<'_>) -> Result<()> {
        let AllFrozen { lock: _lock, buffers, level } = self.freeze_all(index)?;
        let has_nothing = buffers.is_empty() && level.staged.is_empty();
        if has_nothing && open_extra()?.sources.is_empty() {
            return Ok(());
        }
        self.merge(index, &level, buffers, open_extra)
    }
}
