//! Snapshots of a partition's buffer: separate segments, which lookups do not read.

use std::sync::Arc;

use nandex_device::PAGE_BYTES;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;

use super::buffer::{SumBuffer, Sums};
use super::entries::Listed;
use super::segment::{Segment, SegmentContent, Segments};
use crate::Result;
use crate::write::{LostPage, OnFlash, SnapshotStore};

/// A snapshot: a segment, or nothing if everything in the buffer cancelled out.
pub(crate) type Saved = Option<Arc<Segment>>;

/// Writes buffers as segments.
#[derive(Debug)]
pub(crate) struct SegmentSnapshots(pub(super) Segments);

impl SnapshotStore<SumBuffer> for SegmentSnapshots {
    type Copy = Sums;
    type Ref = Saved;

    fn copy(&self, buffer: &SumBuffer) -> Sums {
        buffer.sums().clone()
    }

    fn write(
        &self,
        _partition: usize,
        _durable: Option<&Saved>,
        next_generation: &dyn Fn() -> u64,
        copy: Sums,
    ) -> Result<(Saved, u64)> {
        let entries = copy.sorted();
        drop(copy);
        let mut content = SegmentContent::default();
        entries.changes.iter().for_each(|change| content.add(*change));
        let begin = || Ok(Listed::new(entries.clone()));
        let segment = self.0.write(next_generation, content.size(), false, begin, |_| ())?;
        let pages = segment.as_ref().map_or(0, Segment::pages);
        Ok((segment.map(Arc::new), pages * PAGE_BYTES as u64))
    }

    fn load(&self, _partition: usize, from: &Saved, buffer: &mut SumBuffer) -> Result<()> {
        let Some(segment) = from else { return Ok(()) };
        // At most what its pages can hold, whatever its header says.
        let page_entries = (PAGE_BYTES / (self.0.placing.width() + 1)) as u64;
        let entries = segment.content.entries.min(segment.pages() * page_entries);
        buffer.load(&mut self.0.reader(segment)?, entries)
    }

    fn load_past(
        &self,
        partition: usize,
        from: &Saved,
        buffer: &mut SumBuffer,
    ) -> Result<Vec<LostPage>> {
        let loaded = self.load(partition, from, buffer).map(|()| Vec::new());
        loaded.or_else(|error| LostPage::whole(error, buffer))
    }

    fn overwrites(_newer: &Saved, _older: &Saved) -> bool {
        false
    }

    fn discard(&self, snapshot: Saved) {
        snapshot.into_iter().for_each(|segment| self.0.volume.give_back(segment.extent()));
    }

    fn encode(reference: Option<&Saved>, out: &mut Vec<u8>) {
        match reference {
            None => out.push(0),
            Some(None) => out.push(2),
            Some(Some(segment)) => {
                out.push(1);
                segment.encode(out);
            }
        }
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Option<Saved>> {
        decode_saved(self.0.structure, reader)
    }
}

/// Reads the location of a snapshot from untrusted bytes.
///
/// # Errors
/// Corruption, reported by the reader.
pub(super) fn decode_saved(
    structure: StructureId,
    reader: &mut Reader<'_>,
) -> Result<Option<Saved>> {
    match reader.u8()? {
        0 => Ok(None),
        1 => Ok(Some(Some(Arc::new(Segment::decode(structure, reader)?)))),
        2 => Ok(Some(None)),
        other => Err(reader.refuse("a snapshot's kind, 0 to 2", other).into()),
    }
}
