//! The superblock: the first thing read, three times on the volume.
//!
//! Pages 0 and 1 alternate; the valid one with the higher generation counts. So a torn write of one leaves the other.
//! Drives keep neighbouring pages together and may lose the writes to both; so there is a third copy, elsewhere, which
//! the others name. docs/reference/format.md draws the bytes.

use nandex_device::{Geometry, PAGE_BYTES, PageId};

use crate::bytes::{Reader, get_u16};
use crate::hash::{HashKind, KeyHasher};
use crate::kept_geometry;
use crate::log::{AnchorSource, EARLIER_MAX, LogAnchor, LogPart, LogParts, Lsn};
use crate::mutants::{Barrier, is_on};
use crate::page::{PAGE_HEADER_BYTES, PageKind, PageLabel, RawPage, StructureId, seal};
use crate::space::Extent;
use crate::{Error, Result};

/// The format this build writes, and the newest it reads.
pub const FORMAT_VERSION: u16 = 1;

/// Pages at the start of the volume that hold superblocks.
pub const SUPERBLOCK_PAGES: u64 = 2;

/// The root of a volume: everything needed to find everything else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Counts writes of the superblock; the highest is valid.
    pub generation: u64,
    /// Names the volume, so that pages and logs of another differ.
    pub volume_id: u128,
    /// The hash function and its key.
    pub hash: HashKind,
    /// The hash function's key.
    pub hash_key: u128,
    /// Counts openings for writing. Log blocks carry it, and this opening noted `log_synced`.
    pub epoch: u64,
    /// The volume's length in pages.
    pub page_count: u64,
    /// The checkpoint's pages.
    pub checkpoint: Extent,
    /// Its length in bytes.
    pub checkpoint_bytes: u64,
    /// The generation on its pages.
    pub checkpoint_generation: u64,
    /// The log's pages, on the volume or on a device of its own.
    pub log: LogParts,
    /// Whether the log is on a device of its own.
    pub log_apart: bool,
    /// Whether the log may grow.
    pub log_grows: bool,
    /// The longest log block, in bytes.
    pub log_block_bytes: u32,
    /// The oldest place of the log that is still needed.
    pub log_tail: Lsn,
    /// The place before which everything in the log was durable.
    pub log_synced: Lsn,
    /// The page of its third copy; `None` in volumes that were created before there was one.
    pub copy: Option<PageId>,
    /// The channels of the device, if they were found by a probe.
    pub geometry: Option<Geometry>,
}

impl Superblock {
    /// The page that this generation is written to.
    #[must_use]
    pub fn place(&self) -> PageId {
        let turn = self.generation % SUPERBLOCK_PAGES;
        PageId(if is_on(Barrier::SuperblocksAlternate) { turn } else { 0 })
    }

    /// Returns the anchor from which the log is read.
    #[must_use]
    pub fn log_anchor(&self) -> LogAnchor {
        let source = AnchorSource::Superblock(self.generation);
        LogAnchor { tail: self.log_tail, synced: self.log_synced, epoch: self.epoch, source }
    }

    /// The volume's hash function.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.hash, self.hash_key)
    }

    /// Writes the superblock into the page of its generation, and seals it.
    pub fn encode(&self, page: &mut [u8]) {
        self.encode_at(page, self.place());
    }

    /// Writes the superblock into the page at `place`, and seals it.
    pub fn encode_at(&self, page: &mut [u8], place: PageId) {
        let mut body = Vec::with_capacity(192);
        body.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        body.extend_from_slice(&[self.hash as u8, u8::from(self.log_apart)]);
        body.extend_from_slice(&self.log_block_bytes.to_le_bytes());
        body.extend_from_slice(&self.volume_id.to_le_bytes());
        body.extend_from_slice(&self.hash_key.to_le_bytes());
        for number in self.numbers() {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(&kept_geometry::encode(self.geometry.as_ref()));
        self.encode_growth(&mut body);
        page.fill(0);
        page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + body.len()].copy_from_slice(&body);
        seal(page, label(self.generation, place));
    }

    /// Encodes the parts of a log that may grow: only zeros for one that does not.
    fn encode_growth(&self, body: &mut Vec<u8>) {
        let LogParts { earlier, newest, left } = &self.log;
        let count = |len: usize| u8::try_from(len).expect("few parts");
        body.extend_from_slice(&[u8::from(self.log_grows), count(earlier.len())]);
        body.extend_from_slice(&[count(left.len()), 0]);
        let parts = earlier.iter().map(|part| [part.since.0, part.pages.start.0, part.pages.pages]);
        let numbers = std::iter::once(newest.since.0).chain(parts.flatten());
        for number in numbers.chain(left.iter().map(|page| page.0)) {
            body.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn numbers(&self) -> [u64; 11] {
        [
            self.epoch,
            self.page_count,
            self.checkpoint.start.0,
            self.checkpoint.pages,
            self.checkpoint_bytes,
            self.checkpoint_generation,
            self.log.newest.pages.start.0,
            self.log.newest.pages.pages,
            self.log_tail.0,
            self.log_synced.0,
            self.copy.map_or(0, |page| page.0),
        ]
    }

    /// Decodes a superblock from a page that may hold anything.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or [`Error::Version`] for one of another version.
    pub fn decode(bytes: &[u8], place: PageId) -> Result<Self> {
        let page = RawPage::new(bytes).check_sum(place)?;
        let version = get_u16(page.body(), 0);
        if version != FORMAT_VERSION {
            return Err(Error::Version { found: version, supported: FORMAT_VERSION });
        }
        RawPage::new(bytes).check(label(page.generation(), place))?;
        let mut reader = Reader::new(page.body(), "superblock", place);
        reader.u16()?;
        let (hash, apart) = (reader.u8()?, reader.u8()?);
        let log_block_bytes = reader.u32()?;
        let (volume_id, hash_key) = (reader.u128()?, reader.u128()?);
        let mut numbers = [0; 11];
        for number in &mut numbers {
            *number = reader.u64()?;
        }
        let geometry = kept_geometry::decode(&mut reader)?;
        let [epoch, page_count, checkpoint_start, checkpoint_pages, ..] = numbers;
        let [.., checkpoint_bytes, checkpoint_generation, log_start, log_pages, _, _, _] = numbers;
        let [.., tail, synced, copy] = numbers;
        let pages = Extent { start: PageId(log_start), pages: log_pages };
        let (log_grows, log) = decode_growth(&mut reader, pages)?;
        let superblock = Self {
            generation: page.generation(),
            volume_id,
            hash: HashKind::from_number(hash).ok_or_else(|| reader.refuse("a known hash", hash))?,
            hash_key,
            epoch,
            page_count,
            checkpoint: Extent { start: PageId(checkpoint_start), pages: checkpoint_pages },
            checkpoint_bytes,
            checkpoint_generation,
            log,
            log_apart: apart != 0,
            log_grows,
            log_block_bytes,
            log_tail: Lsn(tail),
            log_synced: Lsn(synced),
            copy: (copy != 0).then_some(PageId(copy)),
            geometry,
        };
        superblock.check_sizes(&reader)?;
        Ok(superblock)
    }

    fn check_sizes(&self, reader: &Reader<'_>) -> Result<()> {
        let space = self.checkpoint.pages.checked_mul((PAGE_BYTES - PAGE_HEADER_BYTES) as u64);
        if space.is_none_or(|space| space < self.checkpoint_bytes) {
            return Err(reader.refuse("a checkpoint that fits its extent", self.checkpoint_bytes));
        }
        let inside = |extent: Extent| {
            extent.start.0.checked_add(extent.pages).is_some_and(|end| end <= self.page_count)
        };
        let log_inside = || self.log.extents().all(inside);
        if !inside(self.checkpoint) || !(self.log_apart || log_inside()) {
            return Err(reader.refuse("extents inside the volume", "one past its end"));
        }
        let in_place = |page: PageId| (SUPERBLOCK_PAGES..self.page_count).contains(&page.0);
        if let Some(copy) = self.copy.filter(|copy| !in_place(*copy)) {
            return Err(reader.refuse("a third copy inside the volume", copy));
        }
        Ok(())
    }

    /// Returns the newer of the superblock and its third copy, whose page this is.
    #[must_use]
    pub fn or_copy(self, page: &[u8], place: PageId) -> Self {
        let copy = Self::decode(page, place).ok();
        let copy = copy.filter(|_| is_on(Barrier::SuperblockCopied));
        let is_newer =
            |copy: &Self| copy.volume_id == self.volume_id && copy.generation > self.generation;
        copy.filter(is_newer).unwrap_or(self)
    }

    /// Chooses the valid one of the two pages at the start of a volume.
    ///
    /// # Errors
    /// [`Error::Foreign`] when neither page was ever written by nandex, [`Error::Version`] when the newer one is from a
    /// newer nandex, else the error of the first.
    pub fn choose(pages: [&[u8]; 2]) -> Result<Self> {
        let [first, second] = [0, 1].map(|index| Self::decode(pages[index], PageId(index as u64)));
        match (first, second) {
            (Ok(first), Ok(second)) => {
                let newest =
                    first.generation >= second.generation || !is_on(Barrier::SuperblockNewest);
                Ok(if newest { first } else { second })
            }
            (Err(error @ Error::Version { .. }), _) | (_, Err(error @ Error::Version { .. })) => {
                Err(error)
            }
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
            (Err(error), Err(_)) => Err(foreign(pages).unwrap_or(error)),
        }
    }
}

fn decode_growth(reader: &mut Reader<'_>, pages: Extent) -> Result<(bool, LogParts)> {
    let grows = reader.u8()? != 0;
    let (earlier_count, left_count) = (reader.u8()?, reader.u8()?);
    reader.u8()?;
    let most = earlier_count.max(left_count);
    if usize::from(most) > EARLIER_MAX {
        return Err(reader.refuse("at most 15 earlier parts of a log", most));
    }
    let newest = LogPart { since: Lsn(reader.u64()?), pages };
    let mut earlier: Vec<LogPart> = Vec::new();
    for _ in 0..earlier_count {
        let since = Lsn(reader.u64()?);
        let pages = Extent { start: PageId(reader.u64()?), pages: reader.u64()? };
        let follows = earlier.last().is_none_or(|before| before.since < since);
        if !follows || since >= newest.since || pages.pages == 0 {
            return Err(reader.refuse("parts of a log, oldest first", format!("one at {since}")));
        }
        earlier.push(LogPart { since, pages });
    }
    let left = (0..left_count).map(|_| Ok(PageId(reader.u64()?))).collect::<Result<_>>()?;
    Ok((grows, LogParts { earlier, newest, left }))
}

fn label(generation: u64, page: PageId) -> PageLabel {
    PageLabel { kind: PageKind::Superblock, structure: StructureId::VOLUME, generation, page }
}

/// Distinguishes a file that was never a volume from one that is damaged.
fn foreign(pages: [&[u8]; 2]) -> Option<Error> {
    if pages.iter().any(|page| page[4..8] == *b"ndx1") {
        return None;
    }
    let reason = if pages.iter().all(|page| page.iter().all(|&byte| byte == 0)) {
        "its first pages are all zeros".to_owned()
    } else {
        format!("it begins with {:02x?} where a volume has \"ndx1\" at byte 4", &pages[0][..8])
    };
    Some(Error::Foreign { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock(generation: u64) -> Superblock {
        Superblock {
            generation,
            volume_id: 7 << 100 | 3,
            hash: HashKind::Sip13,
            hash_key: 9 << 90,
            epoch: 4,
            page_count: 1000,
            checkpoint: Extent { start: PageId(40), pages: 2 },
            checkpoint_bytes: 5000,
            checkpoint_generation: 11,
            log: LogParts::from(Extent { start: PageId(2), pages: 32 }),
            log_apart: false,
            log_grows: generation.is_multiple_of(2),
            log_block_bytes: 1 << 18,
            log_tail: Lsn(4096),
            log_synced: Lsn(8192),
            copy: Some(PageId(34)),
            geometry: (generation % 2 == 1).then_some(Geometry {
                channels: Some(8),
                chunk_bytes: Some(16_384),
                ..Geometry::opaque()
            }),
        }
    }

    fn page(generation: u64) -> Vec<u8> {
        let mut bytes = vec![0; PAGE_BYTES];
        superblock(generation).encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_log_that_has_grown_is_found_with_its_earlier_parts() {
        let mut grown = superblock(12);
        for at in 1..=EARLIER_MAX as u64 {
            let pages = Extent { start: PageId(40 * at), pages: 32 + at };
            grown.log = grown.log.grown(Lsn(at << 20), pages);
            grown.log.left.push(PageId(at));
        }
        let mut bytes = vec![0; PAGE_BYTES];
        grown.encode(&mut bytes);
        assert_eq!(grown.log.earlier.len(), EARLIER_MAX);
        assert_eq!(Superblock::decode(&bytes, PageId(0)).unwrap(), grown);
        let place = PAGE_HEADER_BYTES + 150;
        bytes[place] = 16;
        seal(&mut bytes, label(12, PageId(0)));
        let refused = Superblock::decode(&bytes, PageId(0)).unwrap_err().to_string();
        assert!(refused.contains("at most 15 earlier parts"), "{refused}");
    }

    #[test]
    fn the_newer_one_is_chosen_and_a_torn_one_passed_over() {
        let (even, mut odd) = (page(12), page(13));
        assert_eq!(Superblock::choose([&even, &odd]).unwrap(), superblock(13));
        odd[2000..].fill(0xaa);
        assert_eq!(Superblock::choose([&even, &odd]).unwrap(), superblock(12));
    }

    #[test]
    fn foreign_damaged_and_newer_files_are_told_apart() {
        let zeros = vec![0; PAGE_BYTES];
        let text = vec![b'x'; PAGE_BYTES];
        let mut damaged = page(12);
        damaged[100] ^= 1;
        let mut newer = page(12);
        newer[PAGE_HEADER_BYTES] = 2;
        seal(&mut newer, label(12, PageId(0)));
        let choose = |first: &[u8]| Superblock::choose([first, &zeros]).unwrap_err();
        assert!(matches!(choose(&zeros), Error::Foreign { .. }));
        assert!(matches!(choose(&text), Error::Foreign { .. }));
        assert!(matches!(choose(&damaged), Error::Corrupt { .. }));
        assert!(matches!(choose(&newer), Error::Version { found: 2, supported: 1 }));
    }
}
