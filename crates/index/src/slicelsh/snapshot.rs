//! Snapshots of a partition's buffer: its entries in pages, in two fixed places that are used alternately.

use nandex_device::{PageBuf, PageId};
use nandex_store::bytes::Reader;
use nandex_store::page::{PAGE_HEADER_BYTES, StructureId};
use nandex_store::{Error as StoreError, Volume};

use super::Config;
use super::buffer::{BucketBuffer, PairUpdate};
use super::format::{SNAPSHOT_PAGE_ENTRIES, put_snapshot_entry, snapshot_entries};
use super::keys::BucketPlacing;
use crate::Result;
use crate::write::format::PageSnapshotRef;
use crate::write::{LostPage, PageSnapshots, SnapshotPlaces, SnapshotStore};

/// The places for snapshots of a SliceLSH's buffers.
#[derive(Clone)]
pub(crate) struct BucketSnapshots {
    places: SnapshotPlaces,
    placing: BucketPlacing,
    volume: Volume,
}

/// Pages of one snapshot.
fn pages_of_one(config: &Config) -> u64 {
    config.snapshot_entries_max().div_ceil(SNAPSHOT_PAGE_ENTRIES as u64)
}

/// Pages for the snapshots of all partitions.
pub(super) fn snapshot_pages(config: &Config) -> u64 {
    2 * u64::from(config.partitions) * pages_of_one(config)
}

/// Returns the places of snapshots, from `start` on.
pub(super) fn places(structure: StructureId, config: &Config, start: PageId) -> SnapshotPlaces {
    SnapshotPlaces { structure, start, pages: pages_of_one(config) }
}

impl BucketSnapshots {
    /// Creates snapshots in these places of a volume.
    pub(super) fn new(volume: &Volume, placing: BucketPlacing, places: SnapshotPlaces) -> Self {
        Self { places, placing, volume: volume.clone() }
    }

    fn entries_max(&self) -> u64 {
        self.places.pages * SNAPSHOT_PAGE_ENTRIES as u64
    }
}

impl std::fmt::Debug for BucketSnapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketSnapshots").field("places", &self.places).finish_non_exhaustive()
    }
}

impl SnapshotStore<BucketBuffer> for BucketSnapshots {
    type Copy = PageBuf;
    type Ref = PageSnapshotRef;

    fn fits(&self, buffer: &BucketBuffer) -> bool {
        buffer.len() as u64 <= self.entries_max()
    }

    fn copy(&self, buffer: &BucketBuffer) -> PageBuf {
        let mut buf = self.places.zeroed();
        for (number, entry) in buffer.pairs().enumerate() {
            let page = buf.page_mut(number / SNAPSHOT_PAGE_ENTRIES);
            let body = &mut page[PAGE_HEADER_BYTES..];
            put_snapshot_entry(body, number % SNAPSHOT_PAGE_ENTRIES, entry);
        }
        buf
    }

    fn write(
        &self,
        index: usize,
        durable: Option<&PageSnapshotRef>,
        next_generation: &dyn Fn() -> u64,
        copy: PageBuf,
    ) -> Result<(PageSnapshotRef, u64)> {
        let bytes = copy.len() as u64;
        let at = self.places.write(&self.volume, index, durable, next_generation(), copy)?;
        Ok((at, bytes))
    }

    fn load(&self, index: usize, from: &PageSnapshotRef, buffer: &mut BucketBuffer) -> Result<()> {
        let buf = self.places.read(&self.volume, index, *from)?;
        for page in 0..buf.pages() {
            let body = &buf.page(page)[PAGE_HEADER_BYTES..];
            let Some(entries) = snapshot_entries(body, self.placing.tables) else {
                let at = self.places.place(index, from.slot).plus(page as u64);
                let expected = format!("entries of {} tables", self.placing.tables);
                let found = "more than it can hold, or other tables";
                return Err(StoreError::corrupt("snapshot page", at, expected, found).into());
            };
            for (pair, removes) in entries {
                buffer.put_forced(PairUpdate { pair, hash: self.placing.hash(pair.key), removes });
            }
        }
        Ok(())
    }

    fn load_past(
        &self,
        index: usize,
        from: &PageSnapshotRef,
        buffer: &mut BucketBuffer,
    ) -> Result<Vec<LostPage>> {
        let loaded = self.load(index, from, buffer).map(|()| Vec::new());
        loaded.or_else(|error| LostPage::whole(error, buffer))
    }

    fn overwrites(newer: &PageSnapshotRef, older: &PageSnapshotRef) -> bool {
        PageSnapshots::overwrites(newer, older)
    }

    fn encode(reference: Option<&PageSnapshotRef>, out: &mut Vec<u8>) {
        PageSnapshots::encode(reference, out);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Option<PageSnapshotRef>> {
        PageSnapshotRef::decode(reader)
    }
}
