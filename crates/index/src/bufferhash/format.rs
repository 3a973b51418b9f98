//! The on-flash format of a BufferHash; no I/O, and no panic on any input.
//!
//! It consists of the filter pages of a segment. Log entries and the checkpoint's state belong to the write path, entry
//! pages to the store. docs/reference/format.md draws all of them.

use nandex_device::PAGE_BYTES;
use nandex_store::bytes::get_u64;
use nandex_store::page::{PAGE_BODY_BYTES, PAGE_HEADER_BYTES};

pub use crate::write::format::{LifeCounts, PageSnapshotRef, WriteState, decode_log_entry};

/// Copies a filter column's words into the bodies of its zeroed pages.
pub(super) fn encode_filter(pages: &mut [u8], words: &[u64]) {
    let mut words = words.iter();
    for page in pages.chunks_exact_mut(PAGE_BYTES) {
        for (place, word) in page[PAGE_HEADER_BYTES..].chunks_exact_mut(8).zip(words.by_ref()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Returns `count` words of a filter column from its pages, whose labels must have been checked.
#[must_use]
pub fn decode_filter(pages: &[u8], count: usize) -> Vec<u64> {
    let bodies = pages.chunks_exact(PAGE_BYTES).map(|page| &page[PAGE_HEADER_BYTES..]);
    let words = bodies.flat_map(|body| body.chunks_exact(8).map(|word| get_u64(word, 0)));
    words.take(count).collect()
}

const _: () = assert!(PAGE_BODY_BYTES.is_multiple_of(8), "a page's body is whole words");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_reads_back_across_pages() {
        let words: Vec<u64> = (0..1200).map(|i| i * 0x1234_5678_9abc).collect();
        let mut pages = vec![0; 3 * PAGE_BYTES];
        encode_filter(&mut pages, &words);
        assert_eq!(decode_filter(&pages, words.len()), words);
    }
}
