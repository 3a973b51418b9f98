//! The filter's main operation: merging a part's buffer and runs into one new run, while updates and lookups continue.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use nandex_device::PAGE_BYTES;
use nandex_store::run::{Merge, MergeOptions, Run, RunShape, Source};
use nandex_store::space::Extent;

use super::Inner;
use super::buffer::FingerprintBuffer;
use super::levels::{Goal, Levels, Plan};
use super::runs::RunSize;
use crate::Result;
use crate::write::{AllFrozen, OnFlash, WriteBuffer};

/// The share of parts merged between two checkpoints: an eighth. These have old runs in addition to the new ones.
const CHECKPOINT_SHARE: usize = 8;

/// Additional inputs of a merge: sources, and their approximate sizes.
#[derive(Default)]
pub(super) struct ExtraSources {
    pub sources: Vec<Box<dyn Source>>,
    pub size: RunSize,
    pub pages: u64,
    /// The runs that they read, whose pages are not reused while they are referenced here.
    pub runs: Vec<Arc<Run>>,
}

/// Opens the additional sources, as often as needed.
pub(super) type OpenExtra<'b> = &'b dyn Fn() -> Result<ExtraSources>;

/// No additional sources.
pub(super) const NO_EXTRA: OpenExtra<'static> = &|| Ok(ExtraSources::default());

/// A run that was written, or nothing if everything cancelled out; and the number of deletes that met no insert.
#[derive(Default)]
struct Merged {
    run: Option<Run>,
    unmatched: u64,
}

impl Inner {
    /// Merges a part's oldest frozen buffer into its levels, unless a merge of all levels has already taken it.
    pub(super) fn merge_frozen(&self, part: usize, buffer: Arc<FingerprintBuffer>) -> Result<()> {
        {
            let _lock = self.partitions[part].maintain();
            let (oldest, levels) = {
                let state = self.partitions[part].read();
                let oldest = state.frozen.front().map(|frozen| Arc::clone(&frozen.buffer));
                (oldest.filter(|it| Arc::ptr_eq(it, &buffer)), Arc::clone(&state.level))
            };
            // With a second reference the buffer could not be returned to the pool.
            drop(buffer);
            let Some(buffer) = oldest else { return Ok(()) };
            let plan = levels.plan(buffer.entries(), Goal::Flush, &self.layout.config);
            self.merge_and_swap(part, &plan, vec![buffer], NO_EXTRA)?;
        }
        let merges = self.counters.flushes.load(Relaxed);
        if merges.is_multiple_of(self.checkpoint_every()) {
            self.volume.checkpoint()?;
        }
        Ok(())
    }

    /// Merges, and replaces the inputs by the new run. The caller holds the maintenance lock.
    fn merge_and_swap(
        &self,
        part: usize,
        plan: &Plan,
        buffers: Vec<Arc<FingerprintBuffer>>,
        open_extra: OpenExtra<'_>,
    ) -> Result<()> {
        let merged = self.merge(&buffers, plan, open_extra)?;
        let taken = buffers.len();
        drop(buffers);
        let flushed = self.swap(part, plan, merged, taken);
        flushed.into_iter().for_each(|buffer| self.recycle(buffer));
        Ok(())
    }

    fn checkpoint_every(&self) -> u64 {
        (self.partitions.len() / CHECKPOINT_SHARE).max(1) as u64
    }

    /// Writes the result of a plan by merging the buffers, the plan's runs, and the extra sources.
    fn merge(
        &self,
        buffers: &[Arc<FingerprintBuffer>],
        plan: &Plan,
        open_extra: OpenExtra<'_>,
    ) -> Result<Merged> {
        let mut extra = Some(open_extra()?);
        let RunSize { entries, count_bytes } = extra.as_ref().map(|it| it.size).unwrap_or_default();
        let runs = || plan.inputs.iter();
        let buffered = buffers.iter().map(|buffer| buffer.entries()).sum::<u64>();
        let entries = buffered + runs().map(|run| run.entries()).sum::<u64>() + entries;
        if entries == 0 {
            return Ok(Merged::default());
        }
        // A count that fits a buffer's slot takes at most this number of bytes on flash; the few greater ones fit the
        // slack of pages.
        let buffered_bytes = if self.layout.config.counts { 2 * buffered } else { 0 };
        let run_bytes = runs().map(|run| run.count_bytes()).sum::<u64>();
        let size = RunSize { entries, count_bytes: count_bytes + buffered_bytes + run_bytes };
        let pages_read = runs().map(|run| run.used_pages()).sum::<u64>()
            + extra.as_ref().map_or(0, |extra| extra.pages);
        let may_have_tombstones = buffers.iter().any(|buffer| buffer.has_tombstones)
            || runs().any(|run| run.tombstones() > 0)
            || extra.as_ref().is_some_and(|extra| !extra.sources.is_empty());
        let options = MergeOptions { drop_negative: plan.is_last && may_have_tombstones };
        // Their pages are not reused before the merge ends.
        let mut runs_read = Vec::new();
        let sources = || {
            let extra = match extra.take() {
                Some(extra) => extra,
                None => open_extra()?,
            };
            runs_read.extend(extra.runs);
            let mut sources: Vec<Box<dyn Source + '_>> = Vec::new();
            sources.extend(buffers.iter().map(|buffer| buffer.source()));
            for run in &plan.inputs {
                sources.push(Box::new(self.layout.runs.reader(run)?));
            }
            sources.extend(extra.sources.into_iter().map(|it| it as Box<dyn Source + '_>));
            Ok(Merge::new(sources, options))
        };
        let progress = |done| self.pace.progress(done as f64 / entries as f64);
        let next_number = || self.take_generation();
        let (run, merge) = self.layout.runs.write(&next_number, size, sources, progress)?;
        let pages_written = run.as_ref().map_or(0, Run::used_pages);
        self.count_written(pages_written * PAGE_BYTES as u64);
        let bytes_read = &self.layout.counters.merge_bytes_read;
        bytes_read.fetch_add(pages_read * PAGE_BYTES as u64, Relaxed);
        Ok(Merged { unmatched: merge.unmatched(), run })
    }

    /// Replaces the inputs by the new run, and returns the `taken` oldest buffers, which it includes, to the pool.
    fn swap(
        &self,
        part: usize,
        plan: &Plan,
        merged: Merged,
        taken: usize,
    ) -> Vec<Arc<FingerprintBuffer>> {
        let _maps = self.layout.hold_maps();
        let mut state = self.partitions[part].write();
        let flushed: Vec<_> = (0..taken).map(|_| state.take_flushed()).collect();
        let mut after = state.level.after(plan, merged.run);
        after.deletes += flushed.iter().map(|frozen| frozen.buffer.deletes).sum::<u64>();
        let after = Arc::new(after);
        let before = std::mem::replace(&mut state.level, Arc::clone(&after));
        drop(state);
        let snapshots = flushed.iter().filter_map(|it| it.snapshot.as_ref()?.place.clone());
        self.layout.retire(&before, &after, snapshots);
        let counters = &self.layout.counters;
        counters.level_entries.fetch_add(after.entries().wrapping_sub(before.entries()), Relaxed);
        counters.unmatched.fetch_add(merged.unmatched, Relaxed);
        self.counters.flushes.fetch_add(1, Relaxed);
        self.moved.store(true, SeqCst);
        flushed.into_iter().map(|frozen| frozen.buffer).collect()
    }

    pub(super) fn compact(&self) -> Result<()> {
        self.finish_flushes()?;
        self.each_part(|part| {
            self.merge_all(part, NO_EXTRA)?;
            // If much cancels out, a second merge rewrites what remains.
            self.merge_all(part, NO_EXTRA)
        })
    }

    /// Merges each part, on as many threads as the filter usually merges on. Then makes the result durable, and every
    /// update before it: a buffer whose updates have cancelled out is not merged, and its snapshot may still have some
    /// of them.
    pub(super) fn each_part(&self, act: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
        self.volume.poison().check()?;
        let next = AtomicUsize::new(0);
        let run = || {
            loop {
                let part = next.fetch_add(1, Relaxed);
                if part >= self.partitions.len() {
                    return Ok(());
                }
                act(part)?;
                if (part as u64 + 1).is_multiple_of(self.checkpoint_every()) {
                    self.volume.checkpoint()?;
                }
            }
        };
        let done = std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..self.options.flush_threads).map(|_| scope.spawn(run)).collect();
            let done = run();
            // Propagates a panic of another thread.
            others.into_iter().fold(done, |done, other| {
                done.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        });
        done.and_then(|()| self.flush_all())
    }

    /// Merges the contents of a part's buffers, all its runs, and the extra sources into one run. Skips a part that is
    /// already one run without slack. All buffers are taken, so that tombstones may end: no insert that they may belong
    /// to is buffered, and the durable state of the part is that of one moment.
    pub(super) fn merge_all(&self, part: usize, open_extra: OpenExtra<'_>) -> Result<()> {
        let AllFrozen { lock: _lock, buffers, level } = self.freeze_all(part)?;
        let extra = open_extra()?;
        let taken = buffers.iter().map(|buffer| buffer.entries()).sum::<u64>();
        let plan = level.plan(extra.size.entries + taken, Goal::Compact, &self.layout.config);
        let is_tight = plan.inputs.iter().all(|run| !self.is_loose(run));
        let has_nothing_more = buffers.is_empty() && extra.sources.is_empty();
        if has_nothing_more && plan.is_in_place(&level) && is_tight {
            return Ok(());
        }
        drop(extra);
        self.merge_and_swap(part, &plan, buffers, open_extra)
    }

    /// Returns whether a run is much larger than necessary.
    fn is_loose(&self, run: &Run) -> bool {
        let universe = self.layout.runs.universe;
        let needed = RunShape::for_entries(universe, run.entries(), run.count_bytes());
        needed.pages() < run.used_pages() / 8 * 7
    }

    /// Returns the current levels of a part.
    #[cfg(test)]
    pub(super) fn levels(&self, part: usize) -> Arc<Levels> {
        Arc::clone(&self.partitions[part].read().level)
    }
}

impl super::CascadeLayout {
    /// Keeps the pages of runs that left the levels until no reader has them. The caller holds the lock of the maps, so
    /// no checkpoint comes between.
    fn retire(&self, before: &Levels, after: &Levels, snapshots: impl Iterator<Item = Arc<Run>>) {
        let is_out = |old: &&Arc<Run>| !after.readable().any(|run| Arc::ptr_eq(run, old));
        self.retired.retire(before.readable().filter(is_out).cloned().chain(snapshots));
    }
}

impl OnFlash for Run {
    fn extent(&self) -> Extent {
        self.place().extent
    }
}
