//! The checkpoint: the catalog of structures and the small maps of each.
//!
//! It is written whole, page by sealed page, to one of two extents alternately. It becomes valid when a
//! superblock points at it. docs/reference/format.md draws the bytes.

use std::sync::Arc;

use nandex_device::{Device, PAGE_BYTES, PageBuf, PageId};

use crate::bytes::{Reader, put_field};
use crate::mutants::{Barrier, is_on};
use crate::page::{
    PAGE_BODY_BYTES, PAGE_HEADER_BYTES, PageKind, PageLabel, RawPage, StructureId, seal,
};
use crate::space::Extent;
use crate::superblock::Superblock;
use crate::{Error, Lsn, Result};

/// A structure, as the catalog describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogEntry {
    /// Its number in the volume.
    pub id: StructureId,
    /// Its name, unique in the volume.
    pub name: String,
    /// The kind of structure.
    pub kind: String,
    /// The configuration that it was created with, encoded by the structure.
    pub config: Vec<u8>,
    /// Its small maps, encoded by the structure.
    pub state: Vec<u8>,
    /// The oldest place of the log that the structure still needs.
    pub tail: Lsn,
    /// Its pages.
    pub extents: Vec<Extent>,
}

/// All structures of a volume.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalog {
    /// The number that the next structure gets.
    pub next_id: u16,
    /// The structures, oldest first.
    pub entries: Vec<CatalogEntry>,
}

impl Catalog {
    /// Encodes the catalog.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Maps may take megabytes, so they are copied only once.
        let entries = self.entries.iter().map(CatalogEntry::encoded_bytes).sum::<usize>();
        let mut out = Vec::with_capacity(2 + 4 + entries);
        out.extend_from_slice(&self.next_id.to_le_bytes());
        let count = u32::try_from(self.entries.len()).expect("structures are numbered by 16 bits");
        out.extend_from_slice(&count.to_le_bytes());
        for entry in &self.entries {
            entry.encode(&mut out);
        }
        out
    }

    /// Reads a catalog from bytes that may be anything.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn decode(bytes: &[u8], place: PageId) -> Result<Self> {
        let mut reader = Reader::new(bytes, "checkpoint", place);
        let next_id = reader.u16()?;
        let count = reader.count(CatalogEntry::BYTES_MIN)?;
        let entries =
            (0..count).map(|_| CatalogEntry::decode(&mut reader)).collect::<Result<_>>()?;
        Ok(Self { next_id, entries })
    }

    /// Returns the structure of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&CatalogEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the names of all structures except parts, for an error text.
    #[must_use]
    pub fn names(&self) -> String {
        let whole = self.entries.iter().filter(|entry| !entry.name.contains('/'));
        let names: Vec<_> = whole.map(|entry| format!("{:?}", entry.name)).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }
}

impl CatalogEntry {
    const BYTES_MIN: usize = 2 + 4 * 4 + 8 + 4;

    fn encoded_bytes(&self) -> usize {
        let fields = self.name.len() + self.kind.len() + self.config.len() + self.state.len();
        Self::BYTES_MIN + fields + 16 * self.extents.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0.to_le_bytes());
        put_field(out, self.name.as_bytes());
        put_field(out, self.kind.as_bytes());
        put_field(out, &self.config);
        put_field(out, &self.state);
        out.extend_from_slice(&self.tail.0.to_le_bytes());
        let count = u32::try_from(self.extents.len()).expect("a structure has a few extents");
        out.extend_from_slice(&count.to_le_bytes());
        for extent in &self.extents {
            out.extend_from_slice(&extent.start.0.to_le_bytes());
            out.extend_from_slice(&extent.pages.to_le_bytes());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let id = StructureId(reader.u16()?);
        let mut text = || -> Result<String> {
            let bytes = reader.field()?.to_vec();
            String::from_utf8(bytes).map_err(|error| reader.refuse("a name in UTF-8", error))
        };
        let (name, kind) = (text()?, text()?);
        let (config, state) = (reader.field()?.to_vec(), reader.field()?.to_vec());
        let tail = Lsn(reader.u64()?);
        let count = reader.count(16)?;
        let mut extents = Vec::with_capacity(count);
        for _ in 0..count {
            extents.push(Extent { start: PageId(reader.u64()?), pages: reader.u64()? });
        }
        Ok(Self { id, name, kind, config, state, tail, extents })
    }
}

/// Returns the number of pages of a checkpoint of `bytes` bytes.
#[must_use]
pub fn pages_for(bytes: usize) -> u64 {
    bytes.div_ceil(PAGE_BODY_BYTES).max(1) as u64
}

/// The label that a page of a checkpoint must have.
pub(crate) fn label(generation: u64, page: PageId) -> PageLabel {
    PageLabel { kind: PageKind::Checkpoint, structure: StructureId::VOLUME, generation, page }
}

/// Writes a checkpoint's bytes to its extent; the caller syncs.
///
/// # Errors
/// As a write of the device.
pub fn write(device: &dyn Device, extent: Extent, generation: u64, bytes: &[u8]) -> Result<()> {
    let pages = usize::try_from(pages_for(bytes.len())).expect("a checkpoint fits in memory");
    let mut buf = PageBuf::zeroed(pages);
    for (index, body) in bytes.chunks(PAGE_BODY_BYTES).enumerate() {
        let page = buf.page_mut(index);
        page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + body.len()].copy_from_slice(body);
    }
    for index in 0..pages {
        seal(buf.page_mut(index), label(generation, extent.start.plus(index as u64)));
    }
    device.write(extent.start, buf)?;
    Ok(())
}

/// Reads the checkpoint that a superblock points at.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Truncated`], or as a read of the device.
pub fn read(device: &Arc<dyn Device>, superblock: &Superblock) -> Result<Catalog> {
    let found_pages = device.page_count();
    if found_pages < superblock.page_count && is_on(Barrier::LengthChecked) {
        return Err(Error::Truncated { expected_pages: superblock.page_count, found_pages });
    }
    let place = superblock.checkpoint.start;
    let too_long = |_| Error::corrupt("checkpoint", place, "a length", superblock.checkpoint_bytes);
    let bytes = usize::try_from(superblock.checkpoint_bytes).map_err(too_long)?;
    let pages = usize::try_from(pages_for(bytes)).map_err(too_long)?;
    let buf = device.read(place, PageBuf::zeroed(pages))?;
    let mut all = Vec::with_capacity(pages * PAGE_BYTES);
    for index in 0..pages {
        let page = place.plus(index as u64);
        refuse_newer(buf.page(index), page, superblock)?;
        let expected = label(superblock.checkpoint_generation, page);
        all.extend_from_slice(RawPage::new(buf.page(index)).check(expected)?.body());
    }
    all.truncate(bytes);
    Catalog::decode(&all, place)
}

/// Fails if the page holds a newer checkpoint than the superblock knows. Checkpoints never overwrite the one of the
/// newest superblock, so this superblock is stale.
fn refuse_newer(bytes: &[u8], page: PageId, superblock: &Superblock) -> Result<()> {
    let found = superblock.generation;
    let newest = RawPage::new(bytes).check_sum(page).map_or(found, |page| page.generation());
    let known = found.max(superblock.checkpoint_generation);
    let is_newer = newest > known && RawPage::new(bytes).check(label(newest, page)).is_ok();
    if is_newer && is_on(Barrier::StaleSuperblockRefused) {
        // Its superblock was written after it; the superblocks before that one were durable.
        return Err(Error::Stale { found, newest: newest - 1, what: "checkpoint", page });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_reads_back_and_never_panics_when_cut() {
        let entry = CatalogEntry {
            id: StructureId(1),
            name: "chunks".into(),
            kind: "bufferhash".into(),
            config: vec![1, 2, 3],
            state: vec![9; 100],
            tail: Lsn(77),
            extents: vec![Extent { start: PageId(5), pages: 6 }],
        };
        let catalog = Catalog { next_id: 2, entries: vec![entry] };
        let bytes = catalog.encode();
        assert_eq!(bytes.len(), 6 + catalog.entries[0].encoded_bytes());
        assert_eq!(Catalog::decode(&bytes, PageId(0)).unwrap(), catalog);
        for len in 0..bytes.len() {
            assert!(Catalog::decode(&bytes[..len], PageId(0)).is_err());
        }
    }
}
