//! Generators of fixed sequences of numbers, so that a seed means the same hashes everywhere and always.

/// SplitMix64: a counter and two multiplications. It also seeds [`Xoshiro`].
#[derive(Clone, Debug)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a number from 0 up to 1, from 32 random bits.
    pub(super) fn unit(&mut self) -> f64 {
        f64::from((self.next() >> 32) as u32) / 4_294_967_296.0
    }

    /// Returns a number with nearly the standard normal distribution: the sum of twelve uniform ones. It only uses
    /// additions, so it is identical to the last bit on every machine, unlike logarithms.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// xoshiro256++, seeded like the crate `rand_xoshiro` does.
#[derive(Clone, Debug)]
pub(super) struct Xoshiro([u64; 4]);

impl Xoshiro {
    pub(super) fn new(seed: u64) -> Self {
        let mut words = SplitMix(seed);
        Self([words.next(), words.next(), words.next(), words.next()])
    }

    pub(super) fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }
}

/// The words of the state of MT19937, and the distance of those that are combined.
const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// MT19937 as `numpy.random.RandomState` seeds and reads it.
#[derive(Clone, Debug)]
pub(super) struct MersenneTwister {
    words: [u32; WORDS],
    next: usize,
}

impl MersenneTwister {
    pub(super) fn new(seed: u32) -> Self {
        let mut words = [0; WORDS];
        let mut word = seed;
        for (place, number) in words.iter_mut().zip(1..) {
            *place = word;
            word = (word ^ (word >> 30)).wrapping_mul(1_812_433_253).wrapping_add(number);
        }
        Self { words, next: WORDS }
    }

    fn refill(&mut self) {
        for index in 0..WORDS {
            let following = self.words[(index + 1) % WORDS];
            let joined = (self.words[index] & 0x8000_0000) | (following & 0x7fff_ffff);
            let twisted = (joined >> 1) ^ if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[index] = self.words[(index + MIDDLE) % WORDS] ^ twisted;
        }
        self.next = 0;
    }

    pub(super) fn next_u32(&mut self) -> u32 {
        if self.next >= WORDS {
            self.refill();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    pub(super) fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        high << 32 | u64::from(self.next_u32())
    }

    /// Implements `randint(low, end, dtype=uint64)`: draws numbers with as many bits as the range has, until one is in
    /// it. Only for a range of more than 32 bits, since numpy takes words of 32 bits for smaller ones.
    pub(super) fn between(&mut self, low: u64, end: u64) -> u64 {
        let last = end - low - 1;
        let mask = u64::MAX >> last.leading_zeros();
        loop {
            let number = self.next_u64() & mask;
            if number <= last {
                return low + number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mersenne_twister_is_that_of_its_authors() {
        // The first outputs of mt19937ar.c for init_genrand(5489), and the 10,000th, which C++ also requires.
        let mut numbers = MersenneTwister::new(5489);
        assert_eq!(numbers.next_u32(), 3_499_211_612);
        assert_eq!(numbers.next_u32(), 581_869_302);
        let last = (2..10_000).map(|_| numbers.next_u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn splitmix_and_normal_numbers_are_fixed() {
        // Vigna's splitmix64.c with the state 1234567.
        let mut numbers = SplitMix(1_234_567);
        assert_eq!(numbers.next(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.next(), 3_203_168_211_198_807_973);
        let count = 4000;
        let values: Vec<f64> = (0..count).map(|_| numbers.normal()).collect();
        let mean = values.iter().sum::<f64>() / f64::from(count);
        let variance = values.iter().map(|it| it * it).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.06 && (variance - 1.0).abs() < 0.08, "{mean} {variance}");
    }
}
