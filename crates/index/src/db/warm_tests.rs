//! Maps whose cache is warmed up in the background while they are used.

use std::time::Duration;

use super::options;
use crate::{AnyTable, LargeTable};

const KEYS: u64 = 60_000;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn put(map: &LargeTable<AnyTable>, numbers: impl Iterator<Item = u64>, value: &[u8]) {
    let keys: Vec<_> = numbers.map(key).collect();
    let pairs: Vec<_> = keys.iter().map(|key| (&key[..], value)).collect();
    pairs.chunks(1000).for_each(|pairs| map.put_many(pairs).unwrap());
}

#[test]
fn what_is_read_and_updated_during_the_warm_up_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.nandex");
    let open = || options().ram("64MiB").open(&path).unwrap();
    for round in 0..4 {
        let db = open();
        let map = db.map("m").create_or_open().unwrap();
        put(&map, 0..KEYS, b"old");
        map.close().unwrap();
        drop(db);

        let db = open();
        let map = db.map("m").create_or_open().unwrap();
        // Most of these run before the cache is warm, some while keys are gathered, the last when it knows all keys.
        std::thread::scope(|scope| {
            let look = || {
                for number in (0..KEYS).filter(|it| it % 3 == 2) {
                    let found = map.get(&key(number)).unwrap();
                    assert_eq!(found.as_deref(), Some(&b"old"[..]), "{number}, round {round}");
                }
            };
            let remove = || {
                for number in (0..KEYS).filter(|it| it % 3 == 0) {
                    map.remove(&key(number)).unwrap();
                }
            };
            scope.spawn(look);
            scope.spawn(remove);
            scope.spawn(|| put(&map, (0..KEYS).filter(|it| it % 3 == 1), b"new"));
        });
        for number in 0..KEYS {
            let expected: Option<&[u8]> =
                [None, Some(&b"new"[..]), Some(b"old")][number as usize % 3];
            let found = map.get(&key(number)).unwrap();
            assert_eq!(found.as_deref(), expected, "{number}, round {round}");
        }
    }
}

#[test]
fn an_opened_map_gets_warm_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.nandex");
    let db = options().ram("64MiB").open(&path).unwrap();
    put(&db.map("m").create_or_open().unwrap(), 0..KEYS, b"value");
    let map = db.map("m").create_or_open().unwrap();
    let reads = || (map.stats().values.reads, map.stats().table.hit_reads);
    for _ in 0..1000 {
        let before = reads();
        (0..1000).for_each(|it| assert!(map.get(&key(it * 7)).unwrap().is_some()));
        if map.stats().cache_records == KEYS && reads() == before {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(map.stats().cache_records, KEYS);
    // The records of the last segments may still be in flight.
    std::thread::sleep(Duration::from_millis(200));
    let before = reads();
    (0..KEYS).for_each(|it| assert!(map.get(&key(it)).unwrap().is_some()));
    (KEYS..2 * KEYS).for_each(|it| assert!(map.get(&key(it)).unwrap().is_none()));
    assert!(reads().0 - before.0 < KEYS / 100, "{:?}, {before:?}", reads());
    (0..KEYS).for_each(|it| assert!(map.get(&key(it)).unwrap().is_some()));
    let before = reads();
    (0..KEYS).for_each(|it| assert!(map.get(&key(it)).unwrap().is_some()));
    assert_eq!(reads(), before, "nothing is read of a warm map");
}

#[test]
fn a_map_that_is_closed_during_its_warm_up_waits_for_little_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.nandex");
    let db = options().ram("64MiB").open(&path).unwrap();
    put(&db.map("m").create_or_open().unwrap(), 0..KEYS, b"value");
    for _ in 0..20 {
        let map = db.map("m").create_or_open().unwrap();
        (0..300).for_each(|it| assert!(map.get(&key(it)).unwrap().is_some()));
        map.close().unwrap();
    }
    let map = db.map("m").create_or_open().unwrap();
    assert_eq!(map.get(&key(KEYS - 1)).unwrap().as_deref(), Some(&b"value"[..]));
}
