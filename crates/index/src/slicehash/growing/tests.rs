//! Tests that are specific to a growing SliceHash; the harnesses over the registry cover the rest.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::MemoryDevice;
use nandex_store::bytes::get_u64;
use nandex_store::entries::Entry;
use nandex_store::{VolumeOpenOptions, VolumeOptions};

use super::config::{FIXED_RAM_BYTES, capacity, next, ram_bytes};
use nandex_store::Volume;

use super::*;
use crate::grow::tests::{
    agrees, counts_shared_ram_once, inline_volume, key, tells, update, volume,
};
use crate::slicehash::layout::Slicing;
use crate::slicehash::{self, SliceHash, State};
use crate::{Durability, Error, OpenOptions, Policy, Requirements, Table};

fn options_of(flush_threads: usize) -> OpenOptions {
    OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() }
}

/// No policy evicts here, so the counts are fabricated.
#[test]
fn what_a_table_that_is_gone_has_counted_stays_counted() {
    let (device, volume) = volume();
    let table = Growing::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    let counters = &table.owner.parts.core().counters;
    counters.evicted.store(5, Relaxed);
    counters.forced_evictions.store(2, Relaxed);
    (0..12_000).for_each(|number| table.insert(&key(number), &key(number)).unwrap());
    assert!(table.tables() >= 3);
    let life = |table: &Growing| {
        let stats = table.stats();
        (stats.evicted_life, stats.forced_evictions_life)
    };
    assert_eq!((life(&table), table.stats().evicted), ((5, 2), 5));
    table.close().unwrap();
    drop(volume);
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let table = Growing::open(&volume, "t").unwrap();
    assert_eq!((life(&table), table.stats().evicted), ((5, 2), 0));
}

#[test]
fn what_tables_share_is_counted_once() {
    let volume = inline_volume();
    let table = Growing::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    (0..12_000).for_each(|number| table.insert(&key(number), &key(number)).unwrap());
    counts_shared_ram_once(&volume, &table, 12_000);
}

#[test]
fn a_table_that_is_not_the_newest_tells_the_cache_no_value() {
    let (_, volume) = volume();
    let options = OpenOptions { cache_bytes: 1 << 16, ..options_of(0) };
    let table = Growing::create_with(&volume, "t", Config::tiny(), options).unwrap();
    let first = table.owner.parts.core();
    assert!(tells(&first));
    for number in (0..).take_while(|_| table.tables() == 1) {
        table.insert(&key(number), &key(number)).unwrap();
    }
    assert!(!tells(&first) && tells(&table.owner.parts.core()));
}

/// A table whose slicetables one buffer fills.
fn tight() -> Config {
    let first = Config::tiny().first;
    let slices = first.buffer_pages;
    let entries_max = slices * first.slice_entries();
    Config { first: slicehash::Config { slices, entries_max, ..first }, ram_bytes_max: None }
}

/// Returns the keys for which the newest table's slices had no space.
fn overflow(table: &Growing) -> Vec<u64> {
    let core = table.owner.parts.core();
    let number = |entry: Entry<'_>| u64::from_le_bytes(entry.key.try_into().unwrap());
    let of = |state: &State| state.level.overflow.entries().map(number).collect::<Vec<_>>();
    core.partitions.iter().flat_map(|it| of(&it.read())).collect()
}

#[test]
fn what_a_split_has_no_space_for_is_found_updated_removed_and_outlives_a_power_cut() {
    for durability in [Durability::Always, Durability::Never] {
        let device = Arc::new(MemoryDevice::new());
        let options = VolumeOptions { durability, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
        let table = Growing::create_with(&volume, "t", tight(), options_of(0)).unwrap();
        let (mut oracle, hasher) = (HashMap::new(), volume.hasher());
        let slicing = Slicing::new(&tight().first);
        let mut keys = (0..).filter(|it| slicing.slice_of_key(hasher.hash(&key(*it))) == 0);
        let mut insert = |oracle: &mut HashMap<_, _>| {
            let number = keys.next().unwrap();
            update(&table, oracle, number, Some(number));
            number + 1
        };
        let mut until = 0;
        while overflow(&table).is_empty() {
            until = insert(&mut oracle);
        }
        let outlives_a_cut = |oracle: &HashMap<_, _>, keys| {
            table.flush().unwrap();
            agrees(&table, table.iter(), oracle, keys);
            let copy = Arc::new(MemoryDevice::from_image(device.image()));
            let volume = Volume::open(copy, VolumeOpenOptions::default()).unwrap();
            let cut = Growing::open_with(&volume, "t", options_of(0)).unwrap();
            agrees(&cut, cut.iter(), oracle, keys);
            assert_eq!(overflow(&cut), overflow(&table));
        };
        outlives_a_cut(&oracle, until);
        let overflowed = overflow(&table);
        assert!(!overflowed.is_empty());
        for number in overflowed {
            update(&table, &mut oracle, number, (number % 2 == 0).then_some(until));
        }
        for _ in 0..6 {
            outlives_a_cut(&oracle, until);
            until = (0..100).map(|_| insert(&mut oracle)).last().unwrap();
        }
        assert!(table.tables() >= 3);
    }
}

/// Checks that every flushed key is found after a power cut, in the flushed version or a newer one.
fn assert_flushed(device: &MemoryDevice, flushed: &HashMap<u64, u64>, at: (u64, u64)) {
    let copy = Arc::new(MemoryDevice::from_image(device.image()));
    let volume = Volume::open(copy, VolumeOpenOptions::default()).unwrap();
    let cut = Growing::open_with(&volume, "t", options_of(0)).unwrap();
    for (number, least) in flushed {
        let found = cut.get(&[number.to_le_bytes(); 4].concat()).unwrap();
        let found = found.map(|it| get_u64(&it, 0));
        assert!(found >= Some(*least), "{at:?}: {number}: {found:?} of {least}");
    }
}

/// A split once put an update that a full slice refused back into RAM alone, and the flushed version was dropped with
/// the older table.
#[test]
fn what_was_flushed_outlives_a_split_that_has_no_space_for_its_update() {
    // Three slices of 42 entries, and a buffer of about 80.
    let wide = slicehash::Config { key_bytes: 32, value_bytes: 64, slices: 3, ..tight().first };
    let first = slicehash::Config { entries_max: 3 * wide.slice_entries() * 7 / 8, ..wide };
    for seed in 0..8 {
        let device = Arc::new(MemoryDevice::new());
        let options = VolumeOptions { durability: Durability::Never, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
        let config = Config { first, ram_bytes_max: None };
        let table = Growing::create_with(&volume, "t", config, options_of(0)).unwrap();
        let (mut newest, mut flushed) = (HashMap::new(), HashMap::new());
        for step in 0..1200u64 {
            let number = nandex_store::hash::mix(step << 8 | seed) % 330;
            let (key, value) =
                ([number.to_le_bytes(); 4].concat(), [step.to_le_bytes(); 8].concat());
            table.insert(&key, &value).unwrap();
            newest.insert(number, step);
            if step == 120 {
                table.flush().unwrap();
                flushed.clone_from(&newest);
            }
            if step % 12 == 0 {
                assert_flushed(&device, &flushed, (seed, step));
            }
        }
        assert!(table.tables() >= 3, "{}", table.tables());
    }
}

#[test]
fn a_table_whose_ram_is_spent_says_so_and_keeps_what_it_has() {
    let (_, volume) = volume();
    let first = Config::tiny().first;
    let second = next(&first, u64::MAX).unwrap();
    let ram_bytes_max = Some(FIXED_RAM_BYTES + ram_bytes(&first) + ram_bytes(&second));
    let config = Config { ram_bytes_max, ..Config::tiny() };
    assert_eq!(config.entries_capacity(), capacity(&second));
    let table = Growing::create(&volume, "t", config).unwrap();
    let (mut taken, mut refusal) = (0, None);
    while refusal.is_none() && taken < 100_000 {
        refusal = table.insert(&key(taken), &key(taken)).err();
        taken += u64::from(refusal.is_none());
    }
    let refusal = refusal.unwrap();
    assert!(
        matches!(refusal, Error::GrowthStopped { entries, .. } if entries == taken),
        "{refusal} after {taken}"
    );
    assert!(refusal.to_string().contains("more RAM"), "{refusal}");
    assert_eq!(table.tables(), 2);
    assert!((0..taken).all(|it| table.get(&key(it)).unwrap().is_some()));
    assert_eq!(table.iter().count() as u64, taken);
    table.remove(&key(17)).unwrap();
    assert_eq!(table.get(&key(17)).unwrap(), None);
}

#[test]
fn a_table_whose_flash_is_spent_says_so_and_keeps_what_it_has() {
    let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
    let limited = MemoryDevice::with_limit(1000);
    let volume = Volume::create(Arc::new(limited), options).unwrap();
    let table = Growing::create(&volume, "t", Config::tiny()).unwrap();
    let mut taken = 0;
    let refusal = loop {
        match table.insert(&key(taken), &key(taken)) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    let is_told = matches!(refusal, Error::GrowthStopped { .. });
    assert!(is_told && refusal.to_string().contains("free some space"), "{refusal}");
    assert!((0..taken).all(|it| table.get(&key(it)).unwrap().is_some()));
}

#[test]
fn older_tables_are_dropped_when_newer_ones_have_taken_over() {
    let (_, volume) = volume();
    let table = Growing::create(&volume, "t", Config::tiny()).unwrap();
    (0..20_000).for_each(|number| table.insert(&key(number), &key(number)).unwrap());
    assert!(table.tables() >= 3, "{}", table.tables());
    table.close().unwrap();
    let parts = volume.structures().iter().filter(|it| it.kind == TABLE_KIND).count();
    assert!(parts <= 3, "{parts}");
}

#[test]
fn tables_of_another_shape_or_number_are_refused() {
    let (_, volume) = volume();
    Growing::create(&volume, "t", Config::tiny()).unwrap().close().unwrap();
    let make = |part: &str, config| {
        let create =
            |config, pages| Ok(volume.create_part(("t", part), TABLE_KIND, config, pages)?);
        SliceHash::enter(&volume, create, &config, &OpenOptions::default()).unwrap();
        let (name, options) = (format!("t/{part}"), OpenOptions::default());
        SliceHash::open_as(&volume, (&name, TABLE_KIND), options).unwrap().close().unwrap();
    };
    make("t2", slicehash::Config { slices: 13, ..Config::tiny().first });
    let error = Growing::open(&volume, "t").unwrap_err().to_string();
    assert!(error.contains("\"t/t2\" has other entries or slicetables"), "{error}");
    volume.drop_structure("t/t2").unwrap();
    make("t3", Config::tiny().first);
    let error = Growing::open(&volume, "t").unwrap_err().to_string();
    assert!(error.contains("expected one, or one and the next"), "{error}");
}

#[test]
fn from_a_thousand_entries_on_a_lookup_reads_one_page() {
    let requirements = Requirements { policy: Policy::Grow, ..Requirements::new(1000, 8, 8) };
    let config = Config::advised(&requirements).unwrap();
    let options = VolumeOptions {
        log_bytes: config.log_bytes_best(),
        hash_key: Some(42),
        ..VolumeOptions::default()
    };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let table = Growing::create(&volume, "t", config).unwrap();
    let spread = |number: u64| key(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (mut held, lookups) = (0u64, 4000u64);
    for power in 0..=11 {
        let until = 1000u64 << power;
        let keys: Vec<_> = (held..until).map(spread).collect();
        let pairs: Vec<(&[u8], &[u8])> = keys.iter().map(|it| (&it[..], &it[..])).collect();
        table.insert_many(&pairs).unwrap();
        held = until;
        let hits = (0..lookups).map(|it| spread(it.wrapping_mul(0x5851_F42D) % until));
        let misses = (0..lookups).map(|it| spread(u64::MAX / 2 + it));
        let keys: Vec<_> = hits.chain(misses).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
        let found = table.get_many(&keys).unwrap().iter().filter(|it| it.is_some()).count();
        assert_eq!(found as u64, lookups, "{until} entries");
        let stats = table.stats();
        assert_eq!(stats.reads_histogram[2..], [0; 7], "{until}: at most one page");
        let per_entry = stats.ram_bytes as f64 / until as f64;
        assert!(power < 10 || per_entry <= 2.5, "{until}: {per_entry} bytes of RAM an entry");
    }
    assert!(table.tables() >= 4, "{}", table.tables());
}
