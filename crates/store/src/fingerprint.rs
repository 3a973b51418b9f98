//! Fingerprints: the part of a key's hash that filters store, and how a fingerprint is split in two.
//!
//! A fingerprint is a number below the size of its **universe**, spread evenly. The HotStorage'11 deck takes
//! p-bit hashes, a universe of 2^p. Here the size is any number, so that a filter's rate of false positives,
//! n fingerprints over the size, is the requested rate and not the next power of two.
//!
//! **Quotienting** splits a fingerprint f into a quotient, which says where it is, and a remainder, which is
//! stored there. With Q quotients over a universe of U:
//!
//! ```text
//!   f * (2^64 Q / U)  =  quotient . fraction            both grow with f, so order is kept:
//!                        [0, Q)     64 bits             a structure of any size sorts alike
//!                                   ^^^ remainder: its highest bits, as few as tell f's of one quotient apart
//! ```
//!
//! Where U and Q are powers of two, these are the high and the low bits of f, as in the deck.

use crate::{Error, Result};

/// The range of fingerprints: 0 up to its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Universe {
    size: u64,
}

impl Universe {
    /// The smallest size: with fewer fingerprints a filter would distinguish no keys.
    pub const SIZE_MIN: u64 = 2;
    /// The largest size.
    pub const SIZE_MAX: u64 = 1 << 62;

    /// Creates a universe of `size` fingerprints.
    ///
    /// # Errors
    /// [`Error::Config`] for a size outside [`SIZE_MIN`](Self::SIZE_MIN) to [`SIZE_MAX`](Self::SIZE_MAX).
    pub fn new(size: u64) -> Result<Self> {
        if !(Self::SIZE_MIN..=Self::SIZE_MAX).contains(&size) {
            let (least, most) = (Self::SIZE_MIN, Self::SIZE_MAX);
            let reason = format!("{size} fingerprints; there must be {least} to {most}");
            return Err(Error::config("universe", reason));
        }
        Ok(Self { size })
    }

    /// Returns the smallest universe in which a filter of `keys` keys has a false-positive rate of at most `rate`.
    ///
    /// # Errors
    /// [`Error::Config`] for no keys, a rate that is not between 0 and 1, or when fingerprints would
    /// take more than 62 bits.
    pub fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        if keys == 0 {
            return Err(Error::config("keys", "0; a filter is made for at least one"));
        }
        if !(rate > 0.0 && rate < 1.0) {
            let reason = format!("a rate of false positives of {rate}; it must be between 0 and 1");
            return Err(Error::config("rate", reason));
        }
        let size = (keys as f64 / rate).ceil();
        if size > Self::SIZE_MAX as f64 {
            let reason = format!(
                "{rate} among {keys} keys takes fingerprints of {:.1} bits, and there are 62; allow a \
                 higher rate, or fewer keys",
                size.log2()
            );
            return Err(Error::config("rate", reason));
        }
        Self::new((size as u64).max(Self::SIZE_MIN))
    }

    /// The number of fingerprints.
    #[must_use]
    pub const fn size(self) -> u64 {
        self.size
    }

    /// The number of bits that hold any fingerprint.
    #[must_use]
    pub const fn bits(self) -> u32 {
        64 - (self.size - 1).leading_zeros()
    }

    /// The fingerprint of a key that hashes to these 64 bits.
    #[inline]
    #[must_use]
    pub const fn of(self, hash: u64) -> u64 {
        high(hash, self.size)
    }

    /// The rate of false positives among `keys` different fingerprints: the chance that a key that was
    /// never inserted has one of them.
    #[must_use]
    pub fn rate(self, keys: u64) -> f64 {
        keys as f64 / self.size as f64
    }
}

/// The split of fingerprints into quotient and remainder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    universe: Universe,
    quotients: u64,
    /// 2^64 quotients / universe, rounded down.
    factor: u64,
    remainder_bits: u32,
}

impl Split {
    /// Splits a universe over `quotients` quotients, at least one and at most half the number of
    /// fingerprints; a number outside is clamped.
    #[must_use]
    pub const fn new(universe: Universe, quotients: u64) -> Self {
        let most = universe.size / 2;
        let quotients = if quotients > most { most } else { quotients };
        let quotients = if quotients == 0 { 1 } else { quotients };
        let factor = (((quotients as u128) << 64) / universe.size as u128) as u64;
        // Neighbours of one quotient differ by the factor in their fractions. This number of high bits of the
        // fraction distinguishes them.
        let remainder_bits = 64 - factor.ilog2();
        Self { universe, quotients, factor, remainder_bits }
    }

    /// The universe that is split.
    #[must_use]
    pub const fn universe(self) -> Universe {
        self.universe
    }

    /// The number of quotients.
    #[must_use]
    pub const fn quotients(self) -> u64 {
        self.quotients
    }

    /// Bits of a remainder: 1 to 63.
    #[must_use]
    pub const fn remainder_bits(self) -> u32 {
        self.remainder_bits
    }

    /// 2^64 times the quotients over the universe's size, rounded down: the multiplier of a fingerprint.
    #[must_use]
    pub const fn factor(self) -> u64 {
        self.factor
    }

    /// The quotient of a fingerprint.
    #[inline]
    #[must_use]
    pub const fn quotient(self, fingerprint: u64) -> u64 {
        high(fingerprint, self.factor)
    }

    /// Returns the quotient and the remainder of a fingerprint. The smaller of two fingerprints has the smaller pair.
    #[inline]
    #[must_use]
    pub const fn split(self, fingerprint: u64) -> (u64, u64) {
        let product = fingerprint as u128 * self.factor as u128;
        ((product >> 64) as u64, product as u64 >> (64 - self.remainder_bits))
    }

    /// The fingerprint of a quotient and a remainder: the reverse of [`split`](Self::split).
    ///
    /// If no fingerprint has this pair, returns the next fingerprint above, which may be the universe's size: a reader
    /// of untrusted pairs must split the result again and compare.
    #[inline]
    #[must_use]
    pub const fn join(self, quotient: u64, remainder: u64) -> u64 {
        let low = remainder << (64 - self.remainder_bits);
        let product = (quotient as u128) << 64 | low as u128;
        if self.factor.is_power_of_two() {
            // A division of 128 bits takes ten times as long.
            return ((product + (self.factor - 1) as u128) >> self.factor.trailing_zeros()) as u64;
        }
        product.div_ceil(self.factor as u128) as u64
    }

    /// The smallest fingerprint of a quotient; for the number of quotients, the universe's size.
    #[inline]
    #[must_use]
    pub const fn first(self, quotient: u64) -> u64 {
        if quotient >= self.quotients { self.universe.size } else { self.join(quotient, 0) }
    }
}

/// Returns the high half of a product: a number below `b`, evenly spread if `a` is.
#[inline]
const fn high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes and numbers of quotients, powers of two and others.
    const CUTS: [(u64, u64); 9] = [
        (2, 1),
        (7, 3),
        (256, 16),
        (1000, 999),
        (4096, 4096),
        (4097, 1),
        (25_641_026, 94_003),
        (1 << 40, 1 << 20),
        (Universe::SIZE_MAX, 12_345_678_901),
    ];

    fn samples(size: u64) -> Vec<u64> {
        if size <= 5000 {
            return (0..size).collect();
        }
        let edges = (0..100).flat_map(|n| [n, size - 1 - n]);
        let spread = (0..5000u64).map(|n| high(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), size));
        let mut all: Vec<_> = edges.chain(spread).collect();
        all.extend_from_within(..);
        all.iter_mut().skip(5200).for_each(|at| *at = (*at + 1).min(size - 1));
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn a_fingerprint_is_its_quotient_and_its_remainder_and_order_is_kept() {
        for (size, quotients) in CUTS {
            let split = Split::new(Universe::new(size).unwrap(), quotients);
            let mut before = None;
            for fingerprint in samples(size) {
                let (quotient, remainder) = split.split(fingerprint);
                assert!(quotient < split.quotients(), "{split:?} {fingerprint}");
                assert_eq!(quotient, split.quotient(fingerprint));
                assert!(remainder >> split.remainder_bits() == 0, "{split:?} {fingerprint}");
                assert_eq!(split.join(quotient, remainder), fingerprint, "{split:?}");
                assert!(before < Some((quotient, remainder)), "{split:?} {fingerprint}");
                before = Some((quotient, remainder));
                let (first, next) = (split.first(quotient), split.first(quotient + 1));
                assert!((first..next).contains(&fingerprint), "{split:?} {fingerprint}");
            }
        }
    }

    #[test]
    fn with_powers_of_two_they_are_the_high_and_the_low_bits() {
        let split = Split::new(Universe::new(1 << 20).unwrap(), 1 << 12);
        assert_eq!(split.remainder_bits(), 8);
        assert_eq!(split.split(0xabcde), (0xabc, 0xde));
    }

    #[test]
    fn a_universe_is_as_large_as_its_rate_asks() {
        let universe = Universe::for_rate(100_000_000, 0.0039).unwrap();
        assert!((universe.rate(100_000_000) - 0.0039).abs() < 1e-9);
        assert_eq!(universe.bits(), 35);
        assert!(Universe::for_rate(0, 0.1).is_err());
        assert!(Universe::for_rate(10, 1.0).is_err() && Universe::for_rate(10, f64::NAN).is_err());
        let error = Universe::for_rate(1 << 40, 1e-9).unwrap_err().to_string();
        assert!(error.contains("69.9 bits"), "{error}");
        assert_eq!(Universe::for_rate(1, 0.9).unwrap().size(), 2);
    }
}
