//! Zipf's law over any number of places in constant space, by rejection-inversion (Hörmann and Derflinger 1996).

use super::math::{exp, ln};
use super::prng::SplitMix64;

/// Zipf's law: rank r of 1..=places has a probability proportional to r^-exponent.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Zipf {
    places: u64,
    exponent: f64,
    /// The area under the curve left of the first rank's middle, less that rank's own bar.
    area_low: f64,
    /// The area up to the last rank's end.
    area_high: f64,
}

impl Zipf {
    /// Creates the law; `places` is at least 1, `exponent` above 0 and finite.
    pub(super) fn new(places: u64, exponent: f64) -> Self {
        let mut law = Self { places, exponent, area_low: 0.0, area_high: 0.0 };
        law.area_low = law.area(1.5) - 1.0;
        law.area_high = law.area(places as f64 + 0.5);
        law
    }

    /// Draws a rank, counted from 0 for the most frequent one.
    pub(super) fn draw(&self, rng: &mut SplitMix64) -> u64 {
        loop {
            let area = self.area_high + rng.unit() * (self.area_low - self.area_high);
            let rank = self.area_inverse(area).round().clamp(1.0, self.places as f64);
            if area >= self.area(rank + 0.5) - self.bar(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn bar(&self, rank: f64) -> f64 {
        exp(-self.exponent * ln(rank))
    }

    /// Returns the integral of x^-exponent from 1 to x.
    fn area(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { ln(x) } else { (exp(rest * ln(x)) - 1.0) / rest }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 {
            return exp(area);
        }
        let power = area * rest + 1.0;
        // Below the first rank rounding may reach 0; that is still the first rank.
        if power < f64::MIN_POSITIVE { 1.0 } else { exp(ln(power) / rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_has_its_share() {
        for exponent in [0.4, 0.99, 1.0, 1.5] {
            let law = Zipf::new(50, exponent);
            let mut rng = SplitMix64::new(3);
            let mut counts = [0u32; 50];
            for _ in 0..200_000 {
                counts[usize::try_from(law.draw(&mut rng)).unwrap()] += 1;
            }
            let total: f64 = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for (rank, &count) in counts.iter().enumerate() {
                let share = (rank as f64 + 1.0).powf(-exponent) / total;
                let expected = 200_000.0 * share;
                let bound = 6.0 * (expected * (1.0 - share)).sqrt();
                let miss = (f64::from(count) - expected).abs();
                assert!(miss < bound, "exponent {exponent}, rank {rank}: {count} for {expected}");
            }
        }
    }

    #[test]
    fn one_place_and_very_many_are_in_range() {
        let mut rng = SplitMix64::new(3);
        for places in [1, 2, 1 << 40] {
            for exponent in [0.01, 1.0, 8.0] {
                let law = Zipf::new(places, exponent);
                assert!((0..100).all(|_| law.draw(&mut rng) < places), "{places} {exponent}");
            }
        }
    }
}
