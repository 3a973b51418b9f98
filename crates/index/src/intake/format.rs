//! The bytes that every table shares, encoded and decoded; no I/O, and no panic on any input.
//!
//! Two things are here: log entries, and the part of the state in the checkpoint that says where the
//! buffers' images are and which part of the log each partition still needs. Both are drawn in
//! docs/format.md.

use nandex_device::PAGE_BYTES;
use nandex_store::Lsn;
use nandex_store::bytes::{Reader, get_u32, get_u64};
use nandex_store::entries::{Entry, EntryLayout, SlotState};

use crate::Result;

/// First byte of a log entry that puts a key and value.
pub(crate) const LOG_PUT: u8 = 1;
/// First byte of a log entry that removes a key.
pub(crate) const LOG_REMOVE: u8 = 2;
/// First byte of a log entry that says that a buffer has moved to flash.
const LOG_MOVED: u8 = 3;

/// Bytes that a log entry adds to its key and value: the first one. What the log itself adds,
/// [`written_bytes`](nandex_store::log::format::written_bytes) tells.
pub(crate) const LOG_ENTRY_EXTRA_BYTES: usize = 1;

/// Appends the log entry that puts this key and value.
pub(crate) fn encode_log_put(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    out.push(LOG_PUT);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Reads a log entry: its first byte, the key, and the value unless it removes.
///
/// Gives nothing when the bytes are no entry of this layout.
#[must_use]
pub fn decode_log_entry(bytes: &[u8], layout: EntryLayout) -> Option<Entry<'_>> {
    let (&tag, rest) = bytes.split_first()?;
    let (key, value) = rest.split_at_checked(layout.key_bytes())?;
    match tag {
        LOG_PUT if value.len() == layout.value_bytes() => {
            Some(Entry { state: SlotState::Live, key, value })
        }
        LOG_REMOVE if value.is_empty() => Some(Entry { state: SlotState::Tombstone, key, value }),
        _ => None,
    }
}

/// That a partition's oldest buffer has moved to flash, and what recovery needs of it no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Whose buffer.
    pub partition: u32,
    /// Where the partition's part of the log begins from now on.
    pub tail: Lsn,
    /// The image that the partition still needs.
    pub image: Option<ImageRef>,
}

/// Bytes of a move before the room's own: tag, partition, tail, image's place and generation.
const MOVED_BYTES: usize = 1 + 4 + 8 + 1 + 8;

impl Moved {
    /// The log entry as far as it is the same for all; the room's own bytes come behind.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MOVED_BYTES);
        out.push(LOG_MOVED);
        out.extend_from_slice(&self.partition.to_le_bytes());
        out.extend_from_slice(&self.tail.0.to_le_bytes());
        out.push(self.image.map_or(0, |image| 1 + image.slot));
        let generation = self.image.map_or(0, |image| image.generation);
        out.extend_from_slice(&generation.to_le_bytes());
        out
    }

    /// Reads a log entry and gives the room's own bytes too; nothing when it is no move.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, own) = bytes.split_at_checked(MOVED_BYTES)?;
        let tail = get_u64(head, 5);
        let generation = get_u64(head, 14);
        let image = match head[13] {
            0 if generation == 0 => None,
            slot @ (1 | 2) => Some(ImageRef { slot: slot - 1, generation }),
            _ => return None,
        };
        let is_move = head[0] == LOG_MOVED && tail.is_multiple_of(PAGE_BYTES as u64);
        is_move.then_some((Self { partition: get_u32(head, 1), tail: Lsn(tail), image }, own))
    }
}

/// Where a buffer's image lies: what a flush of a buffer that was not full has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageRef {
    /// Which of the partition's two places.
    pub slot: u8,
    /// What its pages carry as their generation.
    pub generation: u64,
}

/// The state of the buffers, behind the room's maps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// The generation of the next image.
    pub next_image: u64,
    /// Each partition's image.
    pub images: Vec<Option<ImageRef>>,
    /// Each partition's oldest place of the log that is still needed: what recovery passes over before
    /// it would only fill buffers, and so flash, a second time.
    pub tails: Vec<Lsn>,
}

impl State {
    /// Appends the state's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.next_image.to_le_bytes());
        let count = u32::try_from(self.images.len()).expect("at most 65,536 partitions");
        out.extend_from_slice(&count.to_le_bytes());
        for (image, tail) in self.images.iter().zip(&self.tails) {
            out.extend_from_slice(&tail.0.to_le_bytes());
            match image {
                None => out.push(0),
                Some(ImageRef { slot, generation }) => {
                    out.push(1 + slot);
                    out.extend_from_slice(&generation.to_le_bytes());
                }
            }
        }
    }

    /// Reads a state from bytes that may be anything.
    ///
    /// # Errors
    /// Corruption, told by the reader.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let next_image = reader.u64()?;
        let count = reader.count(9)?;
        let (mut images, mut tails) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let tail = reader.u64()?;
            if !tail.is_multiple_of(PAGE_BYTES as u64) {
                return Err(reader.refuse("a log place at a page's start", tail).into());
            }
            tails.push(Lsn(tail));
            images.push(match reader.u8()? {
                0 => None,
                slot @ (1 | 2) => Some(ImageRef { slot: slot - 1, generation: reader.u64()? }),
                other => return Err(reader.refuse("an image's place, 0 to 2", other).into()),
            });
        }
        Ok(Self { next_image, images, tails })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandex_device::PageId;
    use proptest::prelude::*;

    #[test]
    fn a_state_reads_back() {
        let images = vec![None, Some(ImageRef { slot: 1, generation: 5 }), None];
        let state = State { next_image: 9, images, tails: vec![Lsn(0), Lsn(8192), Lsn(4096)] };
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        let mut reader = Reader::new(&bytes, "state", PageId(0));
        assert_eq!(State::decode(&mut reader).unwrap(), state);
    }

    #[test]
    fn a_move_reads_back_and_is_no_update() {
        let layout = EntryLayout::new(8, 8).unwrap();
        for image in [None, Some(ImageRef { slot: 1, generation: 77 })] {
            let moved = Moved { partition: 9, tail: Lsn(8192), image };
            let bytes = [moved.encode(), b"map".to_vec()].concat();
            assert_eq!(Moved::decode(&bytes), Some((moved, &b"map"[..])));
            assert_eq!(decode_log_entry(&bytes, layout), None);
            assert_eq!(Moved::decode(&bytes[..MOVED_BYTES - 1]), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let layout = EntryLayout::new(8, 8).unwrap();
            let _ = decode_log_entry(&bytes, layout);
            let _ = Moved::decode(&bytes);
            let _ = State::decode(&mut Reader::new(&bytes, "state", PageId(0)));
        }
    }
}
