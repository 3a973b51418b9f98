//! Evictions of a table are counted over its whole life, by all eviction policies and after all ways of
//! closing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use nandex::device::MemoryDevice;
use nandex::testing::{TableRequest, TestTable};
use nandex::{
    AnyTable, Durability, Error, Table, TableStats, Threads, Volume, VolumeOpenOptions,
    VolumeOptions,
};
use nandex_baseline::registry;

/// The number of keys of an opening: several times the capacity of a table without space.
const KEYS: u64 = 8000;

/// The configuration and options of a table, and its volume's threads.
type Made = (TestTable, Threads);

/// Each variant of each kind of tables, with little flash: without threads, and with them.
fn made() -> impl Iterator<Item = [Made; 2]> {
    registry::tables().flat_map(|(_, row)| {
        (0..row.testing.variants).map(|variant| {
            [(0, Threads::Inline), (1, Threads::Background)].map(|(threads, of_volume)| {
                let request =
                    TableRequest { variant, keys: None, threads, ..TableRequest::default() };
                ((row.testing.config)(&request), of_volume)
            })
        })
    })
}

/// A durability under which nothing is durable before it is synced.
const DURABILITY: Durability = Durability::Every(Duration::from_secs(3600));

fn create((made, threads): &Made) -> (MemoryDevice, AnyTable) {
    let device = MemoryDevice::new();
    let options =
        VolumeOptions { durability: DURABILITY, threads: *threads, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let table = AnyTable::create_with(&volume, "t", &made.config, &made.options).unwrap();
    (device, table)
}

fn open((made, threads): &Made, device: &MemoryDevice) -> AnyTable {
    let options = VolumeOpenOptions {
        durability: DURABILITY,
        threads: *threads,
        ..VolumeOpenOptions::default()
    };
    let volume = Volume::open(Arc::new(device.clone()), options).unwrap();
    AnyTable::open_with(&volume, "t", &made.options).unwrap()
}

/// Inserts different keys until the table refuses one, and returns how many it took.
fn fill(table: &AnyTable, keys: Range<u64>) -> u64 {
    let mut taken = 0;
    for key in keys {
        match table.insert_u64(key, key) {
            Ok(()) => taken += 1,
            Err(Error::Full { .. } | Error::GrowthStopped { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    taken
}

/// Checks that every accepted key is present or was evicted. A table that grows evicts none; it may know its
/// number of entries only approximately.
fn assert_counts_all(table: &AnyTable, taken: u64, label: &str) -> TableStats {
    let stats = table.stats();
    if registry::grows(table.kind()) {
        assert_eq!(stats.evicted_life, 0, "{label}");
    } else {
        assert_eq!(stats.entries + stats.evicted_life, taken, "{label}: {stats:?}");
    }
    stats
}

/// Fills it in three openings; between them nothing runs in the background, so that the figures stand still.
fn fill_and_reopen(inline: &Made, made: &Made) -> u64 {
    let label = &made.0.label;
    let (device, mut table) = create(made);
    let (mut taken, mut life) = (0, 0);
    for first in [0, KEYS, 2 * KEYS] {
        taken += fill(&table, first..first + KEYS);
        let stats = table.stats();
        assert!(stats.evicted_life >= life + stats.evicted, "{label}: {stats:?}, {life:?}");
        table.close().unwrap();
        let between = open(inline, &device);
        let found = assert_counts_all(&between, taken, label);
        assert_eq!((found.evicted, found.forced_evictions), (0, 0), "{label}");
        assert!(found.evicted_life >= stats.evicted_life, "{label}: {stats:?}, {found:?}");
        let forced = (stats.forced_evictions_life, found.forced_evictions_life);
        assert!(forced.0 <= forced.1, "{label}: {stats:?}, {found:?}");
        between.close().unwrap();
        life = found.evicted_life;
        table = open(made, &device);
    }
    life
}

#[test]
fn what_a_table_has_evicted_outlives_its_closing() {
    let filled = made().flat_map(|[inline, threaded]| {
        [fill_and_reopen(&inline, &inline), fill_and_reopen(&inline, &threaded)]
    });
    let evicting = filled.filter(|life| *life > KEYS).count();
    assert!(evicting > 12, "{evicting}");
}

#[test]
fn a_crash_loses_at_most_what_was_evicted_since_the_last_checkpoint() {
    for made in made().flatten() {
        let label = &made.0.label;
        let (device, table) = create(&made);
        fill(&table, 0..KEYS);
        let kept = table.stats();
        table.flush().unwrap();
        fill(&table, KEYS..2 * KEYS);
        table.sync().unwrap();
        let crashed = MemoryDevice::from_image(device.image());
        let found = open(&made, &crashed).stats();
        assert!(found.evicted_life >= kept.evicted_life, "{label}: {kept:?}, {found:?}");
        let forced = (kept.forced_evictions_life, found.forced_evictions_life);
        assert!(forced.0 <= forced.1, "{label}: {kept:?}, {found:?}");
    }
}
