//! The memory layout: blocks of 64 slots, one after the other, and how slots move within them.
//!
//! ```text
//!   block:  offset   occupieds   runends   slots
//!           2 bytes  8           8         64 slots of b bits, packed from the low end: 8 b bytes
//! ```
//!
//! Slots move by whole words of a block, eight slots of 8 bits at a time. The last slot of a block moves into the
//! first of the next one.

use nandex_device::{prefer_huge_pages, prefetch};

use super::width::Width;

/// Slots of a block, and quotients of a block.
pub(super) const SLOTS: usize = 64;

/// Bytes of a block before its slots.
const HEAD_BYTES: usize = 18;

/// The bytes after the last block, so that any slot can be read as part of a word.
const TAIL_BYTES: usize = 8;

/// The fields of a block in addition to its slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The number of slots from its first one that belong to runs of earlier blocks' quotients; [`OFFSET_MAX`] means
    /// that number or more.
    pub offset: usize,
    /// Its quotients that have a run.
    pub occupieds: u64,
    /// Its slots that are the last of a run.
    pub runends: u64,
}

/// The offset of a block whose offset does not fit.
pub(super) const OFFSET_MAX: usize = u16::MAX as usize;

/// All blocks of a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Blocks {
    bytes: Vec<u8>,
    blocks: usize,
}

/// Returns the bits from `place` up; none for 64.
#[inline(always)]
pub(super) const fn bits_from(place: usize) -> u64 {
    if place < 64 { u64::MAX << place } else { 0 }
}

/// Returns the bits below a place under 64.
#[inline(always)]
pub(super) const fn bits_below(place: usize) -> u64 {
    (1 << place) - 1
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes[at..at + 8].try_into().expect("8 bytes");
    u64::from_le_bytes(bytes)
}

#[inline(always)]
fn set_word(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// One block, and the first bytes after it.
#[derive(Debug)]
pub(super) struct BlockMut<'a> {
    bytes: &'a mut [u8],
}

#[inline(always)]
fn read_head(bytes: &[u8]) -> Head {
    let offset = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    Head { offset, occupieds: word(bytes, 2), runends: word(bytes, 10) }
}

impl BlockMut<'_> {
    #[inline(always)]
    pub fn head(&self) -> Head {
        read_head(self.bytes)
    }

    /// Sets which quotients have runs, and where runs end.
    #[inline(always)]
    pub fn set_head(&mut self, occupieds: u64, runends: u64) {
        set_word(self.bytes, 2, occupieds);
        set_word(self.bytes, 10, runends);
    }

    /// Returns a word that begins with the slot at a place; at least 57 bits of it belong to this slot and the next
    /// ones.
    #[inline(always)]
    pub fn slots_from(&self, width: impl Width, place: usize) -> u64 {
        let bit = place * width.bits();
        word(self.bytes, HEAD_BYTES + bit / 8) >> (bit % 8)
    }

    /// Stores a body in the slot at a place.
    #[inline(always)]
    pub fn set_slot(&mut self, width: impl Width, place: usize, body: u64) {
        let bit = place * width.bits();
        let (at, bit) = (HEAD_BYTES + bit / 8, bit % 8);
        let old = word(self.bytes, at);
        set_word(self.bytes, at, old & !(bits_below(width.bits()) << bit) | body << bit);
    }

    /// Moves the slots `low..high` to `low + 1..=high`. Afterwards the slot `low` is undefined.
    #[inline(always)]
    pub fn move_up(&mut self, width: impl Width, low: usize, high: usize) {
        if low == high {
            return;
        }
        let bits = width.bits();
        let words = &mut self.bytes[HEAD_BYTES..HEAD_BYTES + 8 * bits];
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
        keep |= bits_below(begin % 64);
        set_word(words, 8 * first, here & keep | here << bits & !keep);
    }
}

impl Blocks {
    /// Creates empty blocks for at least this many slots.
    pub fn new(slots: usize, slot_bits: u32) -> Self {
        let blocks = slots.div_ceil(SLOTS);
        let bytes = vec![0; Self::bytes_of(slots, slot_bits)];
        prefer_huge_pages(&bytes);
        Self { bytes, blocks }
    }

    /// RAM of blocks for this many slots.
    pub fn bytes_of(slots: usize, slot_bits: u32) -> usize {
        slots.div_ceil(SLOTS) * (HEAD_BYTES + 8 * slot_bits as usize) + TAIL_BYTES
    }

    /// The number of blocks.
    #[inline]
    pub fn len(&self) -> usize {
        self.blocks
    }

    /// The RAM that they take.
    pub fn ram_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes to save.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - TAIL_BYTES]
    }

    /// Returns the length of [`as_bytes`](Self::as_bytes); the sizes are untrusted.
    pub fn saved_bytes(slots: u64, slot_bits: u32) -> u128 {
        u128::from(slots.div_ceil(SLOTS as u64)) * (HEAD_BYTES as u128 + 8 * u128::from(slot_bits))
    }

    /// Copies saved bytes, which are untrusted.
    pub fn load(&mut self, saved: &[u8]) {
        self.bytes[..saved.len()].copy_from_slice(saved);
    }

    /// Empties all blocks.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    #[inline(always)]
    fn start(&self, width: impl Width, block: usize) -> usize {
        block * (HEAD_BYTES + 8 * width.bits())
    }

    /// Returns one block for modification.
    #[inline(always)]
    pub fn block_mut(&mut self, width: impl Width, block: usize) -> BlockMut<'_> {
        let start = self.start(width, block);
        let end = start + HEAD_BYTES + 8 * width.bits() + TAIL_BYTES;
        BlockMut { bytes: &mut self.bytes[start..end] }
    }

    /// A block's head.
    #[inline(always)]
    pub fn head(&self, width: impl Width, block: usize) -> Head {
        let start = self.start(width, block);
        read_head(&self.bytes[start..start + HEAD_BYTES])
    }

    /// Sets an offset.
    #[inline(always)]
    pub fn set_offset(&mut self, width: impl Width, block: usize, offset: usize) {
        let start = self.start(width, block);
        let offset = offset.min(OFFSET_MAX) as u16;
        self.bytes[start..start + 2].copy_from_slice(&offset.to_le_bytes());
    }

    /// Sets which quotients have runs.
    #[inline(always)]
    pub fn set_occupieds(&mut self, width: impl Width, block: usize, occupieds: u64) {
        let start = self.start(width, block);
        set_word(&mut self.bytes, start + 2, occupieds);
    }

    /// Returns where runs end.
    #[inline(always)]
    pub fn runends(&self, width: impl Width, block: usize) -> u64 {
        word(&self.bytes, self.start(width, block) + 10)
    }

    /// Sets where runs end.
    #[inline(always)]
    pub fn set_runends(&mut self, width: impl Width, block: usize, runends: u64) {
        let start = self.start(width, block);
        set_word(&mut self.bytes, start + 10, runends);
    }

    /// Returns the byte and the bit at which a slot begins.
    #[inline(always)]
    fn slot_place(&self, width: impl Width, slot: usize) -> (usize, usize) {
        let bit = slot % SLOTS * width.bits();
        (self.start(width, slot / SLOTS) + HEAD_BYTES + bit / 8, bit % 8)
    }

    /// The body of a slot.
    #[inline(always)]
    pub fn slot(&self, width: impl Width, slot: usize) -> u64 {
        let (at, bit) = self.slot_place(width, slot);
        word(&self.bytes, at) >> bit & bits_below(width.bits())
    }

    /// Returns a word that begins with a slot; at least 57 bits of it belong to this slot and the next ones.
    #[inline(always)]
    pub fn slots_from(&self, width: impl Width, slot: usize) -> u64 {
        let (at, bit) = self.slot_place(width, slot);
        word(&self.bytes, at) >> bit
    }

    /// Stores a body in a slot.
    #[inline(always)]
    pub fn set_slot(&mut self, width: impl Width, slot: usize, body: u64) {
        let (at, bit) = self.slot_place(width, slot);
        let old = word(&self.bytes, at);
        set_word(&mut self.bytes, at, old & !(bits_below(width.bits()) << bit) | body << bit);
    }

    /// Moves the slots `at..gap` to `at + 1..=gap`.
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

    #[inline(always)]
    fn move_up_within(&mut self, width: impl Width, block: usize, low: usize, high: usize) {
        self.block_mut(width, block).move_up(width, low, high);
    }

    /// Moves the slots `at + 1..stop` to `at..stop - 1`, and empties the last.
    pub fn move_down(&mut self, width: impl Width, at: usize, stop: usize) {
        for slot in at + 1..stop {
            let body = self.slot(width, slot);
            self.set_slot(width, slot - 1, body);
        }
        self.set_slot(width, stop - 1, 0);
    }

    /// Moves the runends `at..gap` to `at + 1..=gap`, and stores a bit at `at`.
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
        let moved = moved & bits_from(at % SLOTS);
        let bit = 1 << (at % SLOTS);
        let new = old & !moved | old << 1 & moved & !bit | u64::from(runend) << (at % SLOTS);
        self.set_runends(width, block, new);
    }

    /// Moves the runends `at + 1..stop` to `at..stop - 1`, and clears the last.
    pub fn remove_runend(&mut self, width: impl Width, at: usize, stop: usize) {
        let (first, last) = (at / SLOTS, (stop - 1) / SLOTS);
        for block in first..=last {
            let old = self.runends(width, block);
            let over = if block < last { self.runends(width, block + 1) << 63 } else { 0 };
            let low = if block == first { bits_from(at % SLOTS) } else { u64::MAX };
            let end = if block == last { (stop - 1) % SLOTS } else { SLOTS - 1 };
            let moved = low & u64::MAX >> (63 - end);
            // The highest bit comes from the next block, or is 0.
            let shifted = (old & moved) >> 1 & moved | over & moved;
            let shifted = if block == last { shifted & !(1 << end) } else { shifted };
            self.set_runends(width, block, old & !moved | shifted);
        }
    }

    /// Prefetches the cache line of a slot.
    #[inline(always)]
    pub fn prefetch_slot(&self, width: impl Width, slot: usize) {
        let (at, _) = self.slot_place(width, slot);
        prefetch(&self.bytes[at]);
    }

    /// Prefetches the cache lines of a quotient: its block's head, and its slot.
    #[inline(always)]
    pub fn prefetch(&self, width: impl Width, quotient: usize) {
        prefetch(&self.bytes[self.start(width, quotient / SLOTS)]);
        self.prefetch_slot(width, quotient);
    }
}
