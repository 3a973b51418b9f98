//! Checks the counts of a run against its stream, which is drawn a second time.

use std::collections::HashMap;

use anyhow::{Result, ensure};

use crate::keys::{Picker, Rng};
use crate::process::thread_cpu_ns;
use crate::subject::Subject;
use crate::worker::Pass;

/// The number of keys drawn between two readings of the clock.
const CHUNK: u64 = 4096;

/// The results of the second drawing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counted {
    /// The share of compared counts that are above the true ones.
    pub above: f64,
    /// Different keys that were added.
    pub distinct_keys: u64,
    /// Processor time of drawing the keys, which is part of the run's, in nanoseconds.
    pub draw_cpu_ns: u64,
}

/// A bit for each index, set when the index is seen.
struct Seen {
    bits: Vec<u64>,
    count: u64,
}

impl Seen {
    fn of(entries: u64) -> Result<Self> {
        Ok(Self { bits: vec![0; usize::try_from(entries.div_ceil(64))?], count: 0 })
    }

    fn see(&mut self, index: u64) {
        let (word, bit) = (&mut self.bits[(index / 64) as usize], 1 << (index % 64));
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
    }
}

/// Draws the keys of a pass of [`add_picked`](crate::drive::add_picked) from among `entries` again, and
/// compares the counts of about `sample` of them.
///
/// # Errors
/// Returns the engine's error, or reports a count below the true one.
pub fn check_counts(
    subject: &dyn Subject,
    pass: Pass,
    operations: u64,
    picker: &Picker,
    sample: usize,
) -> Result<Counted> {
    let mut truth: HashMap<u64, u64> = HashMap::new();
    let (mut seen, mut draw_cpu_ns) = (Seen::of(picker.entries())?, 0);
    let mut drawn = Vec::new();
    for thread in 0..pass.threads as u64 {
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        let mut left = pass.share(operations, thread);
        while left > 0 {
            let size = left.min(CHUNK);
            drawn.clear();
            let start = thread_cpu_ns();
            drawn.extend((0..size).map(|_| {
                let index = picker.pick(&mut rng);
                (index, pass.keys.key(index))
            }));
            draw_cpu_ns += thread_cpu_ns() - start;
            for (index, key) in &drawn {
                seen.see(*index);
                if truth.len() < sample || truth.contains_key(key) {
                    *truth.entry(*key).or_default() += 1;
                }
            }
            left -= size;
        }
    }
    let above = share_above(subject, &truth)?;
    Ok(Counted { above, distinct_keys: seen.count, draw_cpu_ns })
}

/// Returns the share of counts that are above the true ones.
fn share_above(subject: &dyn Subject, truth: &HashMap<u64, u64>) -> Result<f64> {
    let keys: Vec<u64> = truth.keys().copied().collect();
    let mut counts = Vec::new();
    subject.client()?.count_many(&keys, &mut counts)?;
    ensure!(counts.len() == keys.len(), "{} counts of {} keys", counts.len(), keys.len());
    let mut above = 0u64;
    for ((key, &expected), &found) in truth.iter().zip(&counts) {
        let fits = found >= expected;
        ensure!(fits, "key {key:#018x} was added {expected} times, but its count is {found}");
        above += u64::from(found > expected);
    }
    Ok(above as f64 / keys.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::add_picked;
    use crate::keys::KeySpace;
    use crate::percentiles::Latency;
    use crate::structures::multiset;
    use crate::worker::Asks;
    use crate::workload::Kind;

    #[test]
    fn counts_are_compared_with_the_stream_drawn_once_more() {
        let (subject, picker) = (multiset(), Picker::new(1000, Some(0.99)));
        let pass = Pass {
            kind: Kind::Filter,
            keys: KeySpace::new(3),
            seed: 3,
            number: 1,
            threads: 2,
            batch: 16,
            latency: Latency::On,
            asks: Asks::Values,
            version: 0,
        };
        add_picked(&subject, pass, 5000, &picker).unwrap();
        let counted = check_counts(&subject, pass, 5000, &picker, 50).unwrap();
        assert_eq!(counted.above, 0.0);
        assert_eq!(Some(counted.distinct_keys), subject.status().entries);
        let error = check_counts(&subject, pass, 9000, &picker, 50).unwrap_err().to_string();
        assert!(error.contains("but its count is"), "{error}");
        add_picked(&subject, Pass { number: 2, ..pass }, 9000, &picker).unwrap();
        assert!(check_counts(&subject, pass, 5000, &picker, 50).unwrap().above > 0.5);
    }
}
