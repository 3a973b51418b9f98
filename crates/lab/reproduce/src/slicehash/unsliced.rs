//! Incarnations of a Bloom filter on flash in their RAM layout: the reads that SliceBloom saves.

use nandex::raw::store::hash::mix;
use nandex_sim::RequestKind;
use nandex_sim::workload::SplitMix64;

use super::slicebloom::{BITS_PER_KEY, BUFFER_KEYS, HASHES, INCARNATIONS};
use super::throughput::LOOKUPS;
use crate::tape::{Act, Step, Tape};

/// Bits of an incarnation.
const BITS: u32 = BUFFER_KEYS * BITS_PER_KEY;
/// Bits in the body of a page.
const PAGE_BITS: u32 = 4064 * 8;
/// The divisor of the lookups: each reads a hundred times as many pages as with slices, so that fewer are
/// enough.
const FEWER: u64 = 100;

/// Incarnations in the order of their age, the newest first, the same ones in each partition.
pub struct Unsliced {
    partitions: u32,
    incarnations: Vec<Vec<u64>>,
}

impl Unsliced {
    /// Creates full ones: incarnation i has the keys from i n on, n of them.
    pub fn new(partitions: u32) -> Self {
        let incarnation = |number: u32| {
            let mut words = vec![0; BITS.div_ceil(64) as usize];
            let first = u64::from(number) * u64::from(BUFFER_KEYS);
            for key in first..first + u64::from(BUFFER_KEYS) {
                positions(key).for_each(|bit| words[(bit / 64) as usize] |= 1 << (bit % 64));
            }
            words
        };
        Self { partitions, incarnations: (0..INCARNATIONS).map(incarnation).collect() }
    }

    /// Returns lookups of keys of any age, in any partition.
    pub fn tape(&self, seed: u64) -> Tape {
        let mut rng = SplitMix64::stream(seed, 7);
        let mut tape = Tape::default();
        for _ in 0..LOOKUPS / FEWER {
            let partition = rng.below(self.partitions.into());
            let key = rng.below(u64::from(INCARNATIONS) * u64::from(BUFFER_KEYS));
            tape.push(Act::Lookup, &self.steps(partition, key));
        }
        tape
    }

    /// Returns the pages that a lookup reads, one after another.
    fn steps(&self, partition: u64, key: u64) -> Vec<Step> {
        let pages = u64::from(BITS.div_ceil(PAGE_BITS));
        let mut steps = Vec::new();
        for (words, age) in self.incarnations.iter().zip(0_u64..) {
            let first = (age * u64::from(self.partitions) + partition) * pages;
            let mut has_all = true;
            let mut read = Vec::new();
            for bit in positions(key) {
                let page = first + u64::from(bit / PAGE_BITS);
                if !read.contains(&page) {
                    let wave = steps.len() as u32;
                    steps.push(Step { kind: RequestKind::Read, page, pages: 1, wave });
                    read.push(page);
                }
                has_all = words[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
                if !has_all {
                    break;
                }
            }
            if has_all {
                break;
            }
        }
        steps
    }
}

/// Returns the bits of a key.
fn positions(key: u64) -> impl Iterator<Item = u32> {
    let bit = move |number| mix(key * u64::from(HASHES) + number) % u64::from(BITS);
    (0..u64::from(HASHES)).map(move |number| bit(number) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_and_the_newer_incarnations_are_read_first() {
        let unsliced = Unsliced::new(4);
        let last = |age: u64| {
            let steps = unsliced.steps(2, age * u64::from(BUFFER_KEYS) + 7);
            (steps.len() as u64, steps.last().unwrap().page / 16)
        };
        assert_eq!(last(0).1, 0);
        let (reads, age) = last(20);
        // Rarely a newer one seems to have all bits.
        assert_eq!(age, 20);
        assert!((20..30).contains(&reads), "{reads}");
    }
}
