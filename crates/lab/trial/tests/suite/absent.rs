//! Inserts of absent keys: equal to the oracle's sequential inserts, and with one winner for each key among
//! threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use nandex::device::{Device, MemoryDevice};
use nandex::raw::oracle::{MapTable, Multiset};
use nandex::{AnyFilter, AnyTable, Filter, Table, Value};
use nandex_baseline::registry;
use nandex_sim::workload::SplitMix64;
use nandex_trial::Contract;
use nandex_trial::filter::FilterSetup;
use nandex_trial::table::TableContract;

use crate::tables::Setup;

/// The number of keys of a table, few enough that many come again.
const KEYS: u64 = 700;

/// The number of keys that threads race for: they fill each buffer several times.
const RACED: u64 = 3000;

/// Threads that insert the same keys.
const THREADS: u64 = 4;

/// Every fifth configuration of tables, with space for all keys.
fn setups() -> impl Iterator<Item = Setup> {
    Setup::all().step_by(5).map(|setup| Setup { roomy: true, ..setup })
}

/// Returns filters in which no two keys share a fingerprint.
fn filters() -> impl Iterator<Item = FilterSetup> {
    let of_row = |(_, row)| (0..60).map(move |number| FilterSetup::registered(row, number));
    registry::filters().flat_map(of_row).filter(FilterSetup::is_exact)
}

fn memory() -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new())
}

fn pairs_of(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect()
}

/// Makes a call of both, and compares the answers.
fn call_table(table: &AnyTable, oracle: &MapTable, setup: &Setup, rng: &mut SplitMix64, call: u64) {
    let number = rng.below(KEYS);
    let (key, value) = (setup.key(number), setup.value(number, call));
    match rng.below(8) {
        0 => assert_eq!(table.remove(&key).is_ok(), oracle.remove(&key).is_ok()),
        1 => assert_eq!(table.insert(&key, &value).is_ok(), oracle.insert(&key, &value).is_ok()),
        2 if call.is_multiple_of(5) => table.flush().unwrap(),
        2..=4 => {
            let found = table.get_or_insert(&key, &value).unwrap();
            assert_eq!(found, oracle.get_or_insert(&key, &value).unwrap(), "{setup:?}, {number}");
        }
        _ => {
            let numbers = (0..rng.below(90)).map(|_| rng.below(KEYS));
            let pairs: Vec<_> =
                numbers.map(|number| (setup.key(number), setup.value(number, call))).collect();
            let pairs = pairs_of(&pairs);
            let found = table.get_or_insert_many(&pairs).unwrap();
            assert_eq!(found, oracle.get_or_insert_many(&pairs).unwrap(), "{setup:?}, {call}");
        }
    }
}

#[test]
fn tables_insert_absent_keys_as_the_oracle() {
    for setup in setups().flat_map(|setup| [setup, setup.inline()]) {
        let device = memory();
        let (mut table, mut rng) =
            (setup.create_on(Arc::clone(&device)).unwrap(), SplitMix64::new(3));
        let oracle = MapTable::new(setup.widths.0, setup.widths.1);
        for life in 0..3 {
            (0..60)
                .for_each(|call| call_table(&table, &oracle, &setup, &mut rng, 60 * life + call));
            table.close().unwrap();
            table = setup.open_on(Arc::clone(&device)).unwrap();
        }
    }
}

/// Performs one thread's inserts of all keys, beginning at its own key; returns the earlier value for each.
fn race_for_table(table: &AnyTable, setup: &Setup, thread: u64) -> Vec<Option<u64>> {
    let mut found = vec![None; RACED as usize];
    let numbers: Vec<_> = (0..RACED).map(|number| (number + thread * 5) % RACED).collect();
    for numbers in numbers.chunks(1 + 90 * thread as usize) {
        let mut value = setup.value(0, 0);
        value[..8].copy_from_slice(&thread.to_le_bytes());
        let pair = |number: &u64| (setup.key(*number), value.clone());
        let pairs: Vec<_> = numbers.iter().map(pair).collect();
        let answers = table.get_or_insert_many(&pairs_of(&pairs)).unwrap();
        for (number, answer) in numbers.iter().zip(answers) {
            let thread = |value: Value| u64::from_le_bytes(value[..8].try_into().unwrap());
            found[*number as usize] = answer.map(thread);
        }
    }
    found
}

#[test]
fn of_threads_that_insert_a_key_one_wins() {
    for setup in setups().map(|setup| Setup { widths: (16, 64), ..setup }) {
        let table = setup.create_on(memory()).unwrap();
        let found: Vec<_> = std::thread::scope(|scope| {
            let race = |thread| {
                let table = &table;
                scope.spawn(move || race_for_table(table, &setup, thread))
            };
            let threads: Vec<_> = (0..THREADS).map(race).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for number in 0..RACED as usize {
            let of_key: Vec<_> = found.iter().map(|found| found[number]).collect();
            let winners: Vec<_> =
                (0..THREADS).filter(|it| of_key[*it as usize].is_none()).collect();
            assert_eq!(winners.len(), 1, "{setup:?}: key {number}, {of_key:?}");
            assert!(of_key.iter().flatten().all(|found| *found == winners[0]), "{of_key:?}");
        }
    }
}

/// Inserts each key twice in one batch, all new, while buffers leave in the background.
#[test]
fn of_equal_keys_in_a_batch_the_first_is_inserted() {
    for setup in setups().filter(|setup| setup.widths.1 >= 8) {
        let table = setup.create_on(memory()).unwrap();
        for first in (0..RACED).step_by(30) {
            let numbers = first..first + 30;
            let mut pairs: Vec<_> =
                numbers.clone().map(|number| (setup.key(number), setup.value(number, 1))).collect();
            pairs.extend(numbers.map(|number| (setup.key(number), setup.value(number, 2))));
            let found = table.get_or_insert_many(&pairs_of(&pairs)).unwrap();
            for (number, at) in (first..).zip(0..30) {
                let there = Some(Value::new(&setup.value(number, 1)));
                assert_eq!((found[at], found[at + 30]), (None, there), "{setup:?}: {number}");
            }
        }
    }
}

#[test]
fn filters_insert_absent_keys_as_the_oracle() {
    for setup in filters() {
        let device = memory();
        let (mut filter, mut rng) =
            (setup.create_on(Arc::clone(&device)).unwrap(), SplitMix64::new(4));
        let oracle = Multiset::new();
        for call in 0..150 {
            let keys: Vec<_> = (0..rng.below(60)).map(|_| rng.below(250).to_le_bytes()).collect();
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            let is_new = filter.insert_if_absent_many(&keys).unwrap();
            assert_eq!(is_new, oracle.insert_if_absent_many(&keys).unwrap(), "{setup:?}, {call}");
            if let Some(key) = keys.first().filter(|_| setup.deletes()) {
                filter.delete(key).unwrap();
                oracle.delete(key).unwrap();
            }
            if call % 40 == 39 {
                filter.close().unwrap();
                filter = setup.open_on(Arc::clone(&device)).unwrap();
            }
        }
    }
}

/// Adds each key, and counts the wins of each.
fn race_for_filter(filter: &AnyFilter, setup: FilterSetup, thread: usize, wins: &[AtomicUsize]) {
    let keys: Vec<_> = (0..wins.len()).map(|at| (at + thread * 5) % wins.len()).collect();
    for keys in keys.chunks(1 + 9 * thread) {
        let bytes: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let bytes: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let is_new = filter.insert_if_absent_many(&bytes);
        let is_new = is_new.unwrap_or_else(|error| panic!("{setup:?}: {error}"));
        for (key, is_new) in keys.iter().zip(is_new) {
            wins[*key].fetch_add(usize::from(is_new), Relaxed);
        }
    }
}

#[test]
fn of_threads_that_add_a_key_one_wins() {
    for setup in filters().map(FilterSetup::threaded) {
        let filter = setup.create_on(memory()).unwrap();
        let wins: Vec<_> = (0..setup.keys()).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..THREADS as usize {
                let (filter, wins) = (&filter, &wins);
                scope.spawn(move || race_for_filter(filter, setup, thread, wins));
            }
        });
        assert!(wins.iter().all(|wins| wins.load(Relaxed) == 1), "{setup:?}: {wins:?}");
    }
}

/// Inserts each key twice in one batch, all new, while buffers leave in the background.
#[test]
fn of_equal_keys_in_a_batch_filters_add_the_first() {
    for setup in filters().map(FilterSetup::threaded) {
        let filter = setup.create_on(memory()).unwrap();
        for first in (0..setup.keys() / 10).map(|batch| 10 * batch) {
            let keys: Vec<_> = (0..20).map(|at| (first + at % 10).to_le_bytes()).collect();
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            let is_new = filter.insert_if_absent_many(&keys).unwrap();
            let (firsts, seconds) = is_new.split_at(10);
            let is_right = firsts.iter().all(|it| *it) && !seconds.iter().any(|it| *it);
            assert!(is_right, "{setup:?}: {first}, {is_new:?}");
        }
    }
}
