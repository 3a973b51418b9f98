//! Snapshots of a partition's buffer: its entries in pages, in one of two fixed places, alternately.

use nandex_device::{PAGE_BYTES, PageBuf, PageId};
use nandex_store::Volume;
use nandex_store::bytes::Reader;
use nandex_store::page::{PAGE_HEADER_BYTES, RawPage, StructureId, seal};

use super::Config;
use super::buffer::{BucketBuffer, PairUpdate};
use super::format::{SNAPSHOT_PAGE_ENTRIES, put_snapshot_entry, snapshot_entries};
use super::keys::Placing;
use crate::Result;
use crate::write::format::PageSnapshotRef;
use crate::write::{LostPage, PageSnapshots, SnapshotPlaces, SnapshotStore, other_slot};

/// The places for snapshots of a SliceLSH's buffers.
#[derive(Clone)]
pub(crate) struct BucketSnapshots {
    places: SnapshotPlaces,
    placing: Placing,
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

/// The places of snapshots, from `start` on.
pub(super) fn places(structure: StructureId, config: &Config, start: PageId) -> SnapshotPlaces {
    SnapshotPlaces { structure, start, pages: pages_of_one(config) }
}

impl BucketSnapshots {
    /// Snapshots in these places of a volume.
    pub(super) fn new(volume: &Volume, placing: Placing, places: SnapshotPlaces) -> Self {
        Self { places, placing, volume: volume.clone() }
    }

    fn entries_max(&self) -> u64 {
        self.places.pages * SNAPSHOT_PAGE_ENTRIES as u64
    }

    fn zeroed(&self) -> PageBuf {
        PageBuf::zeroed(usize::try_from(self.places.pages).expect("fits in memory"))
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
        let mut buf = self.zeroed();
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
        mut copy: PageBuf,
    ) -> Result<(PageSnapshotRef, u64)> {
        let slot = other_slot(durable.map(|durable| durable.slot));
        let at = PageSnapshotRef { slot, generation: next_generation() };
        for page in 0..copy.pages() {
            seal(copy.page_mut(page), self.places.label(index, at, page as u64));
        }
        let bytes = (copy.pages() * PAGE_BYTES) as u64;
        let written = self.volume.device().write(self.places.place(index, slot), copy);
        self.volume.poison().guard(written)?;
        Ok((at, bytes))
    }

    fn load(&self, index: usize, from: &PageSnapshotRef, buffer: &mut BucketBuffer) -> Result<()> {
        let place = self.places.place(index, from.slot);
        let buf = self.volume.device().read(place, self.zeroed())?;
        for page in 0..buf.pages() {
            let label = self.places.label(index, *from, page as u64);
            let page = RawPage::new(buf.page(page)).check(label)?;
            let Some(entries) = snapshot_entries(page.body(), self.placing.tables) else {
                let expected = format!("entries of {} tables", self.placing.tables);
                let found = "more than it can hold, or other tables";
                let error =
                    nandex_store::Error::corrupt("snapshot page", label.page, expected, found);
                return Err(error.into());
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
