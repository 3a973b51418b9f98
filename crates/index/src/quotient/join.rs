//! Computes fingerprints from quotients and remainders, for a whole filter in order, without a division for each.
//!
//! A fingerprint is (quotient 2^64 + fraction) / factor, rounded up. In a block of 64 quotients it is the block's first
//! fingerprint plus a difference. A product with the reciprocal of the factor is that difference or one less; the rest,
//! which is below two factors and so below 2^64, determines which.

use nandex_store::fingerprint::Split;

use super::blocks::SLOTS;

/// Bits of a block's quotients: 2^6 of them.
const BLOCK_BITS: u32 = SLOTS.trailing_zeros();

/// Joins the quotients and remainders of a split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    factor: u64,
    /// 2^(64 + 6 + shift) / factor, rounded down: 62 or 63 bits.
    reciprocal: u64,
    shift: u32,
    remainder_shift: u32,
}

/// Joins the quotients of one block, and remainders.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockJoin {
    join: Join,
    /// The first fingerprint of the block's first quotient.
    first: u64,
    /// The distance between it and that quotient's first fraction.
    above: u64,
}

impl Join {
    /// Creates the inverse of `split`.
    pub fn new(split: Split) -> Self {
        let factor = split.factor();
        // Remainders are of at most 56 bits, so factors are at least 2^8.
        let shift = factor.ilog2() - BLOCK_BITS - 1;
        let reciprocal = (1_u128 << (64 + BLOCK_BITS + shift)) / u128::from(factor);
        let reciprocal = u64::try_from(reciprocal).expect("2^(69 + log factor) over a factor");
        Self { factor, reciprocal, shift, remainder_shift: 64 - split.remainder_bits() }
    }

    /// Returns the joiner for the quotients of a block.
    pub fn block(self, block: usize) -> BlockJoin {
        let least = (block as u128 * SLOTS as u128) << 64;
        let first = least.div_ceil(u128::from(self.factor));
        let above = first * u128::from(self.factor) - least;
        BlockJoin { join: self, first: first as u64, above: above as u64 }
    }
}

impl BlockJoin {
    /// Returns the fingerprint for the quotient at a place of the block, and a remainder.
    #[inline(always)]
    pub fn join(&self, place: usize, remainder: u64) -> u64 {
        let Join { factor, reciprocal, shift, remainder_shift } = self.join;
        let fraction = remainder << remainder_shift;
        let wanted = (place as u128) << 64 | u128::from(fraction);
        let wanted = wanted.saturating_sub(u128::from(self.above));
        let scaled = (wanted >> BLOCK_BITS) as u64;
        let steps = ((u128::from(scaled) * u128::from(reciprocal)) >> 64) as u64 >> shift;
        let rest = (wanted as u64).wrapping_sub(steps.wrapping_mul(factor));
        self.first + steps + u64::from(rest > 0) + u64::from(rest > factor)
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::fingerprint::Universe;

    use super::*;

    #[test]
    fn fingerprints_are_joined_as_by_division() {
        let sizes = [2, 3, 1000, 4097, 25_641_026, (1 << 40) - 1, 1 << 40, 1 << 62, (1 << 62) - 57];
        for size in sizes {
            let universe = Universe::new(size).unwrap();
            for share in [2, 3, 5, 100, 256, 300, 511, 70_000, 1 << 33, 1 << 55] {
                let split = Split::new(universe, size / share);
                let join = Join::new(split);
                let step = (size / 5000).max(1);
                let all = (0..size).step_by(step as usize).chain(size.saturating_sub(300)..size);
                for fingerprint in all {
                    let (quotient, remainder) = split.split(fingerprint);
                    let block = join.block(quotient as usize / SLOTS);
                    let joined = block.join(quotient as usize % SLOTS, remainder);
                    assert_eq!(joined, fingerprint, "{split:?}");
                }
            }
        }
    }
}
