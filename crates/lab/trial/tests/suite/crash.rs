//! Power cuts of structures with background threads, and of simulated drives, where writes end in an order of
//! their own: during a sample of device operations (during every one with `NANDEX_SWEEP=full`), with four
//! choices of survivors, and again while the volume recovers from the first cut.
//!
//! The order of operations varies with threads, so a failing cut may need a few tries to repeat. Without
//! threads trials cut everywhere: see `tests/trials.rs`.

use std::fmt::Debug;
use std::path::Path;

use nandex_baseline::registry;
use nandex_trial::{
    Contract, Counters, DeviceKind, REPLAY, Recording, Sweep, amount, filter, neighbors, parallel,
    table,
};

use crate::large;

/// Repeats the cut in a file, if one is given.
fn is_replay<C: Contract>(setups: &[C]) -> bool {
    let Some(path) = std::env::var_os(REPLAY) else { return false };
    let recording = Recording::read(Path::new(&path)).unwrap_or_else(|what| panic!("{what}"));
    for setup in setups.iter().filter(|setup| recording.is_of(*setup)) {
        let replayed = recording.replay(setup);
        replayed.unwrap_or_else(|what| panic!("{what}\nas recorded: {}", recording.what));
        println!("does not fail any more: {}", recording.what);
    }
    true
}

fn cut<C: Contract + Debug>(setup: C, seed: u64, device: DeviceKind, one_in: u64) -> Counters {
    let mut counters = Counters::default();
    let (one_in, failures) = (amount::one_in(one_in), Some(env!("CARGO_TARGET_TMPDIR")));
    let sweep = Sweep { seed, device, calls: 40, one_in, failures };
    let result = nandex_trial::sweep(setup.clone(), sweep, &mut counters);
    result.unwrap_or_else(|what| panic!("{setup:?}, {sweep:?}: {what}"));
    counters
}

/// Cuts each of these during some operations of one life.
fn cut_all<C: Contract>(setups: impl Iterator<Item = C>, device: DeviceKind, one_in: u64) {
    let setups: Vec<_> = setups.collect();
    if is_replay(&setups) {
        return;
    }
    let mut total = Counters::default();
    let cut = |(seed, setup)| cut(setup, seed, device, one_in);
    parallel::each((0..).zip(setups), cut).iter().for_each(|counters| total += counters);
    println!("{total}");
    assert!(total.cut_points > 100 && total.cut_recoveries > 30, "{total}");
}

#[test]
fn what_a_bufferhash_with_threads_vouched_for_outlives_a_power_cut() {
    let setups = (0..24).map(|number| table::TableSetup::bufferhash(number).threaded());
    cut_all(setups, DeviceKind::Instant, 20);
}

#[test]
fn what_a_slicehash_with_threads_vouched_for_outlives_a_power_cut() {
    let setups =
        (0..48).step_by(2).map(|number| table::TableSetup::slicehash(number / 3 * 3).threaded());
    cut_all(setups, DeviceKind::Instant, 20);
}

#[test]
fn what_a_cascade_with_threads_vouched_for_outlives_a_power_cut() {
    let setups = (0..24).map(|number| filter::FilterSetup::cascade(number).threaded());
    cut_all(setups, DeviceKind::Instant, 60);
}

#[test]
fn what_a_table_of_large_values_vouched_for_outlives_a_power_cut() {
    let setups = large::configurations();
    cut_all(setups.clone(), DeviceKind::Instant, 10);
    cut_all(setups.map(large::Setup::threaded), DeviceKind::Instant, 20);
}

/// Uses the configurations that rows of the registry have for tests: so a new structure is cut without an
/// edit here.
#[test]
fn what_any_structure_of_the_register_vouched_for_outlives_a_power_cut() {
    for (_, row) in registry::tables() {
        let setups = (0..6).map(|number| table::TableSetup::registered(row, number));
        cut_all(setups.clone(), DeviceKind::Instant, 40);
        cut_all(setups.map(table::TableSetup::threaded), DeviceKind::Instant, 40);
    }
    for (_, row) in registry::filters() {
        let setups = (0..6).map(|number| filter::FilterSetup::registered(row, 7 * number));
        cut_all(setups.clone(), DeviceKind::Instant, 40);
        cut_all(setups.map(filter::FilterSetup::threaded), DeviceKind::Instant, 40);
    }
}

#[test]
fn what_an_index_of_neighbours_vouched_for_outlives_a_power_cut_in_all_tables_or_in_none() {
    for (_, row) in registry::neighbors() {
        let setups = (0..12).map(|number| neighbors::NeighborsSetup::registered(row, 7 * number));
        cut_all(setups.clone(), DeviceKind::Instant, 40);
        cut_all(setups.map(neighbors::NeighborsSetup::threaded), DeviceKind::Instant, 40);
    }
}

#[test]
fn what_was_vouched_for_outlives_a_power_cut_of_a_simulated_drive() {
    for device in ["crucial-m4-paper", "transcend-ts32"].map(DeviceKind::Preset) {
        let tables = [table::TableSetup::bufferhash(2), table::TableSetup::slicehash(1)];
        cut_all(tables.into_iter(), device, 20);
        cut_all(tables.into_iter().map(table::TableSetup::threaded), device, 20);
        let filters = [filter::FilterSetup::cascade(0), filter::FilterSetup::cascade(25)];
        cut_all(filters.into_iter(), device, 20);
        cut_all(filters.into_iter().map(filter::FilterSetup::threaded), device, 20);
    }
}
