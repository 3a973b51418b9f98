//! Snapshots of a table's buffers: each partition has two fixed places of pages, used alternately.

use std::sync::Arc;

use nandex_device::{Device, PAGE_BYTES, PageBuf, PageId};
use nandex_store::Volume;
use nandex_store::buffer::{Buffer, STASH_LEN_MAX};
use nandex_store::bytes::Reader;
use nandex_store::hash::KeyHasher;
use nandex_store::page::{PAGE_HEADER_BYTES, PageKind, PageLabel, RawPage, StructureId, seal};
use nandex_store::proven::{FailedRead, read_each};

use super::format::PageSnapshotRef;
use super::snapshot::other_slot;
use super::{LostPage, SnapshotStore, TableShape, copy_entries};
use crate::Result;

/// The places for snapshots of a table's buffers.
#[derive(Clone)]
pub(crate) struct PageSnapshots {
    places: SnapshotPlaces,
    shape: TableShape,
    hasher: KeyHasher,
    volume: Volume,
}

/// The location of a table's snapshots, and the label that their pages must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotPlaces {
    pub structure: StructureId,
    pub start: PageId,
    /// The pages of one snapshot.
    pub pages: u64,
}

impl SnapshotPlaces {
    /// Creates the places after the layout's own pages, from `start` on.
    pub(crate) fn new(structure: StructureId, shape: &TableShape, start: PageId) -> Self {
        Self { structure, start, pages: pages_of_one(shape) }
    }

    /// Returns the first page of one of a partition's two places.
    pub(crate) fn place(&self, index: usize, slot: u8) -> PageId {
        self.start.plus((2 * index as u64 + u64::from(slot)) * self.pages)
    }

    /// Returns the label that a page of a snapshot must have.
    pub(crate) fn label(&self, index: usize, at: PageSnapshotRef, page: u64) -> PageLabel {
        PageLabel {
            kind: PageKind::Snapshot,
            structure: self.structure,
            generation: at.generation,
            page: self.place(index, at.slot).plus(page),
        }
    }

    /// Seals pages with a snapshot and writes them to the place that the durable one does not use.
    ///
    /// # Errors
    /// A failed write, which poisons the volume.
    pub(crate) fn write(
        &self,
        volume: &Volume,
        index: usize,
        durable: Option<&PageSnapshotRef>,
        generation: u64,
        mut pages: PageBuf,
    ) -> Result<PageSnapshotRef> {
        let slot = other_slot(durable.map(|durable| durable.slot));
        let at = PageSnapshotRef { slot, generation };
        for page in 0..pages.pages() {
            seal(pages.page_mut(page), self.label(index, at, page as u64));
        }
        let written = volume.device().write(self.place(index, slot), pages);
        volume.poison().guard(written)?;
        Ok(at)
    }

    /// Reads and verifies all pages of a snapshot.
    ///
    /// # Errors
    /// A failed read, damage.
    pub(crate) fn read(
        &self,
        volume: &Volume,
        index: usize,
        from: PageSnapshotRef,
    ) -> Result<PageBuf> {
        let buf = volume.device().read(self.place(index, from.slot), self.zeroed())?;
        for page in 0..buf.pages() {
            RawPage::new(buf.page(page)).check(self.label(index, from, page as u64))?;
        }
        Ok(buf)
    }

    /// Allocates memory for the pages of a snapshot.
    pub(crate) fn zeroed(&self) -> PageBuf {
        PageBuf::zeroed(usize::try_from(self.pages).expect("fits in memory"))
    }
}

/// Returns the pages of one snapshot: a buffer's, and the most that its stash needs.
fn pages_of_one(shape: &TableShape) -> u64 {
    let stash_pages = stash_max(shape).div_ceil(shape.layout.slots());
    u64::from(shape.buffer_pages) + stash_pages as u64
}

/// Returns the entries of a stash that a snapshot must hold: the usual limit, and the carry-over of two buffers, whose
/// pages may all be full.
fn stash_max(shape: &TableShape) -> usize {
    4 * STASH_LEN_MAX + shape.carry_over_max as usize
}

/// Returns the pages for the snapshots of all partitions.
pub(crate) fn snapshot_pages(shape: &TableShape) -> u64 {
    2 * u64::from(shape.partitions) * pages_of_one(shape)
}

impl PageSnapshots {
    /// Creates snapshots of buffers of this shape, in these places of a volume.
    pub(crate) fn new(volume: &Volume, shape: TableShape, places: SnapshotPlaces) -> Self {
        Self { places, shape, hasher: volume.hasher(), volume: volume.clone() }
    }

    /// Returns whether the buffer has fewer pages than a snapshot, which is loaded into a buffer of full size.
    fn is_small(&self, buffer: &Buffer) -> bool {
        buffer.page_count() < self.shape.buffer_pages as usize
    }

    fn device(&self) -> &Arc<dyn Device> {
        self.volume.device()
    }

    /// Copies the pages of a snapshot into an empty buffer.
    fn fill(&self, buffer: &mut Buffer, buf: &PageBuf) {
        let (pages, stash) = buf.split_at(buffer.bytes().len());
        buffer.load(pages);
        for page in stash.chunks_exact(PAGE_BYTES) {
            for (_, entry) in self.shape.layout.entries(page) {
                buffer.put_carried_over(self.hasher.hash(entry.key), entry);
            }
        }
    }
}

impl std::fmt::Debug for PageSnapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageSnapshots").field("places", &self.places).finish_non_exhaustive()
    }
}

impl SnapshotStore<Buffer> for PageSnapshots {
    type Copy = PageBuf;
    type Ref = PageSnapshotRef;

    fn fits(&self, buffer: &Buffer) -> bool {
        self.is_small(buffer) || buffer.stash_len() <= stash_max(&self.shape)
    }

    fn copy(&self, buffer: &Buffer) -> PageBuf {
        if self.is_small(buffer) {
            let mut whole = self.shape.new_buffer(self.hasher);
            copy_entries(buffer, &mut whole, self.hasher);
            return self.copy(&whole);
        }
        let mut buf = self.places.zeroed();
        let pages = buffer.page_count();
        buf[..buffer.bytes().len()].copy_from_slice(buffer.bytes());
        let layout = self.shape.layout;
        for (number, entry) in buffer.stash_entries().enumerate() {
            let slots = layout.slots();
            let slot = layout.slot_number(number % slots);
            layout.put(buf.page_mut(pages + number / slots), slot, entry);
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

    fn load(&self, index: usize, from: &PageSnapshotRef, buffer: &mut Buffer) -> Result<()> {
        let mut buf = self.places.read(&self.volume, index, *from)?;
        for page in 0..buf.pages() {
            // In RAM, a page's header is zero until it is sealed.
            buf.page_mut(page)[..PAGE_HEADER_BYTES].fill(0);
        }
        self.fill(buffer, &buf);
        Ok(())
    }

    fn load_past(
        &self,
        index: usize,
        from: &PageSnapshotRef,
        buffer: &mut Buffer,
    ) -> Result<Vec<LostPage>> {
        let mut buf = self.places.zeroed();
        let label = |page| self.places.label(index, *from, page as u64);
        let labels: Vec<_> = (0..buf.pages()).map(label).collect();
        let (mut lost, buffer_pages) = (Vec::new(), self.shape.buffer_pages as usize);
        read_each(&**self.device(), &labels, FailedRead::Splits, &mut |at, page| match page {
            // A page that is left out is empty.
            Ok(page) => buf.page_mut(at)[PAGE_HEADER_BYTES..].copy_from_slice(page.body()),
            Err(_) => lost.push(LostPage { index: at, buffer_pages, page: labels[at].page }),
        });
        self.fill(buffer, &buf);
        Ok(lost)
    }

    fn overwrites(newer: &PageSnapshotRef, older: &PageSnapshotRef) -> bool {
        newer.slot == older.slot
    }

    fn encode(reference: Option<&PageSnapshotRef>, out: &mut Vec<u8>) {
        match reference {
            None => out.push(0),
            Some(PageSnapshotRef { slot, generation }) => {
                out.push(1 + slot);
                out.extend_from_slice(&generation.to_le_bytes());
            }
        }
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Option<PageSnapshotRef>> {
        PageSnapshotRef::decode(reader)
    }
}
