//! Tests that are specific to a growing table; the harnesses over the registry cover the rest.

use std::sync::Arc;

use nandex_device::{Counted, MemoryDevice};
use nandex_store::{Threads, VolumeOptions};

use nandex_store::Volume;

use super::*;
use crate::bufferhash::BufferHash;
use crate::bufferhash::model::FIXED_RAM_BYTES;
use crate::grow::tests::{counts_shared_ram_once, inline_volume, key, tells, volume};
use crate::{Error, OpenOptions, Policy, Requirements, Table};

#[test]
fn a_table_whose_ram_is_spent_says_so_and_keeps_what_it_has() {
    let (_, volume) = volume();
    let one = Config::tiny().first.ram_bytes();
    let config = Config { ram_bytes_max: Some(2 * one + FIXED_RAM_BYTES), ..Config::tiny() };
    let table = Growing::create(&volume, "t", config.clone()).unwrap();
    let (mut taken, mut refusal) = (0, None);
    while refusal.is_none() && taken < 100_000 {
        refusal = table.insert(&key(taken), &key(taken)).err();
        taken += u64::from(refusal.is_none());
    }
    let refusal = refusal.unwrap();
    assert!(
        matches!(refusal, Error::GrowthStopped { entries, .. } if entries == taken),
        "{refusal}"
    );
    assert!(refusal.to_string().contains("more RAM"), "{refusal}");
    assert!(taken >= config.entries_capacity(), "{taken} of {}", config.entries_capacity());
    assert_eq!(table.generations(), 2);
    assert!((0..taken).all(|it| table.get(&key(it)).unwrap().is_some()));
    assert_eq!(table.iter().count() as u64, taken);
}

#[test]
fn a_table_whose_flash_is_spent_says_so_and_goes_on() {
    for pages_max in (1800..1860).step_by(7) {
        let device = MemoryDevice::with_limit(pages_max);
        let options = VolumeOptions {
            threads: Threads::Inline,
            log_bytes: 1 << 20,
            ..VolumeOptions::default()
        };
        let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
        let config = Config { buffer_pages_max: 8, ..Config::tiny() };
        let table = Growing::create(&volume, "t", config).unwrap();
        let (mut taken, mut refusal) = (0, None);
        while refusal.is_none() {
            refusal = table.insert(&key(taken), &key(taken)).err();
            taken += u64::from(refusal.is_none());
        }
        let refusal = refusal.unwrap();
        let Error::GrowthStopped { entries, reason } = &refusal else { panic!("{refusal}") };
        assert!(entries.abs_diff(taken) <= taken / 100, "{entries} of {taken}");
        assert!(reason.contains("free some space"), "{pages_max} pages: {refusal}");
        // There are pages left that checkpoints need.
        volume.checkpoint().unwrap();
        table.close().unwrap();
        let table = Growing::open(&volume, "t").unwrap();
        for number in 0..taken {
            assert_eq!(table.get(&key(number)).unwrap().as_deref(), Some(&key(number)[..]));
        }
        table.close().unwrap();
    }
}

#[test]
fn what_generations_share_is_counted_once() {
    let volume = inline_volume();
    let options = OpenOptions { flush_threads: Some(0), ..OpenOptions::default() };
    let table = Growing::create_with(&volume, "t", Config::tiny(), options).unwrap();
    (0..12_000).for_each(|number| table.insert(&key(number), &key(number)).unwrap());
    assert!(table.generations() >= 3);
    counts_shared_ram_once(&volume, &table, 12_000);
}

#[test]
fn while_a_table_fits_its_cache_hardly_any_hit_reads_a_page() {
    let (_, volume) = volume();
    let options = OpenOptions { cache_bytes: 1 << 20, ..OpenOptions::default() };
    let table = Growing::create_with(&volume, "t", Config::tiny(), options).unwrap();
    for number in 0..10_000 {
        assert_eq!(table.get_or_insert(&key(number), &key(number)).unwrap(), None);
    }
    table.flush().unwrap();
    assert!(table.generations() > 2);
    let get_all = || {
        for number in 0..10_000 {
            assert_eq!(table.get(&key(number)).unwrap().as_deref(), Some(&key(number)[..]));
        }
        table.stats()
    };
    // Entries that a generation writes after it is full, an eighth of these tiny ones, enter the cache by lookups.
    let first = get_all();
    assert!(first.hit_reads < 2_500 && first.cache_hits > 6_500, "{first:?}");
    let second = get_all();
    assert!(second.hit_reads - first.hit_reads < 100, "{second:?}");
}

#[test]
fn a_generation_that_is_not_the_newest_tells_the_cache_no_value() {
    let (_, volume) = volume();
    let options = OpenOptions { cache_bytes: 1 << 16, ..OpenOptions::default() };
    let table = Growing::create_with(&volume, "t", Config::tiny(), options).unwrap();
    let cores = &table.owner.parts;
    assert!(tells(cores.core(0)));
    (0..2000).for_each(|number| table.insert(&key(number), &key(number)).unwrap());
    let told: Vec<bool> = cores.cores().map(tells).collect();
    assert!(
        told.len() > 1 && told.iter().rev().eq([true].iter().chain(&vec![false; told.len() - 1]))
    );
}

#[test]
fn a_generation_of_another_shape_is_refused() {
    let (_, volume) = volume();
    Growing::create(&volume, "t", Config::tiny()).unwrap().close().unwrap();
    let other = crate::bufferhash::Config { buffer_pages: 3, ..Config::tiny().first };
    let create =
        |config, pages| Ok(volume.create_part(("t", "g2"), GENERATION_KIND, config, pages)?);
    BufferHash::enter(&volume, create, &other, &OpenOptions::default()).unwrap();
    BufferHash::open_as(&volume, ("t/g2", GENERATION_KIND), OpenOptions::default())
        .unwrap()
        .close()
        .unwrap();
    let error = Growing::open(&volume, "t").unwrap_err().to_string();
    assert!(error.contains("\"t/g2\" has other buffers"), "{error}");
}

#[test]
fn from_a_thousand_entries_on_a_hit_reads_a_page_and_a_miss_hardly_any() {
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
        let before = table.stats();
        let hits = (0..lookups).map(|it| spread(it.wrapping_mul(0x5851_F42D) % until));
        let misses = (0..lookups).map(|it| spread(u64::MAX / 2 + it));
        let keys: Vec<_> = hits.chain(misses).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
        let found = table.get_many(&keys).unwrap().iter().filter(|it| it.is_some()).count();
        assert_eq!(found as u64, lookups, "{until} entries");
        let after = table.stats();
        let hit_reads = (after.hit_reads - before.hit_reads) as f64 / lookups as f64;
        let miss_reads = (after.miss_reads - before.miss_reads) as f64 / lookups as f64;
        assert!(hit_reads <= 1.02 && miss_reads <= 0.02, "{until}: {hit_reads}, {miss_reads}");
    }
    assert!(table.generations() >= 3, "{}", table.generations());
}

#[test]
fn a_growing_table_takes_little_ram_for_each_entry_at_every_size() {
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
    let mut held = 0u64;
    for (entries, most) in [(1_000_000, 4.1), (1_500_000, 3.8), (2_000_000, 3.5), (3_000_000, 3.2)]
    {
        while held < entries {
            let keys: Vec<_> = (held..held + 10_000).map(spread).collect();
            let pairs: Vec<(&[u8], &[u8])> = keys.iter().map(|it| (&it[..], &it[..])).collect();
            table.insert_many(&pairs).unwrap();
            held += 10_000;
        }
        table.owner.parts.cores().for_each(|core| core.work.wait_quiet());
        // The number of blocks that the log has in RAM depends on timing.
        let log_ram_bytes = volume.log().stats().ram_bytes;
        let each = (table.stats().ram_bytes - log_ram_bytes) as f64 / entries as f64;
        assert!(each <= most, "{entries} entries: {each} bytes for each, {most} at most");
    }
}

#[test]
fn an_iteration_reads_each_page_of_entries_of_each_generation_once() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let options = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
    let runtime = OpenOptions::default().inline();
    let table = Growing::create_with(&volume, "t", Config::tiny(), runtime).unwrap();
    // Old generations have keys of many super tables of the new ones, older versions of some and removed ones.
    (0..10_000).for_each(|it| table.insert(&key(it), &key(it)).unwrap());
    (0..1000).for_each(|it| table.insert(&key(it), &key(it + 1)).unwrap());
    (1000..2000).for_each(|it| table.remove(&key(it)).unwrap());
    assert!(table.generations() > 3);
    let super_tables: Vec<_> =
        table.owner.parts.cores().map(|core| core.partitions.len()).collect();
    assert!(super_tables.last() > super_tables.first(), "{super_tables:?}");
    let incarnations: usize = table
        .owner
        .parts
        .cores()
        .flat_map(|core| core.partitions.iter().map(|it| it.read().level.newest_first().len()))
        .sum();
    let pages = incarnations as u64 * u64::from(Config::tiny().first.buffer_pages);
    let before = device.snapshot();
    let mut found: Vec<_> = table.iter().map(Result::unwrap).collect();
    assert_eq!((device.snapshot() - before).pages_read, pages);
    found.sort_by_key(|(key, _)| u64::from_le_bytes(key[..].try_into().unwrap()));
    let expected = (0..1000).map(|it| (it, it + 1)).chain((2000..10_000).map(|it| (it, it)));
    let expected = expected.map(|(it, value)| (key(it).to_vec(), key(value).to_vec()));
    let found = found.into_iter().map(|(key, value)| (key, value.to_vec()));
    assert!(found.eq(expected));
}
