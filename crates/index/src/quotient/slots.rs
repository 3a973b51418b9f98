//! The packed array of slots: three bits of metadata and a body each, side by side without gaps.
//!
//! ```text
//!   bit   0            1                 2            3 ..
//!       +------------+-----------------+------------+--------------------------------+
//!       | is_occupied| is_continuation | is_shifted | body: count code | remainder    |
//!       +------------+-----------------+------------+--------------------------------+
//!         the slot's   what is stored here brings these along when it moves
//! ```
//!
//! `is_occupied` says of slot q that quotient q has a run, wherever that lies; it never moves. The other two
//! belong to what is stored in the slot. Of the eight patterns six can be:
//!
//! | occupied | continuation | shifted | the slot |
//! |:---:|:---:|:---:|---|
//! | 0 | 0 | 0 | is empty |
//! | 1 | 0 | 0 | has the head of its own run: a cluster begins |
//! | 0 | 0 | 1 | has the head of a lesser quotient's run, and there is none of its own |
//! | 1 | 0 | 1 | the same, and its own run lies further right |
//! | 0 | 1 | 1 | has what follows in a lesser quotient's run, and there is none of its own |
//! | 1 | 1 | 1 | the same, and its own run lies further right |
//! | 0, 1 | 1 | 0 | cannot be: what continues a run stands right of its head, so it is shifted |

const OCCUPIED: u64 = 1;
const CONTINUATION: u64 = 1 << 1;
const SHIFTED: u64 = 1 << 2;

/// Bits of metadata in each slot.
pub(super) const METADATA_BITS: u32 = 3;

/// What is stored in a slot, and moves as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stored {
    /// The entry before it is of the same run.
    pub is_continuation: bool,
    /// It lies right of the slot that its quotient names.
    pub is_shifted: bool,
    /// Remainder above, count code below.
    pub body: u64,
}

/// Slots of equal width in 64-bit words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SlotArray {
    words: Vec<u64>,
    slots: usize,
    slot_bits: u32,
}

impl SlotArray {
    /// So many empty slots, of `body_bits` besides the metadata; at most 61.
    pub fn new(slots: usize, body_bits: u32) -> Self {
        let slot_bits = body_bits + METADATA_BITS;
        let words = Self::words_for(slots as u64, slot_bits);
        let words = usize::try_from(words).expect("what is in RAM can be counted");
        Self { words: vec![0; words], slots, slot_bits }
    }

    /// Words that so many slots take.
    pub const fn words_for(slots: u64, slot_bits: u32) -> u64 {
        (slots as u128 * slot_bits as u128).div_ceil(64) as u64
    }

    /// The slots that stand in these words; nothing where the words are too few or too many, or have bits
    /// set behind the last slot.
    pub fn from_words(words: Vec<u64>, slots: usize, body_bits: u32) -> Option<Self> {
        let slot_bits = body_bits + METADATA_BITS;
        if words.len() as u64 != Self::words_for(slots as u64, slot_bits) {
            return None;
        }
        let used = (slots as u128 * u128::from(slot_bits) % 64) as u32;
        let spare = if used == 0 { 0 } else { words.last()? >> used };
        (spare == 0).then_some(Self { words, slots, slot_bits })
    }

    /// The words, as they are saved.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many slots.
    pub const fn len(&self) -> usize {
        self.slots
    }

    /// Empties all.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Has quotient `at` a run?
    pub fn is_occupied(&self, at: usize) -> bool {
        self.get(at) & OCCUPIED != 0
    }

    /// Is nothing stored in the slot? A slot whose own quotient has a run never is: something of that run,
    /// or of one before it, lies there.
    pub fn is_empty(&self, at: usize) -> bool {
        self.get(at) & (OCCUPIED | CONTINUATION | SHIFTED) == 0
    }

    pub fn is_continuation(&self, at: usize) -> bool {
        self.get(at) & CONTINUATION != 0
    }

    pub fn is_shifted(&self, at: usize) -> bool {
        self.get(at) & SHIFTED != 0
    }

    /// The body in the slot.
    pub fn body(&self, at: usize) -> u64 {
        self.get(at) >> METADATA_BITS
    }

    /// What is stored in the slot.
    pub fn stored(&self, at: usize) -> Stored {
        let slot = self.get(at);
        Stored {
            is_continuation: slot & CONTINUATION != 0,
            is_shifted: slot & SHIFTED != 0,
            body: slot >> METADATA_BITS,
        }
    }

    /// Stores something in the slot, in place of what was there. Whether the slot's own quotient has a run
    /// stays as it is.
    pub fn store(&mut self, at: usize, stored: Stored) {
        let mut slot = self.get(at) & OCCUPIED | stored.body << METADATA_BITS;
        slot |= if stored.is_continuation { CONTINUATION } else { 0 };
        slot |= if stored.is_shifted { SHIFTED } else { 0 };
        self.set(at, slot);
    }

    /// Says whether quotient `at` has a run.
    pub fn set_occupied(&mut self, at: usize, is_occupied: bool) {
        let slot = self.get(at) & !OCCUPIED;
        self.set(at, slot | u64::from(is_occupied));
    }

    /// All bits of a slot, which may lie in two words.
    fn get(&self, at: usize) -> u64 {
        let (word, shift) = self.place(at);
        let mut slot = self.words[word] >> shift;
        if shift + self.slot_bits > 64 {
            slot |= self.words[word + 1] << (64 - shift);
        }
        slot & self.mask()
    }

    fn set(&mut self, at: usize, slot: u64) {
        let (word, shift) = self.place(at);
        let mask = self.mask();
        self.words[word] = self.words[word] & !(mask << shift) | slot << shift;
        if shift + self.slot_bits > 64 {
            let rest = 64 - shift;
            self.words[word + 1] = self.words[word + 1] & !(mask >> rest) | slot >> rest;
        }
    }

    fn place(&self, at: usize) -> (usize, u32) {
        debug_assert!(at < self.slots, "slot {at} of {}", self.slots);
        let bit = at as u128 * u128::from(self.slot_bits);
        ((bit / 64) as usize, (bit % 64) as u32)
    }

    const fn mask(&self) -> u64 {
        (1 << self.slot_bits) - 1
    }

    #[cfg(test)]
    pub fn set_metadata(&mut self, at: usize, metadata: u64) {
        self.set(at, metadata);
    }

    #[cfg(test)]
    pub fn metadata(&self, at: usize) -> u64 {
        self.get(at) & 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_any_width_keep_what_is_stored_and_disturb_no_other() {
        for body_bits in 1..=60 {
            let mut slots = SlotArray::new(70, body_bits);
            let body =
                |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - body_bits);
            let stored = |at: usize| Stored {
                is_continuation: at % 3 == 0,
                is_shifted: at % 2 == 0,
                body: body(at),
            };
            for at in (0..70).rev() {
                slots.store(at, stored(at));
                slots.set_occupied(at, at % 5 == 0);
            }
            for at in 0..70 {
                assert_eq!(slots.stored(at), stored(at), "{body_bits} bits, slot {at}");
                assert_eq!(slots.is_occupied(at), at % 5 == 0);
            }
            let words = slots.words().to_vec();
            assert_eq!(SlotArray::from_words(words, 70, body_bits), Some(slots));
        }
    }

    #[test]
    fn words_that_say_more_or_less_than_slots_are_refused() {
        let slots = SlotArray::new(9, 4);
        assert_eq!(slots.words().len(), 1);
        assert!(SlotArray::from_words(vec![0, 0], 9, 4).is_none());
        assert!(SlotArray::from_words(vec![], 9, 4).is_none());
        assert!(SlotArray::from_words(vec![1 << 63], 9, 4).is_none());
        assert!(SlotArray::from_words(vec![1 << 62], 9, 4).is_some());
    }
}
