//! Pages by number in a tree of shared nodes: pages never written cost nothing, a copy costs nothing, and a
//! change copies only the path to it.
//!
//! A node has 32 slots, so a device of 1 TiB is six nodes deep. Fewer slots would make it deeper and reads
//! slower; more would make the nodes, which are copied after each sync, larger. A slot without a node
//! represents all the pages below it: so an empty device is one slot, and a discard of a terabyte a few.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use nandex_device::PAGE_BYTES;

use crate::workload::SplitMix64;

/// One page, whose hash is computed once: the images after thousands of cuts share it.
pub(crate) struct Page {
    bytes: [u8; PAGE_BYTES],
    hash: OnceLock<u64>,
}

const FANOUT_BITS: u32 = 5;
const FANOUT: usize = 1 << FANOUT_BITS;

/// The content of a slot of the tree.
#[derive(Clone)]
pub(crate) enum Slot {
    /// Pages that were never written.
    Zeros,
    /// Pages that were discarded: see [`garbage`].
    Garbage,
    /// One page with bytes of its own.
    Page(Arc<Page>),
    /// 32 places, each a 32nd as wide.
    Node(Arc<Node>),
}

#[derive(Clone)]
pub(crate) struct Node {
    slots: [Slot; FANOUT],
}

/// The pages of a device by number, from 0 to 2^52. Clones share everything until one of them is changed.
#[derive(Clone)]
pub(crate) struct Pages {
    root: Slot,
    /// The levels of nodes below the root's slot: `32^height` pages have a place.
    height: u32,
}

impl Page {
    /// Creates a page with these bytes.
    pub(crate) fn new(bytes: [u8; PAGE_BYTES]) -> Self {
        Self { bytes, hash: OnceLock::new() }
    }

    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| hash_bytes(&self.bytes))
    }
}

impl Deref for Page {
    type Target = [u8; PAGE_BYTES];

    fn deref(&self) -> &Self::Target {
        &self.bytes
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Page").field(&self.hash()).finish()
    }
}

impl Slot {
    /// Fills `bytes`, one page long, with this content for a page.
    pub(crate) fn read(&self, page: u64, bytes: &mut [u8]) {
        match self {
            Self::Page(found) => bytes.copy_from_slice(&found[..]),
            Self::Garbage => garbage(page, bytes),
            Self::Zeros | Self::Node(_) => bytes.fill(0),
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zeros => "zeros",
            Self::Garbage => "garbage",
            Self::Page(_) => "a page",
            Self::Node(_) => "a node",
        })
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self { root: Slot::Zeros, height: 0 }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pages({} held)", self.held())
    }
}

impl Pages {
    /// Returns the content of the page; never a node.
    pub(crate) fn get(&self, page: u64) -> &Slot {
        static ZEROS: Slot = Slot::Zeros;
        if !fits(page, self.height) {
            return &ZEROS;
        }
        let (mut slot, mut level) = (&self.root, self.height);
        while let Slot::Node(node) = slot {
            level -= 1;
            slot = &node.slots[digit(page, level)];
        }
        slot
    }

    /// Fills `bytes`, one page long, with the page's content.
    pub(crate) fn read(&self, page: u64, bytes: &mut [u8]) {
        self.get(page).read(page, bytes);
    }

    /// Sets the content, which is no node, of a page.
    pub(crate) fn set(&mut self, page: u64, content: Slot) {
        self.raise(page);
        let mut slot = &mut self.root;
        for level in (0..self.height).rev() {
            slot = &mut open(slot).slots[digit(page, level)];
        }
        *slot = content;
    }

    /// Turns all these pages into garbage.
    pub(crate) fn discard(&mut self, pages: Range<u64>) {
        if let Some(last) = pages.end.checked_sub(1).filter(|last| *last >= pages.start) {
            self.raise(last);
            spoil(&mut self.root, self.height, pages);
        }
    }

    /// Returns the number of pages with bytes of their own. Costs a walk over them.
    pub(crate) fn held(&self) -> u64 {
        held(&self.root)
    }

    /// Returns a hash of the content of all pages, from this number on.
    pub(crate) fn hash(&self, start: u64) -> u64 {
        hash(&self.root, start, 0, self.height)
    }

    /// Raises the tree until the page has a place.
    fn raise(&mut self, page: u64) {
        while !fits(page, self.height) {
            if !matches!(self.root, Slot::Zeros) {
                let mut slots = [const { Slot::Zeros }; FANOUT];
                slots[0] = self.root.clone();
                self.root = Slot::Node(Arc::new(Node { slots }));
            }
            self.height += 1;
        }
    }
}

fn fits(page: u64, height: u32) -> bool {
    page.checked_shr(height * FANOUT_BITS).is_none_or(|above| above == 0)
}

fn digit(page: u64, level: u32) -> usize {
    (page >> (level * FANOUT_BITS)) as usize % FANOUT
}

/// Returns the node in a slot, owned by this tree alone; the content of all its pages is expanded.
fn open(slot: &mut Slot) -> &mut Node {
    if !matches!(slot, Slot::Node(_)) {
        let slots = std::array::from_fn(|_| slot.clone());
        *slot = Slot::Node(Arc::new(Node { slots }));
    }
    match slot {
        Slot::Node(node) => Arc::make_mut(node),
        _ => unreachable!("made a node just now"),
    }
}

/// Turns pages, numbered from the slot's first, into garbage. `height` is at most 11.
fn spoil(slot: &mut Slot, height: u32, pages: Range<u64>) {
    let cover = 1 << (height * FANOUT_BITS);
    if pages == (0..cover) {
        *slot = Slot::Garbage;
        return;
    }
    let child = cover >> FANOUT_BITS;
    for (first, slot) in (0..).step_by(child as usize).zip(&mut open(slot).slots) {
        let (from, to) = (pages.start.max(first), pages.end.min(first + child));
        if from < to {
            spoil(slot, height - 1, from - first..to - first);
        }
    }
}

fn held(slot: &Slot) -> u64 {
    match slot {
        Slot::Zeros | Slot::Garbage => 0,
        Slot::Page(_) => 1,
        Slot::Node(node) => node.slots.iter().map(held).sum(),
    }
}

/// Adds the content of a slot's pages, numbered from `page` on, to a hash.
fn hash(slot: &Slot, before: u64, page: u64, height: u32) -> u64 {
    match slot {
        Slot::Zeros => before,
        Slot::Garbage => mix(mix(before, page), u64::from(height)),
        Slot::Page(bytes) => mix(mix(before, page), bytes.hash()),
        Slot::Node(node) => {
            let cover = 1 << ((height - 1) * FANOUT_BITS);
            let slots = (page..).step_by(cover).zip(&node.slots);
            slots.fold(before, |before, (page, slot)| hash(slot, before, page, height - 1))
        }
    }
}

/// Hashes bytes by four sums of words that do not depend on one another.
fn hash_bytes(bytes: &[u8; PAGE_BYTES]) -> u64 {
    let mut sums = [1, 2, 3, 4];
    for words in bytes.chunks_exact(32) {
        for (sum, word) in sums.iter_mut().zip(words.chunks_exact(8)) {
            let word = word.try_into().expect("chunks are exactly a word long");
            *sum = mix(*sum, u64::from_le_bytes(word));
        }
    }
    sums.into_iter().fold(0, mix)
}

const fn mix(hash: u64, number: u64) -> u64 {
    let product = (hash.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ product >> 32
}

/// Fills `bytes` with garbage, which differs from page to page.
pub(crate) fn garbage(page: u64, bytes: &mut [u8]) {
    let mut rng = SplitMix64::new(page.wrapping_add(2));
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&rng.next_u64().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_byte(pages: &Pages, page: u64) -> u8 {
        let mut bytes = [0xee; PAGE_BYTES];
        pages.read(page, &mut bytes);
        bytes[0]
    }

    fn page_of(byte: u8) -> Slot {
        Slot::Page(Arc::new(Page::new([byte; PAGE_BYTES])))
    }

    #[test]
    fn a_page_is_found_at_every_height() {
        let mut pages = Pages::default();
        let numbers: Vec<u64> = (0..52).map(|bit| 1 << bit).chain([0, (1 << 52) - 1]).collect();
        for (byte, page) in (1..).zip(&numbers) {
            pages.set(*page, page_of(byte));
        }
        for (byte, page) in (1..).zip(&numbers) {
            assert_eq!(first_byte(&pages, *page), byte, "page {page}");
        }
        assert_eq!(first_byte(&pages, 1 << 51 | 1), 0);
        assert_eq!(pages.held(), numbers.len() as u64);
    }

    #[test]
    fn a_clone_keeps_what_it_held() {
        let mut pages = Pages::default();
        (0..100).for_each(|page| pages.set(page, page_of(1)));
        let before = pages.clone();
        (50..150).for_each(|page| pages.set(page, page_of(2)));
        pages.discard(0..10);
        assert!((0..100).all(|page| first_byte(&before, page) == 1));
        assert_eq!((first_byte(&pages, 49), first_byte(&pages, 50)), (1, 2));
        assert_eq!((before.held(), pages.held()), (100, 140));
    }

    #[test]
    fn a_hash_tells_what_pages_hold_and_where() {
        let image = |page, byte| {
            let mut pages = Pages::default();
            pages.set(40, page_of(1));
            pages.set(page, page_of(byte));
            pages
        };
        assert_eq!(image(2, 7).hash(50), image(2, 7).hash(50));
        let discarded = |page: u64| {
            let mut pages = image(2, 7);
            pages.discard(page..page + 1);
            pages
        };
        let others = [image(2, 8), image(3, 7), image(40, 7), discarded(2), discarded(3)];
        let mut hashes: Vec<_> = others.iter().map(|other| other.hash(50)).collect();
        hashes.extend([image(2, 7).hash(50), image(2, 7).hash(51)]);
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 7);
    }

    #[test]
    fn a_discard_spoils_its_pages_and_holds_none_of_them() {
        let mut pages = Pages::default();
        for page in [4, 5, 700, 701, 1 << 28] {
            pages.set(page, page_of(9));
        }
        pages.discard(5..701);
        assert_eq!([4, 701, 1 << 28].map(|page| first_byte(&pages, page)), [9, 9, 9]);
        for page in 5..701 {
            assert!(matches!(pages.get(page), Slot::Garbage), "page {page}");
        }
        assert!(matches!(pages.get(3), Slot::Zeros));
        assert_eq!(pages.held(), 3);
        pages.discard(0..1 << 28);
        assert_eq!(pages.held(), 1);
        pages.set(40, page_of(7));
        assert_eq!([40, 1 << 28].map(|page| first_byte(&pages, page)), [7, 9]);
        for page in [0, 39, 41, 63, 64, 4_000, (1 << 28) - 1] {
            assert!(matches!(pages.get(page), Slot::Garbage), "page {page}");
        }
        assert_ne!(first_byte(&pages, 1), first_byte(&pages, 2));
    }
}
