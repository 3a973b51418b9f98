//! Threads that share a table of large values, and none: then the same calls give the same bytes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use nandex::device::MemoryDevice;
use nandex::{Durability, WhenFull};
use nandex_sim::workload::SplitMix64;
use nandex_trial::Contract;
use nandex_trial::Session;

use super::contract::configurations;
use super::support::{DURABILITIES, Setup, key, value, value_bytes};

#[test]
fn threads_that_share_a_table_find_their_own_values() {
    for durability in DURABILITIES {
        for cache_bytes in [0, 60 << 10] {
            let mut setup = Setup::new(durability, WhenFull::Refuse).threaded().cached(cache_bytes);
            setup.values.segments = 16;
            let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let table = &table;
                    scope.spawn(move || {
                        let (mut map, mut rng) = (HashMap::new(), SplitMix64::new(thread));
                        for step in 0..400 {
                            let key = key(thread * 1000 + rng.below(20));
                            let value = value(step, value_bytes(&mut rng) / 4);
                            table.put(&key, &value).unwrap();
                            map.insert(key, value);
                            let other = self::key(thread * 1000 + rng.below(20));
                            assert_eq!(table.get(&other).unwrap().as_ref(), map.get(&other));
                        }
                    });
                }
            });
            let cleaned = table.stats().values.cleaned_segments;
            assert!(cleaned > 0, "{durability:?}: records moved meanwhile");
        }
    }
}

/// Puts batches from threads: records that a batch looked up may be replaced, moved or removed by other
/// threads before the put.
#[test]
fn threads_that_put_batches_of_the_same_keys_lose_no_record_and_count_none_twice() {
    for durability in DURABILITIES {
        let setup = Setup::new(durability, WhenFull::Refuse).threaded();
        let mut setup = setup.cached(if durability == Durability::Never { 0 } else { 60 << 10 });
        setup.values.segments = 16;
        let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    let mut rng = SplitMix64::new(thread);
                    for step in 0..100 {
                        // Keys may come twice in one batch.
                        let keys: Vec<_> = (0..12).map(|_| key(rng.below(20))).collect();
                        let value = value(thread << 32 | step, value_bytes(&mut rng) / 4);
                        let pairs: Vec<_> = keys.iter().map(|it| (&it[..], &value[..])).collect();
                        table.put_many(&pairs).unwrap();
                        if step % 8 == 0 {
                            table.remove(&keys[0]).unwrap();
                        }
                    }
                });
            }
        });
        assert!(table.stats().values.cleaned_segments > 0, "{durability:?}: records moved");
        (0..20).for_each(|number| table.remove(&key(number)).unwrap());
        table.sync().unwrap();
        assert_eq!(table.stats().values.live_bytes, 0, "{durability:?}");
    }
}

#[test]
fn of_threads_that_put_an_absent_key_one_wins() {
    for durability in DURABILITIES {
        let setup = Setup::new(durability, WhenFull::Refuse).roomy().threaded();
        let setup = setup.cached(if durability == Durability::Never { 0 } else { 1 << 20 });
        let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
        let wins: Vec<_> = (0..200).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (table, wins) = (&table, &wins);
                scope.spawn(move || {
                    for number in (0..200).map(|at| (at + thread * 5) % 200) {
                        let is_new = table.put_if_absent(&key(number), &value(thread, 40)).unwrap();
                        wins[number as usize].fetch_add(usize::from(is_new), Relaxed);
                    }
                });
            }
        });
        assert!(wins.iter().all(|wins| wins.load(Relaxed) == 1), "{durability:?}: {wins:?}");
    }
}

#[test]
fn the_same_calls_give_the_same_bytes_without_threads() {
    for setup in configurations() {
        let image = || {
            let (device, mut rng) = (MemoryDevice::new(), SplitMix64::new(5));
            let mut session = Session::new(setup);
            session.create(Arc::new(device.clone())).unwrap();
            (0..300).for_each(|_| session.call(&mut rng).unwrap());
            session.close().unwrap();
            device.image()
        };
        assert!(image() == image(), "{setup:?}");
    }
}
