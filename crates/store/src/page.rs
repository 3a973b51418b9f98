//! The sealed page: bytes whose place, age and kind can be verified.
//!
//! Every page on flash begins with a header. Its checksum covers the header and the body, and it contains the
//! page's own number, its structure and its generation. So a flipped bit, a misdirected page and a page of an
//! earlier lap of a ring all differ from the page that was asked for. docs/reference/format.md draws the bytes.

use nandex_device::{PAGE_BYTES, PageId};

use crate::bytes::{get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};
use crate::mutants::{Barrier, is_on};
use crate::{Error, Result};

/// Bytes of a page's header; the body follows.
pub const PAGE_HEADER_BYTES: usize = 32;

/// Bytes of a page's body.
pub const PAGE_BODY_BYTES: usize = PAGE_BYTES - PAGE_HEADER_BYTES;

/// First bytes of every sealed page after its checksum: "ndx1".
pub const PAGE_MAGIC: u32 = u32::from_le_bytes(*b"ndx1");

/// The kind of a page. The numbers are on flash: they never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[repr(u16)]
pub enum PageKind {
    /// One of the two superblocks.
    Superblock = 1,
    /// Part of a checkpoint.
    Checkpoint = 2,
    /// Part of a ring segment: entries of an incarnation.
    Data = 3,
    /// Part of a ring segment: the incarnation's filter.
    Filter = 4,
    /// Part of a buffer snapshot: entries of a buffer that is not full yet.
    Snapshot = 5,
    /// Part of a shadow block: slices of a slicetable.
    Slice = 6,
    /// Part of a value log's segment.
    Value = 7,
    /// Part of a run: sorted fingerprints.
    Run = 8,
    /// Part of a counting table's segment: keys and their counts.
    Counts = 9,
    /// Part of a group of a RHIK or a multi-level index: a record table.
    Records = 10,
}

/// Names a structure inside a volume; issued once, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StructureId(pub u16);

impl StructureId {
    /// The volume itself: superblocks and checkpoints.
    pub const VOLUME: Self = Self(0);
}

/// The properties that a page claims to have, or is expected to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageLabel {
    /// The kind of the page.
    pub kind: PageKind,
    /// Its structure.
    pub structure: StructureId,
    /// The write of the place that it belongs to: a segment's generation, a block's, a checkpoint's.
    pub generation: u64,
    /// Its place.
    pub page: PageId,
}

/// Writes header and checksum into a page whose body is complete.
///
/// # Panics
/// If `bytes` is not one page.
pub fn seal(bytes: &mut [u8], label: PageLabel) {
    assert_eq!(bytes.len(), PAGE_BYTES, "a page is sealed whole");
    put_u32(bytes, 4, PAGE_MAGIC);
    put_u16(bytes, 8, label.kind as u16);
    put_u16(bytes, 10, label.structure.0);
    put_u32(bytes, 12, 0);
    put_u64(bytes, 16, label.generation);
    put_u64(bytes, 24, label.page.0);
    let sum = crc32c::crc32c(&bytes[4..]);
    put_u32(bytes, 0, sum);
}

/// Page bytes from flash that have not been checked yet.
#[derive(Clone, Copy, Debug)]
pub struct RawPage<'a>(&'a [u8]);

impl<'a> RawPage<'a> {
    /// Takes one page of bytes from the device.
    ///
    /// # Panics
    /// If `bytes` is not one page.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        assert_eq!(bytes.len(), PAGE_BYTES, "a page is checked whole");
        Self(bytes)
    }

    /// Verifies that the page is the expected one.
    ///
    /// # Errors
    /// [`Error::Corrupt`], naming what differs.
    pub fn check(self, expected: PageLabel) -> Result<Page<'a>> {
        let page = self.check_sum(expected.page)?;
        let what = "page";
        let differs = |field, want: u64, got: u64| {
            Error::corrupt(what, expected.page, format!("{field} {want}"), format!("{field} {got}"))
        };
        let kind = get_u16(self.0, 8);
        if kind != expected.kind as u16 && is_on(Barrier::PageKind) {
            return Err(differs("kind", expected.kind as u64, kind.into()));
        }
        let structure = get_u16(self.0, 10);
        if structure != expected.structure.0 && is_on(Barrier::PageStructure) {
            return Err(differs("structure", expected.structure.0.into(), structure.into()));
        }
        let found = page.generation();
        if found != expected.generation && is_on(Barrier::PageGeneration) {
            return Err(differs("generation", expected.generation, found));
        }
        Ok(page)
    }

    /// Verifies checksum, magic and place alone, for readers that do not know the rest beforehand.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check_sum(self, place: PageId) -> Result<Page<'a>> {
        let hex = |sum: u32| format!("checksum {sum:08x}");
        let (stored, computed) = (get_u32(self.0, 0), crc32c::crc32c(&self.0[4..]));
        if stored != computed && is_on(Barrier::PageChecksum) {
            return Err(Error::corrupt("page", place, hex(stored), hex(computed)));
        }
        let magic = get_u32(self.0, 4);
        if magic != PAGE_MAGIC && is_on(Barrier::PageMagic) {
            return Err(Error::corrupt("page", place, "magic ndx1", format!("magic {magic:08x}")));
        }
        let found = get_u64(self.0, 24);
        if found != place.0 && is_on(Barrier::PageNumber) {
            return Err(Error::corrupt("page", place, place, PageId(found)));
        }
        Ok(Page(self.0))
    }
}

/// Page bytes that have been verified.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a>(&'a [u8]);

impl<'a> Page<'a> {
    /// All bytes of the page, header included.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The body of the page.
    #[must_use]
    pub fn body(self) -> &'a [u8] {
        &self.0[PAGE_HEADER_BYTES..]
    }

    /// The write of the place that the page belongs to.
    #[must_use]
    pub fn generation(self) -> u64 {
        get_u64(self.0, 16)
    }

    /// Its structure.
    #[must_use]
    pub fn structure(self) -> StructureId {
        StructureId(get_u16(self.0, 10))
    }

    /// The number of its [`PageKind`].
    #[must_use]
    pub fn kind_number(self) -> u16 {
        get_u16(self.0, 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: PageLabel = PageLabel {
        kind: PageKind::Data,
        structure: StructureId(3),
        generation: 9,
        page: PageId(77),
    };

    fn sealed() -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..PAGE_BYTES).map(|i| (i % 251) as u8).collect();
        seal(&mut bytes, LABEL);
        bytes
    }

    #[test]
    fn a_sealed_page_opens_with_its_label() {
        let bytes = sealed();
        let page = RawPage::new(&bytes).check(LABEL).unwrap();
        assert_eq!(page.body()[0], 32);
        assert_eq!(page.generation(), 9);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut bytes = sealed();
        for bit in 0..PAGE_BYTES * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(RawPage::new(&bytes).check(LABEL).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn what_is_no_page_is_refused_though_its_checksum_is_right() {
        // A block of the log keeps its checksum at the same place.
        let mut bytes = sealed();
        put_u32(&mut bytes, 4, crate::log::format::BLOCK_MAGIC);
        let sum = crc32c::crc32c(&bytes[4..]);
        put_u32(&mut bytes, 0, sum);
        assert!(RawPage::new(&bytes).check(LABEL).is_err());
    }

    #[test]
    fn a_page_from_elsewhere_or_another_time_is_refused() {
        let bytes = sealed();
        let raw = RawPage::new(&bytes);
        for wrong in [
            PageLabel { page: PageId(78), ..LABEL },
            PageLabel { generation: 10, ..LABEL },
            PageLabel { structure: StructureId(4), ..LABEL },
            PageLabel { kind: PageKind::Filter, ..LABEL },
        ] {
            let error = raw.check(wrong).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        }
    }
}
