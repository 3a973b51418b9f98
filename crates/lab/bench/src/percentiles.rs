//! Latencies with their tails, and the spread of repeated runs.

use std::time::Instant;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The maximum latency, which is longer than any run; longer ones are counted as this.
const LATENCY_NS_MAX: u64 = 1_000_000_000_000;
/// The significant decimal figures: a recorded latency is off by at most one part in a thousand.
const FIGURES: u8 = 3;

/// Collects latencies in nanoseconds: about 130 KiB from the first one on, a few nanoseconds each.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    histogram: Option<Histogram<u32>>,
}

impl Recorder {
    /// Counts one latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.histogram.get_or_insert_with(empty).saturating_record(latency_ns.max(1));
    }

    /// Adds everything that `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        if let Some(histogram) = &other.histogram {
            let all = self.histogram.get_or_insert_with(empty);
            all.add(histogram).expect("all recorders have the same bounds");
        }
    }

    /// Returns the percentiles, or `None` when nothing was counted.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        let histogram = self.histogram.as_ref()?;
        let at = |quantile| histogram.value_at_quantile(quantile);
        Some(LatencySummary {
            count: histogram.len(),
            mean: histogram.mean(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: histogram.max(),
        })
    }
}

fn empty() -> Histogram<u32> {
    let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, FIGURES);
    histogram.expect("the bounds are constants that hdrhistogram takes")
}

/// Percentiles of latencies in nanoseconds, each exact to one part in a thousand.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Latencies counted.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The 99.99th percentile.
    pub p9999: u64,
    /// The longest.
    pub max: u64,
}

impl LatencySummary {
    /// Combines the latencies of several processes, which have only their summaries: the count is of all, the
    /// longest is the longest of all, and mean and percentiles are the medians of theirs.
    #[must_use]
    pub fn of_processes(all: &[Self]) -> Option<Self> {
        let median = |of: fn(&Self) -> f64| Some(Spread::of(all.iter().map(of))?.median);
        Some(Self {
            count: all.iter().map(|one| one.count).sum(),
            mean: median(|one| one.mean)?,
            p50: median(|one| one.p50 as f64)? as u64,
            p99: median(|one| one.p99 as f64)? as u64,
            p999: median(|one| one.p999 as f64)? as u64,
            p9999: median(|one| one.p9999 as f64)? as u64,
            max: all.iter().map(|one| one.max).max()?,
        })
    }
}

/// Minimum, median and maximum of the runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The middle one; for an even number, the mean of the two in the middle.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of `values`, or `None` if there are none. NaN values are skipped.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let upper = sorted[sorted.len() / 2];
        let lower = sorted[(sorted.len() - 1) / 2];
        Some(Self { min, median: f64::midpoint(lower, upper), max })
    }
}

/// Returns the median of at least one number.
///
/// # Panics
/// Panics if there is none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).expect("something was measured").median
}

/// A stopwatch that reads the clock once per operation: the end of one is the start of the next.
#[derive(Debug)]
pub struct Laps {
    last: Option<Instant>,
}

impl Laps {
    /// Starts the first lap; never does anything if `measure` is [`Latency::Off`].
    #[must_use]
    pub fn start(measure: Latency) -> Self {
        Self { last: (measure == Latency::On).then(Instant::now) }
    }

    /// Begins a lap here, so that the time before is not counted.
    pub fn restart(&mut self) {
        if self.last.is_some() {
            self.last = Some(Instant::now());
        }
    }

    /// Ends a lap, counts it, and starts the next.
    pub fn lap(&mut self, recorder: &mut Recorder) {
        if let Some(last) = &mut self.last {
            let now = Instant::now();
            let elapsed = now.duration_since(*last).as_nanos();
            recorder.record(u64::try_from(elapsed).unwrap_or(u64::MAX));
            *last = now;
        }
    }
}

/// Whether each call is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Latency {
    /// One clock reading per call; `clock_ns` in the report is its cost.
    On,
    /// No clock reading: throughput alone.
    Off,
}

/// Returns the cost of a lap on this machine in nanoseconds: the mean of a hundred thousand empty ones.
#[must_use]
pub fn clock_ns() -> f64 {
    const LAPS: u32 = 100_000;
    let mut recorder = Recorder::default();
    let mut laps = Laps::start(Latency::On);
    let start = Instant::now();
    (0..LAPS).for_each(|_| laps.lap(&mut recorder));
    start.elapsed().as_nanos() as f64 / f64::from(LAPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_the_first_hundred_thousand_numbers_are_those_numbers() {
        let mut recorder = Recorder::default();
        (1..=100_000).for_each(|ns| recorder.record(ns));
        let summary = recorder.summary().unwrap();
        let near = |found: u64, expected: u64| found.abs_diff(expected) <= expected / 1000 + 1;
        assert!(near(summary.p50, 50_000), "{summary:?}");
        assert!(near(summary.p99, 99_000), "{summary:?}");
        assert!(near(summary.p999, 99_900), "{summary:?}");
        assert!(near(summary.p9999, 99_990), "{summary:?}");
        assert!(near(summary.max, 100_000), "{summary:?}");
        assert_eq!(summary.count, 100_000);
    }

    #[test]
    fn merged_recorders_count_as_one() {
        let mut low = Recorder::default();
        let mut high = Recorder::default();
        (0..99).for_each(|_| low.record(10));
        high.record(5000);
        low.merge(&high);
        let summary = low.summary().unwrap();
        assert_eq!((summary.count, summary.p50), (100, 10));
        assert!(summary.max.abs_diff(5000) <= 5);
    }

    #[test]
    fn an_empty_recorder_has_no_percentiles() {
        assert_eq!(Recorder::default().summary(), None);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_latency_past_the_bounds_is_counted_at_the_bound() {
        let mut recorder = Recorder::default();
        recorder.record(u64::MAX);
        recorder.record(0);
        assert_eq!(recorder.summary().unwrap().count, 2);
    }

    #[test]
    fn the_median_of_an_even_number_of_runs_is_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { min: 1.0, median: 2.5, max: 4.0 });
        assert_eq!(Spread::of([5.0, f64::NAN, 1.0, 2.0]).unwrap().median, 2.0);
    }

    #[test]
    fn a_stopwatch_that_is_off_counts_nothing() {
        let mut recorder = Recorder::default();
        let mut laps = Laps::start(Latency::Off);
        laps.restart();
        laps.lap(&mut recorder);
        assert_eq!(recorder.summary(), None);
    }
}
