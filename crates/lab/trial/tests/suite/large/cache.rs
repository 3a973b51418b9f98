//! The cache of records: the reads that it saves, and the cost of opening it.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::raw::device::Counted;
use nandex::{AnyTable, Durability, LargeTable, WhenFull};
use nandex_trial::Contract;

use super::support::{Setup, key, value};

const KEYS: u64 = 1500;

/// Returns the bytes of the value of a number.
fn short(number: u64) -> usize {
    (number * 31 % 500) as usize
}

fn put_all(table: &LargeTable<AnyTable>, seed: u64, bytes: fn(u64) -> usize) {
    let pairs: Vec<_> = (1..KEYS).map(|it| (key(it), value(it + seed, bytes(it)))).collect();
    let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    table.put_many(&borrowed).unwrap();
}

fn has_all(table: &LargeTable<AnyTable>, seed: u64, bytes: fn(u64) -> usize) {
    for number in 1..KEYS {
        let found = table.get(&key(number)).unwrap();
        assert_eq!(found, Some(value(number + seed, bytes(number))), "{number}");
    }
    let keys: Vec<_> = (1..KEYS + 500).map(key).collect();
    let found = table.get_many(&keys.iter().map(|it| &it[..]).collect::<Vec<_>>()).unwrap();
    assert_eq!(found.iter().flatten().count() as u64, KEYS - 1);
    let lengths = table.value_lengths(&[&keys[0], &keys[KEYS as usize]]).unwrap();
    assert_eq!(lengths, [Some(bytes(1) as u64), None]);
}

/// Returns the reads of the device, and their pages.
fn reads(device: &Counted<MemoryDevice>) -> (u64, u64) {
    let snapshot = device.snapshot();
    (snapshot.reads, snapshot.pages_read)
}

#[test]
fn a_new_table_whose_records_fit_is_read_and_updated_without_a_read() {
    for durability in [Durability::Never, Durability::Always] {
        let setup = Setup::new(durability, WhenFull::Refuse).roomy().cached(8 << 20);
        let device = Arc::new(Counted::new(MemoryDevice::new()));
        let table = setup.create_on(device.clone()).unwrap();
        let before = reads(&device);
        for seed in 0..3 {
            put_all(&table, seed, short);
            has_all(&table, seed, short);
        }
        (1..200)
            .for_each(|number| table.put(&key(number), &value(number + 2, short(number))).unwrap());
        assert!(!table.put_if_absent(&key(7), b"").unwrap());
        (KEYS..KEYS + 100).for_each(|number| table.remove(&key(number)).unwrap());
        has_all(&table, 2, short);
        assert_eq!(reads(&device), before, "{durability:?}");
        let stats = table.stats();
        assert!(stats.cache_bytes <= stats.cache_bytes_max && stats.cache_records == KEYS - 1);
    }
}

#[test]
fn an_opened_table_is_warmed_up_by_long_reads_once_and_reads_nothing_afterwards() {
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy().cached(8 << 20);
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let table = setup.create_on(device.clone()).unwrap();
    put_all(&table, 0, short);
    table.close().unwrap();
    let table = setup.open_on(device.clone()).unwrap();
    let (before, _) = reads(&device);
    let keys: Vec<_> = (1..200).map(key).collect();
    table.get_many(&keys.iter().map(|it| &it[..]).collect::<Vec<_>>()).unwrap();
    let (after, _) = reads(&device);
    assert!((1..200).contains(&(after - before)), "{}", after - before);
    has_all(&table, 0, short);
    put_all(&table, 1, short);
    has_all(&table, 1, short);
    assert_eq!(reads(&device).0, after, "all were read already");
}

#[test]
fn where_only_the_places_of_records_fit_a_lookup_reads_its_record_and_nothing_else() {
    let long = |_| 9000;
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).roomy().cached(1 << 20);
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let table = setup.create_on(device.clone()).unwrap();
    put_all(&table, 0, long);
    table.close().unwrap();
    let table = setup.open_on(device.clone()).unwrap();
    let keys: Vec<_> = (1..500).map(key).collect();
    table.get_many(&keys.iter().map(|it| &it[..]).collect::<Vec<_>>()).unwrap();
    let (before, _) = reads(&device);
    let of_table = |table: &LargeTable<AnyTable>| table.stats().table.hits;
    let hits = of_table(&table);
    (500..KEYS).for_each(|number| assert!(table.get(&key(number)).unwrap().is_some()));
    assert_eq!((reads(&device).0 - before, of_table(&table) - hits), (KEYS - 500, 0));
    assert!((KEYS..KEYS + 500).all(|number| table.get(&key(number)).unwrap().is_none()));
    assert_eq!(reads(&device).0 - before, KEYS - 500, "an absent key costs nothing");
}

#[test]
fn a_table_that_evicts_refuses_a_cache() {
    let setup = Setup::new(Durability::Never, WhenFull::EvictOldest).roomy().cached(1 << 20);
    let error = setup.create_on(Arc::new(MemoryDevice::new())).unwrap_err();
    assert!(error.to_string().contains("has no cache of records"), "{error}");
    let setup = Setup::new(Durability::Never, WhenFull::Refuse).cached(u64::MAX);
    let error = setup.create_on(Arc::new(MemoryDevice::new())).unwrap_err();
    assert!(error.to_string().contains("this machine has"), "{error}");
}
