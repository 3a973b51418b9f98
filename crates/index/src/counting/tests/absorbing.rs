//! Tables that absorb others and sorted streams, and their buffered updates.

use std::sync::Mutex;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::*;
use crate::OpenOptions;

#[test]
fn a_table_absorbs_another_with_other_partitions_and_refuses_what_differs() {
    let (_d1, _v1, one) = table(Config::tiny());
    let (_d2, _v2, other) = table(Config { k: 3, ..Config::tiny() });
    add(&one, 0..1500);
    add(&other, 1000..4000);
    other.remove(&key(3999)).unwrap();
    one.absorb(&other).unwrap();
    let keys: Vec<_> = (0..4001).map(key).collect();
    let counts = one.count_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    for (name, count) in (0..4001).zip(counts) {
        let expected = u64::from(name < 1500) + u64::from((1000..3999).contains(&name));
        assert_eq!(count, expected, "{name}");
    }
    assert_eq!(other.count(&key(2000)).unwrap(), 1);
    let (_d3, _v3, narrow) = table(Config { keys: Keys::Whole(4), ..Config::tiny() });
    let error = one.absorb(&narrow).unwrap_err().to_string();
    assert!(error.starts_with("keys: "), "{error}");
    assert!(one.absorb(&one).is_err());
}

/// A large partition of the other table must not delay cancellation until its end.
#[test]
fn an_absorption_tells_how_far_it_is_and_stops_within_a_partition() {
    let one = Config { k: 1000, q: 50_000, ..Config::tiny() };
    let (_d1, _v1, other) = table(one);
    add(&other, 0..50_000);
    let shares = |stops_at: f64| {
        let (_device, _volume, whole) = table(one);
        let seen = Mutex::new(Vec::new());
        let watch = |share: f64| {
            seen.lock().unwrap().push(share);
            if share >= stops_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let absorbed = whole.absorb_watched(&other, &watch);
        assert_eq!(whole.config().partitions(), 1);
        (absorbed, whole.iter().count(), seen.into_inner().unwrap())
    };
    let (absorbed, keys, seen) = shares(2.0);
    absorbed.unwrap();
    assert_eq!((keys, seen.last()), (50_000, Some(&1.0)));
    assert!(seen.len() > 10 && seen.is_sorted(), "{seen:?}");
    let (absorbed, keys, seen) = shares(0.3);
    assert!(matches!(absorbed.unwrap_err(), Error::Stopped));
    let last = *seen.last().unwrap();
    assert!(keys == 0 && (0.3..0.5).contains(&last), "{keys} keys at {seen:?}");
}

#[test]
fn a_sorted_stream_is_absorbed_with_each_data_segment_written_once() {
    let (_device, volume, table) = table(Config::tiny());
    add(&table, 0..500);
    let mut sorted: Vec<_> = (250..3000).map(key).collect();
    sorted.sort_by_key(|key| (volume.hasher().hash(key).place, *key));
    let merges = table.counting_stats().merges;
    let mut absorbing = table.absorb_sorted();
    sorted.iter().try_for_each(|key| absorbing.push(key, 2)).unwrap();
    absorbing.finish().unwrap();
    let partitions = table.config().partitions();
    assert_eq!(table.counting_stats().merges - merges, partitions);
    let keys: Vec<_> = (0..3001).map(key).collect();
    let counts = table.count_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    for (name, count) in (0..3001).zip(counts) {
        let expected = u64::from(name < 500) + 2 * u64::from((250..3000).contains(&name));
        assert_eq!(count, expected, "{name}");
    }
    let mut absorbing = table.absorb_sorted();
    absorbing.push(&sorted[1], 1).unwrap();
    for bad in [&sorted[0], &sorted[1]] {
        let error = absorbing.push(bad, 1).unwrap_err().to_string();
        assert!(error.starts_with("absorb_sorted: keys that do not ascend"), "{error}");
    }
    assert!(absorbing.push(b"short", 1).is_err());
}

/// A key's count on flash, a buffered removal, and a later addition.
const BEFORE: i64 = 5;
const ADDED: i64 = 3;

/// Fills keys with counts on flash, and removes every third; the removals are in a buffer.
fn with_buffered_removals(table: &Counting, keys: u64) {
    let amounts: Vec<_> = (0..keys).map(|name| (key(name), BEFORE)).collect();
    table.add_many(&amounts.iter().map(|(key, by)| (&key[..], *by)).collect::<Vec<_>>()).unwrap();
    table.compact().unwrap();
    let removed: Vec<_> = (0..keys).step_by(3).map(key).collect();
    table.remove_many(&removed.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
}

fn sum_after(name: u64) -> i64 {
    if name.is_multiple_of(3) { ADDED } else { BEFORE + ADDED }
}

/// Adds to each key in the order of the hash.
fn absorb_sorted(table: &Counting, keys: u64) {
    let hasher = table.core.hasher;
    let mut sorted: Vec<_> = (0..keys).map(key).collect();
    sorted.sort_by_key(|key| (hasher.hash(key).place, *key));
    let mut absorbing = table.absorb_sorted();
    sorted.iter().try_for_each(|key| absorbing.push(key, ADDED)).unwrap();
    absorbing.finish().unwrap();
}

/// Adds to each key from a table that has these counts, some of them in segments and some in buffers.
fn absorb_other(table: &Counting, keys: u64) {
    let (_device, _volume, other) = self::table(*table.config());
    let all: Vec<_> = (0..keys).map(key).collect();
    // Its own removals also precede its own counts.
    other.add_many(&all.iter().map(|key| (&key[..], 9)).collect::<Vec<_>>()).unwrap();
    other.remove_many(&all.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    other.add_many(&all.iter().map(|key| (&key[..], ADDED)).collect::<Vec<_>>()).unwrap();
    table.absorb(&other).unwrap();
}

fn assert_sums(table: &Counting, keys: u64, said: &str) {
    for name in 0..keys {
        assert_eq!(table.sum(&key(name)).unwrap(), sum_after(name), "key {name}, {said}");
    }
    let of = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let listed = table.iter().map(|entry| entry.map(|(key, sum)| (of(&key), sum)).unwrap());
    let wrong: Vec<_> =
        listed.filter(|(name, sum)| *name < keys && *sum != sum_after(*name)).collect();
    assert!(wrong.is_empty(), "{said}: {wrong:?}");
}

type AbsorbBy = fn(&Counting, u64);

/// A table's dump was added to the table itself, 300 counts, after three of its keys had been removed. The removals
/// were still buffered and were applied last, so these keys had no count at all.
#[test]
fn what_is_absorbed_comes_after_removals_that_are_buffered() {
    let ways: [(AbsorbBy, &str); 2] =
        [(absorb_sorted, "a sorted stream"), (absorb_other, "another table")];
    for (config, (absorb, way)) in disciplines().flat_map(|config| ways.map(|way| (config, way))) {
        let (device, volume, table) = table(config);
        with_buffered_removals(&table, 300);
        absorb(&table, 300);
        let said = format!("{way}, {}", config.discipline.name());
        assert_sums(&table, 300, &said);
        let copy = Arc::new(MemoryDevice::from_image(device.image()));
        let crashed = Counting::open_with(&reopened(&copy), "c", inline()).unwrap();
        assert_sums(&crashed, 300, &format!("{said}, after a crash"));
        table.close().unwrap();
        drop(volume);
        let again = Counting::open_with(&reopened(&device), "c", inline()).unwrap();
        assert_sums(&again, 300, &format!("{said}, opened again"));
    }
}

/// Full buffers wait for a flush, and neither of two spare ones may be left for updates that arrive meanwhile.
#[test]
fn removals_in_buffers_that_wait_for_a_flush_come_before_what_is_absorbed() {
    let ways: [AbsorbBy; 2] = [absorb_sorted, absorb_other];
    for (waiting, absorb) in (0..3).flat_map(|waiting| ways.map(|absorb| (waiting, absorb))) {
        let (_device, _volume, table) = table(Config { k: 1000, ..Config::tiny() });
        with_buffered_removals(&table, 150);
        let core = &table.core;
        for number in 0..waiting {
            assert!(core.try_freeze(0, &mut core.partitions[0].write(), 0).unwrap());
            table.remove(&key(3 * number)).unwrap();
        }
        absorb(&table, 150);
        assert_sums(&table, 150, &format!("{waiting} buffers were waiting"));
        assert_eq!(core.partitions[0].read().entries_buffered(), 0);
    }
}

#[test]
fn while_counts_are_absorbed_a_removed_key_has_none_or_those_and_no_update_is_lost() {
    let ways: [AbsorbBy; 2] = [absorb_sorted, absorb_other];
    for absorb in ways {
        let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let threads = OpenOptions { flush_threads: Some(2), ..inline() };
        let table = Counting::create_with(&volume, "c", Config::tiny(), threads).unwrap();
        with_buffered_removals(&table, 600);
        let has_ended = AtomicBool::new(false);
        let added = thread::scope(|scope| {
            let asking = scope.spawn(|| {
                while !has_ended.load(SeqCst) {
                    for name in 0..600 {
                        let sum = table.sum(&key(name)).unwrap();
                        assert!([sum_after(name), sum_after(name) - ADDED].contains(&sum), "{sum}");
                    }
                }
            });
            let adding = scope.spawn(|| {
                let rounds = (0i64..).take_while(|_| !has_ended.load(SeqCst));
                rounds.inspect(|_| add(&table, 600..900)).count()
            });
            absorb(&table, 600);
            has_ended.store(true, SeqCst);
            asking.join().unwrap();
            adding.join().unwrap()
        });
        assert_sums(&table, 600, "while others were at work");
        for name in 600..900 {
            assert_eq!(table.sum(&key(name)).unwrap(), added as i64, "key {name}");
        }
    }
}
