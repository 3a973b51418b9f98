//! The common behaviour of growing tables, tested for each in the registry.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use nandex::device::MemoryDevice;
use nandex::testing::{agrees, key, update};
use nandex::{
    AnyConfig, AnyTable, OpenOptions, Policy, Requirements, Rhik, Table, Volume, VolumeOpenOptions,
    VolumeOptions,
};
use nandex_baseline::{Multilevel, registry};

fn volume() -> (Arc<MemoryDevice>, Volume) {
    let device = Arc::new(MemoryDevice::new());
    let volume = Volume::create(Arc::clone(&device) as _, VolumeOptions::tiny()).unwrap();
    (device, volume)
}

/// Inserts the same keys into a table from four threads, if absent; returns how many were inserted.
fn insert_absent_with_threads(table: &dyn Table, keys: u64) -> u64 {
    let insert = |thread: u64| {
        let mut inserted = 0;
        for first in (0..keys).step_by(50) {
            let batch: Vec<_> = (first..first + 50).map(key).collect();
            let value = key(thread);
            let pairs: Vec<(&[u8], &[u8])> = batch.iter().map(|it| (&it[..], &value[..])).collect();
            let found = table.get_or_insert_many(&pairs).unwrap();
            inserted += found.iter().filter(|it| it.is_none()).count() as u64;
        }
        inserted
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || insert(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Returns the smallest configuration of each growing table.
fn tiny() -> impl Iterator<Item = AnyConfig> {
    registry::tables().filter(|(_, table)| table.grows).map(|(_, table)| (table.tiny)())
}

fn with_threads(flush_threads: usize) -> OpenOptions {
    OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() }
}

/// Returns the number of parts that a table has had.
fn parts(volume: &Volume) -> usize {
    let number = |name: &str| name.strip_prefix("t/")?.get(1..)?.parse().ok();
    volume.structures().iter().filter_map(|it| number(&it.name)).max().unwrap_or(0)
}

/// Returns whether the table has had at least this number of parts. A RHIK and a multi-level index grow within
/// themselves: they have four times as many pages in each partition.
fn has_grown(volume: &Volume, table: &AnyTable, least: usize) -> bool {
    let of_rhik = table.of::<Rhik>().map(|it| it.rhik_stats().tables);
    let of_levels = || table.of::<Multilevel>().map(|it| it.group_stats().pages);
    match of_rhik.or_else(of_levels) {
        Some(pages) => parts(volume) == 0 && pages >= 16 * least as u64,
        None => parts(volume) >= least,
    }
}

fn fill(table: &AnyTable, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| table.insert(&key(number), &key(number)).unwrap());
}

#[test]
fn updates_and_removals_of_what_an_older_part_has_are_what_is_found() {
    for (config, threads) in tiny().flat_map(|it| [(it.clone(), 0), (it, 1)]) {
        let options = with_threads(threads);
        let (device, mut volume) = volume();
        let mut table = AnyTable::create_with(&volume, "t", &config, &options).unwrap();
        let (mut oracle, keys) = (HashMap::new(), 12_000);
        for step in 0..30_000u64 {
            let number = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
            let number = number % (1 + step.min(keys - 1));
            update(&table, &mut oracle, number, (step % 7 != 3).then_some(step));
            if step % 3_000 == 2_999 {
                agrees(&table, table.iter(), &oracle, keys);
            }
            if step % 9_000 == 8_999 {
                table.close().unwrap();
                drop(volume);
                volume =
                    Volume::open(Arc::clone(&device) as _, VolumeOpenOptions::default()).unwrap();
                table = AnyTable::open_with(&volume, "t", &options).unwrap();
            }
        }
        agrees(&table, table.iter(), &oracle, keys);
        assert!(has_grown(&volume, &table, 3), "{}: {}", config.kind(), parts(&volume));
        let stats = table.stats();
        assert_eq!((stats.evicted, stats.forced_evictions), (0, 0), "{}", config.kind());
    }
}

#[test]
fn a_key_that_only_an_older_part_has_is_not_inserted_again() {
    for config in tiny() {
        let (_, volume) = volume();
        let table = AnyTable::create(&volume, "t", &config).unwrap();
        let pairs: Vec<_> = (0..24_000u64).map(|it| (key(it % 12_000), key(it))).collect();
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, it)| (&key[..], &it[..])).collect();
        let batches = pairs.chunks(700).map(|it| table.get_or_insert_many(it).unwrap());
        let found: Vec<_> = batches.flatten().collect();
        assert!(has_grown(&volume, &table, 3), "{}", config.kind());
        for (at, found) in (0..24_000u64).zip(found) {
            let expected = (at >= 12_000).then(|| key(at % 12_000).to_vec());
            assert_eq!(found.map(|it| it.to_vec()), expected, "{}: pair {at}", config.kind());
        }
    }
}

#[test]
fn threads_that_insert_absent_keys_while_a_table_grows_insert_each_once() {
    for config in tiny() {
        let (_, volume) = volume();
        let table = AnyTable::create(&volume, "t", &config).unwrap();
        assert_eq!(insert_absent_with_threads(&table, 16_000), 16_000);
        assert_eq!(table.iter().count(), 16_000);
        assert!(has_grown(&volume, &table, 3), "{}", config.kind());
    }
}

#[test]
fn lookups_and_iterations_see_every_key_while_parts_follow() {
    for config in tiny() {
        let (_, volume) = volume();
        let table = AnyTable::create(&volume, "t", &config).unwrap();
        let early = 1_500;
        fill(&table, 0..early);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let look = || {
                let keys: Vec<_> = (0..early).map(key).collect();
                let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
                while !is_done.load(Relaxed) {
                    let found = table.get_many(&keys).unwrap();
                    assert!(found.iter().all(Option::is_some));
                    let seen: HashSet<_> = table.iter().map(|it| it.unwrap().0).collect();
                    assert!(keys.iter().all(|it| seen.contains(*it)));
                }
            };
            let lookers = [scope.spawn(look), scope.spawn(look)];
            fill(&table, early..30_000);
            is_done.store(true, Relaxed);
            lookers.into_iter().for_each(|it| it.join().unwrap());
        });
        assert!(has_grown(&volume, &table, 4), "{}: {}", config.kind(), parts(&volume));
    }
}

#[test]
fn the_parts_of_a_table_go_with_it() {
    for config in tiny() {
        let (_, volume) = volume();
        let table = AnyTable::create(&volume, "t", &config).unwrap();
        fill(&table, 0..20_000);
        let is_of_parts = parts(&volume) > 0;
        assert!(has_grown(&volume, &table, 3));
        assert_eq!(table.stats().inserts, 20_000, "those of all parts");
        table.close().unwrap();
        volume.drop_structure("t").unwrap();
        assert_eq!(volume.structures(), []);
        let table = AnyTable::create(&volume, "t", &config).unwrap();
        assert_eq!((parts(&volume), table.iter().count()), (usize::from(is_of_parts), 0));
        assert_eq!(table.get(&key(17)).unwrap(), None);
    }
}

#[test]
fn as_much_ram_is_taken_as_is_predicted() {
    for (kind, entries) in tiny().flat_map(|it| [1000, 400_000].map(|entries| (it.kind(), entries)))
    {
        let asked = Requirements { policy: Policy::Grow, ..Requirements::new(entries, 8, 8) };
        let predicted = asked.advise_one(kind).unwrap();
        let log_bytes = predicted.config.log_bytes_best();
        let options = VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let table = AnyTable::create(&volume, "t", &predicted.config).unwrap();
        let keys: Vec<_> = (0..entries).map(key).collect();
        let pairs: Vec<(&[u8], &[u8])> = keys.iter().map(|it| (&it[..], &it[..])).collect();
        table.insert_many(&pairs).unwrap();
        table.flush().unwrap();
        // Short blocks that wait to be written to the log, buffers that are being flushed, and an older table that its
        // thread is about to drop come and go.
        let most = predicted.ram_bytes();
        let ram_bytes = || table.stats().ram_bytes;
        let settled = (0..1000).any(|_| {
            let fits = ram_bytes() <= most;
            if !fits {
                thread::sleep(Duration::from_millis(10));
            }
            fits
        });
        assert!(settled, "{kind}: {} of {most}", ram_bytes());
    }
}
