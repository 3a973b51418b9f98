//! The runs of a figure, as the median with the least and the most.

use serde::Serialize;

use super::trips::RoundTrips;

/// A figure of several runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// The run in the middle; for an even number of runs, the mean of the two in the middle.
    pub median: f64,
    /// The least of all runs.
    pub min: f64,
    /// The most of all runs.
    pub max: f64,
}

impl Spread {
    /// Computes it from these runs; `None` without any.
    pub(super) fn of(runs: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut runs: Vec<f64> = runs.into_iter().collect();
        runs.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*runs.first()?, *runs.last()?);
        let (low, high) = ((runs.len() - 1) / 2, runs.len() / 2);
        Some(Self { median: f64::midpoint(runs[low], runs[high]), min, max })
    }
}

/// Percentiles of round trips, each of several runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct TripSpread {
    /// Half of a run's round trips took no longer, in microseconds.
    pub p50_us: Spread,
    /// 99 of 100 took no longer, in microseconds.
    pub p99_us: Spread,
}

impl TripSpread {
    pub(super) fn of(runs: &[RoundTrips]) -> Option<Self> {
        let of = |figure: fn(&RoundTrips) -> f64| Spread::of(runs.iter().map(figure));
        Some(Self { p50_us: of(|run| run.p50_us)?, p99_us: of(|run| run.p99_us)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_stands_between_the_least_and_the_most() {
        let spread = |median, min, max| Some(Spread { median, min, max });
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), spread(2.0, 1.0, 3.0));
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), spread(2.5, 1.0, 4.0));
        assert_eq!(Spread::of([]), None);
    }
}
