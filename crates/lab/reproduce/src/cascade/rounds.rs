//! Rounds of inserts, and their speed with a processor and a drive.
//!
//! ```text
//!   meanwhile  inserts  |--buffer 1--|--buffer 2--|..|--buffer 3--|     two buffers: the second is full
//!              merges                |---- of 1 ----|---- of 2 ----|    before the first one is merged
//!   between    |--queue--| sweep |--queue--| sweep |
//! ```
//!
//! A merge reads, works and writes at the same time, in I/O chunks; the slower of processor and drive decides.

use crate::fits::Fit;
use crate::{fits, vary};

/// The keys that fill a buffer, and the merge that follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Round {
    /// Keys that are inserted.
    pub keys: u64,
    /// Fingerprints, or keys, that the processor processes when the buffer is full.
    pub merged: u64,
    /// The drive's time for that merge alone, in nanoseconds.
    pub device_ns: u64,
}

/// The thread that merges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merging {
    /// Another thread, while a second buffer is filled.
    Meanwhile,
    /// The thread that inserts, between two buffers.
    Between,
}

/// The CPU cost of keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// For each key that goes into a buffer, in nanoseconds.
    pub insert_ns: f64,
    /// For each fingerprint that a merge writes, or key that a sweep applies, in nanoseconds.
    pub merge_ns: f64,
    /// The thread that merges.
    pub merging: Merging,
}

impl Costs {
    /// The costs of a cascade filter on a current processor: 15 M keys a second into buffers that fit no
    /// cache, 120 M fingerprints a second through a merge, as measured on one.
    pub const CASCADE: Self = Self { insert_ns: 65.0, merge_ns: 8.0, merging: Merging::Meanwhile };
    /// The costs of a queue of keys for one page each, and its sweep: 36 M a second in all, as measured.
    pub const PAGES: Self = Self { insert_ns: 10.0, merge_ns: 18.0, merging: Merging::Between };
    /// The costs of a queue of bits: 11 M keys a second in all, as measured.
    pub const BITS: Self = Self { insert_ns: 40.0, merge_ns: 50.0, merging: Merging::Between };
    /// The costs of bits set in cached pages: 8 M keys a second, as measured.
    pub const CACHED: Self = Self { insert_ns: 120.0, merge_ns: 0.0, merging: Merging::Between };

    /// The assumed cost of a key in a buffer on the deck's processor, in nanoseconds.
    pub const DECK_INSERT_NS: f64 = 400.0;

    /// Returns [`CASCADE`](Self::CASCADE) with its variation.
    pub(crate) fn cascade() -> Self {
        Self::CASCADE.varied(&fits::CASCADE_INSERT, &fits::CASCADE_MERGE)
    }

    /// Returns [`PAGES`](Self::PAGES) with its variation.
    pub(crate) fn pages() -> Self {
        Self::PAGES.varied(&fits::PAGES_INSERT, &fits::PAGES_SWEEP)
    }

    /// Returns [`BITS`](Self::BITS) with its variation.
    pub(crate) fn bits() -> Self {
        Self::BITS.varied(&fits::BITS_INSERT, &fits::BITS_SWEEP)
    }

    /// Returns [`CACHED`](Self::CACHED) with its variation.
    pub(crate) fn cached() -> Self {
        let insert_ns = vary::number(&fits::CACHED_INSERT, Self::CACHED.insert_ns);
        Self { insert_ns, ..Self::CACHED }
    }

    fn varied(self, insert: &Fit, merge: &Fit) -> Self {
        let insert_ns = vary::number(insert, self.insert_ns);
        let merge_ns = vary::number(merge, self.merge_ns);
        Self { insert_ns, merge_ns, ..self }
    }

    /// Returns the costs of a processor on which a cascade filter whose merges write each key `passes` times
    /// takes `keys_per_s` keys a second with one thread, if the drive takes no time. The cost of a key in the
    /// buffer is assumed; the rest is its cost in a merge.
    #[must_use]
    pub fn fitted(keys_per_s: f64, passes: f64) -> Self {
        let insert_ns = vary::number(&fits::DECK_INSERT, Self::DECK_INSERT_NS);
        let merge_ns = (1e9 / keys_per_s - insert_ns) / passes.max(1.0);
        Self { insert_ns, merge_ns, merging: Merging::Between }
    }
}

/// A number of inserted keys, and its time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    /// The nanoseconds since the first insert.
    pub ns: f64,
    /// The keys inserted until then.
    pub keys: f64,
}

/// Returns the time at which each round's buffer was full, from the beginning on.
#[must_use]
pub fn timeline(rounds: &[Round], costs: Costs) -> Vec<Point> {
    let mut points = vec![Point::default()];
    // The time at which the inserting thread continues, and the time at which the merging one has ended its
    // work.
    let (mut goes_on_ns, mut merged_ns) = (0.0_f64, 0.0_f64);
    let mut keys = 0.0;
    for round in rounds {
        keys += round.keys as f64;
        let full_ns = goes_on_ns + round.keys as f64 * costs.insert_ns;
        points.push(Point { ns: full_ns, keys });
        let merge_ns = (round.merged as f64 * costs.merge_ns).max(round.device_ns as f64);
        // A buffer is free when the merge before is done, and that merge begins when this one is full.
        goes_on_ns = full_ns.max(merged_ns);
        merged_ns = goes_on_ns + merge_ns;
        if costs.merging == Merging::Between {
            goes_on_ns = merged_ns;
        }
    }
    let last = Point { ns: merged_ns.max(goes_on_ns), keys };
    points.push(last);
    points
}

/// Returns the keys a second over a whole timeline, its last merge included.
#[must_use]
pub fn rate(points: &[Point]) -> f64 {
    points.last().map_or(0.0, |last| last.keys * 1e9 / last.ns.max(1.0))
}

/// Returns the keys a second in each of `parts` equal parts of the keys: the time in the middle of each, and
/// the rate.
#[must_use]
pub fn rates(points: &[Point], parts: u32) -> Vec<(Point, f64)> {
    let keys = points.last().map_or(0.0, |last| last.keys);
    let at = |part: u32| {
        let keys = keys * f64::from(part) / f64::from(parts);
        Point { ns: ns_at(points, keys), keys }
    };
    let rate_of = |part: u32| {
        let (from, to) = (at(part), at(part + 1));
        let middle =
            Point { ns: f64::midpoint(from.ns, to.ns), keys: f64::midpoint(from.keys, to.keys) };
        (middle, (to.keys - from.keys) * 1e9 / (to.ns - from.ns).max(1.0))
    };
    (0..parts).map(rate_of).collect()
}

/// Returns the time at which `keys` keys were in; between two points keys come evenly.
fn ns_at(points: &[Point], keys: f64) -> f64 {
    let behind = points.partition_point(|point| point.keys < keys);
    let (Some(before), Some(after)) = (points.get(behind.saturating_sub(1)), points.get(behind))
    else {
        return points.last().map_or(0.0, |last| last.ns);
    };
    let span = (after.keys - before.keys).max(1.0);
    before.ns + (after.ns - before.ns) * (keys - before.keys) / span
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Round = Round { keys: 100, merged: 300, device_ns: 1_000 };

    fn costs(merging: Merging, merge_ns: f64) -> Costs {
        Costs { insert_ns: 10.0, merge_ns, merging }
    }

    #[test]
    fn the_slower_of_two_threads_decides_and_one_thread_does_one_thing_after_the_other() {
        let rounds = [ROUND; 100];
        let rate = |merging, merge_ns| rate(&timeline(&rounds, costs(merging, merge_ns)));
        // A round takes 1,000 ns to insert; its merge 1,000 of the drive, or 300 times the processor's.
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.02;
        assert!(near(rate(Merging::Between, 0.0), 100.0 / 2e-6));
        assert!(near(rate(Merging::Meanwhile, 0.0), 100.0 / 1e-6));
        assert!(near(rate(Merging::Between, 10.0), 100.0 / 4e-6));
        assert!(near(rate(Merging::Meanwhile, 10.0), 100.0 / 3e-6));
    }

    #[test]
    fn a_buffer_is_filled_no_earlier_than_it_is_free() {
        let slow = Round { device_ns: 5_000, ..ROUND };
        let points = timeline(&[slow, ROUND, ROUND], costs(Merging::Meanwhile, 0.0));
        let times: Vec<_> = points.iter().map(|point| point.ns).collect();
        // The second buffer is full at 2,000 and waits for the first one's merge, from 1,000 to 6,000.
        assert_eq!(times, [0.0, 1_000.0, 2_000.0, 7_000.0, 8_000.0]);
    }

    #[test]
    fn rates_of_parts_are_those_of_the_whole_where_all_rounds_are_alike() {
        let points = timeline(&[ROUND; 64], costs(Merging::Between, 0.0));
        let rates = rates(&points, 8);
        assert_eq!(rates.len(), 8);
        for (_, found) in &rates[1..] {
            assert!((found / 5e7 - 1.0).abs() < 0.07, "{found}");
        }
    }

    #[test]
    fn a_fitted_processor_takes_what_it_was_fitted_to() {
        let rounds = [Round { keys: 1_000, merged: 5_000, device_ns: 0 }; 50];
        let found = rate(&timeline(&rounds, Costs::fitted(670_000.0, 5.0)));
        assert!((found / 670_000.0 - 1.0).abs() < 0.001, "{found}");
    }
}
