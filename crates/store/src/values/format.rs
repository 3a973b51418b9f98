//! The encoding of a value log: references, pages, records and state, as drawn in docs/reference/format.md.

use nandex_device::PageId;

use crate::bytes::{Reader, get_u32, put_u16};
use crate::page::PAGE_BODY_BYTES;
use crate::{Error, Result};

use super::extents::SegmentGroup;

/// The number of bytes of records in a page: its body without the place of the first record.
pub const PAYLOAD_BYTES: usize = PAGE_BODY_BYTES - 2;

/// The number of bytes of a record's header.
pub const RECORD_HEADER_BYTES: usize = 8;

/// Bytes of an encoded [`ValueRef`].
pub const REF_BYTES: usize = 16;

/// The first byte of a record; 0 is padding.
const RECORD: u8 = 1;

/// The mark of a page in which no record begins.
const NONE_BEGINS: u16 = u16::MAX;

/// The mark of an empty page, which closes a gap that a crash has left.
const VOID: u16 = u16::MAX - 1;

/// The place of a record. The record is gone once its segment was overwritten, which the segment's number shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueRef {
    /// The segment's place.
    pub slot: u32,
    /// The low half of the segment's number.
    pub sequence: u32,
    /// The number of bytes of the segment before the record's header.
    pub offset: u32,
    /// The number of bytes of the record, without its header.
    pub bytes: u32,
}

impl ValueRef {
    /// Encodes the reference.
    #[must_use]
    pub fn encode(self) -> [u8; REF_BYTES] {
        let mut out = [0; REF_BYTES];
        let numbers = [self.slot, self.sequence, self.offset, self.bytes];
        for (out, number) in out.chunks_exact_mut(4).zip(numbers) {
            out.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Reads a reference; `None` when there are not exactly [`REF_BYTES`].
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != REF_BYTES {
            return None;
        }
        let number = |index: usize| get_u32(bytes, 4 * index);
        Some(Self { slot: number(0), sequence: number(1), offset: number(2), bytes: number(3) })
    }

    /// The number of bytes of the record with its header.
    #[must_use]
    pub fn whole_bytes(self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.bytes)
    }

    /// The byte of the segment after the record.
    #[must_use]
    pub fn end(self) -> u64 {
        u64::from(self.offset) + self.whole_bytes()
    }
}

/// The start of the first record in a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordStart {
    /// A record begins this many bytes after the page's first.
    At(usize),
    /// No record begins: the page continues an earlier record.
    Nothing,
    /// No record begins or continues: the page closes a gap that a crash has left.
    Void,
}

impl RecordStart {
    /// Writes it to the front of a page's body.
    ///
    /// # Panics
    /// If a record begins past the page.
    pub fn encode(self, body: &mut [u8]) {
        let number = match self {
            Self::At(offset) => {
                assert!(offset < PAYLOAD_BYTES, "a record begins inside its page");
                offset as u16
            }
            Self::Nothing => NONE_BEGINS,
            Self::Void => VOID,
        };
        put_u16(body, 0, number);
    }
}

/// Splits a verified page's body into its first record's start and its bytes.
///
/// # Errors
/// [`Error::Corrupt`].
pub fn decode_page(body: &[u8], page: PageId) -> Result<(RecordStart, &[u8])> {
    let mut reader = Reader::new(body, "page of a value log", page);
    let begins = match reader.u16()? {
        NONE_BEGINS => RecordStart::Nothing,
        VOID => RecordStart::Void,
        at if usize::from(at) < PAYLOAD_BYTES => RecordStart::At(at.into()),
        at => return Err(reader.refuse(format!("a record before byte {PAYLOAD_BYTES}"), at)),
    };
    Ok((begins, reader.take(PAYLOAD_BYTES)?))
}

/// Returns the header of a record of `bytes` bytes.
#[must_use]
pub fn record_header(bytes: u32) -> [u8; RECORD_HEADER_BYTES] {
    let mut header = [RECORD, 0, 0, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&bytes.to_le_bytes());
    header
}

/// Returns the number of bytes of the record after this header; `None` when it is not a header.
#[must_use]
pub fn record_bytes(header: &[u8]) -> Option<u32> {
    let header = header.get(..RECORD_HEADER_BYTES)?;
    (header[..4] == [RECORD, 0, 0, 0]).then(|| get_u32(header, 4))
}

/// Returns whether there is padding from here to the end of the page.
#[must_use]
pub fn is_padding(rest: &[u8]) -> bool {
    rest.first().is_none_or(|first| *first == 0)
}

/// A segment that holds records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveSegment {
    /// Its place.
    pub slot: u32,
    /// Its number: segments are numbered in the order in which they are begun, from 1 on.
    pub sequence: u64,
    /// The number of its pages that are written.
    pub pages: u32,
    /// The number of bytes of its records that have references, as far as is known.
    pub live_bytes: u64,
    /// The number of its records that have references, as far as is known.
    pub live_records: u32,
}

impl LiveSegment {
    /// The number of bytes that its written pages have for records.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        u64::from(self.pages) * PAYLOAD_BYTES as u64
    }
}

/// The numbers of what a value log has overwritten over its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overwritten {
    /// The number of segments.
    pub segments: u64,
    /// The number of records in them that had references, as far as is known.
    pub records: u64,
}

/// The state of a value log in a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValuesState {
    /// The number of the newest segment.
    pub last_sequence: u64,
    /// The segments that hold records, oldest first; the last one is being written.
    pub live: Vec<LiveSegment>,
    /// The places of the other segments, in the order in which they will be used.
    pub free: Vec<u32>,
    /// The numbers of what was overwritten until the checkpoint.
    pub overwritten: Overwritten,
    /// The segments that growth has added, by extent.
    pub added: Vec<SegmentGroup>,
}

/// The bits of a segment's number; the bits above them mark the volume.
pub const SEQUENCE_BITS: u32 = 40;

/// The error for a record that does not match its reference.
pub(super) fn damaged(page: PageId, expected: &str, found: &str) -> Error {
    Error::corrupt("record of a value log", page, expected, found)
}
