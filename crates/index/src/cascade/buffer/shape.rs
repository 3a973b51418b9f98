//! The division of a buffer, and the RAM that it takes.

use nandex_store::fingerprint::Universe;

use crate::quotient::REPEATS_MAX;

/// The fingerprints of a bucket in a full buffer: at least this number, and less than twice as many.
const BUCKET_ENTRIES: u64 = 12;

/// The maximum number of bits of a remainder: it fits a word together with eight bits for a count.
const REMAINDER_BITS_MAX: u32 = 56;

/// The number of times that a buffer moves its recent updates into its buckets until it is full. Each time half of the
/// buffer is moved on average, and recent updates take several times the RAM of those in buckets.
const PASSES: u64 = 32;

/// The minimum number of recent updates of a list.
const LIST_MIN: u64 = 16;

/// The maximum number of bits of a fingerprint that choose its list of recent updates.
const LIST_BITS_MAX: u32 = 6;

/// Steps in which the slots of a full buffer grow.
const GROWTH_STEPS: u64 = 64;

/// Buckets with one start.
pub(super) const GROUP: usize = 64;

/// The bits of a count, if fingerprints are counted.
const COUNT_BITS: u32 = 8;

/// The division of a filter's buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BufferShape {
    /// Fingerprints at which a buffer is full.
    pub entries_max: u64,
    /// The low bits of a fingerprint, which a slot stores. The others choose its bucket.
    pub remainder_bits: u32,
    pub buckets: usize,
    /// The low bits of a fingerprint, which a recent update stores. The others choose its list.
    pub rest_bits: u32,
    pub lists: usize,
    /// The maximum number of updates of a list.
    pub list_max: usize,
    /// The bits of a code for the count: a sign, or a number if fingerprints are counted.
    pub count_bits: u32,
}

impl BufferShape {
    /// Creates the shape for `entries_max` fingerprints of a universe.
    pub(crate) fn new(universe: Universe, entries_max: u64, counts: bool) -> Self {
        let bits = universe.bits();
        let per_bucket = u128::from(universe.size()) * u128::from(BUCKET_ENTRIES);
        let width = per_bucket.div_ceil(u128::from(entries_max.max(1)));
        let width = width.next_power_of_two().ilog2();
        let remainder_bits = width.clamp(1, REMAINDER_BITS_MAX.min(bits));
        let list_bits = LIST_BITS_MAX.min(bits - remainder_bits);
        let rest_bits = bits - list_bits;
        let lists = ((universe.size() - 1) >> rest_bits) as usize + 1;
        // Lists fill up evenly, and the fullest ends the pass.
        let mean = entries_max as f64 / PASSES as f64 / lists as f64;
        let list_max = (mean + 2.0 * mean.sqrt()) as u64;
        Self {
            entries_max,
            remainder_bits,
            buckets: ((universe.size() - 1) >> remainder_bits) as usize + 1,
            rest_bits,
            lists,
            list_max: list_max.clamp(LIST_MIN, u16::MAX.into()) as usize,
            count_bits: if counts { COUNT_BITS } else { 1 },
        }
    }

    /// Returns whether fingerprints are counted, so that each has one slot.
    #[inline]
    pub(super) const fn counts(&self) -> bool {
        self.count_bits == COUNT_BITS
    }

    /// Returns the bits of a fingerprint that a recent update stores.
    #[inline]
    pub(super) const fn rest_of(&self, fingerprint: u64) -> u64 {
        fingerprint & ((1 << self.rest_bits) - 1)
    }

    /// Combines some of a fingerprint's bits and a count into one number.
    #[inline]
    pub(super) const fn code(&self, bits: u64, count: i64) -> u64 {
        let count = if self.counts() { count as u8 as u64 } else { (count < 0) as u64 };
        bits << self.count_bits | count
    }

    /// Returns the bucket of a recent update's code, counted from the first bucket of its list.
    #[inline]
    pub(super) const fn bucket_in_list(&self, code: u64) -> usize {
        (code >> self.count_bits >> self.remainder_bits) as usize
    }

    /// Returns the count in a code.
    #[inline]
    pub(super) const fn count_in(&self, code: u64) -> i64 {
        if self.counts() { code as u8 as i8 as i64 } else { 1 - 2 * (code & 1).cast_signed() }
    }

    /// Returns the number of codes that express a count, and the count of each; the rest is an outlier.
    pub(super) fn copies(&self, count: i64) -> (usize, i64) {
        if self.counts() {
            return (usize::from(count != 0), count.clamp(i8::MIN.into(), i8::MAX.into()));
        }
        let copies = count.unsigned_abs();
        (if copies <= REPEATS_MAX as u64 { copies as usize } else { 1 }, count.signum())
    }

    /// Returns the bits of a slot: those of its remainder, and of its count if fingerprints are counted. A filter that
    /// does not count takes one for the sign once something was deleted.
    pub(super) const fn slot_bits(&self) -> u32 {
        self.remainder_bits + if self.counts() { COUNT_BITS } else { 0 }
    }

    /// Returns whether codes of recent updates take more than four bytes.
    #[inline]
    pub(super) const fn is_wide(&self) -> bool {
        self.rest_bits + self.count_bits > u32::BITS
    }

    /// Returns the words by which slots grow, so that few of them are empty and they are seldom copied.
    pub(super) const fn step_words(&self) -> usize {
        let bits = self.entries_max * self.slot_bits() as u64;
        (bits / GROWTH_STEPS / 64) as usize + 1
    }

    /// Returns the RAM of a buffer with `entries` fingerprints in slots and the given shares of its lists and of its
    /// spare words, in bytes.
    fn bytes_with(&self, entries: u64, lists: f64, spare: f64) -> u64 {
        let slots = (entries * u64::from(self.slot_bits())).div_ceil(8);
        let directory = self.buckets as u64 + 8 * self.buckets.div_ceil(GROUP) as u64;
        let update_bytes = if self.is_wide() { 8.0 } else { 4.0 };
        let list_bytes = self.lists as f64 * (2.0 + self.list_max as f64 * update_bytes * lists);
        slots + directory + (list_bytes + spare * (self.step_words() * 8 + 8) as f64) as u64
    }

    /// RAM of a full buffer in bytes.
    pub(crate) fn full_bytes(&self) -> u64 {
        self.bytes_with(self.entries_max, 1.0, 1.0)
    }

    /// Returns the average RAM of a buffer in bytes while it fills up. Lists have a quarter, a half, .. of their space
    /// when they are filled to that level.
    pub(crate) fn mean_bytes(&self) -> u64 {
        self.bytes_with(self.entries_max / 2, 0.6, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_twelve_to_twenty_four_fingerprints_of_a_full_buffer() {
        for (size, entries) in [(800_000_000, 375_000), (1 << 40, 1000), (10_000, 2000), (17, 16)] {
            let shape = BufferShape::new(Universe::new(size).unwrap(), entries, false);
            let mean = entries as f64 * (1u64 << shape.remainder_bits) as f64 / size as f64;
            let is_all = shape.buckets == 1;
            assert!((12.0..24.0).contains(&mean) || is_all, "{mean} {shape:?}");
            assert!((shape.buckets as u64) << shape.remainder_bits >= size, "{shape:?}");
            assert!((shape.lists as u64) << shape.rest_bits >= size, "{shape:?}");
            assert!(shape.rest_bits >= shape.remainder_bits, "{shape:?}");
        }
    }

    #[test]
    fn a_slot_and_a_recent_update_fit_a_word_in_any_universe() {
        for bits in 4..=62 {
            for entries in [1, 4, 100, 1 << 20, 1 << 40] {
                for counts in [false, true] {
                    let universe = Universe::new(1 << bits).unwrap();
                    let shape = BufferShape::new(universe, entries, counts);
                    assert!(shape.slot_bits() <= 64, "{shape:?}");
                    assert!(shape.rest_bits + shape.count_bits <= 64, "{shape:?}");
                }
            }
        }
    }

    #[test]
    fn a_code_says_the_bits_and_the_count_it_was_made_of() {
        let universe = Universe::new(1 << 40).unwrap();
        for counts in [false, true] {
            let shape = BufferShape::new(universe, 1000, counts);
            for count in -300..300 {
                let (copies, each) = shape.copies(count);
                let code = shape.code(77, each);
                assert_eq!(code >> shape.count_bits, 77);
                assert!(copies == 0 || shape.count_in(code) == each, "{count}");
                let is_whole = each * copies as i64 == count;
                assert_eq!(
                    is_whole,
                    if counts { (-128..128).contains(&count) } else { (-8..=8).contains(&count) }
                );
            }
        }
    }
}
