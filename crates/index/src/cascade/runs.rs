//! Writing runs: a sorted source becomes a run on its own extent.

use std::sync::Arc;

use nandex_store::fingerprint::Universe;
use nandex_store::run::{Entry, Run, RunPlace, RunReader, RunShape, RunWriter, Source};
use nandex_store::space::Extent;
use nandex_store::{IoChunks, StructureId, Volume, generation};

use crate::{Error, Result};

/// Reads and writes runs of a filter.
#[derive(Clone)]
pub(crate) struct Runs {
    pub volume: Volume,
    pub structure: StructureId,
    /// The universe of a part.
    pub universe: Universe,
    pub chunks: IoChunks,
}

/// The expected size of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunSize {
    /// The maximum number of fingerprints.
    pub entries: u64,
    /// Bytes of their counts.
    pub count_bytes: u64,
}

impl Runs {
    /// Writes the source that `begin` returns as a run with the given number; writes nothing if it is empty. If
    /// fingerprints are not spread like hashes, or counts are longer than estimated, it begins again with more pages.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    pub(super) fn write<S: Source>(
        &self,
        next_number: &dyn Fn() -> u64,
        size: RunSize,
        mut begin: impl FnMut() -> Result<S>,
        mut progress: impl FnMut(u64),
    ) -> Result<(Option<Run>, S)> {
        let mut shape = RunShape::for_entries(self.universe, size.entries, size.count_bytes);
        loop {
            let mut source = begin()?;
            match self.write_once(next_number(), shape, &mut source, &mut progress) {
                Err(Error::Store(nandex_store::Error::RunFull { .. })) => shape = shape.widened(),
                written => return Ok((written?, source)),
            }
        }
    }

    /// Writes a run to its own extent, which is freed if that fails or if there is nothing to write.
    fn write_once(
        &self,
        number: u64,
        shape: RunShape,
        source: &mut dyn Source,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<Run>> {
        let extent = self.volume.allocate(shape.pages())?;
        let written = self.pass(number, shape, extent, source, progress);
        match written {
            Ok(mut run) if run.entries() > 0 => {
                run.trim().into_iter().for_each(|rest| self.volume.give_back(rest));
                Ok(Some(run))
            }
            other => {
                self.volume.give_back(extent);
                other.map(|_| None)
            }
        }
    }

    /// Performs one pass: reads, adds up, writes.
    fn pass(
        &self,
        number: u64,
        shape: RunShape,
        extent: Extent,
        source: &mut dyn Source,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Run> {
        let poison = Arc::clone(self.volume.poison());
        let generation = generation::generation(number, generation::low(self.volume.epoch()));
        let place = RunPlace { structure: self.structure, extent, generation };
        let mut writer =
            RunWriter::new(&**self.volume.device(), poison, place, shape, self.chunks)?;
        let (mut batch, mut done) = (Vec::<Entry>::new(), 0);
        while source.next_batch(&mut batch)? {
            writer.push(&batch)?;
            done += batch.len() as u64;
            progress(done);
            batch.clear();
        }
        Ok(writer.finish()?)
    }

    /// Reads a run from front to back.
    pub(super) fn reader(&self, run: &Run) -> Result<RunReader> {
        Ok(RunReader::new(&**self.volume.device(), run, self.chunks)?)
    }
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs").field("structure", &self.structure).finish_non_exhaustive()
    }
}
