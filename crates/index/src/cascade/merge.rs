//! The filter's own act: merging a part's buffer and runs into one new run, while updates and lookups go on.

use nandex_store::IoChunks;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::generation;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::run::{
    Entry, Merge, MergeOptions, Run, RunPlace, RunReader, RunShape, RunWriter, Source,
};
use nandex_store::space::Extent;

use super::Inner;
use super::format::CUT_BYTES;
use super::levels::{Goal, Levels, Plan};
use super::part::{Frozen, Part};
use crate::{Error, Result};

/// Of all parts, those that are merged between two checkpoints: an eighth. So many have old runs beside the
/// new ones.
const CHECKPOINT_SHARE: u64 = 8;

/// What is merged on top of a part's own: sources, and about what is in them.
#[derive(Default)]
pub(super) struct More {
    pub sources: Vec<Box<dyn Source>>,
    pub entries: u64,
    pub count_bytes: u64,
    pub pages: u64,
    /// The runs they read, whose pages are not used again while they are here.
    pub runs: Vec<Arc<Run>>,
}

/// Begins to read what is merged on top, as often as it is needed.
pub(super) type Begin<'b> = &'b dyn Fn() -> Result<More>;

/// Nothing on top.
pub(super) const NO_MORE: Begin<'static> = &|| Ok(More::default());

/// A run that was written, or nothing where all cancelled out; and the deletes that met no insert.
struct Merged {
    run: Option<Run>,
    unmatched: u64,
}

impl Inner {
    /// The merging thread: merges buffers as they come, until the filter is closed.
    pub(super) fn run_merges(&self) {
        while let Some(part) = self.work.next() {
            // A failure has poisoned the volume, or is reported by the next update that finds a buffer full.
            if let Err(error) = self.merge_and_checkpoint(&self.parts[part]) {
                self.work.fail(part, error);
            }
        }
    }

    /// Merges, on this thread, what waits for it. The caller holds no lock.
    pub(super) fn merge_waiting(&self) -> Result<()> {
        while let Some(part) = self.work.next_now() {
            let merged = self.merge_and_checkpoint(&self.parts[part]);
            if merged.is_err() {
                self.work.push(part);
            }
            merged?;
        }
        Ok(())
    }

    fn merge_and_checkpoint(&self, part: &Part) -> Result<()> {
        if !self.merge_frozen(part)? {
            return Ok(());
        }
        let merges = self.counters.merges.load(Relaxed);
        if merges.is_multiple_of((self.parts.len() as u64 / CHECKPOINT_SHARE).max(1)) {
            self.volume.checkpoint()?;
        }
        Ok(())
    }

    /// Merges a part's frozen buffer; tells whether there was one.
    pub(super) fn merge_frozen(&self, part: &Part) -> Result<bool> {
        let _turn = part.turn();
        let (frozen, levels) = {
            let state = part.read();
            let Some(frozen) = state.frozen.clone() else { return Ok(false) };
            (frozen, Arc::clone(&state.levels))
        };
        self.volume.poison().check()?;
        let plan = levels.plan(frozen.buffer.entries(), frozen.goal, &self.config);
        let merged = self.merge(Some(&frozen), &plan, NO_MORE)?;
        self.swap(part, Some(frozen), &plan, merged);
        Ok(true)
    }

    /// Writes what a plan asks for: the buffer, its runs, and more. Where fingerprints are not spread as those
    /// of hashes are, or counts are longer than was reckoned, once more, with more pages.
    fn merge(&self, frozen: Option<&Frozen>, plan: &Plan, begin: Begin<'_>) -> Result<Merged> {
        let mut more = begin()?;
        let buffered = frozen.map_or(0, |frozen| frozen.buffer.entries());
        let runs = || plan.inputs.iter();
        let entries = buffered + runs().map(|run| run.entries()).sum::<u64>() + more.entries;
        if entries == 0 {
            return Ok(Merged { run: None, unmatched: 0 });
        }
        // A count that fits a buffer's slot takes so many bytes of flash at most; the few that are greater
        // find their room in the slack of pages.
        let buffered_bytes = if self.config.counts { 2 * buffered } else { 0 };
        let count_bytes = buffered_bytes + runs().map(|run| run.count_bytes()).sum::<u64>();
        let mut shape =
            RunShape::for_entries(self.part_universe, entries, count_bytes + more.count_bytes);
        loop {
            let mut sources = self.sources(frozen, plan)?;
            sources.extend(std::mem::take(&mut more.sources));
            match self.write(shape, sources, plan.is_last, entries) {
                Err(Error::Store(nandex_store::Error::RunFull { .. })) => shape = shape.widened(),
                Err(error) => return Err(error),
                Ok(merged) => {
                    let pages_read = runs().map(|run| run.used_pages()).sum::<u64>() + more.pages;
                    let pages_written = merged.run.as_ref().map_or(0, Run::used_pages);
                    self.counters.merged(pages_read, pages_written);
                    return Ok(merged);
                }
            }
            more = begin()?;
        }
    }

    fn sources<'a>(
        &'a self,
        frozen: Option<&'a Frozen>,
        plan: &Plan,
    ) -> Result<Vec<Box<dyn Source + 'a>>> {
        let mut sources: Vec<Box<dyn Source + 'a>> = Vec::new();
        sources.extend(frozen.map(|frozen| frozen.buffer.source()));
        for run in &plan.inputs {
            sources.push(Box::new(self.reader(run)?));
        }
        Ok(sources)
    }

    pub(super) fn reader(&self, run: &Run) -> Result<RunReader> {
        Ok(RunReader::new(&*self.device, run, self.io_chunks())?)
    }

    pub(super) fn io_chunks(&self) -> IoChunks {
        let chunk_pages = self.options.io_chunk_pages as usize;
        IoChunks { chunk_pages, ..IoChunks::default() }
    }

    /// Writes a run to an extent of its own, which is given back when that fails, or when nothing is left to
    /// be written.
    fn write(
        &self,
        shape: RunShape,
        sources: Vec<Box<dyn Source + '_>>,
        is_last: bool,
        entries: u64,
    ) -> Result<Merged> {
        let extent = self.volume.allocate(shape.pages())?;
        let merge = Merge::new(sources, MergeOptions { drop_negative: is_last });
        let written = self.pass(shape, extent, merge, entries);
        match written {
            Ok((mut run, unmatched)) if run.entries() > 0 => {
                run.trim().into_iter().for_each(|rest| self.volume.give_back(rest));
                Ok(Merged { run: Some(run), unmatched })
            }
            other => {
                self.volume.give_back(extent);
                Ok(Merged { run: None, unmatched: other?.1 })
            }
        }
    }

    /// One pass: reads, adds up, writes.
    fn pass(
        &self,
        shape: RunShape,
        extent: Extent,
        mut merge: Merge<'_>,
        entries: u64,
    ) -> Result<(Run, u64)> {
        let poison = Arc::clone(self.volume.poison());
        let number = self.next_run.fetch_add(1, Relaxed);
        let generation = generation::generation(number, generation::low(self.volume.epoch()));
        let place = RunPlace { structure: self.id, extent, generation };
        let mut writer = RunWriter::new(&*self.device, poison, place, shape, self.io_chunks())?;
        let (mut batch, mut done) = (Vec::<Entry>::new(), 0);
        while merge.next_batch(&mut batch)? {
            writer.push(&batch)?;
            done += batch.len() as u64;
            self.pace.progress(done as f64 / entries as f64);
            batch.clear();
        }
        Ok((writer.finish()?, merge.unmatched()))
    }

    /// Puts a new run in the place of those it was made of, and takes the buffer back.
    fn swap(&self, part: &Part, frozen: Option<Frozen>, plan: &Plan, merged: Merged) {
        {
            let mut state = part.write();
            let before = state.buffered_entries() + state.levels.entries();
            if let Some(frozen) = &frozen {
                state.covered = frozen.covered;
                state.frozen = None;
            }
            let after = Arc::new(state.levels.after(plan, frozen.is_some(), merged.run));
            let old = std::mem::replace(&mut state.levels, after);
            self.retire(&old, &state.levels);
            let now = state.buffered_entries() + state.levels.entries();
            self.note_entries(before, now);
        }
        self.unmatched.fetch_add(merged.unmatched, Relaxed);
        self.counters.merges.fetch_add(1, Relaxed);
        if let Some(mut buffer) = frozen.and_then(|frozen| Arc::into_inner(frozen.buffer)) {
            buffer.clear();
            self.spares().push(buffer);
        }
        if self.work.is_empty() {
            self.pace.idle();
        }
        self.work.changed();
    }

    /// Keeps the pages of runs that are out of the list until nobody reads them. The caller holds the part,
    /// so that no checkpoint comes between.
    fn retire(&self, before: &Levels, after: &Levels) {
        let is_out = |old: &&Arc<Run>| !after.all().any(|run| Arc::ptr_eq(run, old));
        self.retired().extend(before.all().filter(is_out).cloned());
    }

    /// Puts all that is buffered on flash: as images where it is less than a buffer.
    pub(super) fn save(&self) -> Result<()> {
        self.volume.poison().check()?;
        self.work.report_fault()?;
        self.parts.iter().try_for_each(|part| self.empty_buffer_in_turn(part, Goal::Save))?;
        Ok(self.volume.checkpoint()?)
    }

    /// As [`empty_buffer`](Self::empty_buffer), after waiting for the log's room for a cut.
    fn empty_buffer_in_turn(&self, part: &Part, goal: Goal) -> Result<()> {
        let _room = self.volume.reserve(CUT_BYTES as u64)?;
        self.empty_buffer(part, goal)
    }

    /// Merges, on this thread, what a part has frozen, then what it has in its active buffer, if there is
    /// anything to save. Takes no checkpoint.
    pub(super) fn empty_buffer(&self, part: &Part, goal: Goal) -> Result<()> {
        loop {
            self.merge_frozen(part)?;
            let mut state = part.write();
            let is_loaded = goal == Goal::Compact && state.levels.image_is_loaded;
            if state.frozen.is_none() && state.active.updates == 0 && !is_loaded {
                return Ok(());
            }
            if state.frozen.is_none() && self.freeze(part, &mut state, goal)? {
                drop(state);
                self.merge_frozen(part)?;
                return Ok(());
            }
            drop(state);
            self.make_spare()?;
        }
    }

    /// Waits for a merge to give a buffer back, or merges one that waits.
    fn make_spare(&self) -> Result<()> {
        self.volume.poison().check()?;
        match self.work.next_now() {
            Some(other) => self.merge_frozen(&self.parts[other]).map(drop),
            None => {
                self.work.wait();
                Ok(())
            }
        }
    }

    pub(super) fn sync(&self) -> Result<()> {
        if self.logs_updates() { Ok(self.volume.log().sync()?) } else { self.save() }
    }

    pub(super) fn compact(&self) -> Result<()> {
        self.volume.poison().check()?;
        self.work.report_fault()?;
        self.each_part(|part| {
            self.empty_buffer_in_turn(part, Goal::Compact)?;
            // Where much cancels out, the second time is for what is left.
            self.merge_all(part, NO_MORE)?;
            self.merge_all(part, NO_MORE)
        })
    }

    /// Does something to each part that puts new runs beside the old ones, on this thread and, where the filter
    /// has one to merge, on one more; and makes it durable.
    pub(super) fn each_part(&self, act: impl Fn(&Part) -> Result<()> + Sync) -> Result<()> {
        let next = AtomicUsize::new(0);
        let run = || {
            while let Some(part) = self.parts.get(next.fetch_add(1, Relaxed)) {
                act(part)?;
                self.checkpoint_some(part)?;
            }
            Ok(())
        };
        let done = std::thread::scope(|scope| {
            let others: Vec<_> =
                (0..self.options.merge_threads).map(|_| scope.spawn(run)).collect();
            let done = run();
            // A panic over there goes on here.
            others.into_iter().fold(done, |done, other| {
                done.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        });
        done.and_then(|()| Ok(self.volume.checkpoint()?))
    }

    /// Takes a checkpoint once for an eighth of the parts, so that no more of them have their old runs beside
    /// the new ones.
    fn checkpoint_some(&self, part: &Part) -> Result<()> {
        let every = (self.parts.len() as u64 / CHECKPOINT_SHARE).max(1);
        if u64::from(part.number + 1).is_multiple_of(every) {
            self.volume.checkpoint()?;
        }
        Ok(())
    }

    /// Makes one run of all runs of a part, and of more; leaves alone what is one run and no larger than it
    /// must be.
    pub(super) fn merge_all(&self, part: &Part, begin: Begin<'_>) -> Result<()> {
        let _turn = part.turn();
        let more = begin()?;
        let levels = part.levels();
        let plan = levels.plan(more.entries, Goal::Compact, &self.config);
        let is_tight = plan.inputs.iter().all(|run| !self.is_loose(run));
        if more.sources.is_empty() && plan.is_in_place(&levels) && is_tight {
            return Ok(());
        }
        let merged = self.merge(None, &plan, begin)?;
        self.swap(part, None, &plan, merged);
        Ok(())
    }

    /// Is a run much larger than it must be?
    fn is_loose(&self, run: &Run) -> bool {
        let needed = RunShape::for_entries(self.part_universe, run.entries(), run.count_bytes());
        needed.pages() < run.used_pages() / 8 * 7
    }

    /// Extents of the runs there are, and of those that are out of the list and still read.
    pub(super) fn extents(&self, mut extents: Vec<Extent>) -> Vec<Extent> {
        let mut retired = self.retired();
        if is_on(Barrier::RetiredRunsKeepPages) {
            retired.retain(|run| Arc::strong_count(run) > 1);
        } else {
            retired.clear();
        }
        extents.extend(retired.iter().map(|run| run.place().extent));
        // One that a merge took out of its part's list after that was captured stands twice.
        extents.sort_by_key(|extent| extent.start);
        extents.dedup();
        extents
    }
}
