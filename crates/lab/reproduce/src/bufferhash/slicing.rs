//! Section 7.3.1, third part: the CPU cost of lookups without bit-slicing.

use nandex::raw::bufferhash::filter::{FilterShape, IncarnationFilter, Slices};
use nandex_sim::workload::SplitMix64;

use super::cpu_ns;
use super::lab::{BUFFER_ENTRIES, FILTER_BITS, INCARNATIONS};
use crate::{Experiment, Outcome, Result, Row, Scale, Table, fits, vary};

/// See the [module](self).
pub struct NoBitSlicing;

/// The number of keys to look up.
const ASKED: u64 = 1 << 27;
/// The time of a cache miss, in nanoseconds: assumed, as for the paper's machines.
pub const LINE_NS: f64 = 60.0;
/// The time of a flash read on the Intel SSD (7.2.2), in nanoseconds.
const READ_NS: f64 = 150_000.0;

/// The words of memory that were read, for both layouts.
#[derive(Default)]
struct Touched {
    sliced: u64,
    apart: u64,
}

impl Experiment for NoBitSlicing {
    fn name(&self) -> &'static str {
        "no-bit-slicing"
    }

    fn title(&self) -> &'static str {
        "Filters without bit-slicing"
    }

    fn reference(&self) -> &'static str {
        "section 7.3.1"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let lookups = scale.of(ASKED);
        let absent = touched(lookups, LookedUp::Absent, scale.seed())?;
        let oldest = touched(lookups, LookedUp::InTheOldest, scale.seed())?;
        let mean = |words: u64| words as f64 / lookups as f64;
        let saved_ns = |words: &Touched| {
            (mean(words.apart) - mean(words.sliced)) * vary::number(&fits::FILTER_LINE, LINE_NS)
        };
        let part = |saved_ns: f64, else_ns: f64| saved_ns / (else_ns + saved_ns);
        let cpu_ns = cpu_ns() as f64;
        let rows = vec![
            Row::measured("absent key, bit-sliced: words looked at", "", mean(absent.sliced)),
            Row::measured("absent key, filters apart: words looked at", "", mean(absent.apart)),
            Row::assumed("absent key: part of the lookup's time saved", "", part(saved_ns(&absent), cpu_ns), fits::FILTER_LINE.name)
                .paper(0.2)
                .why("Computed, not timed: words at 60 ns each, which is assumed, and 5.5 us for all else. The paper timed it; it depends on the machine's caches."),
            Row::measured("key of the oldest incarnation, bit-sliced: words looked at", "", mean(oldest.sliced)),
            Row::measured("key of the oldest incarnation, filters apart: words looked at", "", mean(oldest.apart)),
            Row::assumed("key of the oldest incarnation: part of the lookup's time saved, with a flash read of 0.15 ms", "", part(saved_ns(&oldest), cpu_ns + READ_NS), fits::FILTER_LINE.name)
                .why("The paper: negligible where most keys are found, since flash decides."),
        ];
        Ok(Outcome {
            setup: vec![format!(
                "16 Bloom filters of {BUFFER_ENTRIES} entries and 16 bits each, asked for {lookups} keys. Bit-sliced, a word holds \
                 the same bit of all of them, and asking stops when no filter is left; apart, \
                 each filter is asked bit by \
                 bit until one is zero. Words are far from one another in both, so each is a cache line."
            )],
            tables: vec![Table {
                title: "Memory looked at by the filters of a lookup".into(),
                rows,
            }],
            charts: Vec::new(),
        })
    }
}

/// The keys that are looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LookedUp {
    Absent,
    InTheOldest,
}

fn touched(lookups: u64, which: LookedUp, seed: u64) -> Result<Touched> {
    let filter = IncarnationFilter::new(FilterShape::bloom(BUFFER_ENTRIES, FILTER_BITS, 1)?);
    let slices = Slices::new(filter.shape());
    let mut rng = SplitMix64::stream(seed, 3);
    let mut oldest = Vec::new();
    for column in 0..INCARNATIONS {
        let keys: Vec<u64> = (0..BUFFER_ENTRIES).map(|_| rng.next_u64()).collect();
        slices.or_column(column as usize, &filter.build(&keys).bits);
        oldest = keys;
    }
    let mut touched = Touched::default();
    for number in 0..lookups {
        let hash = match which {
            LookedUp::Absent => rng.next_u64(),
            LookedUp::InTheOldest => oldest[(number % u64::from(BUFFER_ENTRIES)) as usize],
        };
        let mut rows = Vec::with_capacity(16);
        filter.for_each_run(&filter.positions(hash), |run| rows.push(slices.row(run.start)[0]));
        touched.sliced += sliced(&rows);
        touched.apart += apart(&rows);
    }
    Ok(touched)
}

/// Counts the rows until no column remains.
fn sliced(rows: &[u64]) -> u64 {
    let mut left = (1_u64 << INCARNATIONS) - 1;
    let mut looked = 0;
    for row in rows {
        left &= row;
        looked += 1;
        if left == 0 {
            break;
        }
    }
    looked
}

/// Counts the bits of each column until one is zero.
fn apart(rows: &[u64]) -> u64 {
    let in_column = |column: u64| {
        let zero = rows.iter().position(|row| row >> column & 1 == 0);
        zero.map_or(rows.len(), |at| at + 1) as u64
    };
    (0..INCARNATIONS).map(in_column).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_stops_where_nothing_is_left() {
        // Column 0 has both bits, column 1 the first; all others none.
        let rows = [0b11, 0b01];
        assert_eq!(sliced(&rows), 2);
        assert_eq!(apart(&rows), 2 + 2 + 14);
        assert_eq!(sliced(&[0, 0b11]), 1);
    }
}
