//! A segment: a closed hash table on flash, written once, front to back. A partition's data segment (the paper's H_D)
//! is one; a buffer staged in the change segment (S_E) is another.
//!
//! ```text
//!   block 0                       block 1                       overflow region
//!   +------+------+-- -- +------+ +------+------+-- -- +------+ +------+------+
//!   | 420  | 433  |      | full | | 412  | full | ->   | 398  | | 7    |      |
//!   +------+------+-- -- +------+ +------+------+-- -- +------+ +------+------+
//!                            |          |______^                   ^
//!                            |_____________________________________|
//! ```
//!
//! A key's place, a part of its hash, determines its page: pages take the role of the slots of linear probing. Entries
//! that do not fit a page go on the next one of its block; entries that do not fit their block go to pages of the
//! overflow region, which are allocated one at a time and chained from the block's last page. Everything is written in
//! ascending order of places, so a stream of the segment is sorted, and a lookup that does not find its key on a page
//! that does not continue is complete.
//!
//! Invariants
//! 1. Entries ascend, each key occurs once, and every change changes something.
//! 2. An entry is on its home page, or all pages from there up to its own continue. Probing only leaves a block for the
//!    overflow region.
//! 3. Every page carries the segment's generation and its own number.
//! 4. A segment is read only after its writer has finished.

mod filter;
mod reader;
mod writer;

use nandex_device::PageId;
use nandex_store::StructureId;
use nandex_store::bytes::Reader;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PAGE_HEADER_BYTES, PageKind, RawPage};
use nandex_store::pages::PagePlace;
use nandex_store::reads::LookupStep;
use nandex_store::space::Extent;

use super::change::Change;
use super::keys::reduce;
use super::page::{CONTENT_BYTES, CountPage};
use crate::write::OnFlash;
use crate::{Error, Result};

pub(super) use filter::SegmentFilter;
pub(super) use reader::SegmentReader;
pub(super) use writer::{READ_SEGMENTS, Segments};

/// The average share of its bytes that a page's own entries take. One in a hundred pages with this fill continues on
/// the next.
const LOAD: f64 = 0.92;

/// The size that a segment is made for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentSize {
    /// The maximum number of entries.
    pub entries: u64,
    /// The approximate bytes of long changes.
    pub long_bytes: u64,
}

/// The division of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentShape {
    pub blocks: u32,
    /// Pages of each block.
    pub block_pages: u32,
    /// The maximum number of pages of the overflow region.
    pub overflow_pages: u32,
}

impl SegmentShape {
    /// Creates the shape for entries of the given size, in blocks of at most `block_pages`. `widened` is the number of
    /// times that it was too small.
    pub(super) fn new(size: SegmentSize, width: usize, block_pages: u32, widened: u32) -> Self {
        let bytes = size.entries * (width as u64 + 1) + size.long_bytes;
        let per_page = (CONTENT_BYTES as f64 * LOAD) as u64;
        let pages = bytes.div_ceil(per_page).max(1) << widened.min(20);
        let blocks = pages.div_ceil(block_pages.into());
        let block_pages = pages.div_ceil(blocks);
        let limit = |pages: u64| u32::try_from(pages).unwrap_or(u32::MAX);
        Self {
            blocks: limit(blocks),
            block_pages: limit(block_pages),
            overflow_pages: limit(2 + pages / 64 + blocks),
        }
    }

    /// Pages of all blocks.
    pub(super) fn slot_pages(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.block_pages)
    }

    pub(super) fn pages(&self) -> u64 {
        self.slot_pages() + u64::from(self.overflow_pages)
    }

    /// Returns the page of a place.
    #[inline]
    pub(super) fn page_of(&self, place: u64) -> u64 {
        reduce(place, self.slot_pages())
    }

    /// Returns whether this is the last page of its block.
    pub(super) fn ends_block(&self, page: u64) -> bool {
        page < self.slot_pages() && (page + 1).is_multiple_of(self.block_pages.into())
    }

    /// Returns the page that follows one that continues, given its overflow link `next`; `None` if they contradict each
    /// other.
    pub(super) fn page_after(&self, page: u64, next: u32) -> Option<u64> {
        let is_chained = page >= self.slot_pages() || self.ends_block(page);
        let after =
            if is_chained { self.slot_pages() + u64::from(next).checked_sub(1)? } else { page + 1 };
        let is_inside = after > page && after < self.pages() && (is_chained || next == 0);
        is_inside.then_some(after)
    }
}

/// The contents of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SegmentContent {
    pub entries: u64,
    pub long_bytes: u64,
    /// Entries that subtract or remove.
    pub negatives: u64,
}

impl SegmentContent {
    #[inline]
    pub(super) fn add(&mut self, change: Change) {
        self.entries += 1;
        self.long_bytes += super::page::long_bytes(change) as u64;
        self.negatives += u64::from(change.removes || change.amount < 0);
    }

    pub(super) fn size(&self) -> SegmentSize {
        SegmentSize { entries: self.entries, long_bytes: self.long_bytes }
    }
}

/// A finished segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub place: PagePlace,
    pub shape: SegmentShape,
    pub content: SegmentContent,
    /// The filter that rules out reads of a staged segment; `None` for a data segment.
    pub filter: Option<SegmentFilter>,
}

impl OnFlash for Segment {
    fn extent(&self) -> Extent {
        self.place.extent
    }
}

impl Segment {
    /// Returns the number of pages that were written.
    pub(super) fn pages(&self) -> u64 {
        self.shape.pages()
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.filter.as_ref().map_or(0, SegmentFilter::ram_bytes)
    }

    /// Returns whether it may have this place.
    #[inline]
    pub(super) fn may_have(&self, place: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_have(place))
    }

    /// Returns the page on the device with the given index.
    pub(super) fn page(&self, index: u64) -> PageId {
        self.place.extent.start.plus(index)
    }

    /// Interprets a page that was read for a key: returns the key's change, its absence, or which page to read next.
    ///
    /// # Errors
    /// [`nandex_store::Error::Corrupt`] if the bytes are not those of this page.
    pub(super) fn look(
        &self,
        index: u64,
        bytes: &[u8],
        key: &[u8],
    ) -> Result<LookupStep<u64, Option<Change>>> {
        let page = self.prove(index, bytes, key.len())?;
        let found = page.find(key).map_err(|()| self.refuse(index, "changes of keys", "none"))?;
        if found.is_some() || !page.goes_on {
            return Ok(LookupStep::Answer(found));
        }
        Ok(LookupStep::Read(self.after(index, page.next)?))
    }

    fn after(&self, index: u64, next: u32) -> Result<u64> {
        let after = self.shape.page_after(index, next);
        after.ok_or_else(|| self.refuse(index, "a page after it", format!("overflow page {next}")))
    }

    /// Verifies a page, given its index in the segment, and parses it.
    pub(super) fn prove<'b>(
        &self,
        index: u64,
        bytes: &'b [u8],
        width: usize,
    ) -> Result<CountPage<'b>> {
        let page = RawPage::new(bytes);
        let body = if is_on(Barrier::RunProvesPages) {
            page.check(self.place.label(index))?.body()
        } else {
            &bytes[PAGE_HEADER_BYTES..]
        };
        CountPage::parse(body, width).ok_or_else(|| self.refuse(index, "a page of it", "none"))
    }

    pub(super) fn refuse(
        &self,
        index: u64,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> Error {
        let page = self.page(index);
        nandex_store::Error::corrupt("page of a counting table", page, expected, found).into()
    }

    /// Encodes it for a checkpoint.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let SegmentContent { entries, long_bytes, negatives } = self.content;
        for word in
            [self.place.extent.start.0, self.place.generation, entries, long_bytes, negatives]
        {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let SegmentShape { blocks, block_pages, overflow_pages } = self.shape;
        for word in [blocks, block_pages, overflow_pages] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Decodes a segment of a checkpoint from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    pub(super) fn decode(structure: StructureId, reader: &mut Reader<'_>) -> Result<Self> {
        let (start, generation) = (PageId(reader.u64()?), reader.u64()?);
        let (entries, long_bytes, negatives) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (blocks, block_pages, overflow_pages) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let shape = SegmentShape { blocks, block_pages, overflow_pages };
        let pages = shape.pages();
        let bytes = entries
            .checked_mul(2)
            .filter(|bytes| *bytes <= pages.saturating_mul(CONTENT_BYTES as u64));
        let ends = start.0.checked_add(pages).filter(|_| blocks > 0 && block_pages > 0);
        if bytes.is_none() || ends.is_none() || entries == 0 || negatives > entries {
            let found = format!("{shape:?} with {entries} entries, {negatives} of them negative");
            return Err(reader.refuse("a segment that can be", found).into());
        }
        let place = PagePlace {
            kind: PageKind::Counts,
            structure,
            extent: Extent { start, pages },
            generation,
        };
        let content = SegmentContent { entries, long_bytes, negatives };
        Ok(Self { place, shape, content, filter: None })
    }
}
