//! Tests of the internals: when buffers are staged and merged, the cost of queries, and removals.

mod absorbing;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nandex_device::{Counted, Device, MemoryDevice};
use nandex_store::hash::mix;
use nandex_store::{Durability, Threads, Volume, VolumeOpenOptions, VolumeOptions};

use super::*;
use crate::api::{Counter, Filter};
use crate::write::capture_holds;
use crate::{Error, OpenOptions};

fn inline() -> OpenOptions {
    OpenOptions {
        flush_threads: Some(0),
        read_depth: Some(4),
        io_chunk_pages: Some(4),
        ..OpenOptions::default()
    }
}

fn volume_on(device: &Arc<impl Device + 'static>) -> Volume {
    let options = VolumeOptions {
        volume_id: Some(1),
        log_bytes: 1 << 20,
        durability: Durability::Every(Duration::from_secs(3600)),
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    Volume::create(Arc::clone(device) as Arc<dyn Device>, options).unwrap()
}

fn reopened(device: &Arc<MemoryDevice>) -> Volume {
    let options = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    Volume::open(Arc::clone(device) as Arc<dyn Device>, options).unwrap()
}

fn table(config: Config) -> (Arc<MemoryDevice>, Volume, Counting) {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(&device);
    let table = Counting::create_with(&volume, "c", config, inline()).unwrap();
    (device, volume, table)
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn add(table: &Counting, numbers: impl Iterator<Item = u64>) {
    let keys: Vec<_> = numbers.map(key).collect();
    let amounts: Vec<_> = keys.iter().map(|key| (&key[..], 1)).collect();
    table.add_many(&amounts).unwrap();
}

fn disciplines() -> impl Iterator<Item = Config> {
    let all = [Discipline::Mb, Discipline::Mdb, Discipline::MdbL];
    all.into_iter().map(|discipline| Config { discipline, change_permille: 500, ..Config::tiny() })
}

/// Additions, subtractions and removals in random order, over buffers, staged and data segments and openings.
#[test]
fn every_discipline_counts_as_a_map_does() {
    for config in disciplines().flat_map(|it| [it, Config { keys: Keys::Fingerprints(8), ..it }]) {
        let (device, volume, mut table) = table(config);
        let mut expected = HashMap::<u64, i64>::new();
        let mut volume = Some(volume);
        for number in 0..20_000u64 {
            let random = mix(number);
            let name = random % 1500;
            match random >> 32 & 15 {
                0 => {
                    table.remove(&key(name)).unwrap();
                    expected.remove(&name);
                }
                1..4 => {
                    table.add(&key(name), -2).unwrap();
                    *expected.entry(name).or_default() -= 2;
                }
                amount => {
                    table.add(&key(name), 7_i64.pow(amount as u32 / 2)).unwrap();
                    *expected.entry(name).or_default() += 7_i64.pow(amount as u32 / 2);
                }
            }
            if number % 7000 == 6999 {
                table.close().unwrap();
                drop(volume.take());
                let again = reopened(&device);
                table = Counting::open_with(&again, "c", inline()).unwrap();
                volume = Some(again);
            }
        }
        expected.retain(|_, sum| *sum != 0);
        let keys: Vec<_> = (0..1600).map(key).collect();
        let found = table.sum_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
        for (name, sum) in (0..).zip(found) {
            assert_eq!(sum, expected.get(&name).copied().unwrap_or(0), "{name} of {config:?}");
        }
        assert_eq!(table.iter().count(), expected.len());
        let mut greatest: Vec<_> = expected.values().copied().filter(|sum| *sum > 0).collect();
        greatest.sort_unstable_by(|one, other| other.cmp(one));
        let top: Vec<_> = table.top(10).unwrap().iter().map(|it| it.1.cast_signed()).collect();
        assert_eq!(top, greatest[..10]);
        table.compact().unwrap();
        let found = table.sum_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
        let same = (0..).zip(found).all(|(name, sum)| sum == *expected.get(&name).unwrap_or(&0));
        assert!(same, "{config:?}");
    }
}

#[test]
fn each_discipline_stages_and_merges_as_the_paper_says() {
    // Buffers of 200 keys in one partition, and 8,000 keys.
    let one = Config { k: 1000, change_permille: 200, ..Config::tiny() };
    let mut seen = Vec::new();
    for discipline in [Discipline::Mb, Discipline::Mdb, Discipline::MdbL] {
        let (_device, _volume, table) = table(Config { discipline, ..one });
        add(&table, 0..8001);
        let stats = table.counting_stats();
        assert_eq!(stats.stages + stats.merges, 40, "{discipline:?}: {stats:?}");
        let limit = stats.data_pages * 200 / 1000;
        assert!(stats.staged_pages <= limit, "{discipline:?}: {stats:?}");
        seen.push(stats);
    }
    assert_eq!(seen[0].stages, 0);
    assert!(seen[1].stages > 20, "{seen:?}");
    assert_eq!(seen[1], seen[2], "with one partition both are the same");
}

#[test]
fn a_query_reads_one_page_and_one_of_the_change_segment_where_its_key_is() {
    let config =
        Config { k: 1000, q: 20_000, block_pages: 128, change_permille: 100, ..Config::tiny() };
    let (_device, _volume, table) = table(config);
    add(&table, 0..30_000);
    assert!(table.counting_stats().staged_pages > 0);
    let keys: Vec<_> = (0..60_000).map(key).collect();
    let counts = table.count_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    assert!(counts.iter().zip(0..).all(|(count, name)| *count == u64::from(name < 30_000)));
    let stats = table.stats();
    let reads = stats.lookup_reads as f64 / 60_000.0;
    assert!((1.0..1.1).contains(&reads), "{reads}: {stats:?}");
    table.compact().unwrap();
    let before = table.stats().lookup_reads;
    table.count_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    let reads = (table.stats().lookup_reads - before) as f64 / 60_000.0;
    assert!((1.0..1.02).contains(&reads), "{reads}");
}

#[test]
fn keys_of_one_page_go_on_the_next_ones_and_to_the_overflow_region() {
    // All keys of a crafted hash belong on one of many pages.
    let config = Config { keys: Keys::Whole(16), block_pages: 4, ..Config::tiny() };
    let device = Arc::new(MemoryDevice::new());
    let options = VolumeOptions {
        hash: nandex_store::hash::HashKind::Identity,
        log_bytes: 1 << 20,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::clone(&device) as Arc<dyn Device>, options).unwrap();
    let table = Counting::create_with(&volume, "c", config, inline()).unwrap();
    let key = |name: u64| [7u64.to_le_bytes(), name.to_le_bytes()].concat();
    let keys: Vec<_> = (0..5000).map(key).collect();
    let amounts: Vec<_> = keys.iter().map(|key| (&key[..], 3)).collect();
    table.add_many(&amounts).unwrap();
    table.compact().unwrap();
    let counts = table.count_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    assert!(counts.iter().all(|count| *count == 3));
    assert_eq!(table.count(&key(5001)).unwrap(), 0);
    assert_eq!(table.iter().count(), 5000);
}

#[test]
fn bad_keys_and_amounts_are_refused_and_nothing_is_lost() {
    let (_device, _volume, table) = table(Config::tiny());
    let error = table.add(b"short", 1).unwrap_err();
    assert!(matches!(error, Error::Width { expected: 8, found: 5, .. }), "{error}");
    assert!(table.count(b"a long key").is_err());
    table.add(&key(1), i64::MAX).unwrap();
    let many = [(&key(2)[..], 1), (&key(1)[..], 1), (&key(3)[..], 1)];
    assert!(matches!(table.add_many(&many).unwrap_err(), Error::CountRange { .. }));
    assert!(matches!(table.add(&key(4), i64::MIN).unwrap_err(), Error::CountRange { .. }));
    assert_eq!(table.sum(&key(1)).unwrap(), i64::MAX);
    // A removal of a key that was never added, and a subtraction from it, are stored as such.
    table.remove(&key(9)).unwrap();
    table.add(&key(8), -5).unwrap();
    assert_eq!((table.sum(&key(9)).unwrap(), table.sum(&key(8)).unwrap()), (0, -5));
    assert_eq!(table.count(&key(8)).unwrap(), 0);
    table.compact().unwrap();
    table.add(&key(8), 6).unwrap();
    assert_eq!(table.count(&key(8)).unwrap(), 1);
}

/// Additions of a failed batch before the failure are logged like all others.
#[test]
fn what_a_batch_added_before_it_was_refused_outlives_a_crash() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(&device);
    let table = Counting::create_with(&volume, "c", Config { k: 1000, ..Config::tiny() }, inline())
        .unwrap();
    table.add(&key(1), i64::MAX).unwrap();
    let many = [(&key(2)[..], 1), (&key(1)[..], 1), (&key(3)[..], 1)];
    assert!(table.add_many(&many).is_err());
    table.sync().unwrap();
    let sums = |table: &Counting| [1, 2, 3].map(|name| table.sum(&key(name)).unwrap());
    let before = sums(&table);
    std::mem::forget((table, volume));
    let copy = Arc::new(MemoryDevice::from_image(device.image()));
    let volume = reopened(&copy);
    let table = Counting::open_with(&volume, "c", inline()).unwrap();
    assert_eq!(sums(&table), before);
}

#[test]
fn an_iteration_tells_the_share_that_it_has_read() {
    let (_device, _volume, table) = table(Config { q: 20_000, ..Config::tiny() });
    add(&table, 0..20_000);
    let mut counts = table.iter();
    let mut shares = vec![counts.share_read()];
    while counts.next().is_some() {
        shares.push(counts.share_read());
    }
    shares.push(counts.share_read());
    assert!(shares.is_sorted() && shares[0] == 0.0 && shares.last() == Some(&1.0));
    let half = shares[shares.len() / 2];
    assert!((0.3..0.7).contains(&half), "{half} after half of the keys");
    assert!(table.config().partitions() > 3);
}

#[test]
fn a_table_grows_past_the_keys_it_was_made_for() {
    let (_device, _volume, table) = table(Config { q: 500, ..Config::tiny() });
    add(&table, 0..20_000);
    add(&table, 0..20_000);
    assert!((0..20_000).step_by(97).all(|name| table.count(&key(name)).unwrap() == 2));
    let stats = table.stats();
    assert_eq!(stats.keys_made_for, 500);
    let flash_bytes = stats.levels.last().unwrap().pages * 4096;
    assert!(flash_bytes < 20_000 * 11, "{stats:?}");
}

#[test]
fn while_a_checkpoint_captures_no_buffer_is_staged_or_merged() {
    // Otherwise it would be on flash in the segments, and in the log in the buffers: counted twice after a crash.
    let (_device, _volume, table) = table(Config::tiny());
    let core = &table.core;
    assert!(capture_holds(core, &core.layout.maps), "a merge could have changed them");
}

#[test]
fn a_stream_says_what_a_batch_says_and_reads_as_much() {
    for config in disciplines() {
        let (_device, _volume, table) = table(config);
        add(&table, (0..6000).map(|number| mix(number) % 1500));
        let keys: Vec<_> = (0..1600).map(key).collect();
        let reads = || table.stats().lookup_reads;
        let before = reads();
        let sums = table.sum_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
        let of_batch = reads() - before;
        let mut stream = table.stream();
        let mut found = vec![None; keys.len()];
        for (token, key) in (0..).zip(&keys) {
            stream.push(key, token).unwrap();
            if let Some((token, sum)) = stream.poll().unwrap() {
                found[token as usize] = Some(sum);
            }
        }
        assert!(stream.push(b"short", 0).is_err());
        while let Some((token, sum)) = stream.pull().unwrap() {
            found[token as usize] = Some(sum);
        }
        assert_eq!(stream.pending(), 0);
        drop(stream);
        assert_eq!(found, sums.into_iter().map(Some).collect::<Vec<_>>(), "{config:?}");
        assert!(of_batch > 500, "{of_batch}");
        assert_eq!(reads() - before, 2 * of_batch, "{config:?}");
    }
}

/// One key is changed without the lists that a batch builds; the log, the flushes and all bytes are those of a batch of
/// one.
#[test]
fn a_key_alone_does_on_the_device_what_a_batch_of_one_does() {
    for config in disciplines().flat_map(|it| [it, Config { keys: Keys::Fingerprints(8), ..it }]) {
        let run = |change: fn(&Counting, &[u8], Change)| {
            let memory = Arc::new(MemoryDevice::new());
            let device = Arc::new(Counted::new(Arc::clone(&memory) as Arc<dyn Device>));
            let volume = volume_on(&device);
            let table = Counting::create_with(&volume, "c", config, inline()).unwrap();
            for number in 0..20_000u64 {
                let random = mix(number);
                let change_of = match random >> 32 & 7 {
                    0 => Change::REMOVE,
                    1 => Change::add(0),
                    2 => Change::add(-2),
                    amount => Change::add(9_i64.pow(amount as u32 - 3)),
                };
                change(&table, &key(random % 1500), change_of);
            }
            let stats = table.counting_stats();
            table.close().unwrap();
            (device.snapshot(), stats, memory.image())
        };
        let alone = run(|table, key, change| match change {
            Change::REMOVE => table.remove(key).unwrap(),
            Change { amount, .. } => table.add(key, amount).unwrap(),
        });
        let in_batch = run(|table, key, change| match change {
            Change::REMOVE => table.remove_many(&[key]).unwrap(),
            Change { amount, .. } => table.add_many(&[(key, amount)]).unwrap(),
        });
        assert_eq!((alone.0, alone.1), (in_batch.0, in_batch.1), "{config:?}");
        assert!(alone.2 == in_batch.2, "other bytes of {config:?}");
        let (counts, stats, _) = alone;
        assert!(counts.writes > 100 && stats.merges > 0, "{counts:?}, {stats:?}");
    }
}
