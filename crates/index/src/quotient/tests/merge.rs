//! Merges of many sources: ties, sums, what is read ahead, and sources that fail.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use nandex_store::fingerprint::Universe;
use nandex_store::run::{Entry, Source};

use super::super::*;
use super::oracle::{Oracle, drain};

/// Entries in batches of so many; counts those it gave, and fails where it is told.
struct Counted<'a> {
    entries: Vec<Entry>,
    next: usize,
    batch: usize,
    fails_at: usize,
    given: &'a AtomicUsize,
}

impl Source for Counted<'_> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        if self.next >= self.fails_at {
            return Err(nandex_store::Error::config("source", "fails here"));
        }
        let end = (self.next + self.batch).min(self.entries.len());
        out.extend(&self.entries[self.next..end]);
        self.given.fetch_add(end - self.next, Relaxed);
        let gave = end > self.next;
        self.next = end;
        Ok(gave)
    }
}

/// So many sources with different strides through the same fingerprints, and what they add up to.
fn sources(
    count: u64,
    fails_at: usize,
    given: &AtomicUsize,
) -> (Vec<Box<dyn Source + '_>>, Oracle) {
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
        sources.push(Box::new(Counted { entries, next: 0, batch, fails_at, given }));
    }
    (sources, sum)
}

#[test]
fn any_number_of_sources_add_up() {
    for count in [0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 31] {
        let given = AtomicUsize::new(0);
        let (sources, sum) = sources(count, usize::MAX, &given);
        assert_eq!(drain(Merge::new(sources).unwrap()), sum.entries(), "{count} sources");
    }
}

#[test]
fn a_merge_reads_no_more_than_a_batch_of_each_source_ahead() {
    let given = AtomicUsize::new(0);
    let (sources, _) = sources(6, usize::MAX, &given);
    let ahead: usize = (0..6).map(|source| 1 + 97 * source).sum();
    let mut merge = Merge::new(sources).unwrap();
    assert_eq!(given.load(Relaxed), ahead);
    let mut out = Vec::new();
    while merge.next_batch(&mut out).unwrap() {
        // All that was read and not given is less than two batches behind the last fingerprint.
        let last = out.last().unwrap().fingerprint as usize + 1;
        let below: usize = (0..6usize).map(|source| last.div_ceil(1 + source % 5)).sum();
        assert!(given.load(Relaxed) <= below + 2 * ahead, "{last}");
    }
}

#[test]
fn a_source_that_fails_fails_the_merge_and_the_filter_that_is_built_of_it() {
    for fails_at in [0, 1, 5000] {
        let given = AtomicUsize::new(0);
        let (sources, _) = sources(3, fails_at, &given);
        let universe = Universe::new(1 << 20).unwrap();
        let shape = Shape::new(universe, 30_000, Counts::Signed, 28_000).unwrap();
        let built = Merge::new(sources)
            .and_then(|mut merge| QuotientFilter::from_source(shape, &mut merge));
        assert!(built.unwrap_err().to_string().contains("fails here"), "at {fails_at}");
    }
}

#[test]
fn sums_past_63_bits_stay_at_the_greatest_count() {
    let great = |count| {
        let entry = Entry { fingerprint: 7, count };
        Box::new(Batches(std::iter::once(entry))) as Box<dyn Source>
    };
    let sum = |counts: &[i64]| {
        drain(Merge::new(counts.iter().map(|count| great(*count)).collect()).unwrap())
    };
    assert_eq!(sum(&[i64::MAX, 5]), [Entry { fingerprint: 7, count: i64::MAX }]);
    assert_eq!(sum(&[-i64::MAX, -5]), [Entry { fingerprint: 7, count: -i64::MAX }]);
    assert_eq!(sum(&[i64::MAX, -i64::MAX]), []);
}
