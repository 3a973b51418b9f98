//! Many threads at once: writers of their own keys, each with its oracle, during lookups of older keys,
//! merges, checkpoints, compactions and iterations; and filters that are dropped meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use nandex::cascade::Cascade;
use nandex::device::MemoryDevice;
use nandex::{Counter, Filter, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_sim::workload::SplitMix64;

use super::runner::key;
use super::support::{FAN_OUTS, Setup};
use crate::devices::DURABILITIES;

/// Keys of one writer.
const KEYS: u64 = 1000;

/// The number of keys that are present all the time, each twice.
const PINNED: u64 = 1500;

/// The first of their numbers.
const PINNED_FROM: u64 = 9 << 32;

/// Writes keys of its own and checks each answer: no two have one fingerprint.
fn write(filter: &Cascade, setup: Setup, thread: u64, rounds: u64) {
    let mut oracle: HashMap<u64, u64> = HashMap::new();
    let mut rng = SplitMix64::new(thread);
    for round in 0..rounds {
        let start = rng.below(KEYS - 60);
        let numbers = start..start + 1 + rng.below(60);
        let keys: Vec<_> = numbers.clone().map(|number| key(thread << 32 | number)).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        match rng.below(8) {
            0 | 1 => {
                let held = numbers.filter(|number| oracle.get(number).is_some_and(|it| *it > 0));
                let held: Vec<_> = held.collect();
                let keys: Vec<_> = held.iter().map(|number| key(thread << 32 | number)).collect();
                filter.delete_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
                held.iter().for_each(|number| *oracle.get_mut(number).unwrap() -= 1);
            }
            2 => {
                filter.add(keys[0], 1000).unwrap();
                *oracle.entry(start).or_default() += 1000;
            }
            3 | 4 => {
                let held = |number| oracle.get(&number).copied().unwrap_or_default();
                let counts = filter.count_many(&keys).unwrap();
                for (number, count) in numbers.zip(counts) {
                    let story =
                        || format!("{setup:?}: thread {thread}, round {round}, key {number}");
                    assert_eq!(count, held(number), "{}", story());
                }
            }
            _ => {
                filter.insert_many(&keys).unwrap();
                numbers.for_each(|number| *oracle.entry(number).or_default() += 1);
            }
        }
    }
    for number in 0..KEYS {
        let held = oracle.get(&number).copied().unwrap_or_default();
        let found = filter.count(&key(thread << 32 | number)).unwrap();
        assert_eq!(found, held, "{setup:?}: thread {thread}, key {number}");
    }
}

/// Checks that the older keys are present at every moment.
fn read(filter: &Cascade, seed: u64, ended: &AtomicBool, lookups: &AtomicU64) {
    let mut rng = SplitMix64::new(seed);
    while !ended.load(Relaxed) {
        let keys: Vec<_> = (0..50).map(|_| key(PINNED_FROM + rng.below(PINNED))).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        assert!(filter.contains_many(&keys).unwrap().iter().all(|found| *found));
        assert!(keys.iter().all(|key| filter.count(key).unwrap() == 2));
        assert!(filter.contains(keys[0]).unwrap());
        lookups.fetch_add(101, Relaxed);
    }
}

/// Calls everything else that may be called.
fn disturb(filter: &Cascade, volume: &Volume, ended: &AtomicBool) {
    let mut rng = SplitMix64::new(5);
    while !ended.load(Relaxed) {
        match rng.below(6) {
            0 => filter.sync().unwrap(),
            1 => filter.flush().unwrap(),
            2 => volume.checkpoint().unwrap(),
            3 => filter.compact().unwrap(),
            4 => assert!(filter.iter().all(|entry| entry.unwrap().count > 0)),
            _ => assert!(filter.stats().entries >= PINNED),
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
}

fn pinned(filter: &Cascade) {
    for _ in 0..2 {
        let keys: Vec<_> = (0..PINNED).map(|number| key(PINNED_FROM + number)).collect();
        filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    }
}

fn together(setup: Setup, rounds: u64) {
    println!("{setup:?}");
    let device = Arc::new(MemoryDevice::new());
    let volume = Volume::create(Arc::clone(&device) as Arc<_>, setup.volume_options()).unwrap();
    let filter = setup.create_filter(&volume, "f").unwrap();
    pinned(&filter);
    let (ended, lookups) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (filter, volume, ended, lookups) = (&filter, &volume, &ended, &lookups);
        scope.spawn(move || read(filter, 99, ended, lookups));
        scope.spawn(move || disturb(filter, volume, ended));
        let writers: Vec<_> = (1..4)
            .map(|thread| scope.spawn(move || write(filter, setup, thread, rounds)))
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        ended.store(true, Relaxed);
        assert!(results.iter().all(Result::is_ok), "a writer found what is not so");
    });
    let stats = filter.stats();
    assert!(stats.merges > 3 && lookups.load(Relaxed) > 0, "{stats:?}");
    filter.close().unwrap();
    drop(volume);
    let filter = setup.open(device).unwrap();
    for number in 0..PINNED {
        assert_eq!(filter.count(&key(PINNED_FROM + number)).unwrap(), 2, "pinned key {number}");
    }
}

#[test]
fn writers_and_readers_of_one_filter_see_no_false_negative_during_merges() {
    for (number, fan_out) in FAN_OUTS.into_iter().enumerate() {
        for durability in [DURABILITIES[1], DURABILITIES[2]] {
            let setup = Setup::exact(durability).fanned(fan_out);
            let setup = if number % 2 == 0 { setup.counting() } else { setup };
            together(setup.with_parts(1 + number as u32).threaded(), 300);
        }
        together(Setup::exact(DURABILITIES[1]).fanned(fan_out), 200);
    }
    together(Setup::exact(DURABILITIES[0]).threaded(), 60);
}

#[test]
fn two_filters_of_one_volume_leave_each_other_alone() {
    let setup = Setup::exact(DURABILITIES[1]).threaded();
    let device = Arc::new(MemoryDevice::new());
    let options = VolumeOptions { log_bytes: 128 << 12, ..setup.volume_options() };
    let volume = Volume::create(Arc::clone(&device) as Arc<_>, options).unwrap();
    let filters = ["a", "b"].map(|name| setup.create_filter(&volume, name).unwrap());
    std::thread::scope(|scope| {
        for (thread, filter) in (1..).zip(&filters) {
            scope.spawn(move || write(filter, setup, thread, 200));
        }
    });
    filters.into_iter().for_each(|filter| filter.close().unwrap());
    drop(volume);
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    volume.drop_structure("a").unwrap();
    let filter = setup.open_filter(&volume, "b").unwrap();
    assert!(filter.stats().entries > 0);
    write(&filter, setup, 7, 50);
}

#[test]
fn a_filter_dropped_in_the_middle_of_its_merges_loses_nothing_it_had_logged() {
    let setup = Setup::exact(DURABILITIES[0]).threaded();
    let device = Arc::new(MemoryDevice::new());
    for opening in 0..12u64 {
        let filter = match opening {
            0 => setup.create(Arc::clone(&device) as Arc<_>).unwrap(),
            _ => setup.open(Arc::clone(&device) as Arc<_>).unwrap(),
        };
        let keys: Vec<_> = (0..450).map(|number| key(opening << 32 | number)).collect();
        filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
        for number in (0..(opening + 1) << 32).step_by(1 << 32).flat_map(|at| at..at + 450) {
            assert_eq!(filter.count(&key(number)).unwrap(), 1, "opening {opening}, key {number:x}");
        }
    }
}
