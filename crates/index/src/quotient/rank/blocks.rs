//! The bytes: blocks of 64 slots, one behind the other, and what moves within them.
//!
//! ```text
//!   block:  offset   occupieds   runends   slots
//!           2 bytes  8           8         64 slots of b bits, packed from the low end: 8 b bytes
//! ```
//!
//! Slots are moved by words of a block, eight slots of 8 bits at a time; the last slot of a block goes over into
//! the first of the next one.

use nandex_device::{prefer_huge_pages, prefetch};

use super::width::Width;

/// Slots of a block, and quotients.
pub(super) const SLOTS: usize = 64;

/// Bytes of a block before its slots.
const HEAD_BYTES: usize = 18;

/// Bytes behind the last block, so that any slot may be read as part of a word.
const TAIL_BYTES: usize = 8;

/// What a block says besides its slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Slots from its first that belong to runs of earlier blocks' quotients; [`FAR`] says so many or more.
    pub offset: usize,
    /// Its quotients that have a run.
    pub occupieds: u64,
    /// Its slots that are the last of a run.
    pub runends: u64,
}

/// An offset that does not fit.
pub(super) const FAR: usize = u16::MAX as usize;

/// All blocks of a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Blocks {
    bytes: Vec<u8>,
    blocks: usize,
}

/// The bits from a place up; none from 64.
#[inline(always)]
pub(super) const fn from(place: usize) -> u64 {
    if place < 64 { u64::MAX << place } else { 0 }
}

/// The bits below a place under 64.
#[inline(always)]
pub(super) const fn below(place: usize) -> u64 {
    (1 << place) - 1
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes[at..at + 8].try_into().expect("8 bytes were cut");
    u64::from_le_bytes(bytes)
}

#[inline(always)]
fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

impl Blocks {
    /// Blocks for so many slots at least, all empty.
    pub fn new(slots: usize, slot_bits: u32) -> Self {
        let blocks = slots.div_ceil(SLOTS);
        let bytes = vec![0; Self::bytes_for(slots, slot_bits)];
        prefer_huge_pages(&bytes);
        Self { bytes, blocks }
    }

    /// RAM that blocks for so many slots take.
    pub const fn bytes_for(slots: usize, slot_bits: u32) -> usize {
        slots.div_ceil(SLOTS) * (HEAD_BYTES + 8 * slot_bits as usize) + TAIL_BYTES
    }

    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        self.blocks
    }

    /// RAM they take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Empties all.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    #[inline(always)]
    fn start(&self, width: impl Width, block: usize) -> usize {
        block * (HEAD_BYTES + 8 * width.bits())
    }

    /// A block's head.
    #[inline(always)]
    pub fn head(&self, width: impl Width, block: usize) -> Head {
        let start = self.start(width, block);
        let head = &self.bytes[start..start + HEAD_BYTES];
        let offset = usize::from(u16::from_le_bytes([head[0], head[1]]));
        Head { offset, occupieds: word(head, 2), runends: word(head, 10) }
    }

    /// Notes an offset.
    #[inline(always)]
    pub fn set_offset(&mut self, width: impl Width, block: usize, offset: usize) {
        let start = self.start(width, block);
        let offset = offset.min(FAR) as u16;
        self.bytes[start..start + 2].copy_from_slice(&offset.to_le_bytes());
    }

    /// Notes which quotients have runs.
    #[inline(always)]
    pub fn set_occupieds(&mut self, width: impl Width, block: usize, occupieds: u64) {
        let start = self.start(width, block);
        set_word(&mut self.bytes, start + 2, occupieds);
    }

    /// Where runs end.
    #[inline(always)]
    pub fn runends(&self, width: impl Width, block: usize) -> u64 {
        word(&self.bytes, self.start(width, block) + 10)
    }

    /// Notes where runs end.
    #[inline(always)]
    pub fn set_runends(&mut self, width: impl Width, block: usize, runends: u64) {
        let start = self.start(width, block);
        set_word(&mut self.bytes, start + 10, runends);
    }

    /// The byte that a slot begins in, and at which bit of it.
    #[inline(always)]
    fn slot_place(&self, width: impl Width, slot: usize) -> (usize, usize) {
        let bit = slot % SLOTS * width.bits();
        (self.start(width, slot / SLOTS) + HEAD_BYTES + bit / 8, bit % 8)
    }

    /// What a slot holds.
    #[inline(always)]
    pub fn slot(&self, width: impl Width, slot: usize) -> u64 {
        let (at, bit) = self.slot_place(width, slot);
        word(&self.bytes, at) >> bit & below(width.bits())
    }

    /// Puts something into a slot.
    #[inline(always)]
    pub fn set_slot(&mut self, width: impl Width, slot: usize, body: u64) {
        let (at, bit) = self.slot_place(width, slot);
        let old = word(&self.bytes, at);
        set_word(&mut self.bytes, at, old & !(below(width.bits()) << bit) | body << bit);
    }

    /// Moves what the slots `at..gap` hold to `at + 1..=gap`.
    #[inline(always)]
    pub fn move_up(&mut self, width: impl Width, at: usize, gap: usize) {
        let (first, mut block, mut high) = (at / SLOTS, gap / SLOTS, gap % SLOTS);
        while block > first {
            self.move_up_within(width, block, 0, high);
            let over = self.slot(width, block * SLOTS - 1);
            self.set_slot(width, block * SLOTS, over);
            block -= 1;
            high = SLOTS - 1;
        }
        self.move_up_within(width, block, at % SLOTS, high);
    }

    /// Moves the slots `low..high` of a block to `low + 1..=high`; what `low` holds then is not said.
    #[inline(always)]
    fn move_up_within(&mut self, width: impl Width, block: usize, low: usize, high: usize) {
        if low == high {
            return;
        }
        let bits = width.bits();
        let start = self.start(width, block) + HEAD_BYTES;
        let words = &mut self.bytes[start..start + 8 * bits];
        let (begin, end) = (low * bits, (high + 1) * bits);
        let (first, last) = (begin / 64, (end - 1) / 64);
        let mut here = word(words, 8 * last);
        let mut keep = !(u64::MAX >> (63 - (end - 1) % 64));
        for at in (first + 1..=last).rev() {
            let before = word(words, 8 * (at - 1));
            let moved = here << bits | before >> (64 - bits);
            set_word(words, 8 * at, here & keep | moved & !keep);
            here = before;
            keep = 0;
        }
        keep |= below(begin % 64);
        set_word(words, 8 * first, here & keep | here << bits & !keep);
    }

    /// Moves what the slots `at + 1..stop` hold to `at..stop - 1`, and empties the last.
    pub fn move_down(&mut self, width: impl Width, at: usize, stop: usize) {
        for slot in at + 1..stop {
            let body = self.slot(width, slot);
            self.set_slot(width, slot - 1, body);
        }
        self.set_slot(width, stop - 1, 0);
    }

    /// Moves the runends `at..gap` to `at + 1..=gap`, and puts a bit at `at`.
    #[inline(always)]
    pub fn insert_runend(&mut self, width: impl Width, at: usize, gap: usize, runend: bool) {
        let (first, mut block) = (at / SLOTS, gap / SLOTS);
        let mut moved = u64::MAX >> (63 - gap % SLOTS);
        while block > first {
            let old = self.runends(width, block);
            let over = self.runends(width, block - 1) >> 63;
            self.set_runends(width, block, old & !moved | (old << 1 | over) & moved);
            block -= 1;
            moved = u64::MAX;
        }
        let old = self.runends(width, block);
        let moved = moved & from(at % SLOTS);
        let bit = 1 << (at % SLOTS);
        let new = old & !moved | old << 1 & moved & !bit | if runend { bit } else { 0 };
        self.set_runends(width, block, new);
    }

    /// Moves the runends `at + 1..stop` to `at..stop - 1`, and clears the last.
    pub fn remove_runend(&mut self, width: impl Width, at: usize, stop: usize) {
        let (first, last) = (at / SLOTS, (stop - 1) / SLOTS);
        for block in first..=last {
            let old = self.runends(width, block);
            let over = if block < last { self.runends(width, block + 1) << 63 } else { 0 };
            let low = if block == first { from(at % SLOTS) } else { u64::MAX };
            let end = if block == last { (stop - 1) % SLOTS } else { SLOTS - 1 };
            let moved = low & u64::MAX >> (63 - end);
            // What comes into the highest moved place is from the next block, or nothing.
            let shifted = (old & moved) >> 1 & moved | over & moved;
            let shifted = if block == last { shifted & !(1 << end) } else { shifted };
            self.set_runends(width, block, old & !moved | shifted);
        }
    }

    /// Asks for the cache lines of a quotient: its block's head, and its slot.
    #[inline(always)]
    pub fn prefetch(&self, width: impl Width, quotient: usize) {
        let (at, _) = self.slot_place(width, quotient);
        prefetch(&self.bytes[self.start(width, quotient / SLOTS)]);
        prefetch(&self.bytes[at]);
    }
}
