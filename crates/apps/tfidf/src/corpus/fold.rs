//! Merges runs: into one run when there are many, and into new counting tables when their size reaches that of the
//! tables.

use super::Corpus;
use super::commit::BlocksMax;
use super::counts::CountTables;
use super::runs::{BLOCK_BYTES, Delta, Merged, RunInfo, RunReader, RunWriter};
use crate::{Error, Result, TermFrequency};

/// The most runs read at a time; each needs a block of RAM.
const RUNS_MAX: usize = 48;

/// Returns the most runs of an index, given RAM for their blocks.
pub(super) fn runs_max(ram_bytes: u64) -> usize {
    usize::try_from(ram_bytes / 16 / BLOCK_BYTES as u64).unwrap_or(RUNS_MAX).min(RUNS_MAX)
}

impl Corpus {
    /// Returns all runs and tables as one.
    pub(super) fn merged(&self) -> Result<Merged<'_>> {
        let texts = self.state.texts.iter().map(|texts| {
            let tables = self.tables.as_ref().map(CountTables::iter);
            RunReader::new(&self.blocks, *texts, tables)
        });
        let runs = self.state.runs.iter().map(|run| RunReader::new(&self.blocks, *run, None));
        Merged::new(texts.chain(runs).collect())
    }

    /// Merges the newest runs into one if there are too many of them. A run is merged with newer ones once these have
    /// half as many terms, so that each term is merged a few times only.
    pub(super) fn merge_runs_if_many(&mut self) -> Result<()> {
        let runs = &self.state.runs;
        if runs.len() < self.runs_max {
            return Ok(());
        }
        let mut first = runs.len() - 1;
        let mut newer = runs[first].terms;
        while first > 0 && (runs[first - 1].terms <= 2 * newer || runs.len() - first < 2) {
            first -= 1;
            newer += runs[first].terms;
        }
        let old: Vec<RunInfo> = runs[first..].to_vec();
        let id = self.begin_run(BlocksMax::of_runs(&old))?;
        let merged = self.write_merged(id, &old);
        let merged = merged.or_else(|error| self.abandon(error))?;
        self.commit(|state| {
            state.runs.truncate(first);
            state.add_run(merged);
            state.unused.extend(old.iter().copied().map(Self::replaced));
            Ok(())
        })?;
        self.remove_unused()
    }

    fn write_merged(&self, id: u64, runs: &[RunInfo]) -> Result<RunInfo> {
        let readers = runs.iter().map(|run| RunReader::new(&self.blocks, *run, None));
        let mut writer = RunWriter::new(&self.blocks, id);
        Merged::new(readers.collect())?.for_each(|total| match total.delta.is_nothing() {
            true => Ok(()),
            false => writer.push(total.place, total.text, total.delta),
        })?;
        writer.finish()
    }

    /// Folds runs into the tables if the runs have as many terms.
    pub(super) fn fold_if_due(&mut self) -> Result<()> {
        let (in_tables, in_runs) = self.state.terms();
        if in_runs == 0 || in_runs < in_tables { Ok(()) } else { self.fold() }
    }

    /// Creates new counting tables from the old ones and all runs. Reads and writes all terms once, in order.
    pub(super) fn fold(&mut self) -> Result<()> {
        let all = self.state.texts.iter().chain(&self.state.runs).copied();
        let (old, generation): (Vec<RunInfo>, u64) = (all.collect(), self.state.generation + 1);
        let id = self.begin_run(BlocksMax::of_runs(&old))?;
        // A failed fold may have left some.
        let in_use = self.state.generation;
        super::counts::remove_others(&self.volume, |found| found == in_use)?;
        let filled = self.fill(id, (generation, old.iter().map(|run| run.terms).sum()));
        let (texts, tables) = filled.or_else(|error| self.abandon(error))?;
        self.commit(|state| {
            (state.texts, state.generation) = (Some(texts), generation);
            state.runs.clear();
            state.unused.extend(old.iter().copied().map(Self::replaced));
            Ok(())
        })?;
        if let Some(old) = self.tables.replace(tables) {
            old.remove()?;
        }
        self.remove_unused()
    }

    /// Writes texts and tables of all terms that occur in a document.
    fn fill(&self, id: u64, (generation, terms): (u64, u64)) -> Result<(RunInfo, CountTables)> {
        let tables = CountTables::create(&self.volume, (generation, terms), &self.stated);
        let tables = tables.map_err(without_space)?;
        let mut writer = RunWriter::of_texts(&self.blocks, id);
        let mut filling = tables.filling();
        self.merged()?.for_each(|total| {
            if frequency(total.text, total.delta)?.is_none() {
                return Ok(());
            }
            filling.push(&total.key, total.delta).map_err(without_space)?;
            writer.push(total.place, total.text, total.delta)
        })?;
        filling.finish().map_err(without_space)?;
        Ok((writer.finish()?, tables))
    }
}

/// Converts the error of creating counting tables; a lack of space becomes [`Error::NoSpace`].
fn without_space(error: Error) -> Error {
    match error {
        Error::Index(error) if error.is_no_space() => Error::NoSpace(error),
        error => error,
    }
}

/// Returns the document frequency of a term; `None` if no document has it.
pub(super) fn frequency(text: &[u8], delta: Delta) -> Result<Option<TermFrequency>> {
    if delta.is_nothing() {
        return Ok(None);
    }
    if delta.documents >= 1 && delta.occurrences >= delta.documents {
        let (documents, occurrences) = (delta.documents as u64, delta.occurrences as u64);
        return Ok(Some(TermFrequency { documents, occurrences }));
    }
    let (text, Delta { documents, occurrences }) = (String::from_utf8_lossy(text), delta);
    let reason = format!("{text:?} is in {documents} documents and occurs {occurrences} times");
    Err(Error::Contradiction { reason })
}
