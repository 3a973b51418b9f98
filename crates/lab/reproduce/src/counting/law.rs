//! The law of the tokens: Zipf-Mandelbrot, from its distribution function.
//!
//! Token `i` has a rank above `x` with probability `(1 + x / offset)^-power`, so a token of rank `i` is drawn
//! about as `(i + offset)^-(power + 1)`, and one random number gives one token. The number of different
//! tokens among `n` grows by Heaps' law. Two numbers of the paper fix one of the two constants for each
//! offset.

use nandex_sim::workload::SplitMix64;

use super::shape::{DataSet, Shape, divisor};
use crate::{Scale, fits, vary};

/// The stages of a RAM buffer of 1 % in Table 2. The last may be a part of a buffer, so that half of it is
/// taken.
const STAGES: f64 = 209.0 - 0.5;
/// Ranks whose tokens are summed one by one; those above are integrated.
const HEAD: u64 = 1024;
/// Intervals of the integral, an even number.
const INTERVALS: u32 = 600;
/// Halvings of an interval with a constant in it.
const HALVINGS: u32 = 60;

/// The two constants of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Law {
    power: f64,
    offset: f64,
}

impl Law {
    /// Returns the law with offset 1 at full size that has the paper's number of different tokens: fitted to
    /// the two counts of tokens alone.
    #[must_use]
    pub fn by_counts(shape: &Shape, scale: Scale) -> Self {
        Self::with_offset(shape, 1.0 / divisor(scale) as f64)
    }

    /// Returns the law with the paper's number of different tokens, whose offset is such that Wiki's stream
    /// fills a buffer of 1 % as often as in Table 2.
    #[must_use]
    pub fn by_stages(shape: &Shape, scale: Scale) -> Self {
        let wiki = DataSet::WIKI.at(scale);
        let tokens = wiki.tokens as f64 / STAGES;
        let wanted = wiki.buffer_entries(1) as f64;
        let too_small =
            |offset: f64| Self::with_offset(&wiki, offset.exp()).distinct(tokens) < wanted;
        let offset = halved((-8.0, 10.0), too_small).exp() * vary::factor(&fits::TOKEN_OFFSET);
        let law = Self::with_offset(shape, offset);
        Self { power: law.power * vary::factor(&fits::TOKEN_POWER), ..law }
    }

    fn with_offset(shape: &Shape, offset: f64) -> Self {
        let (tokens, wanted) = (shape.tokens as f64, shape.distinct as f64);
        let too_small = |power: f64| Self { power, offset }.distinct(tokens) > wanted;
        Self { power: halved((0.01, 4.0), too_small), offset }
    }

    /// Returns the expected number of different tokens among `tokens`.
    #[must_use]
    pub fn distinct(&self, tokens: f64) -> f64 {
        let above = |rank: f64| (1.0 + rank / self.offset).powf(-self.power);
        let seen = |share: f64| -(-tokens * share).exp_m1();
        let head = (0..HEAD).map(|rank| seen(above(rank as f64) - above((rank + 1) as f64)));
        // Above the head, by t = ln(1 + rank / offset): the share of a rank falls as e^(-(power + 1) t).
        let start = (1.0 + HEAD as f64 / self.offset).ln();
        let first = self.power / self.offset;
        let share = |t: f64| first * (-(self.power + 1.0) * t).exp();
        let end = ((tokens * first * 1e4).ln() / (self.power + 1.0)).max(start);
        let each = (end - start) / f64::from(INTERVALS);
        let at = |number: u32| {
            let t = start + each * f64::from(number);
            seen(share(t)) * self.offset * t.exp()
        };
        // By Simpson's rule; each token of a rank beyond the end is a new one.
        let weight = |number: u32| match number {
            0 | INTERVALS => 1.0,
            _ if number % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let middle: f64 = (0..=INTERVALS).map(|number| weight(number) * at(number)).sum();
        head.sum::<f64>() + middle * each / 3.0 + tokens * (-self.power * end).exp()
    }

    /// Returns the tokens that a buffer of `distinct` entries takes until it is full.
    #[cfg(test)]
    fn tokens_until(&self, distinct: f64) -> f64 {
        halved((0.0, 30.0), |tokens: f64| self.distinct(tokens.exp()) < distinct).exp()
    }

    /// Returns the exponent of the rank.
    #[must_use]
    pub fn exponent(&self) -> f64 {
        self.power + 1.0
    }

    /// Returns the offset, which is added to the rank.
    #[must_use]
    pub fn offset(&self) -> f64 {
        self.offset
    }

    /// Returns a token by a number from 0 to 1: its key, whose bits are random.
    fn key(&self, unit: f64) -> u64 {
        let rank = (self.offset * ((1.0 - unit).powf(-1.0 / self.power) - 1.0)).floor();
        // Ranks beyond the integers are still different numbers.
        mixed(rank.to_bits()).clamp(1, u64::MAX - 1)
    }
}

/// Tokens of a law, one after another.
#[derive(Debug)]
pub struct Tokens {
    law: Law,
    rng: SplitMix64,
}

impl Tokens {
    /// Creates a stream by its number, with a seed.
    #[must_use]
    pub fn new(law: Law, seed: u64, stream: u64) -> Self {
        Self { law, rng: SplitMix64::stream(seed, stream) }
    }

    /// Returns the key of the next token: neither 0 nor the largest number.
    pub fn draw(&mut self) -> u64 {
        self.law.key(self.rng.unit())
    }
}

/// Applies the finalizer of SplitMix64: another number for each number.
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Returns the number up to which a condition holds, by bisection.
fn halved((mut low, mut high): (f64, f64), holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn drawn(law: Law, tokens: u64) -> f64 {
        let mut stream = Tokens::new(law, 3, 0);
        (0..tokens).map(|_| stream.draw()).collect::<HashSet<_>>().len() as f64
    }

    #[test]
    fn a_stream_has_the_papers_number_of_different_tokens() {
        let scale = Scale::new(Scale::MOST, 1).unwrap();
        for set in [DataSet::WIKI, DataSet::MEME] {
            let shape = set.at(scale);
            for law in [Law::by_counts(&shape, scale), Law::by_stages(&shape, scale)] {
                let ratio = drawn(law, shape.tokens) / shape.distinct as f64;
                assert!((0.98..1.02).contains(&ratio), "{}: {ratio}, {law:?}", set.name);
            }
        }
    }

    #[test]
    fn the_expected_number_of_different_tokens_is_that_of_a_stream_of_any_length() {
        let scale = Scale::new(Scale::MOST, 1).unwrap();
        let law = Law::by_stages(&DataSet::WIKI.at(scale), scale);
        for tokens in [10_000, 100_000, 1_000_000] {
            let ratio = drawn(law, tokens) / law.distinct(tokens as f64);
            assert!((0.96..1.04).contains(&ratio), "{tokens}: {ratio}");
            let back = law.tokens_until(law.distinct(tokens as f64)) / tokens as f64;
            assert!((0.999..1.001).contains(&back), "{tokens}: {back}");
        }
    }

    #[test]
    fn a_buffer_of_one_percent_fills_as_often_as_in_table_2() {
        for times in [Scale::LEAST, Scale::DEFAULT] {
            let scale = Scale::new(times, 1).unwrap();
            let shape = DataSet::WIKI.at(scale);
            let law = Law::by_stages(&shape, scale);
            let each = law.tokens_until(shape.buffer_entries(1) as f64);
            let stages = shape.tokens as f64 / each;
            assert!((208.4..208.6).contains(&stages), "{stages}, {law:?}");
        }
    }
}
