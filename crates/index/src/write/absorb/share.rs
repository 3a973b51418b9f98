//! A share of the range of hashes, and the partitions of a table that have keys of it.

use std::ops::Range;

/// The hashes whose first bits are a given number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    number: usize,
    bits: u32,
}

impl Share {
    /// All hashes.
    pub(crate) const WHOLE: Self = Self { number: 0, bits: 0 };

    /// Returns one of all shares with `bits` bits.
    pub(crate) fn nth(number: usize, bits: u32) -> Option<Self> {
        (number < 1 << bits).then_some(Self { number, bits })
    }

    /// Returns whether it contains the hashes with this place.
    #[inline]
    pub(crate) fn holds(&self, place: u64) -> bool {
        first_bits(place, self.bits) == self.number as u64
    }

    /// Returns the `count` bits of a place that follow the share's own bits.
    #[inline]
    pub(super) fn next_bits(&self, place: u64, count: u32) -> usize {
        first_bits(place << self.bits, count) as usize
    }

    /// Returns the partitions that have keys of it, in a table with `partitions` of them, a power of two.
    pub(crate) fn partitions_of(&self, partitions: usize) -> Range<usize> {
        let own = partitions.trailing_zeros();
        if own >= self.bits {
            let each = 1 << (own - self.bits);
            return self.number * each..(self.number + 1) * each;
        }
        let partition = self.number >> (self.bits - own);
        partition..partition + 1
    }
}

/// Returns the first bits of a place as a number. The shift is split so that zero bits work too.
#[inline]
fn first_bits(place: u64, bits: u32) -> u64 {
    place >> 1 >> (63 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bits: u32) -> impl Iterator<Item = Share> {
        (0..).map_while(move |number| Share::nth(number, bits))
    }

    #[test]
    fn each_place_is_in_one_share_and_its_partition_is_one_of_the_shares() {
        for bits in [0, 1, 4] {
            for partitions in [1, 2, 8, 64] {
                for step in 0..256u64 {
                    let place = step << 56 | 0x1234;
                    let holding: Vec<_> = all(bits).filter(|it| it.holds(place)).collect();
                    assert_eq!(holding.len(), 1, "{place:x} in shares of {bits} bits");
                    let partition = (step as usize * partitions) / 256;
                    assert!(holding[0].partitions_of(partitions).contains(&partition));
                }
            }
        }
    }

    #[test]
    fn the_whole_is_a_share_and_the_bits_after_a_share_are_the_next_ones() {
        assert_eq!(all(0).collect::<Vec<_>>(), [Share::WHOLE]);
        let place = 0b1011_0110 << 56;
        let share = all(4).find(|it| it.holds(place)).unwrap();
        assert_eq!((share.number, share.next_bits(place, 3)), (0b1011, 0b011));
        assert_eq!(Share::WHOLE.next_bits(place, 8), 0b1011_0110);
    }
}
