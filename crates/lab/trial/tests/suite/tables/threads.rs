//! Many threads at once: writers of their own keys, each with its oracle, during lookups, flushes, evictions
//! and checkpoints; and tables that are dropped meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use nandex::bufferhash::Policy;
use nandex::device::{Create, FileDevice, FileOptions, MemoryDevice};
use nandex::{AnyTable, Durability, Table, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_sim::workload::SplitMix64;
use nandex_trial::Contract;
use nandex_trial::table::TableContract;

use super::support::{DURABILITIES, SLICE_POLICIES, SLICES, Setup};

/// The number of keys of one writer; live entries are a fraction of the ring, so partial discards keep all of
/// them.
const KEYS: u64 = 400;

/// Writes keys of its own and checks each answer.
fn write(table: &AnyTable, setup: Setup, thread: u64, rounds: u64) {
    let exact = setup.keeps();
    let mut oracle: HashMap<u64, u64> = HashMap::new();
    let mut rng = SplitMix64::new(thread);
    let key_of = |number: u64| setup.key(thread << 32 | number);
    for round in 0..rounds {
        let number = rng.below(KEYS);
        let key = key_of(number);
        match rng.below(8) {
            0 => {
                table.remove(&key).unwrap();
                oracle.remove(&number);
            }
            1 => {
                let numbers = number..(number + 30).min(KEYS);
                let pairs: Vec<_> =
                    numbers.clone().map(|n| (key_of(n), setup.value(0, round))).collect();
                let pairs: Vec<_> =
                    pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
                table.insert_many(&pairs).unwrap();
                oracle.extend(numbers.map(|number| (number, round)));
            }
            2 | 3 => {
                let found = table.get(&key).unwrap();
                let expected = oracle.get(&number).map(|round| setup.value(0, *round));
                let gone = found.is_none() && !exact;
                assert!(
                    gone || found.as_deref() == expected.as_deref(),
                    "{setup:?}: thread {thread}, round {round}, key {number}: {found:?}, not {expected:?}"
                );
            }
            _ => {
                table.insert(&key, &setup.value(0, round)).unwrap();
                oracle.insert(number, round);
            }
        }
    }
    let keys: Vec<_> = (0..KEYS).map(key_of).collect();
    let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    for (number, found) in (0..KEYS).zip(table.get_many(&keys).unwrap()) {
        let expected = oracle.get(&number).map(|round| setup.value(0, *round));
        let right = found.as_deref() == expected.as_deref();
        assert!(right || (found.is_none() && !exact), "{setup:?}: thread {thread}, key {number}");
    }
}

fn read(table: &AnyTable, setup: Setup, ended: &AtomicBool) {
    let mut rng = SplitMix64::new(99);
    while !ended.load(Relaxed) {
        let keys: Vec<_> =
            (0..50).map(|_| setup.key(rng.below(4) << 32 | rng.below(KEYS + 9))).collect();
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        table.get_many(&keys).unwrap();
        table.get(keys[0]).unwrap();
        if rng.below(40) == 0 {
            assert!(table.iter().all(|pair| pair.is_ok()));
        }
    }
}

fn together(setup: Setup, rounds: u64) {
    println!("{setup:?}");
    let device = Arc::new(MemoryDevice::new());
    let table = setup.create_on(Arc::clone(&device) as Arc<_>).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| read(&table, setup, &ended))).collect();
        let flusher = scope.spawn(|| {
            while !ended.load(Relaxed) {
                table.flush().unwrap();
                std::thread::sleep(Duration::from_millis(15));
            }
        });
        let table = &table;
        let writers: Vec<_> =
            (0..4).map(|thread| scope.spawn(move || write(table, setup, thread, rounds))).collect();
        let failed = writers.into_iter().filter_map(|writer| writer.join().err()).count();
        ended.store(true, Relaxed);
        assert_eq!(failed, 0, "writers failed");
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        flusher.join().unwrap();
    });
    table.close().unwrap();
}

#[test]
fn threads_on_keys_of_their_own_each_see_their_own_updates() {
    for (number, policy) in [Policy::Fifo, Policy::Lru, Policy::Update].into_iter().enumerate() {
        for roomy in [true, false] {
            let durability = DURABILITIES[1 + number % 2];
            let rounds = if roomy { 4_000 } else { 12_000 };
            // 80 bytes an entry fill 96 slots of a buffer soon, so that flushes and evictions are many.
            let setup = Setup { roomy, flush_threads: 2, ..Setup::new(policy, durability) };
            together(Setup { widths: if roomy { (8, 8) } else { (16, 16) }, ..setup }, rounds);
        }
    }
    for (number, slices) in SLICES.into_iter().enumerate() {
        for policy in SLICE_POLICIES {
            let durability = DURABILITIES[1 + number % 2];
            let setup = Setup { flush_threads: 2, ..Setup::new(policy, durability) };
            together(Setup { widths: (16, 16), ..setup.sliced(slices) }, 4_000);
        }
    }
}

/// Iterates during updates: a key that is present all along is in each iteration once, however it moves
/// meanwhile: by flushes, cleaning, growth.
#[test]
fn an_iteration_while_a_thread_updates_has_each_key_once() {
    let mut told = HashSet::new();
    let all =
        Setup::all().filter(|setup| setup.keeps() && told.insert((setup.kind, setup.variant)));
    for setup in all {
        let durability = Durability::Never;
        let setup = Setup { flush_threads: 2, roomy: true, widths: (8, 8), durability, ..setup };
        println!("{setup:?}");
        let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
        let put_all = |round| {
            (0..KEYS).for_each(|number| {
                table.insert(&setup.key(number), &setup.value(number, round)).unwrap();
            });
        };
        put_all(0);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..60).for_each(put_all);
                ended.store(true, Relaxed);
            });
            while !ended.load(Relaxed) {
                let keys: Vec<_> = table.iter().map(|pair| pair.unwrap().0).collect();
                let different: HashSet<_> = keys.iter().collect();
                assert_eq!((keys.len(), different.len()), (KEYS as usize, KEYS as usize));
            }
        });
    }
}

#[test]
fn threads_that_wait_for_durability_share_syncs_and_see_their_own_updates() {
    let setup = Setup { flush_threads: 2, ..Setup::new(Policy::Fifo, Durability::Always) };
    together(setup, 600);
    together(setup.sliced(SLICES[2]), 600);
}

#[test]
fn big_batches_of_many_threads_wait_for_space_in_a_small_log() {
    let setup = Setup { roomy: false, ..Setup::new(Policy::Fifo, DURABILITIES[1]) };
    big_batches(setup);
    big_batches(setup.sliced(SLICES[0]));
    big_batches(setup.sliced(SLICES[3]));
}

fn big_batches(setup: Setup) {
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..20u64 {
                    let start = (thread << 32) + round * 3000;
                    let keys: Vec<_> = (start..start + 3000).map(u64::to_le_bytes).collect();
                    let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &key[..])).collect();
                    table.insert_many(&pairs).unwrap();
                }
            });
        }
    });
    table.close().unwrap();
}

#[test]
fn a_table_dropped_while_it_works_frees_its_file_and_holds_everything() {
    let setup = |policy| Setup { flush_threads: 2, ..Setup::new(policy, DURABILITIES[1]) };
    drop_while_it_works(setup(Policy::Update), 20);
    // Fewer keys, since none may be evicted.
    drop_while_it_works(Setup { super_tables: 8, ..setup(Policy::Fifo) }.sliced(SLICES[0]), 8);
}

fn drop_while_it_works(setup: Setup, rounds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    let options = FileOptions { create: Create::OpenOrCreate, ..FileOptions::default() };
    let device = || Arc::new(FileDevice::open(&path, &options).unwrap());
    let mut next = 0;
    for round in 0..rounds {
        let table =
            if round == 0 { setup.create_on(device()) } else { setup.open_on(device()) }.unwrap();
        let before = next;
        next += 1500 + 37 * round;
        (before..next).for_each(|key| table.insert_u64(key, key).unwrap());
        // Checks while filters are still being loaded, and drops while buffers are being flushed.
        (0..next).step_by(97).for_each(|key| assert_eq!(table.get_u64(key).unwrap(), Some(key)));
        drop(table);
    }
    let table = setup.open_on(device()).unwrap();
    (0..next).for_each(|key| assert_eq!(table.get_u64(key).unwrap(), Some(key), "key {key}"));
}

#[test]
fn a_table_may_outlive_its_volumes_handle_and_the_other_way_round() {
    let setup = Setup::new(Policy::Fifo, DURABILITIES[1]);
    let setups = [setup, setup.sliced(SLICES[0])].into_iter();
    for (setup, volume_first) in setups.flat_map(|setup| [(setup, true), (setup, false)]) {
        let device = MemoryDevice::new();
        let volume = Volume::create(Arc::new(device.clone()), VolumeOptions::tiny()).unwrap();
        let table = setup.create(&volume, "t").unwrap();
        (0..3000).for_each(|key| table.insert_u64(key, key).unwrap());
        if volume_first {
            drop(volume);
            drop(table);
        } else {
            drop(table);
            drop(volume);
        }
        let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
        let table = setup.open(&volume, "t").unwrap();
        (0..3000).for_each(|key| assert_eq!(table.get_u64(key).unwrap(), Some(key)));
    }
}

/// Fills a small log: it was less than half full, so no table released its tail; and too full for the next
/// batch.
#[test]
fn batches_get_on_in_a_log_of_few_blocks_where_every_commit_syncs() {
    let setup = Setup::new(Policy::Fifo, Durability::Always);
    let sliced = setup.sliced(SLICES[1]);
    for setup in [setup, setup.inline(), sliced, sliced.inline()] {
        let block = VolumeOptions::tiny().log_block_bytes as u64;
        let entries = 2 * setup.buffer_entries() * 17;
        let entries = entries * u64::from(setup.super_tables);
        let log_bytes = entries.max(8 * block).next_multiple_of(block);
        let options = VolumeOptions { log_bytes, ..setup.volume_options() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let table = setup.create(&volume, "t").unwrap();
        for start in (0..6000u64).step_by(600) {
            let keys: Vec<_> = (start..start + 600).map(u64::to_le_bytes).collect();
            let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &key[..])).collect();
            table.insert_many(&pairs).unwrap();
        }
        table.close().unwrap();
    }
}
