//! The filter's own act: merging a buffer and runs into one new run, while updates and lookups go on.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::generation;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::run::{
    Entry, Merge, MergeOptions, Run, RunPlace, RunReader, RunShape, RunStrokes, RunWriter, Source,
};
use nandex_store::space::Extent;

use super::levels::{Goal, Levels, Output, Plan};
use super::{Frozen, Inner, State};
use crate::{Error, Result};

/// A run that was written, or nothing where all cancelled out; and the deletes that met no insert.
struct Merged {
    run: Option<Run>,
    unmatched: u64,
}

impl Inner {
    /// The merging thread: merges buffers as they come, until the filter is closed.
    pub(super) fn run_merges(&self) {
        while !*self.stop() {
            if self.read_state().frozen.is_none() || self.fault().is_some() {
                self.wait_for_change();
                continue;
            }
            if let Err(error) = self.merge_and_checkpoint() {
                *self.fault() = Some(error);
                self.changed();
            }
        }
    }

    /// Merges what is frozen, if anything is, and makes that durable. The caller holds no lock.
    pub(super) fn merge_and_checkpoint(&self) -> Result<()> {
        if self.merge_frozen()? { Ok(self.volume.checkpoint()?) } else { Ok(()) }
    }

    /// Merges what is frozen; tells whether anything was.
    pub(super) fn merge_frozen(&self) -> Result<bool> {
        let _turn = self.merge_turn();
        let (frozen, levels) = {
            let state = self.read_state();
            let Some(frozen) = state.frozen.clone() else { return Ok(false) };
            (frozen, Arc::clone(&state.levels))
        };
        self.volume.poison().check()?;
        let buffered = frozen.buffer.entries();
        let plan = levels.plan(buffered, frozen.goal, &self.config);
        let merged = self.merge(Some(&frozen), &plan, &[])?;
        self.swap(Some(frozen), &plan, merged);
        Ok(true)
    }

    /// Writes what a plan asks for: the buffer, its runs, and `others`, runs of another filter.
    fn merge(
        &self,
        frozen: Option<&Frozen>,
        plan: &Plan,
        others: &[(&Self, Arc<Run>)],
    ) -> Result<Merged> {
        let buffered = frozen.map_or(0, |frozen| frozen.buffer.entries());
        let runs = || plan.inputs.iter().chain(others.iter().map(|(_, run)| run));
        let entries = buffered + runs().map(|run| run.entries()).sum::<u64>();
        if entries == 0 {
            return Ok(Merged { run: None, unmatched: 0 });
        }
        // A count that fits a buffer's slot takes so many bytes of flash at most; the few that are greater
        // find their room in the slack of pages.
        let buffered_bytes = if self.config.counts { 2 * buffered } else { 0 };
        let count_bytes = buffered_bytes + runs().map(|run| run.count_bytes()).sum::<u64>();
        let mut shape = RunShape::for_entries(self.universe, entries, count_bytes);
        loop {
            let sources = self.sources(frozen, plan, others)?;
            match self.write(shape, sources, plan.is_last, entries) {
                // Fingerprints are not spread as those of hashes are, or counts are longer.
                Err(Error::Store(nandex_store::Error::RunFull { .. })) => shape = shape.widened(),
                Err(error) => return Err(error),
                Ok(merged) => {
                    let pages_read = runs().map(|run| run.used_pages()).sum();
                    let pages_written = merged.run.as_ref().map_or(0, Run::used_pages);
                    self.counters.merged(pages_read, pages_written);
                    return Ok(merged);
                }
            }
        }
    }

    fn sources<'a>(
        &'a self,
        frozen: Option<&'a Frozen>,
        plan: &Plan,
        others: &[(&'a Self, Arc<Run>)],
    ) -> Result<Vec<Box<dyn Source + 'a>>> {
        let mut sources: Vec<Box<dyn Source + 'a>> = Vec::new();
        sources.extend(frozen.map(|frozen| frozen.buffer.source()));
        for run in &plan.inputs {
            sources.push(Box::new(self.reader(run)?));
        }
        for (other, run) in others {
            sources.push(Box::new(other.reader(run)?));
        }
        Ok(sources)
    }

    pub(super) fn reader(&self, run: &Run) -> Result<RunReader> {
        Ok(RunReader::new(&*self.device, run, self.strokes())?)
    }

    pub(super) fn strokes(&self) -> RunStrokes {
        let stroke_pages = self.options.stroke_pages as usize;
        RunStrokes { stroke_pages, ..RunStrokes::default() }
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
        let place = RunPlace { structure: self.id, extent, generation: self.next_generation() };
        let mut writer = RunWriter::new(&*self.device, poison, place, shape, self.strokes())?;
        let (mut batch, mut done) = (Vec::<Entry>::new(), 0);
        while merge.next_batch(&mut batch)? {
            writer.push(&batch)?;
            done += batch.len() as u64;
            self.note_progress(done, entries);
            batch.clear();
        }
        Ok((writer.finish()?, merge.unmatched()))
    }

    /// A number for a run's pages that no other writing of their place has.
    fn next_generation(&self) -> u64 {
        let mut state = self.write_state();
        let number = state.head.next_run;
        state.head.next_run += 1;
        generation::generation(number, generation::low(self.volume.epoch()))
    }

    /// Lets the active buffer fill as far as the merge has come.
    fn note_progress(&self, done: u64, entries: u64) {
        let share = done as f64 / entries.max(1) as f64;
        self.allowed.store((share * self.config.buffer_entries as f64) as u64, Relaxed);
        self.changed();
    }

    /// Puts a new run in the place of those it was made of, and takes the buffer back.
    fn swap(&self, frozen: Option<Frozen>, plan: &Plan, merged: Merged) {
        {
            let mut state = self.write_state();
            if let Some(frozen) = &frozen {
                (state.head.cut, state.head.cut_at) = (frozen.cut, frozen.cut_at);
                state.frozen = None;
            }
            state.head.unmatched += merged.unmatched;
            let after = state.levels.after(plan, frozen.is_some(), merged.run);
            let before = std::mem::replace(&mut state.levels, Arc::new(after));
            self.retire(&before, &state.levels);
        }
        self.counters.merges.fetch_add(1, Relaxed);
        self.allowed.store(u64::MAX, Relaxed);
        if let Some(mut buffer) = frozen.and_then(|frozen| Arc::into_inner(frozen.buffer)) {
            buffer.clear();
            self.write_state().spare = Some(buffer);
        }
        self.changed();
    }

    /// Keeps the pages of runs that are out of the list until nobody reads them. The caller holds the state,
    /// so that no checkpoint comes between.
    fn retire(&self, before: &Levels, after: &Levels) {
        let is_out = |old: &&Arc<Run>| !after.all().any(|run| Arc::ptr_eq(run, old));
        self.retired().extend(before.all().filter(is_out).cloned());
    }

    /// Extents of the runs there are, and of those that are out of the list and still read.
    pub(super) fn extents(&self, state: &State) -> Vec<Extent> {
        let mut extents = state.levels.extents();
        let mut retired = self.retired();
        if is_on(Barrier::RetiredRunsKeepPages) {
            retired.retain(|run| Arc::strong_count(run) > 1);
        } else {
            retired.clear();
        }
        extents.extend(retired.iter().map(|run| run.place().extent));
        extents
    }

    /// Puts all that is buffered on flash: as an image where it is less than a buffer.
    pub(super) fn save(&self) -> Result<()> {
        self.volume.poison().check()?;
        self.report_fault()?;
        self.freeze_for(Goal::Save)?;
        Ok(self.volume.checkpoint()?)
    }

    /// Waits for merges on their way, freezes the active buffer if there is anything to save in it, and
    /// merges it on this thread. Takes no checkpoint.
    pub(super) fn freeze_for(&self, goal: Goal) -> Result<()> {
        loop {
            self.merge_frozen()?;
            let mut state = self.write_state();
            let is_image = goal == Goal::Compact && state.levels.image_is_loaded;
            if state.frozen.is_none() && state.active.updates == 0 && !is_image {
                return Ok(());
            }
            let is_frozen = state.frozen.is_none() && self.freeze(&mut state, goal)?;
            drop(state);
            if is_frozen {
                self.merge_frozen()?;
                return Ok(());
            }
            self.wait_for_change();
        }
    }

    pub(super) fn sync(&self) -> Result<()> {
        if self.logs_updates() { Ok(self.volume.log().sync()?) } else { self.save() }
    }

    pub(super) fn compact(&self) -> Result<()> {
        self.volume.poison().check()?;
        self.report_fault()?;
        self.freeze_for(Goal::Compact)?;
        self.merge_all(&[])?;
        // Where much cancelled out, its pages were reckoned for more than there is.
        if self.is_loose() {
            self.volume.checkpoint()?;
            self.merge_all(&[])?;
        }
        Ok(self.volume.checkpoint()?)
    }

    /// Is the one run there is much larger than it must be?
    fn is_loose(&self) -> bool {
        let levels = Arc::clone(&self.read_state().levels);
        let mut runs = levels.readable();
        let run = runs.next();
        run.is_some_and(|run| {
            let needed = RunShape::for_entries(self.universe, run.entries(), run.count_bytes());
            needed.pages() < run.used_pages() / 8 * 7
        })
    }

    /// Makes one run of all runs, and of those of another filter.
    fn merge_all(&self, others: &[(&Self, Arc<Run>)]) -> Result<()> {
        let _turn = self.merge_turn();
        let levels = Arc::clone(&self.read_state().levels);
        let more = others.iter().map(|(_, run)| run.entries()).sum();
        let plan = levels.plan(more, Goal::Compact, &self.config);
        if others.is_empty()
            && plan.inputs.len() < 2
            && !self.is_loose()
            && plan.is_in_place(&levels)
        {
            return Ok(());
        }
        let merged = self.merge(None, &plan, others)?;
        self.swap(None, &plan, merged);
        Ok(())
    }

    pub(super) fn absorb(&self, others: &[&Self]) -> Result<()> {
        others.iter().try_for_each(|other| self.check_alike(other))?;
        self.save()?;
        let mut runs = Vec::new();
        for other in others {
            other.save()?;
            let levels = Arc::clone(&other.read_state().levels);
            runs.extend(levels.all().map(|run| (*other, Arc::clone(run))));
        }
        if !runs.is_empty() {
            self.merge_all(&runs)?;
        }
        Ok(self.volume.checkpoint()?)
    }

    fn check_alike(&self, other: &Self) -> Result<()> {
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if std::ptr::eq(self, other) {
            return refuse("other", "a filter cannot absorb itself".into());
        }
        let (ours, theirs) = (self.universe.size(), other.universe.size());
        if ours != theirs {
            let reason = format!(
                "{theirs} fingerprints there, {ours} here; only filters made for the same keys and rate merge"
            );
            return refuse("universe", reason);
        }
        let same =
            self.hasher.kind() == other.hasher.kind() && self.hasher.key() == other.hasher.key();
        if !same {
            let reason =
                "the volumes hash keys differently; create both with one hash and one hash key";
            return refuse("hash_key", reason.into());
        }
        Ok(())
    }
}

impl Plan {
    /// Would it write one run to where it lies?
    fn is_in_place(&self, levels: &Levels) -> bool {
        match (self.output, &self.inputs[..]) {
            (_, []) => true,
            (Output::Level(level), [run]) => levels
                .runs
                .get(level)
                .and_then(Option::as_ref)
                .is_some_and(|it| Arc::ptr_eq(it, run)),
            _ => false,
        }
    }
}
