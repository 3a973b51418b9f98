//! The bits of a slot: a constant for the most common sizes, so that the compiler knows shifts and strides, and a
//! variable for all others. Also lanes: several slots of one word, compared at once.

use nandex_device::{Bits, PlainBits, SwiftBits};

/// Bits of a slot, and the instructions for bits.
pub(super) trait Width: Copy {
    /// The number of slots that are compared at once; 0 for none.
    const LANES: usize;

    /// Bits of a slot: 1 to 56.
    fn bits(self) -> usize;

    fn instructions(self) -> impl Bits;

    /// The lowest bit of each lane.
    #[inline(always)]
    fn ones(self) -> u64 {
        0
    }

    /// See [`Bits::rank`].
    #[inline(always)]
    fn rank(self, word: u64) -> u32 {
        self.instructions().rank(word)
    }

    /// See [`Bits::select`].
    #[inline(always)]
    fn select(self, word: u64, number: u32) -> u32 {
        self.instructions().select(word, number)
    }
}

/// A constant number of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fixed<const BITS: usize, B>(pub B);

/// Any number of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Any<B>(pub B, pub usize);

impl<const BITS: usize, B: Bits> Width for Fixed<BITS, B> {
    // A word that is read at the byte where a slot begins has at least 57 bits from that slot on.
    const LANES: usize = 57 / BITS;

    #[inline(always)]
    fn bits(self) -> usize {
        BITS
    }

    #[inline(always)]
    fn instructions(self) -> impl Bits {
        self.0
    }

    #[inline(always)]
    fn ones(self) -> u64 {
        const { ((1 << (BITS * (57 / BITS))) - 1) / ((1 << BITS) - 1) }
    }
}

impl<B: Bits> Width for Any<B> {
    const LANES: usize = 0;

    #[inline(always)]
    fn bits(self) -> usize {
        self.1
    }

    #[inline(always)]
    fn instructions(self) -> impl Bits {
        self.0
    }
}

/// The [`Width`] of a filter. It is chosen once: a check of the processor each time would cost as much as the
/// instruction itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WidthKind {
    Swift8(Fixed<8, SwiftBits>),
    Swift9(Fixed<9, SwiftBits>),
    Swift10(Fixed<10, SwiftBits>),
    Swift16(Fixed<16, SwiftBits>),
    Swift(Any<SwiftBits>),
    Plain8(Fixed<8, PlainBits>),
    Plain(Any<PlainBits>),
}

impl WidthKind {
    /// Chooses the best for slots of this width on this processor.
    pub fn new(slot_bits: u32) -> Self {
        match (SwiftBits::detect(), slot_bits) {
            (Some(swift), 8) => Self::Swift8(Fixed(swift)),
            (Some(swift), 9) => Self::Swift9(Fixed(swift)),
            (Some(swift), 10) => Self::Swift10(Fixed(swift)),
            (Some(swift), 16) => Self::Swift16(Fixed(swift)),
            (Some(swift), bits) => Self::Swift(Any(swift, bits as usize)),
            (None, bits) => Self::plain(bits),
        }
    }

    /// Chooses the best without the processor's special instructions for bits.
    pub fn plain(slot_bits: u32) -> Self {
        match slot_bits {
            8 => Self::Plain8(Fixed(PlainBits)),
            bits => Self::Plain(Any(PlainBits, bits as usize)),
        }
    }
}

/// The first lanes of a word: the slots of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    word: u64,
    ones: u64,
    /// The highest bit of each lane in use.
    tops: u64,
    bits: usize,
}

impl Lanes {
    /// Creates the first `count` lanes of a word.
    #[inline(always)]
    pub fn new<W: Width>(width: W, word: u64, count: usize) -> Self {
        let (bits, ones) = (width.bits(), width.ones());
        let tops = ones << (bits - 1) & ((1 << (bits * count)) - 1);
        Self { word, ones, tops, bits }
    }

    /// Returns the highest bits of the lanes that have this remainder.
    #[inline(always)]
    pub fn equal(&self, remainder: u64, code_bits: u32) -> u64 {
        let codes = self.ones * ((1 << code_bits) - 1);
        let other = (self.word ^ (self.ones * (remainder << code_bits))) & !codes;
        let tops = self.ones << (self.bits - 1);
        // A sum of two numbers below the highest bit reaches that bit unless the first is 0.
        let differs = (other & !tops).wrapping_add(tops - self.ones) | other;
        !differs & self.tops
    }

    /// Returns the highest bits of the lanes that are less than this body.
    #[inline(always)]
    pub fn less(&self, body: u64) -> u64 {
        let (left, right) = (self.word, self.ones * body);
        let tops = self.ones << (self.bits - 1);
        // With its highest bit set no lane borrows from the next; that bit stays if the rest is not less.
        let rest = (left | tops).wrapping_sub(right & !tops);
        !(left & !right | !(left ^ right) & rest) & self.tops
    }

    /// Returns the body of the lane whose highest bit is the lowest of these.
    #[inline(always)]
    pub fn first(&self, tops: u64) -> u64 {
        let top = tops.trailing_zeros() as usize;
        self.word >> (top + 1 - self.bits) & ((1 << self.bits) - 1)
    }
}

/// Runs an expression with the width of a filter's kind as `$width`.
macro_rules! with_width {
    ($kind:expr, $width:ident => $run:expr) => {{
        use crate::quotient::width::WidthKind;
        match $kind {
            WidthKind::Swift8($width) => $run,
            WidthKind::Swift9($width) => $run,
            WidthKind::Swift10($width) => $run,
            WidthKind::Swift16($width) => $run,
            WidthKind::Swift($width) => $run,
            WidthKind::Plain8($width) => $run,
            WidthKind::Plain($width) => $run,
        }
    }};
}

pub(super) use with_width;

#[cfg(test)]
mod tests {
    use super::*;

    fn compare<const BITS: usize>(seed: u64) {
        let lanes = Fixed::<BITS, PlainBits>::LANES;
        let mask = (1 << BITS) - 1;
        let word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(seed as u32 % 64);
        let word = if seed.is_multiple_of(3) { word & word >> 9 & word << 11 } else { word };
        for count in 0..=lanes {
            let found = Lanes::new(Fixed::<BITS, _>(PlainBits), word, count);
            let bodies: Vec<_> = (0..count).map(|lane| word >> (lane * BITS) & mask).collect();
            for body in
                bodies.iter().copied().chain([0, 1, mask / 2, mask / 2 + 1, mask, seed & mask])
            {
                for code_bits in 0..3 {
                    let remainder = body >> code_bits;
                    let top = |lane: usize| 1 << (lane * BITS + BITS - 1);
                    let those = |is: &dyn Fn(u64) -> bool| {
                        (0..count).filter(|lane| is(bodies[*lane])).map(top).sum::<u64>()
                    };
                    let equal = found.equal(remainder, code_bits);
                    assert_eq!(equal, those(&|lane| lane >> code_bits == remainder));
                    let least = remainder << code_bits;
                    assert_eq!(found.less(least), those(&|lane| lane < least));
                    if equal != 0 {
                        assert_eq!(found.first(equal) >> code_bits, remainder);
                    }
                }
            }
        }
    }

    #[test]
    fn lanes_compare_as_one_by_one() {
        for seed in 0..2000 {
            compare::<8>(seed);
            compare::<9>(seed);
            compare::<10>(seed);
            compare::<16>(seed);
        }
    }
}
