//! The arithmetic of Bloom filters: hashes, numbers of probes, sizes and rates.

pub use nandex_bench::quotient::hash;

/// Bits of a page.
pub const PAGE_BITS: u64 = 8 * nandex_device::PAGE_BYTES as u64;
/// The maximum number of probes.
const PROBES_MAX: u32 = 24;

/// Splits a product into halves: a number below `end`, and the rest to draw from.
#[inline]
pub fn scale(hash: u64, end: u64) -> (u64, u64) {
    let product = u128::from(hash) * u128::from(end);
    ((product >> 64) as u64, product as u64)
}

/// Folds both halves of a product into one word.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// A filter whose bits are anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain {
    /// Its size.
    pub bits: u64,
    /// Bits per key.
    pub probes: u32,
}

impl Plain {
    /// Returns the smallest filter of `keys` keys with a rate of false positives of at most `rate`, in whole
    /// pages.
    pub fn for_rate(keys: u64, rate: f64) -> Self {
        let size = |probes: u32| {
            let full = rate.powf(1.0 / f64::from(probes));
            (-f64::from(probes) * keys as f64 / (-full).ln_1p()).ceil() as u64
        };
        let best = (1..=PROBES_MAX).min_by_key(|&probes| size(probes)).unwrap_or(1);
        Self { bits: size(best).next_multiple_of(PAGE_BITS), probes: best }
    }

    /// Returns the bit of probe `number` of a hash: two halves of a second hash, stepped through.
    #[inline]
    pub fn bit(self, hash: u64, number: u32) -> u64 {
        let step = fold(hash, 0x9E37_79B9_7F4A_7C15) | 1;
        scale(hash.wrapping_add(u64::from(number).wrapping_mul(step)), self.bits).0
    }

    /// Returns the rate of false positives with `keys` keys in it.
    pub fn rate(self, keys: u64) -> f64 {
        let probes = f64::from(self.probes);
        (-(-probes * keys as f64 / self.bits as f64).exp_m1()).powf(probes)
    }
}

/// A filter with all bits of a key in one page, which the key's hash chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paged {
    /// Its size.
    pub pages: u64,
    /// Bits per key.
    pub probes: u32,
}

impl Paged {
    /// Bits of a key's hash for its place within its page.
    pub const INNER_BITS: u32 = 26;

    /// Returns the smallest filter of `keys` keys with a rate of false positives of at most `rate`, in
    /// multiples of `unit` pages.
    pub fn for_rate(keys: u64, rate: f64, unit: u64) -> Self {
        let around = Plain::for_rate(keys, rate).probes;
        let candidates = around.saturating_sub(1).max(1)..=around + 1;
        let size = |probes| {
            let (mut low, mut high) = (1, keys.div_ceil(64) + 1);
            while low < high {
                let pages = low.midpoint(high);
                if (Self { pages, probes }).rate(keys) <= rate {
                    high = pages
                } else {
                    low = pages + 1
                }
            }
            Self { pages: low, probes }
        };
        let best = candidates.map(size).min_by_key(|filter| filter.pages);
        let best = best.unwrap_or(Self { pages: 1, probes: 1 });
        Self { pages: best.pages.next_multiple_of(unit), ..best }
    }

    /// Returns the page of a hash, and its place within.
    #[inline]
    pub fn place(self, hash: u64) -> (u64, u32) {
        let (page, rest) = scale(hash, self.pages);
        (page, (rest >> (64 - Self::INNER_BITS)) as u32)
    }

    /// Passes each bit of a place to `visit`, until one is refused; returns whether all were accepted.
    #[inline]
    pub fn bits(self, inner: u32, mut visit: impl FnMut(usize) -> bool) -> bool {
        let mut left = self.probes;
        let mut word = fold(u64::from(inner) ^ 0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB);
        while left > 0 {
            // Four times 15 bits, the number of a bit in a page, of each word.
            for part in 0..left.min(4) {
                if !visit((word >> (15 * part)) as usize & (PAGE_BITS as usize - 1)) {
                    return false;
                }
            }
            left -= left.min(4);
            word = fold(word ^ 0x8EBC_6AF0_9C88_C6E3, 0x5896_36D4_9B8F_A9D5);
        }
        true
    }

    /// Returns the rate of false positives with `keys` keys in it: pages have Poisson numbers of keys, and
    /// two keys of a page may share a place.
    pub fn rate(self, keys: u64) -> f64 {
        let mean = keys as f64 / self.pages as f64;
        let reach = 9.0 * mean.sqrt() + 9.0;
        let (first, last) = ((mean - reach).max(0.0) as u64, (mean + reach) as u64);
        let mut rate = 0.0;
        let mut chance = (first as f64 * mean.ln() - mean - ln_factorial(first)).exp();
        for held in first..=last {
            let set = -(-f64::from(self.probes) * held as f64 / PAGE_BITS as f64).exp_m1();
            rate += chance * set.powi(self.probes as i32);
            chance *= mean / (held + 1) as f64;
        }
        rate + mean / f64::from(1 << Self::INNER_BITS)
    }
}

/// Returns the logarithm of a factorial, by Stirling's series if it is exact enough.
fn ln_factorial(number: u64) -> f64 {
    if number < 32 {
        return (1..=number).map(|factor| (factor as f64).ln()).sum();
    }
    let n = number as f64;
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + 1.0 / (12.0 * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_filter_of_0_39_percent_takes_8_probes_and_11_5_bits() {
        let filter = Plain::for_rate(1_000_000, 0.0039);
        assert_eq!(filter.probes, 8);
        assert!((filter.bits as f64 / 1e6 - 11.56).abs() < 0.05, "{filter:?}");
        assert!(filter.rate(1_000_000) <= 0.0039);
    }

    #[test]
    fn a_paged_filter_pays_a_little_for_its_pages() {
        let filter = Paged::for_rate(10_000_000, 0.0039, 1);
        let bits = filter.pages as f64 * PAGE_BITS as f64 / 1e7;
        assert!((11.56..11.75).contains(&bits), "{filter:?} {bits}");
        let rate = filter.rate(10_000_000);
        assert!(rate <= 0.0039 && rate > 0.00389, "{rate}");
    }

    #[test]
    fn the_bits_of_a_place_are_as_many_as_probes_and_are_in_the_page() {
        let filter = Paged { pages: 3, probes: 9 };
        let mut seen = Vec::new();
        assert!(filter.bits(12345, |bit| {
            seen.push(bit);
            true
        }));
        assert_eq!(seen.len(), 9);
        assert!(seen.iter().all(|&bit| bit < PAGE_BITS as usize));
        assert!(!filter.bits(12345, |bit| bit != seen[5]));
    }
}
