//! How many bits a slot has: a constant for the sizes that are met most, so that the compiler knows its shifts
//! and strides, and a number for all others. And lanes: several slots of one word, compared at once.

/// Bits of a slot.
pub(super) trait Width: Copy {
    /// Slots that are compared at once; 0 where they are not.
    const LANES: usize;
    /// 1 to 56 of them.
    fn bits(self) -> usize;
    /// The lowest bit of each lane.
    fn ones(self) -> u64;
}

/// A constant.
#[derive(Clone, Copy)]
pub(super) struct Fixed<const BITS: usize>;

/// Any number.
#[derive(Clone, Copy)]
pub(super) struct Any(pub usize);

impl<const BITS: usize> Width for Fixed<BITS> {
    // A word that is read from the byte a slot begins in has 57 bits from that slot on.
    const LANES: usize = 57 / BITS;

    #[inline(always)]
    fn bits(self) -> usize {
        BITS
    }

    #[inline(always)]
    fn ones(self) -> u64 {
        const { ((1 << (BITS * (57 / BITS))) - 1) / ((1 << BITS) - 1) }
    }
}

impl Width for Any {
    const LANES: usize = 0;

    #[inline(always)]
    fn bits(self) -> usize {
        self.0
    }

    #[inline(always)]
    fn ones(self) -> u64 {
        0
    }
}

/// The first lanes of a word, which hold the slots of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    word: u64,
    ones: u64,
    /// The highest bit of each lane that counts.
    tops: u64,
    bits: usize,
}

impl Lanes {
    /// `count` lanes of a word.
    #[inline(always)]
    pub fn new<W: Width>(width: W, word: u64, count: usize) -> Self {
        let (bits, ones) = (width.bits(), width.ones());
        let tops = ones << (bits - 1) & ((1 << (bits * count)) - 1);
        Self { word, ones, tops, bits }
    }

    /// The highest bits of the lanes that have this remainder.
    #[inline(always)]
    pub fn equal(&self, remainder: u64, code_bits: u32) -> u64 {
        let codes = self.ones * ((1 << code_bits) - 1);
        let other = (self.word ^ self.ones * (remainder << code_bits)) & !codes;
        let tops = self.ones << (self.bits - 1);
        // A sum of two numbers below the highest bit reaches that bit unless the first is 0.
        let differs = (other & !tops).wrapping_add(tops - self.ones) | other;
        !differs & self.tops
    }

    /// The highest bits of the lanes that are less than this body.
    #[inline(always)]
    pub fn less(&self, body: u64) -> u64 {
        let (left, right) = (self.word, self.ones * body);
        let tops = self.ones << (self.bits - 1);
        // With its highest bit set no lane borrows from the next; that bit stays where the rest is no less.
        let rest = (left | tops).wrapping_sub(right & !tops);
        !(left & !right | !(left ^ right) & rest) & self.tops
    }

    /// What the lane holds whose highest bit is the lowest of these.
    #[inline(always)]
    pub fn first(&self, tops: u64) -> u64 {
        let top = tops.trailing_zeros() as usize;
        self.word >> (top + 1 - self.bits) & ((1 << self.bits) - 1)
    }
}

/// Runs an expression with `$width` as what `$bits` are.
macro_rules! with_width {
    ($bits:expr, $width:ident => $run:expr) => {
        match $bits {
            8 => {
                let $width = Fixed::<8>;
                $run
            }
            9 => {
                let $width = Fixed::<9>;
                $run
            }
            10 => {
                let $width = Fixed::<10>;
                $run
            }
            16 => {
                let $width = Fixed::<16>;
                $run
            }
            bits => {
                let $width = Any(bits as usize);
                $run
            }
        }
    };
}

pub(super) use with_width;

#[cfg(test)]
mod tests {
    use super::*;

    fn compare<const BITS: usize>(seed: u64) {
        let lanes = Fixed::<BITS>::LANES;
        let mask = (1 << BITS) - 1;
        let word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(seed as u32 % 64);
        let word = if seed.is_multiple_of(3) { word & word >> 9 & word << 11 } else { word };
        for count in 0..=lanes {
            let found = Lanes::new(Fixed::<BITS>, word, count);
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
