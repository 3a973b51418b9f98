//! A change to bytes, and what the dice of a power cut let survive of it.

use crate::PAGE_BYTES;

/// What a device writes whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;

/// Bytes that are to stand at a place.
#[derive(Debug)]
pub(super) struct Change {
    pub start: usize,
    pub bytes: Vec<u8>,
}

impl Change {
    pub(super) fn apply(&self, image: &mut [u8]) {
        image[self.start..self.start + self.bytes.len()].copy_from_slice(&self.bytes);
    }

    /// Bytes that nobody has written, different from page to page.
    pub(super) fn garbage(start: usize, pages: usize) -> Self {
        let mut dice = Dice::new(start as u64 + 2);
        let words = std::iter::repeat_with(|| dice.roll()).take(pages * PAGE_BYTES / 8);
        Self { start, bytes: words.flat_map(u64::to_le_bytes).collect() }
    }

    /// Puts on the image what the dice let survive of the change.
    pub(super) fn survive(&self, image: &mut [u8], dice: &mut Dice) {
        match dice.fate() {
            Fate::Old => {}
            Fate::New => self.apply(image),
            Fate::Mixed => {
                for page in 0..self.bytes.len() / PAGE_BYTES {
                    self.survive_page(page, image, dice);
                }
            }
        }
    }

    fn survive_page(&self, page: usize, image: &mut [u8], dice: &mut Dice) {
        let fate = dice.fate();
        for sector in 0..PAGE_BYTES / SECTOR_BYTES {
            let from = page * PAGE_BYTES + sector * SECTOR_BYTES;
            let survives = match fate {
                Fate::Old => false,
                Fate::New => true,
                Fate::Mixed => dice.roll() & 1 == 1,
            };
            if survives {
                let to = self.start + from;
                image[to..to + SECTOR_BYTES]
                    .copy_from_slice(&self.bytes[from..from + SECTOR_BYTES]);
            }
        }
    }
}

/// What becomes of a change, or of a page of it, in a power cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Old,
    New,
    Mixed,
}

/// The seed at work: SplitMix64, save for the two seeds that always decide the same.
pub(super) struct Dice {
    always: Option<Fate>,
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let always = match seed {
            0 => Some(Fate::Old),
            1 => Some(Fate::New),
            _ => None,
        };
        Self { always, state: seed }
    }

    fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn fate(&mut self) -> Fate {
        self.always.unwrap_or_else(|| match self.roll() % 3 {
            0 => Fate::Old,
            1 => Fate::New,
            _ => Fate::Mixed,
        })
    }
}
