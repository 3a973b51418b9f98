//! The fill of pages that entries are hashed to.
//!
//! Keys go to pages by their hashes, so a page for `mean` entries gets X of them, where X has Poisson's
//! distribution. E[(X - capacity)+] entries do not fit. Near the mean that is sd L(z) with sd = sqrt(mean), z
//! = (capacity - mean) / sd and the normal loss function L(z) = phi(z) - z (1 - Phi(z)). Far from it, where
//! we are, Poisson's tail is heavier than the normal one by half and more. So the sum itself is computed; it
//! has about a hundred terms.

/// The halvings after which a mean has more exact digits than are shown.
const HALVINGS: usize = 60;
/// The share of the sum below which terms are left out.
const NEGLIGIBLE: f64 = 1e-12;

/// The fill of a page, or of anything else that entries are hashed to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageFill {
    capacity: u64,
    /// ln((capacity + 1)!): the first term that does not fit starts from it.
    ln_factorial: f64,
}

impl PageFill {
    /// Creates the fill of a page that takes `capacity` entries.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        let ln_factorial = (1..=capacity + 1).map(|factor| (factor as f64).ln()).sum();
        Self { capacity, ln_factorial }
    }

    /// E[(X - capacity)+]: the entries that do not fit, with `mean` entries on average.
    #[must_use]
    pub fn overflow(&self, mean: f64) -> f64 {
        if mean <= 0.0 {
            return 0.0;
        }
        let mut entries = (self.capacity + 1) as f64;
        let mut probability = (entries * mean.ln() - mean - self.ln_factorial).exp();
        let mut sum = 0.0;
        let mut excess = 1.0;
        loop {
            let term = excess * probability;
            sum += term;
            if entries > mean && term <= sum * NEGLIGIBLE {
                return sum;
            }
            entries += 1.0;
            excess += 1.0;
            probability *= mean / entries;
        }
    }

    /// Returns the greatest mean at which at most the share `loss_max` does not fit.
    #[must_use]
    pub fn mean_for_share(&self, loss_max: f64) -> f64 {
        self.greatest(|mean| self.overflow(mean) <= loss_max * mean)
    }

    /// Returns the greatest mean at which at most `overflow_max` entries do not fit.
    #[must_use]
    pub fn mean_for_overflow(&self, overflow_max: f64) -> f64 {
        self.greatest(|mean| self.overflow(mean) <= overflow_max)
    }

    /// Bisects for the greatest mean for which `good` holds; it holds for all smaller ones.
    fn greatest(&self, good: impl Fn(f64) -> bool) -> f64 {
        let (mut low, mut high) = (0.0, 4.0 * (self.capacity + 16) as f64);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if good(middle) { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator without a seed: splitmix64.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }
    }

    /// Throws `balls` into `bins` and counts those beyond each bin's capacity.
    fn thrown(bins: u64, balls: u64, capacity: u64) -> f64 {
        let mut numbers = Numbers(capacity);
        let mut counts = vec![0_u64; bins as usize];
        for _ in 0..balls {
            counts[((u128::from(numbers.next()) * u128::from(bins)) >> 64) as usize] += 1;
        }
        counts.iter().map(|count| count.saturating_sub(capacity)).sum::<u64>() as f64
    }

    #[test]
    fn as_many_entries_overflow_as_in_a_simulation() {
        for (capacity, mean) in [(253, 225.0), (253, 240.0), (126, 110.0), (41, 32.0), (4, 1.5)] {
            let bins = 20_000_u64;
            let found = thrown(bins, (bins as f64 * mean) as u64, capacity);
            let expected = PageFill::new(capacity).overflow(mean) * bins as f64;
            // Overflows come in lumps of a few entries: five standard deviations of three times the square
            // root.
            let apart = 15.0 * expected.sqrt();
            assert!((found - expected).abs() < apart, "{capacity}: {found}, expected {expected}");
            assert!(expected > 100.0, "{capacity}: too few to compare, {expected}");
        }
    }

    #[test]
    fn poissons_tail_is_heavier_than_the_normal_one() {
        // z = 2.5: L(z) = 0.002004. The sum is a half more; at the centre both are nearly equal.
        let page_fill = PageFill::new(253);
        let mean = 216.3;
        let sd = f64::sqrt(mean);
        let normal = sd * 0.002_004;
        assert!(((253.0 - mean) / sd - 2.5).abs() < 0.01);
        let ratio = page_fill.overflow(mean) / normal;
        assert!((1.2..1.8).contains(&ratio), "{ratio}");
        // z = 0: L = 0.398942.
        let ratio = page_fill.overflow(253.0) / (f64::sqrt(253.0) * 0.398_942);
        assert!((0.98..1.02).contains(&ratio), "{ratio}");
    }

    #[test]
    fn means_are_inverse_to_what_overflows() {
        for capacity in [1, 3, 41, 253, 508] {
            let page_fill = PageFill::new(capacity);
            for share in [1e-9, 1e-6, 1e-4, 1e-2] {
                let mean = page_fill.mean_for_share(share);
                let found = page_fill.overflow(mean) / mean;
                assert!((found / share - 1.0).abs() < 1e-3, "{capacity}, {share}: {found}");
                assert!(mean < capacity as f64);
            }
            let mean = page_fill.mean_for_overflow(8.0);
            assert!((page_fill.overflow(mean) - 8.0).abs() < 1e-6);
        }
        assert_eq!(PageFill::new(10).overflow(0.0), 0.0);
    }
}
