//! Keys, values and choices among them, all computed from a seed.
//!
//! The key of entry `index` is a bijection of `index`. So any number of unique random-looking keys needs no
//! storage, every engine gets the same ones, and a key that was never inserted is one with an index past the
//! end.

use crate::zipf::Zipf;

/// Bytes in every key.
pub const KEY_BYTES: usize = 8;
/// The bytes of a value's number, and of the whole value unless `--value-bytes` is given.
pub const VALUE_BYTES: usize = 8;
/// The bytes of a key with a value of default length.
pub const ENTRY_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;
/// The first of the indices that are never inserted.
pub const ABSENT_START: u64 = 1 << 63;

pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const MULTIPLIER_A: u64 = 0xBF58_476D_1CE4_E5B9;
const MULTIPLIER_B: u64 = 0x94D0_49BB_1331_11EB;

/// The key set of one seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeySpace {
    offset: u64,
}

impl KeySpace {
    /// Creates the key set of `seed`; two seeds share keys only by chance.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { offset: mix(seed ^ GOLDEN) }
    }

    /// Returns the key of entry `index`; different indices have different keys.
    #[must_use]
    pub const fn key(self, index: u64) -> u64 {
        mix(index.wrapping_add(self.offset))
    }

    /// Returns a key that no workload inserts, for `index` below [`ABSENT_START`].
    #[must_use]
    pub const fn absent(self, index: u64) -> u64 {
        self.key(index | ABSENT_START)
    }

    /// Returns the index of a key: the inverse of [`key`](Self::key).
    #[must_use]
    pub const fn index_of(self, key: u64) -> u64 {
        unmix(key).wrapping_sub(self.offset)
    }

    /// Returns the value that belongs to `key` in its `version`; a load writes version 0.
    #[must_use]
    pub const fn value(self, key: u64, version: u64) -> u64 {
        mix(key ^ GOLDEN.wrapping_mul(version + 1))
    }
}

/// Applies the finaliser of SplitMix64: a bijection of 64-bit words.
pub(crate) const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(MULTIPLIER_A);
    word = (word ^ (word >> 27)).wrapping_mul(MULTIPLIER_B);
    word ^ (word >> 31)
}

const fn unmix(mut word: u64) -> u64 {
    word = unshift(word, 31).wrapping_mul(inverse(MULTIPLIER_B));
    word = unshift(word, 27).wrapping_mul(inverse(MULTIPLIER_A));
    unshift(word, 30)
}

/// Inverts `word ^ (word >> shift)` for shifts of at least 22 bits.
const fn unshift(word: u64, shift: u32) -> u64 {
    word ^ (word >> shift) ^ (word >> (2 * shift))
}

/// Returns the inverse of an odd number modulo 2^64, by Newton's iteration: each step doubles the correct
/// bits.
const fn inverse(odd: u64) -> u64 {
    let mut guess = odd;
    let mut step = 0;
    while step < 5 {
        guess = guess.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(guess)));
        step += 1;
    }
    guess
}

/// SplitMix64: a small, seeded generator, the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Creates a generator for one thread of one run.
    #[must_use]
    pub const fn new(seed: u64, run: u64, thread: u64) -> Self {
        let stream = mix(run.wrapping_mul(GOLDEN).wrapping_add(thread));
        Self { state: mix(seed) ^ stream }
    }

    /// Returns the next 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Returns a number below `end`, which is at least 1; the bias is below 2^-32 for ends below 2^32.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        below(self.next(), end)
    }

    /// Returns a number from 0 (included) to 1 (excluded), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        unit(self.next())
    }
}

/// Returns a number below `end` from 64 random bits.
#[inline]
pub(crate) fn below(word: u64, end: u64) -> u64 {
    let product = u128::from(word) * u128::from(end);
    u64::try_from(product >> 64).expect("the high half of a 128-bit word has 64 bits")
}

/// Returns a number from 0 (included) to 1 (excluded) from 64 random bits.
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// The distribution by which a stream picks among the loaded entries.
#[derive(Clone, Debug)]
pub enum Picker {
    /// Every entry is as likely as any other.
    Uniform {
        /// Entries to pick from.
        entries: u64,
    },
    /// The entry of rank r is picked with a probability proportional to r^-theta.
    Zipf(Zipf),
}

impl Picker {
    /// Creates a picker among `entries`; uniform when `theta` is `None`.
    #[must_use]
    pub fn new(entries: u64, theta: Option<f64>) -> Self {
        theta.map_or(Self::Uniform { entries }, |theta| Self::Zipf(Zipf::new(entries, theta)))
    }

    /// Returns the number of entries that it picks from.
    #[must_use]
    pub fn entries(&self) -> u64 {
        match self {
            Self::Uniform { entries } => *entries,
            Self::Zipf(zipf) => zipf.entries(),
        }
    }

    /// Returns the index of a loaded entry.
    #[inline]
    pub fn pick(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform { entries } => rng.below(*entries),
            Self::Zipf(zipf) => zipf.pick(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prop_assert_eq, proptest};
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn a_key_leads_back_to_its_index(seed: u64, index: u64) {
            let space = KeySpace::new(seed);
            prop_assert_eq!(space.index_of(space.key(index)), index);
        }
    }

    #[test]
    fn a_hundred_thousand_keys_present_and_absent_are_all_different() {
        let space = KeySpace::new(7);
        let keys: HashSet<u64> =
            (0..100_000).flat_map(|index| [space.key(index), space.absent(index)]).collect();
        assert_eq!(keys.len(), 200_000);
    }

    #[test]
    fn versions_of_a_value_differ() {
        let space = KeySpace::new(7);
        assert_ne!(space.value(1, 0), space.value(1, 1));
    }

    #[test]
    fn the_same_seed_gives_the_same_stream_and_another_thread_another() {
        let stream = |thread| {
            let mut rng = Rng::new(1, 2, thread);
            [rng.next(), rng.next(), rng.next()]
        };
        assert_eq!(stream(3), stream(3));
        assert_ne!(stream(3), stream(4));
    }
}
