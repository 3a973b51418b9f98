//! Latencies counted in bins that grow with them, so that the tail is recorded at any length.

/// The bins of an octave, as a power of two: a bin is at most 1/1024 of its latencies wide.
const FINE_BITS: u32 = 10;

/// Counts latencies in nanoseconds. Memory: 16 bytes for each bin up to the longest, at most 0.9 MiB;
/// adding one takes constant time.
///
/// Below 2048 ns every latency has a bin of its own. Each bin remembers its largest latency, so a
/// percentile is one that occurred, never shorter than the exact one and longer by less than 1/1024.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Histogram {
    /// The count of each bin, and its largest latency.
    bins: Vec<(u64, u64)>,
    count: u64,
    total_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

/// A range of latencies and its count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Bin {
    /// The smallest latency of the bin.
    pub from_ns: u64,
    /// The end of the bin, exclusive.
    pub to_ns: u64,
    /// The number of latencies.
    pub count: u64,
}

/// Returns the bin of a value, given the bins of an octave.
const fn index(value: u64, bits: u32) -> usize {
    let length = u64::BITS - value.leading_zeros();
    let shift = length.saturating_sub(bits + 1);
    ((shift as usize) << bits) + (value >> shift) as usize
}

/// Returns the first value of a bin; for the index after the last bin, the largest value.
fn first_of(index: usize, bits: u32) -> u64 {
    let octave = 1_usize << bits;
    let shift = (index >> bits).saturating_sub(1);
    let mantissa = (index - shift * octave) as u128;
    u64::try_from(mantissa << shift).unwrap_or(u64::MAX)
}

impl Histogram {
    /// Counts a latency.
    pub fn record(&mut self, latency_ns: u64) {
        let index = index(latency_ns, FINE_BITS);
        if index >= self.bins.len() {
            self.bins.resize(index + 1, (0, 0));
        }
        let (count, largest) = &mut self.bins[index];
        *count += 1;
        *largest = latency_ns.max(*largest);
        self.min_ns = if self.count == 0 { latency_ns } else { self.min_ns.min(latency_ns) };
        self.max_ns = self.max_ns.max(latency_ns);
        self.count += 1;
        self.total_ns += u128::from(latency_ns);
    }

    /// Returns the number of latencies.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns their sum.
    #[must_use]
    pub const fn total_ns(&self) -> u128 {
        self.total_ns
    }

    /// Returns the shortest; 0 if there is none.
    #[must_use]
    pub const fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// Returns the longest; 0 if there is none.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the latency that this share of 10,000 does not exceed: the one of rank ceil(count * share),
    /// counted from 1 in ascending order. 0 if there is none.
    #[must_use]
    pub fn quantile_ns(&self, share_of_10k: u32) -> u64 {
        let rank = (u128::from(self.count) * u128::from(share_of_10k)).div_ceil(10_000).max(1);
        let mut passed = 0;
        for &(count, largest) in &self.bins {
            passed += u128::from(count);
            if passed >= rank {
                return largest;
            }
        }
        self.max_ns
    }

    /// Returns its content in bins of an eighth of an octave, without empty ones.
    #[must_use]
    pub fn eighths(&self) -> Vec<Bin> {
        const BITS: u32 = 3;
        let mut bins: Vec<Bin> = Vec::new();
        for &(count, largest) in self.bins.iter().filter(|(count, _)| *count > 0) {
            let index = index(largest, BITS);
            let (from_ns, to_ns) = (first_of(index, BITS), first_of(index + 1, BITS));
            match bins.last_mut() {
                Some(last) if last.from_ns == from_ns => last.count += count,
                _ => bins.push(Bin { from_ns, to_ns, count }),
            }
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    #[test]
    fn every_bin_begins_where_the_one_before_it_ends() {
        for bits in [3, FINE_BITS] {
            let last = index(u64::MAX, bits);
            for bin in 0..=last {
                let first = first_of(bin, bits);
                assert_eq!(index(first, bits), bin);
                assert!(bin == 0 || index(first - 1, bits) == bin - 1, "bin {bin}");
            }
            assert_eq!(first_of(last + 1, bits), u64::MAX);
        }
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        let none = of(&[]);
        assert_eq!((none.count(), none.quantile_ns(5_000), none.max_ns()), (0, 0, 0));
        assert!(none.eighths().is_empty());
    }

    #[test]
    fn two_latencies_that_alternate_are_given_back_exactly() {
        let values: Vec<u64> =
            (0..1000).map(|i| if i % 10 == 0 { 9_999_999 } else { 85_123 }).collect();
        let histogram = of(&values);
        assert_eq!(histogram.quantile_ns(9_000), 85_123);
        assert_eq!(histogram.quantile_ns(9_001), 9_999_999);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_values_but_for_one_part_in_1024(
            values in prop::collection::vec(
                prop_oneof![0..4096_u64, 0..10_000_000_u64, any::<u64>()], 1..400),
            share in 0..=10_000_u32,
        ) {
            let histogram = of(&values);
            let mut sorted = values;
            sorted.sort_unstable();
            let rank = (sorted.len() as u64 * u64::from(share)).div_ceil(10_000).max(1);
            let exact = sorted[rank as usize - 1];
            let found = histogram.quantile_ns(share);
            prop_assert!(found >= exact && found - exact <= exact / 1024, "{found} for {exact}");
            prop_assert!(sorted.contains(&found));
            let total: u128 = sorted.iter().map(|&it| u128::from(it)).sum();
            prop_assert_eq!(histogram.total_ns(), total);
            prop_assert_eq!(histogram.min_ns(), sorted[0]);
            prop_assert_eq!(histogram.max_ns(), sorted[sorted.len() - 1]);
        }

        #[test]
        fn eighths_hold_every_value_where_it_belongs(
            values in prop::collection::vec(any::<u64>().prop_map(|it| it >> (it % 64)), 0..300),
        ) {
            let bins = of(&values).eighths();
            prop_assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), values.len() as u64);
            for bin in bins {
                let is_last = bin.to_ns == u64::MAX;
                let within = |&&it: &&u64| it >= bin.from_ns && (it < bin.to_ns || is_last);
                prop_assert_eq!(values.iter().filter(within).count() as u64, bin.count);
            }
        }
    }
}
