//! Many latencies, and statistics of them.

/// Latencies in nanoseconds, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Latencies {
    sorted_ns: Vec<u64>,
    total_ns: u128,
}

/// The maximum points of a curve.
const CURVE_POINTS: usize = 200;

/// Converts nanoseconds to milliseconds.
#[must_use]
pub fn millis(ns: f64) -> f64 {
    ns / 1e6
}

impl FromIterator<u64> for Latencies {
    fn from_iter<T: IntoIterator<Item = u64>>(all: T) -> Self {
        let mut sorted_ns: Vec<u64> = all.into_iter().collect();
        sorted_ns.sort_unstable();
        let total_ns = sorted_ns.iter().map(|&ns| u128::from(ns)).sum();
        Self { sorted_ns, total_ns }
    }
}

impl Latencies {
    /// Returns their number.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted_ns.len()
    }

    /// Returns their mean in milliseconds; 0 if there are none.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        millis(self.total_ns as f64 / self.count().max(1) as f64)
    }

    /// Returns the longest in milliseconds; 0 if there are none.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        millis(self.sorted_ns.last().copied().unwrap_or(0) as f64)
    }

    /// Returns the least of them that this share (0 to 1) does not exceed, in milliseconds; 0 if there are
    /// none.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.count() as f64).ceil() as usize;
        let at = rank.clamp(1, self.count().max(1)) - 1;
        millis(self.sorted_ns.get(at).copied().unwrap_or(0) as f64)
    }

    /// Returns the shortest of those that take longer than `ms` milliseconds; 0 if there are none.
    #[must_use]
    pub fn least_above_ms(&self, ms: f64) -> f64 {
        let above = self.sorted_ns.partition_point(|&ns| millis(ns as f64) <= ms);
        millis(self.sorted_ns.get(above).copied().unwrap_or(0) as f64)
    }

    /// Returns the share of them, 0 to 1, that take at most `ms` milliseconds.
    #[must_use]
    pub fn share_within_ms(&self, ms: f64) -> f64 {
        let within = self.sorted_ns.partition_point(|&ns| millis(ns as f64) <= ms);
        within as f64 / self.count().max(1) as f64
    }

    /// Returns the distribution: milliseconds, and the share that takes at most as long. One point for each
    /// visible rise of the curve.
    #[must_use]
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        let count = self.count();
        let step = count.div_ceil(CURVE_POINTS).max(1);
        let mut ranks: Vec<usize> = (1..=count).step_by(step).chain([count]).collect();
        // The tail is thin and long, so each of the last hundred counts.
        ranks.extend(count.saturating_sub(100)..count);
        ranks.retain(|&rank| rank > 0);
        ranks.sort_unstable();
        ranks.dedup();
        let point = |rank: usize| (self.sorted_ns[rank - 1], rank as f64 / count as f64);
        let mut points: Vec<(u64, f64)> = Vec::new();
        for (ns, share) in ranks.into_iter().map(point) {
            match points.last_mut() {
                Some(last) if last.0 == ns => last.1 = share,
                _ => points.push((ns, share)),
            }
        }
        points.into_iter().map(|(ns, share)| (millis(ns as f64), share)).collect()
    }

    /// Returns the share that takes longer, over milliseconds: the distribution reversed, for axes on which
    /// one in a million is visible.
    #[must_use]
    pub fn tail(&self) -> Vec<(f64, f64)> {
        let points = self.distribution().into_iter().map(|(ms, share)| (ms, 1.0 - share));
        points.filter(|(_, share)| *share > 0.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_hundred() -> Latencies {
        (1..=100).rev().map(|ms| ms * 1_000_000).collect()
    }

    #[test]
    fn the_hundred_first_numbers_have_the_quantiles_they_should() {
        let all = to_hundred();
        assert_eq!(all.mean_ms(), 50.5);
        assert_eq!(all.max_ms(), 100.0);
        assert_eq!(
            [0.0, 0.01, 0.5, 0.995, 1.0].map(|it| all.quantile_ms(it)),
            [1.0, 1.0, 50.0, 100.0, 100.0]
        );
        assert_eq!(all.share_within_ms(25.0), 0.25);
        assert_eq!(all.share_within_ms(0.5), 0.0);
        assert_eq!((all.least_above_ms(7.0), all.least_above_ms(100.0)), (8.0, 0.0));
    }

    #[test]
    fn a_distribution_rises_to_one_and_a_tail_falls() {
        let points = to_hundred().distribution();
        assert!(points.is_sorted());
        assert_eq!(points.last(), Some(&(100.0, 1.0)));
        assert!(to_hundred().tail().is_sorted_by(|a, b| a.1 > b.1));
        let same: Latencies = std::iter::repeat_n(7_000_000, 5000).collect();
        assert_eq!(same.distribution(), [(7.0, 1.0)]);
    }

    #[test]
    fn nothing_measured_is_nothing_and_no_panic() {
        let none = Latencies::default();
        assert_eq!((none.mean_ms(), none.max_ms(), none.quantile_ms(0.5)), (0.0, 0.0, 0.0));
        assert!(none.distribution().is_empty());
    }
}
