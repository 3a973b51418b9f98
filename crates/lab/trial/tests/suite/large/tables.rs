//! Keys and values of any size over a table of any structure that keeps everything: keys of 1 to 255 bytes
//! and values of up to 2 MiB, as a key-value SSD has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use nandex::testing::{Retention, TableRequest, TestTable};
use nandex::{AnyTable, LargeTable, Volume, VolumeOpenOptions, VolumeOptions, WhenFull, rhik};
use nandex_baseline::registry;
use nandex_sim::workload::SplitMix64;
use nandex_trial::table::stretch;

/// The longest value of a key-value SSD.
const VALUE_BYTES_MAX: usize = 2 << 20;

/// The number of updates of one test; one in 64 has a long value.
const STEPS: u64 = 1_500;

type Oracle = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns a key of 1 to 255 bytes, different for each number.
fn key(number: u64) -> Vec<u8> {
    let bytes = 1 + (number % 255) as usize;
    match bytes {
        1 => vec![0],
        2..8 => number.to_le_bytes()[..bytes].to_vec(),
        _ => stretch(number, bytes),
    }
}

fn value(step: u64, rng: &mut SplitMix64) -> Vec<u8> {
    let most = match step {
        _ if step % 500 == 495 => return stretch(step, VALUE_BYTES_MAX),
        _ if step % 64 == 1 => 60_000,
        _ => 300,
    };
    stretch(step, rng.below(most) as usize)
}

fn update(table: &LargeTable<AnyTable>, oracle: &mut Oracle, step: u64, rng: &mut SplitMix64) {
    let key = key(rng.below(700));
    if step % 6 == 5 {
        table.remove(&key).unwrap();
        oracle.remove(&key);
        return;
    }
    let value = value(step, rng);
    table.put(&key, &value).unwrap();
    oracle.insert(key, value);
}

fn agrees(table: &LargeTable<AnyTable>, oracle: &Oracle, label: &str) {
    for key in (0..700).map(key) {
        let found = table.get(&key).unwrap();
        assert!(found.as_ref() == oracle.get(&key), "{label}: {} bytes", key.len());
    }
}

fn open(volume: &Volume, made: &TestTable) -> LargeTable<AnyTable> {
    let places = AnyTable::open_with(volume, "places", &made.options).unwrap();
    LargeTable::open(volume, "objects", places).unwrap()
}

/// Returns the growing tables of the registry.
fn made() -> impl Iterator<Item = TestTable> {
    let request = TableRequest {
        key_bytes: TABLE_KEY_BYTES,
        value_bytes: TABLE_VALUE_BYTES,
        buffer_pages: 1,
        partitions: 1,
        ..TableRequest::default()
    };
    let growing = registry::tables().filter(|(_, table)| table.grows);
    growing.map(move |(_, table)| (table.testing.config)(&request))
}

#[test]
fn keys_of_1_to_255_bytes_and_values_of_up_to_2_mib_stand_on_tables_that_grow() {
    let mut kinds = Vec::new();
    for made in made() {
        assert_eq!(made.retention, Retention::All);
        let device = Arc::new(MemoryDevice::new());
        let volume = Volume::create(
            Arc::clone(&device) as _,
            VolumeOptions { hash_key: Some(42), ..VolumeOptions::default() },
        )
        .unwrap();
        let places = AnyTable::create_with(&volume, "places", &made.config, &made.options).unwrap();
        let values = ValuesConfig {
            segment_pages: 600,
            segments: 16,
            io_chunk_pages: 16,
            when_full: WhenFull::Refuse,
        };
        let table = LargeTable::create(&volume, "objects", places, values).unwrap();
        let (mut oracle, mut rng) = (Oracle::new(), SplitMix64::new(7));
        (0..STEPS).for_each(|step| update(&table, &mut oracle, step, &mut rng));
        agrees(&table, &oracle, &made.label);
        assert!(oracle.values().any(|value| value.len() == VALUE_BYTES_MAX));
        // As a power cut leaves it, and then closed.
        table.sync().unwrap();
        let copy = Arc::new(MemoryDevice::from_image(device.image()));
        let cut = Volume::open(copy, VolumeOpenOptions::default()).unwrap();
        agrees(&open(&cut, &made), &oracle, &made.label);
        table.close().unwrap();
        drop(volume);
        let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
        agrees(&open(&volume, &made), &oracle, &made.label);
        kinds.push(made.config.kind());
    }
    assert!(kinds.len() >= 3 && kinds.contains(&rhik::KIND), "{kinds:?}");
}
