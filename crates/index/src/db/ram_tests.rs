//! Many structures that share the RAM of a database.

use super::{Database, options};
use crate::{AnyTable, Error, Policy, Result, Table};

fn database(ram: &str) -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let db = options().ram(ram).sparse().open(folder.path().join("all.nandex")).unwrap();
    (folder, db)
}

fn taken(db: &Database) -> u64 {
    db.ram_taken().iter().map(|(_, bytes)| bytes).sum()
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn fill(table: &AnyTable, keys: std::ops::Range<u64>) -> Result<()> {
    for from in keys.clone().step_by(1000) {
        let keys: Vec<_> = (from..(from + 1000).min(keys.end)).map(key).collect();
        let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &key[..])).collect();
        table.insert_many(&pairs)?;
    }
    Ok(())
}

#[test]
fn a_file_of_one_key_is_as_short_as_what_is_in_it() {
    let bytes = |db: &Database| db.volume().stats().pages * nandex_device::PAGE_BYTES as u64;
    let (_folder, db) = database("1GiB");
    assert!(bytes(&db) <= 5 << 18, "{}", bytes(&db));
    let filter = db.filter("f").keys(1000).create_or_open().unwrap();
    filter.insert(b"key").unwrap();
    filter.close().unwrap();
    assert!(bytes(&db) <= 3 << 19, "{}", bytes(&db));
    // A log grows with the buffers, but no further than they need.
    let table = db.table("t").entries(1_000_000).policy(Policy::Grow).create_or_open().unwrap();
    fill(&table, 0..1_000_000).unwrap();
    let log_bytes = db.volume().log().capacity_bytes();
    assert!((2 << 20..=64 << 20).contains(&log_bytes), "{log_bytes}");
    assert!((0..1_000_000).step_by(999).all(|it| table.contains(&key(it)).unwrap()));
}

#[test]
fn many_structures_live_in_the_default_ram_whatever_their_order() {
    let ram = 64 << 20;
    let (_folder, db) = database("64MiB");
    let number = |it: usize| format!("s{it}");
    let filters: Vec<_> =
        (0..200).map(|it| db.filter(number(it)).keys(1000).create_or_open().unwrap()).collect();
    let tables: Vec<_> =
        (200..240).map(|it| db.table(number(it)).entries(1000).create_or_open().unwrap()).collect();
    let growing: Vec<_> = (240..260)
        .map(|it| db.table(number(it)).entries(1000).policy(Policy::Grow).create_or_open().unwrap())
        .collect();
    let map = db.map("m").create_or_open().unwrap();
    assert!(taken(&db) <= ram, "{:?}", db.ram_taken());
    for table in tables.iter().chain(&growing) {
        fill(table, 0..1000).unwrap();
    }
    filters.iter().for_each(|it| it.insert(&key(7)).unwrap());
    map.put(b"key", b"value").unwrap();
    // The last table opened grows as far as the first one would.
    fill(growing.last().unwrap(), 1000..300_000).unwrap();
    assert!(taken(&db) <= ram, "{:?}", db.ram_taken());
    for table in tables.iter().chain(&growing) {
        assert_eq!(table.get(&key(999)).unwrap().as_deref(), Some(&key(999)[..]));
    }
    assert!(filters.iter().all(|it| it.contains(&key(7)).unwrap()));
    drop((filters, tables, growing));
    assert_eq!(db.ram_taken().len(), 2, "{:?}", db.ram_taken());
}

#[test]
fn a_cache_gives_back_what_a_table_opened_later_needs() {
    let (_folder, db) = database("24MiB");
    let first = db.table("first").policy(Policy::Grow).create_or_open().unwrap();
    fill(&first, 0..50_000).unwrap();
    (0..50_000).for_each(|it| assert!(first.get(&key(it)).unwrap().is_some()));
    let cache = first.stats().cache_bytes_max;
    assert!(cache > 6 << 20, "{cache}");
    let second = db.table("second").entries(100_000).ram("15MiB").create_or_open().unwrap();
    assert!(first.stats().cache_bytes_max < 4 << 20, "{:?}", first.stats());
    assert!(taken(&db) <= 24 << 20, "{:?}", db.ram_taken());
    (0..50_000).step_by(99).for_each(|it| assert!(first.get(&key(it)).unwrap().is_some()));
    drop(second);
    fill(&first, 50_000..400_000).unwrap();
    assert!(first.get(&key(399_999)).unwrap().is_some());
}

#[test]
fn a_table_that_grows_has_no_more_ram_when_it_is_opened_as_one_that_refuses() {
    let (_folder, db) = database("24MiB");
    let create = || db.table("t").policy(Policy::Grow).create_or_open().unwrap();
    fill(&create(), 0..20_000).unwrap();
    let opened = db.table("t").create_or_open().unwrap();
    (0..20_000).for_each(|it| assert!(opened.get(&key(it)).unwrap().is_some()));
    let stats = opened.stats();
    assert!(stats.cache_bytes > 0 && stats.cache_bytes <= stats.cache_bytes_max, "{stats:?}");
    assert!(taken(&db) >= stats.cache_bytes_max && taken(&db) <= 16 << 20, "{:?}", db.ram_taken());
}

#[test]
fn a_table_that_cannot_grow_says_who_has_the_ram_and_grows_when_that_is_closed() {
    let (_folder, db) = database("16MiB");
    let grows = db.table("grows").policy(Policy::Grow).entries(1000).create_or_open().unwrap();
    let most = (16 << 20) - taken(&db);
    let large = db.table("large").entries(1000).cache("4MiB").ram(most).create_or_open().unwrap();
    let mut filters = Vec::new();
    let refused = loop {
        match db.filter(format!("f{}", filters.len())).keys(1000).create_or_open() {
            Ok(filter) => filters.push(filter),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("\"large\" has 4.") && refused.contains(" others have "), "{refused}");
    assert!(refused.contains("by turns"), "{refused}");
    let error = fill(&grows, 0..4_000_000).unwrap_err();
    assert!(matches!(&error, Error::GrowthStopped { .. }), "{error}");
    let before = grows.stats().entries;
    drop((large, filters));
    fill(&grows, 0..before + 50_000).unwrap();
    assert!(grows.get(&key(before + 49_999)).unwrap().is_some());
}

/// Each map's background job fills buffers of its table, and waits for flushes, which are background jobs too.
#[test]
fn more_maps_than_threads_that_are_used_by_turns_come_to_an_end() {
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (_folder, db) = database("64MiB");
        let maps: Vec<_> =
            (0..24).map(|it| db.map(format!("m{it}")).create_or_open().unwrap()).collect();
        for number in 0..1500 {
            maps.iter().for_each(|map| map.put(&key(number), &key(number)).unwrap());
        }
        let has_all = |number| maps.iter().all(|map| map.get(&key(number)).unwrap().is_some());
        assert!((0..1500).all(has_all));
        drop(maps);
        ended.send(db.volume().stats().background_threads).unwrap();
    });
    let threads =
        end.recv_timeout(std::time::Duration::from_mins(1)).expect("no job waits for ever");
    assert!(threads <= nandex_device::cores() + 8, "{threads} threads");
}

#[test]
fn hundreds_of_small_tables_are_open_and_used_in_little_ram() {
    let (_folder, db) = database("16MiB");
    let table = |it| db.table(format!("t{it}")).entries(1000).create_or_open().unwrap();
    let tables: Vec<_> = (0..150).map(table).collect();
    for round in 0..2 {
        for table in &tables {
            fill(table, 0..1000).unwrap();
            assert!((0..1000).all(|it| table.get(&key(it)).unwrap().is_some()), "round {round}");
        }
    }
    assert!(taken(&db) <= 16 << 20, "{}", taken(&db));
}

#[test]
fn a_map_takes_ram_for_its_batches_while_it_writes_much_and_gives_it_back() {
    let (_folder, db) = database("64MiB");
    let map = db.map("m").entries(100_000).create_or_open().unwrap();
    assert!(db.ram.own_of("m") <= 64 << 10, "{}", db.ram.own_of("m"));
    let value = [7; 200];
    for number in 0..20_000 {
        map.put(&key(number), &value).unwrap();
    }
    let batches = db.ram.own_of("m");
    assert!(batches >= 1 << 20, "{batches} after many puts");
    let mut waits = 0;
    while db.ram.own_of("m") > 64 << 10 {
        assert!(waits < 1000, "{} after a while without puts", db.ram.own_of("m"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        waits += 1;
    }
    (0..20_000).for_each(|it| assert!(map.get(&key(it)).unwrap().is_some()));
}
