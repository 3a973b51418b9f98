//! Filters made of many sources: sums, sources that fail, and filters of both variants.

use nandex_store::fingerprint::Universe;
use nandex_store::hash::mix;
use nandex_store::run::{Entry, Merge, MergeOptions, Source};

use super::super::*;
use super::oracle::{Oracle, assert_same};

/// Entries in batches of so many; fails where it is told.
struct Batched {
    entries: Vec<Entry>,
    next: usize,
    batch: usize,
    fails_at: usize,
}

impl Source for Batched {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        if self.next >= self.fails_at {
            return Err(nandex_store::Error::config("source", "fails here"));
        }
        let end = (self.next + self.batch).min(self.entries.len());
        out.extend(&self.entries[self.next..end]);
        let gave = end > self.next;
        self.next = end;
        Ok(gave)
    }
}

/// So many sources with different strides through the same fingerprints, and what they add up to.
fn sources(count: u64, fails_at: usize) -> (Vec<Box<dyn Source>>, Oracle) {
    let mut sum = Oracle::default();
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for source in 0..count {
        let fingerprints = (0..20_000).step_by(1 + source as usize % 5);
        // Signs take turns, so that neighbours cancel.
        let count = if source % 2 == 0 { 1 } else { -1 };
        let entries: Vec<_> =
            fingerprints.map(|fingerprint| Entry { fingerprint, count }).collect();
        entries.iter().for_each(|entry| sum.add(entry.fingerprint, entry.count));
        let batch = 1 + 97 * source as usize;
        sources.push(Box::new(Batched { entries, next: 0, batch, fails_at }));
    }
    (sources, sum)
}

fn shape() -> Shape {
    Shape::new(Universe::new(1 << 20).unwrap(), 100_000, Counts::Signed, 95_000).unwrap()
}

#[test]
fn a_filter_is_built_of_any_number_of_sources() {
    for count in [0, 1, 2, 3, 7, 8, 9, 31] {
        let (sources, sum) = sources(count, usize::MAX);
        let mut merge = Merge::new(sources, MergeOptions::default());
        match QuotientFilter::from_source(shape(), &mut merge) {
            Ok(filter) => assert_same(&filter, &sum),
            Err(error) => panic!("{count} sources: {error}"),
        }
    }
}

#[test]
fn a_source_that_fails_fails_the_filter_that_is_built_of_it() {
    for fails_at in [0, 1, 5000] {
        let (sources, _) = sources(3, fails_at);
        let mut merge = Merge::new(sources, MergeOptions::default());
        let error = QuotientFilter::from_source(shape(), &mut merge).unwrap_err();
        assert!(error.to_string().contains("fails here"), "at {fails_at}: {error}");
    }
}

#[test]
fn filters_of_both_variants_and_all_sizes_merge_into_the_same() {
    let universe = shape().split().universe();
    let mut sum = Oracle::default();
    let (mut readable, mut fast) = (Vec::new(), Vec::new());
    for part in 0..6u64 {
        let shape = shape().resized(5000 + 777 * part).unwrap();
        let (mut one, mut other) = (QuotientFilter::new(shape), RankFilter::new(shape));
        for key in 0..3000 {
            let fingerprint = universe.of(mix(key * (part + 1)));
            let count = if part % 2 == 0 { 1 } else { -1 };
            one.add(fingerprint, count).unwrap();
            other.add(fingerprint, count).unwrap();
            sum.add(fingerprint, count);
        }
        readable.push(one);
        fast.push(other);
    }
    let one = QuotientFilter::merged(shape(), &readable.iter().collect::<Vec<_>>()).unwrap();
    let other = <RankFilter as Slots>::merged(shape(), &fast.iter().collect::<Vec<_>>()).unwrap();
    assert_same(&one, &sum);
    assert!(other.iter().eq(sum.entries()));
    assert_eq!(other.entries(), one.entries());
}
