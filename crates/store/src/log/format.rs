//! The bytes of a block: header, groups of entries, checksum. Pure: no device, no clock.
//!
//! A block is a whole number of pages. Its checksum covers everything after it up to the block's end, zero
//! padding included. docs/reference/format.md draws the bytes.

use nandex_device::PAGE_BYTES;

use super::Lsn;
use crate::StructureId;
use crate::bytes::{get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};
use crate::mutants::{Barrier, is_on};

/// Bytes of a block's header; the groups follow.
pub const BLOCK_HEADER_BYTES: usize = 64;

/// Bytes of a group's header; its entries follow.
pub const GROUP_HEADER_BYTES: usize = 8;

/// Returns the average number of bytes that the log writes for an entry of `entry_bytes` bytes if one structure appends
/// entries of one size to full blocks, so that the entries share the headers. Alternating entries of two sizes take
/// [`GROUP_HEADER_BYTES`] more each, and blocks that a commit closes are padded to a whole page.
#[must_use]
pub fn written_bytes(entry_bytes: usize, block_bytes: usize) -> f64 {
    let payload_bytes = block_bytes.saturating_sub(BLOCK_HEADER_BYTES + GROUP_HEADER_BYTES);
    let entries = payload_bytes / entry_bytes.max(1);
    block_bytes as f64 / entries.max(1) as f64
}

/// First bytes of every block after its checksum: "ndxl".
pub const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"ndxl");

/// The fields of a block's header, without its size and checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    /// Bytes of groups after the header.
    pub payload_bytes: u32,
    /// The block's place in the log.
    pub lsn: Lsn,
    /// The session that wrote it.
    pub epoch: u64,
    /// The volume it belongs to.
    pub volume_id: u128,
    /// The checksum of the block before it.
    pub prev_crc: u32,
    /// The low half of the newest superblock's generation that was durable when the block was sealed.
    pub superblock: u32,
    /// The place before which every byte of the log was durable when the block was sealed.
    pub synced: Lsn,
}

impl BlockHeader {
    /// Returns the generation of a superblock that was durable when the block was sealed, if it is newer than `known`.
    #[must_use]
    pub fn newer_superblock(&self, known: u64) -> Option<u64> {
        // Both are counted in 32 bits; a number that is ahead by less than half of that range is newer.
        let ahead = self.superblock.wrapping_sub(low_half(known));
        (1..1 << 31).contains(&ahead).then(|| known.saturating_add(ahead.into()))
    }
}

/// Returns the part of a superblock's generation that a block names.
#[must_use]
pub fn low_half(generation: u64) -> u32 {
    u32::try_from(generation & u64::from(u32::MAX)).expect("the other half is 0")
}

/// The properties that a block must have to be valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockLabel {
    /// The volume it belongs to.
    pub volume_id: u128,
    /// Its place in the log.
    pub lsn: Lsn,
    /// The largest block of this log.
    pub block_bytes_max: usize,
}

/// The reason why bytes are not the expected block.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// No block starts here.
    #[error("no log block")]
    Magic,
    /// The block belongs to another volume.
    #[error("a block of another volume")]
    Volume,
    /// The block belongs to another place, such as one of an earlier lap.
    #[error("the block of log byte {found}")]
    Place {
        /// The place to which the block belongs.
        found: u64,
    },
    /// The sizes in the header are impossible.
    #[error("a block of {block_bytes} bytes with {payload_bytes} bytes of entries")]
    Size {
        /// The block size in the header.
        block_bytes: u32,
        /// The groups' size in the header.
        payload_bytes: u32,
    },
    /// Some byte differs from what was written.
    #[error("a block with checksum {computed:08x} that says {stored:08x}")]
    Checksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The block's predecessor is not the block before it.
    #[error("a block that follows another one than the last")]
    Chain,
    /// The block was written by a session that is too old for its place.
    #[error("a block of the earlier session {epoch}")]
    Stale {
        /// The session that wrote it.
        epoch: u64,
    },
    /// The groups do not add up.
    #[error("a group of entries that reaches past its block, or is empty")]
    Group,
}

/// Writes the header and the checksum into a block whose groups and padding are complete. Returns the checksum, which
/// the next block names.
///
/// # Panics
/// If `bytes` is not a whole number of pages, at least one, or is too short for the payload.
pub fn seal(bytes: &mut [u8], header: &BlockHeader) -> u32 {
    assert!(!bytes.is_empty() && bytes.len().is_multiple_of(PAGE_BYTES), "a block is pages");
    let payload_bytes_max = bytes.len() - BLOCK_HEADER_BYTES;
    assert!(header.payload_bytes as usize <= payload_bytes_max, "a block holds its payload");
    put_u32(bytes, 4, BLOCK_MAGIC);
    put_u32(bytes, 8, u32::try_from(bytes.len()).expect("a block is shorter than 4 GiB"));
    put_u32(bytes, 12, header.payload_bytes);
    put_u64(bytes, 16, header.lsn.0);
    put_u64(bytes, 24, header.epoch);
    bytes[32..48].copy_from_slice(&header.volume_id.to_le_bytes());
    put_u32(bytes, 48, header.prev_crc);
    put_u32(bytes, 52, header.superblock);
    put_u64(bytes, 56, header.synced.0);
    let crc = crc32c::crc32c(&bytes[4..]);
    put_u32(bytes, 0, crc);
    crc
}

/// Writes a group's header.
///
/// # Panics
/// If fewer than [`GROUP_HEADER_BYTES`] bytes follow `at`.
pub fn put_group(bytes: &mut [u8], at: usize, structure: StructureId, entry: u16, count: u32) {
    put_u16(bytes, at, structure.0);
    put_u16(bytes, at + 2, entry);
    put_u32(bytes, at + 4, count);
}

/// Bytes from flash that may start with a block, or may be anything.
#[derive(Clone, Copy, Debug)]
pub struct RawBlock<'a>(&'a [u8]);

impl<'a> RawBlock<'a> {
    /// Takes bytes from a block's place on.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Verifies that the block is whole and the expected one. The reader decides whether it continues the log. Costs a
    /// checksum only when the header matches.
    ///
    /// # Errors
    /// The [`Flaw`] that was found first.
    pub fn check(self, label: BlockLabel) -> Result<Block<'a>, Flaw> {
        let head = self.0.get(..BLOCK_HEADER_BYTES).ok_or(Flaw::Magic)?;
        if get_u32(head, 4) != BLOCK_MAGIC {
            return Err(Flaw::Magic);
        }
        let header = header(head);
        if header.volume_id != label.volume_id && is_on(Barrier::BlockVolume) {
            return Err(Flaw::Volume);
        }
        if header.lsn != label.lsn && is_on(Barrier::BlockPlace) {
            return Err(Flaw::Place { found: header.lsn.0 });
        }
        let bytes = self.cut(header.payload_bytes, label.block_bytes_max)?;
        let (stored, computed) = (get_u32(bytes, 0), crc32c::crc32c(&bytes[4..]));
        if stored != computed && is_on(Barrier::BlockChecksum) {
            return Err(Flaw::Checksum { stored, computed });
        }
        Ok(Block { header, bytes })
    }

    /// Returns the header of a whole block of this volume, whatever its place. Costs a checksum only for headers that
    /// `is_wanted` accepts.
    #[must_use]
    pub fn find(
        self,
        volume_id: u128,
        block_bytes_max: usize,
        is_wanted: impl FnOnce(&BlockHeader) -> bool,
    ) -> Option<BlockHeader> {
        let head = self.0.get(..BLOCK_HEADER_BYTES)?;
        if get_u32(head, 4) != BLOCK_MAGIC {
            return None;
        }
        let found = header(head);
        let label = BlockLabel { volume_id, lsn: found.lsn, block_bytes_max };
        (is_wanted(&found) && self.check(label).is_ok()).then_some(found)
    }

    /// Returns the block's own bytes, by the size in its header.
    fn cut(self, payload_bytes: u32, block_bytes_max: usize) -> Result<&'a [u8], Flaw> {
        let block_bytes = get_u32(self.0, 8);
        let flaw = Flaw::Size { block_bytes, payload_bytes };
        let length = usize::try_from(block_bytes).map_err(|_| flaw)?;
        let payload = usize::try_from(payload_bytes).map_err(|_| flaw)?;
        let whole = length > 0 && length.is_multiple_of(PAGE_BYTES) && length <= block_bytes_max;
        if !whole || payload > length - BLOCK_HEADER_BYTES {
            return Err(flaw);
        }
        self.0.get(..length).ok_or(flaw)
    }
}

/// Reads the fields of a header, verified or not.
fn header(head: &[u8]) -> BlockHeader {
    let mut volume_id = [0; 16];
    volume_id.copy_from_slice(&head[32..48]);
    BlockHeader {
        payload_bytes: get_u32(head, 12),
        lsn: Lsn(get_u64(head, 16)),
        epoch: get_u64(head, 24),
        volume_id: u128::from_le_bytes(volume_id),
        prev_crc: get_u32(head, 48),
        superblock: get_u32(head, 52),
        synced: Lsn(get_u64(head, 56)),
    }
}

/// A block that has been verified.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    header: BlockHeader,
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Its header.
    #[must_use]
    pub fn header(self) -> BlockHeader {
        self.header
    }

    /// Its size, header and padding included.
    #[must_use]
    pub fn block_bytes(self) -> usize {
        self.bytes.len()
    }

    /// Its checksum.
    #[must_use]
    pub fn crc(self) -> u32 {
        get_u32(self.bytes, 0)
    }

    /// The groups, in the order in which they were written.
    #[must_use]
    pub fn groups(self) -> Groups<'a> {
        let payload = &self.bytes[BLOCK_HEADER_BYTES..];
        Groups { rest: &payload[..self.header.payload_bytes as usize] }
    }
}

/// Entries of one structure and one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group<'a> {
    /// Their structure.
    pub structure: StructureId,
    /// The size of each entry, in bytes.
    pub entry_bytes: usize,
    /// All entries, one after another; at least one.
    pub entries: &'a [u8],
}

/// Reads groups one after another; ends after the first invalid one.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    rest: &'a [u8],
}

impl<'a> Groups<'a> {
    /// Reads groups from bytes that may be anything.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    fn take(&mut self) -> Option<Group<'a>> {
        let (head, rest) = self.rest.split_at_checked(GROUP_HEADER_BYTES)?;
        let structure = StructureId(get_u16(head, 0));
        let entry_bytes = usize::from(get_u16(head, 2));
        let count = usize::try_from(get_u32(head, 4)).ok()?;
        let (entries, rest) = rest.split_at_checked(entry_bytes.checked_mul(count)?)?;
        self.rest = rest;
        (!entries.is_empty()).then_some(Group { structure, entry_bytes, entries })
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Result<Group<'a>, Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let group = self.take();
        if group.is_none() {
            self.rest = &[];
        }
        Some(group.ok_or(Flaw::Group))
    }
}
