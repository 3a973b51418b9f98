//! A change to pages, and the part of it that survives a power cut by chance.

use std::ops::Range;
use std::sync::Arc;

use nandex_device::PAGE_BYTES;

use super::pages::{Page, Pages, Slot};
use crate::workload::SplitMix64;

/// The length of a sector, which a device writes whole or not at all.
pub(crate) const SECTOR_BYTES: usize = 512;

/// The new content of pages from a start on.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    start: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Bytes(Vec<Arc<Page>>),
    /// This many discarded pages.
    Garbage(u64),
}

impl Change {
    /// Creates a write of bytes, a whole number of pages. It copies them.
    pub(crate) fn write(start: u64, bytes: &[u8]) -> Self {
        let shared = |page: &[u8]| {
            Arc::new(Page::new(page.try_into().expect("chunks are exactly a page long")))
        };
        let pages = bytes.chunks_exact(PAGE_BYTES).map(shared).collect();
        Self { start, content: Content::Bytes(pages) }
    }

    /// Creates a discard of pages.
    pub(crate) fn discard(pages: Range<u64>) -> Self {
        Self { start: pages.start, content: Content::Garbage(pages.end - pages.start) }
    }

    /// Flips a bit in the `index`-th page to be written.
    pub(crate) fn flip(&mut self, index: usize, bit: usize) {
        if let Content::Bytes(pages) = &mut self.content {
            let mut bytes = **pages[index];
            bytes[bit / 8] ^= 1 << (bit % 8);
            pages[index] = Arc::new(Page::new(bytes));
        }
    }

    /// Returns its first page, and its bytes or the number of discarded pages.
    pub(super) fn parts(&self) -> (u64, Result<&[Arc<Page>], u64>) {
        match &self.content {
            Content::Bytes(pages) => (self.start, Ok(pages)),
            Content::Garbage(count) => (self.start, Err(*count)),
        }
    }

    pub(crate) fn apply(&self, image: &mut Pages) {
        match &self.content {
            Content::Garbage(count) => image.discard(self.start..self.start + count),
            Content::Bytes(pages) => {
                for (number, page) in (self.start..).zip(pages) {
                    image.set(number, Slot::Page(Arc::clone(page)));
                }
            }
        }
    }

    /// Returns the pages it writes; none for a discard.
    pub(crate) fn written(&self) -> Range<u64> {
        match &self.content {
            Content::Bytes(pages) => self.start..self.start + pages.len() as u64,
            Content::Garbage(_) => self.start..self.start,
        }
    }

    /// Applies the surviving part of the change to the image.
    pub(crate) fn survive(&self, image: &mut Pages, fates: &mut Fates) {
        match fates.fate() {
            Fate::Old => {}
            Fate::New => self.apply(image),
            Fate::Mixed => match &self.content {
                Content::Bytes(pages) => {
                    for (number, page) in (self.start..).zip(pages) {
                        survive_page(number, &Slot::Page(Arc::clone(page)), image, fates);
                    }
                }
                Content::Garbage(count) => {
                    for number in self.start..self.start + count {
                        survive_page(number, &Slot::Garbage, image, fates);
                    }
                }
            },
        }
    }
}

fn survive_page(number: u64, new: &Slot, image: &mut Pages, fates: &mut Fates) {
    match fates.fate() {
        Fate::Old => {}
        Fate::New => image.set(number, new.clone()),
        Fate::Mixed => {
            let mut torn = [0; PAGE_BYTES];
            image.read(number, &mut torn);
            let mut bytes = [0; PAGE_BYTES];
            new.read(number, &mut bytes);
            let sectors = torn.chunks_exact_mut(SECTOR_BYTES).zip(bytes.chunks_exact(SECTOR_BYTES));
            for (old, new) in sectors {
                if fates.coin() {
                    old.copy_from_slice(new);
                }
            }
            image.set(number, Slot::Page(Arc::new(Page::new(torn))));
        }
    }
}

/// The fate of a change, or of a page of it, in a power cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Old,
    New,
    Mixed,
}

/// The random fates of a seed; two seeds always decide the same.
pub(crate) struct Fates {
    always: Option<Fate>,
    rng: SplitMix64,
}

impl Fates {
    pub(crate) fn new(seed: u64) -> Self {
        let always = match seed {
            0 => Some(Fate::Old),
            1 => Some(Fate::New),
            _ => None,
        };
        Self { always, rng: SplitMix64::new(seed) }
    }

    pub(crate) fn fate(&mut self) -> Fate {
        self.always.unwrap_or_else(|| match self.rng.below(3) {
            0 => Fate::Old,
            1 => Fate::New,
            _ => Fate::Mixed,
        })
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.rng.next_u64() & 1 == 1
    }
}
