//! A shuffle of the numbers below a limit that needs no table: a Feistel network with cycle walking.

/// A one-to-one map of the numbers below `limit` onto themselves, chosen by a seed.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    limit: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub fn new(limit: u64, seed: u64) -> Self {
        let bits = u64::BITS - limit.saturating_sub(1).leading_zeros();
        let mut rng = crate::workload::SplitMix64::new(seed);
        let keys = std::array::from_fn(|_| rng.next_u64());
        Self { limit, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Returns the image of a number.
    pub fn forth(&self, number: u64) -> u64 {
        self.walk(number, |this, number| {
            let (mut left, mut right) = this.split(number);
            for key in this.keys {
                (left, right) = (right, left ^ this.mix(right, key));
            }
            this.join(left, right)
        })
    }

    /// Returns the number with this image.
    pub fn back(&self, number: u64) -> u64 {
        self.walk(number, |this, number| {
            let (mut left, mut right) = this.split(number);
            for key in this.keys.into_iter().rev() {
                (left, right) = (right ^ this.mix(left, key), left);
            }
            this.join(left, right)
        })
    }

    /// Walks the cycle: the network permutes a power of four that is at most four times too large; numbers
    /// past the limit are permuted again until they are below it.
    fn walk(&self, mut number: u64, round: impl Fn(&Self, u64) -> u64) -> u64 {
        debug_assert!(number < self.limit);
        loop {
            number = round(self, number);
            if number < self.limit {
                return number;
            }
        }
    }

    fn split(&self, number: u64) -> (u64, u64) {
        (number >> self.half_bits, number & ((1 << self.half_bits) - 1))
    }

    fn join(&self, left: u64, right: u64) -> u64 {
        left << self.half_bits | right
    }

    fn mix(&self, half: u64, key: u64) -> u64 {
        let mut mixed = (half ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 32;
        mixed = mixed.wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed >> (64 - self.half_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_met_once_and_found_again() {
        for limit in [1, 2, 3, 5, 16, 17, 1000, 4097] {
            let permutation = Permutation::new(limit, limit);
            let mut seen = vec![false; limit as usize];
            for number in 0..limit {
                let there = permutation.forth(number);
                assert!(!std::mem::replace(&mut seen[there as usize], true));
                assert_eq!(permutation.back(there), number);
            }
        }
    }

    #[test]
    fn another_seed_shuffles_otherwise() {
        let (one, two) = (Permutation::new(1000, 1), Permutation::new(1000, 2));
        let same = (0..1000).filter(|&number| one.forth(number) == two.forth(number)).count();
        assert!(same < 20, "{same}");
    }
}
