//! The bytes of a BufferHash, encoded and decoded; no I/O, and no panic on any input.
//!
//! Three things are here: log entries, the filter pages of a segment, and the state that the
//! checkpoint keeps. Entry pages are the store's. All are drawn in docs/format.md.

use nandex_device::PAGE_BYTES;
use nandex_store::Lsn;
use nandex_store::bytes::{Reader, get_u64};
use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::page::{PAGE_BODY_BYTES, PAGE_HEADER_BYTES};

use crate::Result;

/// First byte of a log entry that puts a key and value.
pub(super) const LOG_PUT: u8 = 1;
/// First byte of a log entry that removes a key.
pub(super) const LOG_REMOVE: u8 = 2;

/// Appends the log entry that puts this key and value.
pub(super) fn encode_log_put(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
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

/// Puts a filter column's words into the bodies of its pages, which are zero.
pub(super) fn encode_filter(pages: &mut [u8], words: &[u64]) {
    let mut words = words.iter();
    for page in pages.chunks_exact_mut(PAGE_BYTES) {
        for (place, word) in page[PAGE_HEADER_BYTES..].chunks_exact_mut(8).zip(words.by_ref()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Takes `count` words of a filter column back out of its pages, whose labels were checked.
#[must_use]
pub fn decode_filter(pages: &[u8], count: usize) -> Vec<u64> {
    let bodies = pages.chunks_exact(PAGE_BYTES).map(|page| &page[PAGE_HEADER_BYTES..]);
    let words = bodies.flat_map(|body| body.chunks_exact(8).map(|word| get_u64(word, 0)));
    words.take(count).collect()
}

const _: () = assert!(PAGE_BODY_BYTES.is_multiple_of(8), "a page's body is whole words");

/// Where a buffer's image lies: what a flush of a buffer that was not full has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageRef {
    /// Which of the super table's two places.
    pub slot: u8,
    /// What its pages carry as their generation.
    pub generation: u64,
}

/// The state beside the ring's map.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// The generation of the next image.
    pub next_image: u64,
    /// Each super table's image.
    pub images: Vec<Option<ImageRef>>,
    /// Each super table's oldest place of the log that is still needed: what recovery passes over
    /// before it would only fill buffers, and so the ring, a second time.
    pub tails: Vec<Lsn>,
}

impl State {
    /// Appends the state's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.next_image.to_le_bytes());
        let count = u32::try_from(self.images.len()).expect("at most 65,536 super tables");
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
    fn a_filter_reads_back_across_pages() {
        let words: Vec<u64> = (0..1200).map(|i| i * 0x1234_5678_9abc).collect();
        let mut pages = vec![0; 3 * PAGE_BYTES];
        encode_filter(&mut pages, &words);
        assert_eq!(decode_filter(&pages, words.len()), words);
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let layout = EntryLayout::new(8, 8).unwrap();
            let _ = decode_log_entry(&bytes, layout);
            let _ = State::decode(&mut Reader::new(&bytes, "state", PageId(0)));
        }
    }
}
