//! Filters of every row of the registry, and the one in RAM that threads share, agree with the exact
//! multiset; their wrong answers and their figures are as chance and the calls predict.

use std::sync::Arc;

use nandex::cascade::Cascade;
use nandex::device::MemoryDevice;
use nandex::raw::quotient::{self, Counts, QuotientFilter, SharedFilter};
use nandex::raw::store::hash::{HashKind, KeyHasher};
use nandex::testing::TestFilter;
use nandex::{
    AnyFilter, Counter, Counting, Durability, Filter, Result, Threads, Volume, VolumeOpenOptions,
    VolumeOptions,
};
use nandex_baseline::registry::{self, FilterRow};
use proptest::prelude::*;
use proptest::test_runner::Config as ProptestConfig;

use super::runner::{Law, Maker, Runner, acts, acts_of};
use crate::devices::DURABILITIES;

/// Rates of false positives.
const RATES: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-6, 1e-9];

/// Filters of one variant of a row, one after another on the same device.
struct Registered {
    made: TestFilter,
    deletes: bool,
    durability: Durability,
    threads: Threads,
    device: MemoryDevice,
    is_made: bool,
    hasher: KeyHasher,
}

impl Registered {
    /// Creates a maker. Consecutive numbers take each variant with each durability, with and without threads.
    fn numbered(row: &FilterRow, number: u64) -> Self {
        let (variant, round) = (number % row.testing.variants, number / row.testing.variants);
        let threads = (variant + round) % 2;
        let made = (row.testing.config)(variant, threads as usize);
        println!("{}, {number}", made.label);
        Self {
            made,
            deletes: row.deletes,
            durability: DURABILITIES[round as usize % 3],
            threads: if threads == 0 { Threads::Inline } else { Threads::Background },
            device: MemoryDevice::new(),
            is_made: false,
            hasher: KeyHasher::new(HashKind::default(), 0),
        }
    }

    /// Returns another filter of its kind, which has these amounts, and has lost as much again of the first
    /// ones.
    fn other(&self, amounts: &[(&[u8], i64)], lost: usize) -> AnyFilter {
        let options = VolumeOptions {
            durability: Durability::Never,
            threads: self.threads,
            ..VolumeOptions::tiny()
        };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let TestFilter { config, options, .. } = &self.made;
        let other = AnyFilter::create_with(&volume, "other", config, options).unwrap();
        let Some(counter) = other.counter() else { return other };
        counter.add_many(amounts).unwrap();
        let lost: Vec<_> = amounts[..lost].iter().map(|(key, amount)| (*key, -amount)).collect();
        counter.add_many(&lost).unwrap();
        other
    }
}

impl Maker for Registered {
    type Made = AnyFilter;

    fn open(&mut self) -> AnyFilter {
        let device = Arc::new(self.device.clone());
        let Self { durability, threads, .. } = *self;
        let TestFilter { config, options, .. } = &self.made;
        if std::mem::replace(&mut self.is_made, true) {
            let of_volume =
                VolumeOpenOptions { durability, threads, ..VolumeOpenOptions::default() };
            let volume = Volume::open(device, of_volume).unwrap();
            return AnyFilter::open(&volume, "f", options).unwrap();
        }
        let of_volume = VolumeOptions { durability, threads, ..VolumeOptions::tiny() };
        let volume = Volume::create(device, of_volume).unwrap();
        self.hasher = volume.hasher();
        AnyFilter::create_with(&volume, "f", config, options).unwrap()
    }

    fn close(&mut self, filter: AnyFilter) -> Result<()> {
        filter.close()
    }

    fn filter<'f>(&self, filter: &'f AnyFilter) -> &'f dyn Filter {
        &**filter
    }

    fn counter<'f>(&self, filter: &'f AnyFilter) -> Option<&'f dyn Counter> {
        filter.counter().map(|counter| counter as _)
    }

    fn compact(&self, filter: &AnyFilter) -> Result<()> {
        match (filter.of::<Cascade>(), filter.of::<Counting>()) {
            (Some(cascade), _) => cascade.compact(),
            (_, Some(counting)) => counting.compact(),
            _ => Ok(()),
        }
    }

    fn absorb(&self, filter: &AnyFilter, amounts: &[(&[u8], i64)], lost: usize) -> bool {
        let absorbed = match (filter.of::<Cascade>(), filter.of::<Counting>()) {
            (Some(cascade), _) => cascade.absorb(self.other(amounts, lost).of().unwrap()),
            (_, Some(counting)) => counting.absorb(self.other(amounts, lost).of().unwrap()),
            _ => return false,
        };
        absorbed.unwrap();
        true
    }

    fn absorb_sorted(&self, filter: &AnyFilter, amounts: &[(&[u8], i64)]) -> bool {
        let Some(counting) = filter.of::<Counting>() else { return false };
        let mut sorted = amounts.to_vec();
        sorted.sort_by_key(|(key, _)| (self.hasher.hash(key).place, *key));
        let mut absorbing = counting.absorb_sorted();
        sorted.iter().try_for_each(|(key, amount)| absorbing.push(key, *amount)).unwrap();
        absorbing.finish().unwrap();
        true
    }

    fn remove_many(&self, filter: &AnyFilter, keys: &[&[u8]]) -> bool {
        filter.of::<Counting>().map(|counting| counting.remove_many(keys).unwrap()).is_some()
    }

    fn entries(&self, filter: &AnyFilter) -> Option<Vec<(u64, i64)>> {
        let entries = filter.of::<Cascade>()?.iter().map(|entry| entry.unwrap());
        Some(entries.map(|entry| (entry.fingerprint, entry.count)).collect())
    }

    fn law(&self) -> Law {
        let shows_figures = self.made.config.kind() == "cascade";
        let TestFilter { universe, key_bytes, window, .. } = self.made;
        let deletes = self.deletes;
        Law { universe: universe as f64, shows_figures, key_bytes, deletes, window }
    }
}

#[test]
fn every_row_of_the_register_agrees_with_the_oracle_in_each_durability() {
    for (_, row) in registry::filters() {
        for number in 0..3 * row.testing.variants {
            // Waiting for each acknowledgement makes a run long.
            let len = if number < row.testing.variants { 6 } else { 10 };
            Runner::new(Registered::numbered(row, number)).run(&acts_of(number, len));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12, max_shrink_iters: 100, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_acts_on_any_filter_agree_with_the_oracle(number in 0..1200_u64, acts in acts(20)) {
        for (_, row) in registry::filters() {
            Runner::new(Registered::numbered(row, number)).run(&acts);
        }
    }
}

/// Filters in RAM that are saved and loaded again.
struct Shared {
    config: quotient::Config,
    saved: Option<QuotientFilter>,
}

impl Maker for Shared {
    type Made = SharedFilter;

    fn open(&mut self) -> SharedFilter {
        match self.saved.take() {
            Some(filter) => SharedFilter::with_filter(self.config, filter).unwrap(),
            None => SharedFilter::new(self.config).unwrap(),
        }
    }

    fn close(&mut self, filter: SharedFilter) -> Result<()> {
        self.saved = Some(filter.filter().clone());
        Ok(())
    }

    fn filter<'f>(&self, filter: &'f SharedFilter) -> &'f dyn Filter {
        filter
    }

    fn counter<'f>(&self, filter: &'f SharedFilter) -> Option<&'f dyn Counter> {
        // Without counts each insert takes a slot, and a great amount would take too many.
        matches!(self.config.counts, Counts::Small(_)).then_some(filter as &dyn Counter)
    }

    fn entries(&self, filter: &SharedFilter) -> Option<Vec<(u64, i64)>> {
        let filter = filter.filter();
        Some(filter.iter().map(|entry| (entry.fingerprint, entry.count)).collect())
    }

    fn law(&self) -> Law {
        let universe = self.config.shape().unwrap().split().universe().size();
        let universe = universe as f64;
        Law { universe, shows_figures: true, key_bytes: None, deletes: true, window: None }
    }
}

#[test]
fn a_filter_in_ram_agrees_with_the_oracle_whatever_its_rate_and_counts() {
    for (number, rate) in (0..).zip(RATES) {
        // Space for the counts that are too great for slots: one in a hundred may be.
        for (counts, capacity) in [
            (Counts::One, 4),
            (Counts::One, 3000),
            (Counts::Signed, 10),
            (Counts::Small(8), 200_000),
        ] {
            println!("{rate}, {counts:?}, {capacity}");
            let config = quotient::Config { counts, capacity, ..quotient::Config::new(3000, rate) };
            Runner::new(Shared { config, saved: None }).run(&acts_of(number, 25));
        }
    }
}
