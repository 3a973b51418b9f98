//! Snapshots of a part's buffer: separate runs, which lookups do not read.

use std::sync::Arc;

use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::fingerprint::Universe;
use nandex_store::run::Run;

use super::buffer::{Content, FingerprintBuffer};
use super::runs::Runs;
use crate::Result;
use crate::write::{LostPage, SnapshotStore};

/// A snapshot: a run, or nothing if everything in the buffer cancelled out.
pub(crate) type SavedRun = Option<Arc<Run>>;

/// Writes buffers as runs.
#[derive(Debug)]
pub(crate) struct RunSnapshots(pub(super) Runs);

impl SnapshotStore<FingerprintBuffer> for RunSnapshots {
    type Copy = Content;
    type Ref = SavedRun;

    fn copy(&self, buffer: &FingerprintBuffer) -> Content {
        buffer.content().clone()
    }

    fn write(
        &self,
        _part: usize,
        _durable: Option<&SavedRun>,
        next_generation: &dyn Fn() -> u64,
        copy: Content,
    ) -> Result<(SavedRun, u64)> {
        let size = copy.size();
        if size.entries == 0 {
            return Ok((None, 0));
        }
        let (run, _) = self.0.write(next_generation, size, || Ok(copy.source()), |_| ())?;
        let pages = run.as_ref().map_or(0, Run::used_pages);
        Ok((run.map(Arc::new), pages * nandex_device::PAGE_BYTES as u64))
    }

    fn load(&self, _part: usize, from: &SavedRun, buffer: &mut FingerprintBuffer) -> Result<()> {
        let Some(run) = from else { return Ok(()) };
        buffer.load(&mut self.0.reader(run)?)?;
        buffer.has_tombstones |= run.tombstones() > 0;
        Ok(())
    }

    fn load_past(
        &self,
        part: usize,
        from: &SavedRun,
        buffer: &mut FingerprintBuffer,
    ) -> Result<Vec<LostPage>> {
        let loaded = self.load(part, from, buffer).map(|()| Vec::new());
        loaded.or_else(|error| LostPage::whole(error, buffer))
    }

    fn overwrites(_newer: &SavedRun, _older: &SavedRun) -> bool {
        false
    }

    fn discard(&self, snapshot: SavedRun) {
        snapshot.into_iter().for_each(|run| self.0.volume.give_back(run.place().extent));
    }

    fn encode(reference: Option<&SavedRun>, out: &mut Vec<u8>) {
        match reference {
            None => out.push(0),
            Some(None) => out.push(2),
            Some(Some(run)) => {
                out.push(1);
                run.encode(out);
            }
        }
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Option<SavedRun>> {
        decode_saved(self.0.structure, self.0.universe, reader)
    }
}

/// Reads the location of a snapshot from untrusted bytes.
///
/// # Errors
/// Corruption, reported by the reader.
pub(super) fn decode_saved(
    structure: StructureId,
    universe: Universe,
    reader: &mut Reader<'_>,
) -> Result<Option<SavedRun>> {
    match reader.u8()? {
        0 => Ok(None),
        1 => Ok(Some(Some(Arc::new(Run::decode(structure, universe, reader)?)))),
        2 => Ok(Some(None)),
        other => Err(reader.refuse("a snapshot's kind, 0 to 2", other).into()),
    }
}
