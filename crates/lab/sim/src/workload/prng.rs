//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): small, fast, and the same everywhere.

/// A stream of random numbers from a seed. Any seed is good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitMix64 {
    state: u64,
}

/// The increment of the state for each number: the golden ratio's fraction in 64 bits.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl SplitMix64 {
    /// Creates the stream of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Creates one of several streams of a seed, so that two decisions do not share one and disturb each
    /// other.
    #[must_use]
    pub const fn stream(seed: u64, index: u64) -> Self {
        Self { state: mix(seed ^ mix(index.wrapping_add(STEP))) }
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Returns a number below `bound` (at least 1), each with the same probability. Uses Lemire's rejection
    /// (2019).
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut wide = u128::from(self.next_u64()) * u128::from(bound);
        if low(wide) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while low(wide) < unfair {
                wide = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (wide >> 64) as u64
    }

    /// Returns a multiple of 2^-53 in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true in `ppm` of a million cases.
    pub fn chance(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(ppm)
    }
}

const fn low(wide: u128) -> u64 {
    wide as u64
}

/// Mixes bits: the finalizer, in which each bit of the input moves half of the output's.
pub(super) const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the first numbers of seed 1234567, as the authors' reference code prints them.
    #[test]
    fn it_is_splitmix64() {
        let mut stream = SplitMix64::new(1_234_567);
        let rolled: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(
            rolled,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn numbers_below_a_bound_are_equally_frequent() {
        let mut stream = SplitMix64::new(7);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[usize::try_from(stream.below(6)).unwrap()] += 1;
        }
        // Six standard deviations of a binomial with p = 1/6 are 548.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 548), "{counts:?}");
    }

    #[test]
    fn a_chance_of_nothing_never_comes_and_of_all_always() {
        let mut stream = SplitMix64::new(7);
        assert!((0..1000).all(|_| !stream.chance(0) && stream.chance(1_000_000)));
    }
}
