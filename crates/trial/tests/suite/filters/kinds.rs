//! Filters of every row of the register, and the one in RAM that threads share, agree with the oracle.

use nandex::device::MemoryDevice;
use nandex::quotient::{self, Counts, QuotientFilter, SharedFilter};
use nandex::registry::{self, FilterRow};
use nandex::testing::TestFilter;
use nandex::{AnyFilter, Counter, Filter, OpenOptions, Result, Threads, Volume, VolumeOptions};

use super::runner::{Law, Maker, Runner, acts_of};
use super::support::RATES;

/// Filters of one variant of a row, one after another on the same device.
struct Registered {
    made: TestFilter,
    threads: Threads,
    device: MemoryDevice,
    is_made: bool,
}

impl Registered {
    fn new(row: &FilterRow, variant: u64, threads: usize) -> Self {
        let made = (row.testing.config)(variant, threads);
        let threads = if threads == 0 { Threads::Inline } else { Threads::Background };
        Self { made, threads, device: MemoryDevice::new(), is_made: false }
    }
}

impl Maker for Registered {
    type Made = AnyFilter;

    fn open(&mut self) -> AnyFilter {
        let device = std::sync::Arc::new(self.device.clone());
        let threads = self.threads;
        let TestFilter { config, options, .. } = &self.made;
        if std::mem::replace(&mut self.is_made, true) {
            let options_of_volume = OpenOptions { threads, ..OpenOptions::default() };
            let volume = Volume::open(device, options_of_volume).unwrap();
            return AnyFilter::open(&volume, "f", options).unwrap();
        }
        let volume = Volume::create(device, VolumeOptions { threads, ..VolumeOptions::tiny() });
        AnyFilter::create_with(&volume.unwrap(), "f", config, options).unwrap()
    }

    fn close(&mut self, filter: AnyFilter) -> Result<()> {
        filter.close()
    }

    fn filter<'f>(&self, filter: &'f AnyFilter) -> &'f dyn Filter {
        &**filter
    }

    fn counter<'f>(&self, filter: &'f AnyFilter) -> Option<&'f dyn Counter> {
        filter.counter()
    }

    fn compact(&self, _filter: &AnyFilter) -> Result<()> {
        Ok(())
    }

    fn entries(&self, _filter: &AnyFilter) -> Option<Vec<(u64, i64)>> {
        None
    }

    fn law(&self) -> Law {
        Law { universe: Some(self.made.universe as f64), shows_figures: false }
    }
}

#[test]
fn every_row_of_the_register_agrees_with_the_oracle() {
    for (row, filter) in registry::filters() {
        for variant in 0..filter.testing.variants {
            println!("{} {variant}", row.kind);
            let threads = variant as usize % 2;
            let maker = Registered::new(filter, variant, threads);
            Runner::new(maker).run(&acts_of(variant, 8));
        }
    }
}

/// Filters in RAM that are saved and taken up again.
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

    fn compact(&self, _filter: &SharedFilter) -> Result<()> {
        Ok(())
    }

    fn entries(&self, filter: &SharedFilter) -> Option<Vec<(u64, i64)>> {
        let filter = filter.filter();
        Some(filter.iter().map(|entry| (entry.fingerprint, entry.count)).collect())
    }

    fn law(&self) -> Law {
        let universe = self.config.shape().unwrap().split().universe().size();
        Law { universe: Some(universe as f64), shows_figures: true }
    }
}

#[test]
fn a_filter_in_ram_agrees_with_the_oracle_whatever_its_rate_and_counts() {
    for (number, rate) in (0..).zip(RATES) {
        // Room for the counts that are too great for slots: one in a hundred may be.
        for (counts, capacity) in
            [(Counts::One, 4), (Counts::One, 3000), (Counts::Small(8), 200_000)]
        {
            println!("{rate}, {counts:?}, {capacity}");
            let config = quotient::Config { counts, capacity, ..quotient::Config::new(3000, rate) };
            Runner::new(Shared { config, saved: None }).run(&acts_of(number, 25));
        }
    }
}
