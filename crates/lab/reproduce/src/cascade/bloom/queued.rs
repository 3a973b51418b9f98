//! Inserts that wait in RAM until it is full, and are then applied in the order of their pages.

use nandex::raw::device::PageBuf;
use nandex_sim::SimDevice;

use super::super::lab::CHUNK_PAGES;
use super::{HASHES, Kind, PAGE_BITS, Shape, set, sweep};
use crate::Result;

/// Bytes of a bit's number in the queue: 37 bits at the deck's size.
const BIT_BYTES: u64 = 5;
/// Bytes of a key in the queue.
const KEY_BYTES: u64 = 8;
/// The number of pages in flight if each is read and written on its own.
const PAGES_IN_FLIGHT: usize = 32;
/// I/O chunks in flight, as in a merge.
const CHUNKS: usize = 3;

/// Waiting bits or keys.
pub(super) struct Queue {
    kind: Kind,
    /// The number of keys that fill it.
    pub(super) keys_max: u64,
    /// The numbers of bits, or names of keys. Both ascend with their pages.
    waiting: Vec<u64>,
}

impl Queue {
    /// Creates a queue of this much RAM.
    pub(super) fn new(kind: Kind, ram_bytes: u64) -> Self {
        let key_bytes = if kind == Kind::Buffered { HASHES as u64 * BIT_BYTES } else { KEY_BYTES };
        Self { kind, keys_max: (ram_bytes / key_bytes).max(1), waiting: Vec::new() }
    }

    pub(super) fn push(&mut self, shape: Shape, key: u64) {
        let name = shape.name_of(key);
        if self.kind == Kind::PageBlocked {
            return self.waiting.push(name);
        }
        let bits = shape.places(name).map(|(page, bit)| page * PAGE_BITS + bit);
        self.waiting.extend(bits);
    }

    /// Applies waiting updates, in the order of their pages, and makes them durable.
    pub(super) fn flush(&mut self, shape: Shape, drive: &SimDevice) -> Result<()> {
        self.waiting.sort_unstable();
        let kind = self.kind;
        let page_of = |word: u64| match kind {
            Kind::PageBlocked => shape.page_of(word),
            _ => word / PAGE_BITS,
        };
        let apply = |first: u64, chunk: &mut PageBuf| {
            let end = first + chunk.pages() as u64;
            let from = self.waiting.partition_point(|word| page_of(*word) < first);
            let words = self.waiting[from..].iter().take_while(|word| page_of(**word) < end);
            for word in words {
                let page = chunk.page_mut((page_of(*word) - first) as usize);
                match kind {
                    Kind::PageBlocked => {
                        shape.places(*word).iter().for_each(|(_, bit)| set(page, *bit));
                    }
                    _ => set(page, word % PAGE_BITS),
                }
            }
        };
        if kind == Kind::PageBlocked {
            let firsts = (0..shape.pages).step_by(CHUNK_PAGES as usize);
            let length = |first: u64| (shape.pages - first).min(CHUNK_PAGES.into());
            let chunks: Vec<_> = firsts.map(|first| (first, length(first))).collect();
            sweep::rewrite(drive, &chunks, CHUNKS, apply)?;
        } else {
            let mut pages: Vec<_> = self.waiting.iter().map(|word| (page_of(*word), 1)).collect();
            pages.dedup();
            sweep::rewrite(drive, &pages, PAGES_IN_FLIGHT, apply)?;
        }
        self.waiting.clear();
        Ok(())
    }
}
