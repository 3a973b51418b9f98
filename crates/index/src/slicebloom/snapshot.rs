//! Snapshots of a partition's buffer: its bits in pages; each partition has two places, used alternately.

use nandex_store::Volume;
use nandex_store::buffer::Buffer;
use nandex_store::bytes::Reader;
use nandex_store::page::{PAGE_BODY_BYTES, PAGE_HEADER_BYTES};

use super::buffer::{BloomBuffer, Content};
use crate::Result;
use crate::write::format::PageSnapshotRef;
use crate::write::{LostPage, PageSnapshots, SnapshotPlaces, SnapshotStore};

/// Writes buffers as pages of bits.
pub(crate) struct BitmapSnapshots {
    pub(super) volume: Volume,
    pub(super) places: SnapshotPlaces,
}

/// Returns the pages of one snapshot of a filter with `bits` bits.
pub(super) fn pages_of_one(bits: u32) -> u64 {
    Content::encoded_bytes(bits).div_ceil(PAGE_BODY_BYTES) as u64
}

impl std::fmt::Debug for BitmapSnapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BitmapSnapshots").field("places", &self.places).finish_non_exhaustive()
    }
}

impl SnapshotStore<BloomBuffer> for BitmapSnapshots {
    type Copy = Content;
    type Ref = PageSnapshotRef;

    fn copy(&self, buffer: &BloomBuffer) -> Content {
        buffer.content().clone()
    }

    fn write(
        &self,
        index: usize,
        durable: Option<&PageSnapshotRef>,
        next_generation: &dyn Fn() -> u64,
        copy: Content,
    ) -> Result<(PageSnapshotRef, u64)> {
        let mut pages = self.places.zeroed();
        for (page, bytes) in copy.encode().chunks(PAGE_BODY_BYTES).enumerate() {
            pages.page_mut(page)[PAGE_HEADER_BYTES..][..bytes.len()].copy_from_slice(bytes);
        }
        let bytes = pages.len() as u64;
        let at = self.places.write(&self.volume, index, durable, next_generation(), pages)?;
        Ok((at, bytes))
    }

    fn load(&self, index: usize, from: &PageSnapshotRef, buffer: &mut BloomBuffer) -> Result<()> {
        let pages = self.places.read(&self.volume, index, *from)?;
        let bodies: Vec<u8> = (0..pages.pages())
            .flat_map(|page| pages.page(page)[PAGE_HEADER_BYTES..].iter().copied())
            .collect();
        let bits = buffer.content().bitmap.len();
        let Some(content) = Content::decode(&bodies, bits, buffer.keys_max()) else {
            let place = self.places.place(index, from.slot);
            let expected = format!("{bits} bits of at most {} keys", buffer.keys_max());
            let found = "other bytes";
            return Err(nandex_store::Error::corrupt("snapshot", place, expected, found).into());
        };
        buffer.load(content);
        Ok(())
    }

    fn load_past(
        &self,
        index: usize,
        from: &PageSnapshotRef,
        buffer: &mut BloomBuffer,
    ) -> Result<Vec<LostPage>> {
        let loaded = self.load(index, from, buffer).map(|()| Vec::new());
        loaded.or_else(|error| LostPage::whole(error, buffer))
    }

    fn overwrites(newer: &PageSnapshotRef, older: &PageSnapshotRef) -> bool {
        newer.slot == older.slot
    }

    fn encode(reference: Option<&PageSnapshotRef>, out: &mut Vec<u8>) {
        <PageSnapshots as SnapshotStore<Buffer>>::encode(reference, out);
    }

    fn decode(&self, reader: &mut Reader<'_>) -> Result<Option<PageSnapshotRef>> {
        PageSnapshotRef::decode(reader)
    }
}
