//! Structures of every kind answer as their oracles do, on devices of every kind, with and without threads:
//! through openings that end well and one that ends in a kill, with another structure in the same volume for
//! a while.

use std::sync::Arc;

use nandex::bufferhash::Policy;
use nandex::device::{Device, MemoryDevice};
use nandex::large::ValuesConfig;
use nandex::raw::device::EngineChoice;
use nandex::raw::store::hash::HashKind;
use nandex_baseline::registry;
use nandex_sim::preset::Preset;
use nandex_trial::filter::FilterSetup;
use nandex_trial::{Contract, Session, Stop, Watcher, live};
use proptest::prelude::*;
use proptest::test_runner::Config as ProptestConfig;

use crate::devices::{self, DURABILITIES};
use crate::{large, tables};

/// A watcher that ends a life with the first call that fails or answers wrong.
struct Strict;

impl<C: Contract> Watcher<C> for Strict {
    fn after(&mut self, _session: &mut Session<C>, result: Result<(), Stop>) -> Result<(), String> {
        result.map_err(|stop| format!("{stop:?}"))
    }
}

/// Lives by this seed with this many calls in each opening, opens the device once more and looks everything
/// up.
fn agree<C: Contract>(setup: &C, device: impl Fn() -> Arc<dyn Device>, life: (u64, u64)) {
    let mut session = Session::new(setup.clone());
    let result = live(&mut session, device(), life, &mut Strict);
    result.unwrap_or_else(|what| panic!("{setup:?}, seed and calls {life:?}: {what}"));
    let found = session.open(device()).and_then(|()| session.look());
    found.unwrap_or_else(|stop| panic!("{setup:?}, seed and calls {life:?}, in the end: {stop:?}"));
}

fn agree_in_memory<C: Contract>(setup: &C, life: (u64, u64)) {
    let device = MemoryDevice::new();
    agree(setup, || Arc::new(device.clone()), life);
}

/// Returns filters of every row of the registry, with background threads.
fn filter(number: u64) -> FilterSetup {
    let rows: Vec<_> = registry::filters().collect();
    let (_, row) = rows[number as usize % rows.len()];
    FilterSetup::registered(row, number).threaded()
}

#[test]
fn every_table_agrees_with_the_oracle_with_and_without_threads() {
    for (seed, setup) in (0..).zip(tables::Setup::all()) {
        agree_in_memory(&setup, (seed, 25));
        agree_in_memory(&setup.inline(), (seed, 20));
    }
}

#[test]
fn either_half_may_have_threads_while_the_other_has_none() {
    for durability in DURABILITIES {
        let of = |policy| {
            let roomy = policy == Policy::Reject;
            tables::Setup { roomy, widths: (16, 64), ..tables::Setup::new(policy, durability) }
        };
        for setup in tables::Setup::every(of) {
            agree_in_memory(&tables::Setup { flush_threads: 0, ..setup }, (9, 15));
            agree_in_memory(&tables::Setup { flush_threads: 2, ..setup.inline() }, (9, 15));
        }
    }
}

#[test]
fn every_table_of_large_values_agrees_with_the_oracle_with_and_without_threads() {
    for (seed, setup) in (0..).zip(large::configurations()) {
        for setup in [setup, setup.roomy()] {
            agree_in_memory(&setup, (seed, 300));
            agree_in_memory(&setup.threaded(), (seed, 300));
        }
    }
}

#[test]
fn structures_in_files_agree_with_the_oracle_on_every_engine() {
    let engines = [EngineChoice::Uring, EngineChoice::Threads, EngineChoice::Buffered];
    for number in 0..27 {
        let Some(device) = devices::file(engines[number as usize % 3]) else { continue };
        agree(&tables::Setup::any(number as usize), device, (100 + number, 12));
    }
    for number in 0..12 {
        let Some(device) = devices::file(engines[number as usize % 3]) else { continue };
        agree(&filter(number * 7), device, (100 + number, 20));
    }
}

#[test]
fn structures_on_every_simulated_drive_agree_with_the_oracle() {
    let mut drives = 0;
    for (number, name) in (0..).zip(Preset::names()) {
        let Some(drive) = devices::drive(name) else { continue };
        drives += 1;
        println!("on {name}");
        agree(&filter(number * 11), || Arc::new(drive.clone()), (200 + number, 40));
        for number in [number, number + 31] {
            let Some(drive) = devices::drive(name) else { continue };
            let setup = tables::Setup::any(number as usize);
            agree(&setup, || Arc::new(drive.clone()), (200 + number, 20));
        }
    }
    assert!(drives >= 14, "{drives} drives");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, max_shrink_iters: 100, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_calls_of_any_table_agree_with_the_oracle(
        number in 0..720_usize, seed: u64, calls in 0..30_u64,
    ) {
        agree_in_memory(&tables::Setup::any(number), (seed, calls));
    }

    #[test]
    fn any_calls_of_any_filter_agree_with_the_oracle(
        number in 0..1200_u64, seed: u64, calls in 0..40_u64,
    ) {
        agree_in_memory(&filter(number), (seed, calls));
    }

    #[test]
    fn any_calls_of_large_values_in_sizes_of_any_sort_agree_with_the_oracle(
        durability in 0..3_usize, identity: bool, seed: u64, calls in 0..60_u64,
        (segment_pages, io_chunk_pages) in (4..12_u32).prop_flat_map(|pages| (Just(pages), 1..=pages)),
    ) {
        let setup = large::Setup::new(DURABILITIES[durability], nandex::WhenFull::Refuse);
        let hash = if identity { HashKind::Identity } else { HashKind::Xxh3 };
        let values = ValuesConfig { segment_pages, io_chunk_pages, segments: 40, ..setup.values };
        agree_in_memory(&large::Setup { hash, values, ..setup }, (seed, calls));
    }
}
