//! Tables that absorb others, compared with maps; and what that costs the device.

mod policies;
mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use nandex_device::{Counted, Device, MemoryDevice, PAGE_BYTES, PageBuf, PageId};
use nandex_store::entries::EntryLayout;
use nandex_store::hash::HashKind;
use nandex_store::page::PageKind;
use nandex_store::{Threads, Volume, VolumeOptions};
use proptest::prelude::*;

use super::*;
use crate::bufferhash::{self, BufferHash};
use crate::slicehash::{self, SliceHash};
use crate::{
    AnyConfig, AnyTable, Durability, Error, OpenOptions, Result, Table, WhenFull, registry,
};

type Map = BTreeMap<u64, u64>;

/// The kinds that provide their versions; the first two absorb.
const KINDS: [&str; 4] = ["bufferhash", "slicehash", "growing", "growing-slicehash"];

fn tiny(kind: &str) -> AnyConfig {
    let (_, row) = registry::tables().find(|(row, _)| row.kind == kind).unwrap();
    (row.tiny)()
}

fn inline() -> OpenOptions {
    OpenOptions::default().inline()
}

fn options(hash_key: u128) -> VolumeOptions {
    VolumeOptions {
        log_bytes: 1 << 20,
        threads: Threads::Inline,
        hash: HashKind::Xxh3,
        hash_key: Some(hash_key),
        ..VolumeOptions::tiny()
    }
}

/// An empty table of a volume of its own.
fn table_on(device: Arc<dyn Device>, config: &AnyConfig, hash_key: u128) -> AnyTable {
    let volume = Volume::create(device, options(hash_key)).unwrap();
    AnyTable::create_with(&volume, "t", config, &inline()).unwrap()
}

fn table(kind: &str, hash_key: u128) -> AnyTable {
    table_on(Arc::new(MemoryDevice::new()), &tiny(kind), hash_key)
}

/// Returns updates drawn from a seed: puts of keys in a range, and an occasional removal.
fn updates(seed: u64, count: u64, keys: Range<u64>) -> impl Iterator<Item = (u64, Option<u64>)> {
    let mut rng = nandex_sim::workload::SplitMix64::new(seed);
    (0..count).map(move |number| {
        let key = keys.start + rng.below(keys.end - keys.start);
        // Some values are equal in all tables.
        let value = if key.is_multiple_of(3) { key } else { seed << 32 | number };
        (key, (rng.below(5) > 0).then_some(value))
    })
}

fn fill(table: &AnyTable, updates: impl Iterator<Item = (u64, Option<u64>)>) -> Map {
    let mut map = Map::new();
    for (key, value) in updates {
        match value {
            Some(value) => {
                table.insert_u64(key, value).unwrap();
                map.insert(key, value);
            }
            None => {
                table.remove(&key.to_le_bytes()).unwrap();
                map.remove(&key);
            }
        }
    }
    map
}

fn contents(table: &AnyTable) -> Map {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let pairs = table.iter().map(|entry| entry.map(|(key, value)| (number(&key), number(&value))));
    pairs.collect::<Result<_>>().unwrap()
}

/// Returns what a merge of these maps must find, the absorbing one first, and what that one then holds.
fn expected(maps: &[&Map], prefer: Prefer) -> (Map, Absorbed) {
    let keys: BTreeSet<u64> = maps.iter().flat_map(|map| map.keys().copied()).collect();
    let mut found = Absorbed {
        keys_of: maps.iter().map(|map| map.len() as u64).collect(),
        keys: keys.len() as u64,
        passes: 1,
        ..Absorbed::default()
    };
    let mut union = Map::new();
    for key in keys {
        let values: Vec<u64> = maps.iter().filter_map(|map| map.get(&key).copied()).collect();
        let value = match prefer {
            Prefer::First => values[0],
            Prefer::Last => values[values.len() - 1],
        };
        found.shared += u64::from(values.len() > 1);
        found.differing += u64::from(values.iter().any(|it| *it != values[0]));
        found.put += u64::from(maps[0].get(&key) != Some(&value));
        found.only_own += u64::from(maps[0].contains_key(&key) && values.len() == 1);
        union.insert(key, value);
    }
    (union, found)
}

/// Returns the RAM with which a batch takes `versions` versions of 8 + 8 bytes.
fn ram_for(versions: u64) -> u64 {
    let for_puts = 12;
    let each = batch::Batch::version_bytes(EntryLayout::new(8, 8).unwrap()) as u64 + for_puts;
    // The RAM of a worker for its reads, and for matching keys.
    let fixed = (4 << 20) + batch::Batch::fixed_bytes() as u64;
    fixed + versions * each
}

/// Returns the same if they are inserted into a table: four segments of three pages, and their filters.
fn ram_to_put(versions: u64) -> u64 {
    ram_for(versions) + (65 << 10)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_table_that_absorbs_others_has_what_a_map_has(
        target in 0..2usize,
        sources in prop::collection::vec((0..4usize, 0..2500u64, 0..2000u64, any::<bool>()), 0..3),
        own in prop_oneof![Just(0), 0..900u64],
        last in any::<bool>(),
        versions in prop_oneof![Just(1100), Just(100_000)],
        seed in 1..1000u64,
    ) {
        let prefer = if last { Prefer::Last } else { Prefer::First };
        let mut table_of = table(KINDS[target], 7);
        let mut maps = vec![fill(&table_of, updates(seed, own, 0..3000))];
        let mut others = Vec::new();
        for (number, (kind, count, from, alike)) in (1u64..).zip(&sources) {
            let other = table(KINDS[*kind], if *alike { 7 } else { u128::from(number) });
            maps.push(fill(&other, updates(seed + number, *count, *from..from + 2000)));
            others.push(other);
        }
        let versions_of: Vec<_> = others.iter().map(|it| it.versions().unwrap()).collect();
        let options =
            AbsorbOptions { prefer, ram_bytes: ram_to_put(versions), ..AbsorbOptions::default() };
        let counted = count_shared(&versions_of, &options, &unwatched).unwrap();
        prop_assert_eq!(counted.passes, expected_passes(&versions_of, &options).unwrap());
        let found = table_of.absorb(&versions_of, &options, &unwatched).unwrap();
        let all: Vec<&Map> = maps.iter().collect();
        let (union, wanted) = expected(&all, prefer);
        let wanted = Absorbed { passes: found.passes, ram_bytes: found.ram_bytes, ..wanted };
        prop_assert_eq!(&found, &wanted);
        prop_assert!(found.ram_bytes <= options.ram_bytes);
        prop_assert_eq!(contents(&table_of), union.clone());
        for key in (0..4000).step_by(7) {
            prop_assert_eq!(table_of.get_u64(key).unwrap(), union.get(&key).copied());
        }
        let (_, shared) = expected(&all[1..], prefer);
        let of_counts = (counted.keys, counted.shared, counted.differing, counted.put);
        prop_assert_eq!(of_counts, (shared.keys, shared.shared, shared.differing, 0));
        prop_assert_eq!(counted.keys_of, shared.keys_of);
    }
}

#[test]
fn a_merge_with_threads_does_the_same() {
    let make = || Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny()).unwrap();
    for kind in ["bufferhash", "slicehash"] {
        let other = table("slicehash", 3);
        let map = fill(&other, updates(9, 4000, 0..3000));
        // One worker, or one for each core.
        for ram_bytes in [ram_to_put(2000), AbsorbOptions::default().ram_bytes] {
            let volume = make();
            let mut merged = AnyTable::create(&volume, "t", &tiny(kind)).unwrap();
            let options = AbsorbOptions { ram_bytes, ..AbsorbOptions::default() };
            merged.absorb(&[other.versions().unwrap()], &options, &unwatched).unwrap();
            assert_eq!(contents(&merged), map);
            merged.close().unwrap();
            assert_eq!(
                contents(&AnyTable::open(&volume, "t").unwrap()),
                map,
                "{kind}, opened again"
            );
        }
    }
}

/// Returns a table with these keys, on a device that counts.
fn counted(kind: &str, keys: Range<u64>) -> (Arc<Counted<MemoryDevice>>, AnyTable) {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let table = table_on(device.clone(), &tiny(kind), 7);
    fill(&table, keys.map(|key| (key, Some(key))));
    (device, table)
}

#[test]
fn a_merge_reads_in_long_runs_and_no_page_for_a_key() {
    let (device, source) = counted("bufferhash", 0..5000);
    let (slices, sliced) = counted("slicehash", 2000..6000);
    let segments = source.stats().flushes;
    let (before, before_slices) = (device.snapshot(), slices.snapshot());
    let (target, mut merged) = counted("slicehash", 0..0);
    let before_target = target.snapshot();
    let versions = [source.versions().unwrap(), sliced.versions().unwrap()];
    let found = merged.absorb(&versions, &AbsorbOptions::default(), &unwatched).unwrap();
    assert_eq!((found.keys, found.shared, found.passes), (6000, 3000, 1));
    // Each segment of two pages of entries is read once, without its filter; each slicetable of 12 pages once.
    let reads = device.snapshot() - before;
    assert_eq!((reads.reads, reads.pages_read, reads.writes), (segments, 2 * segments, 0));
    let reads = slices.snapshot() - before_slices;
    assert_eq!((reads.reads, reads.pages_read, reads.writes), (4, 4 * 12, 0));
    // The absorbing table was empty: nothing of it is read, and each slicetable is written once.
    let made = target.snapshot() - before_target;
    assert_eq!(made.reads, 0, "{made:?}");
    assert_eq!(merged.stats().data_bytes_written, 4 * 12 * PAGE_BYTES as u64);
}

#[test]
fn partitions_that_take_more_ram_than_allowed_are_read_more_often_and_that_is_told() {
    let (device, source) = counted("bufferhash", 0..5000);
    let (segments, before) = (source.stats().flushes, device.snapshot());
    // Counting inserts nothing, so this is enough for more versions.
    let few = AbsorbOptions { ram_bytes: ram_for(900), ..AbsorbOptions::default() };
    let found = count_shared(&[source.versions().unwrap()], &few, &unwatched).unwrap();
    assert_eq!((found.keys, found.passes), (5000, 2), "{found:?}");
    // Two shares for each of four super tables.
    assert_eq!((device.snapshot() - before).pages_read, 2 * 2 * segments);
}

#[test]
fn a_split_that_is_not_finished_costs_no_page_twice() {
    let (device, source) = counted("growing-slicehash", 0..0);
    let block_pages = u64::from(slicehash::Config::tiny().block_pages());
    let (mut flushes, mut pages, mut partitions) = (0, 0, BTreeSet::new());
    for key in 0..24_000u64 {
        source.insert_u64(key, key).unwrap();
        if key % 200 > 0 {
            continue;
        }
        let before = device.snapshot();
        let versions = source.versions().unwrap();
        partitions.insert(versions.0.partitions());
        let found = count_shared(&[versions], &AbsorbOptions::default(), &unwatched).unwrap();
        assert_eq!((found.keys, found.passes), (key + 1, 1));
        let read = (device.snapshot() - before).pages_read;
        // Since then, each flush has written a slicetable, possibly in addition to others.
        let now = source.stats().flushes;
        assert!(read <= pages + (now - flushes) * block_pages, "key {key}: {read} after {pages}");
        (flushes, pages) = (now, read);
    }
    assert!(partitions.len() > 2, "several splits: {partitions:?}");
}

#[test]
fn a_bufferhash_that_absorbs_writes_each_entry_once() {
    let (_, source) = counted("slicehash", 0..6000);
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let options = VolumeOptions { durability: Durability::Never, ..options(7) };
    let volume = Volume::create(device.clone(), options).unwrap();
    let mut merged = AnyTable::create_with(&volume, "t", &tiny("bufferhash"), &inline()).unwrap();
    let before = device.snapshot();
    merged.absorb(&[source.versions().unwrap()], &AbsorbOptions::default(), &unwatched).unwrap();
    let (made, stats) = (device.snapshot() - before, merged.stats());
    assert_eq!((made.reads, stats.log_bytes_written), (0, 0), "{made:?}");
    // Segments of full buffers, and a snapshot for each of four super tables.
    let config = bufferhash::Config::tiny();
    let segments = stats.flushes * u64::from(config.segment_pages());
    let pages = stats.data_bytes_written / PAGE_BYTES as u64;
    assert!(stats.flushes >= 8 && pages <= segments + 4 * 4, "{stats:?}");
    // Partial buffers arrive in an order unrelated to pages, which would fill the first page and freeze the buffer.
    assert!(
        stats.flushes <= 4 * 6000_u64.div_ceil(4 * u64::from(config.filter.entries_max())),
        "{stats:?}"
    );
    assert_eq!(contents(&merged).len(), 6000);
}

#[test]
fn a_bufferhash_that_absorbs_logs_only_what_fills_no_buffer() {
    let (_, source) = counted("slicehash", 0..6000);
    let mut merged = table("bufferhash", 7);
    merged.insert_u64(17, 99).unwrap();
    let before = merged.stats();
    let found = merged.absorb(&[source.versions().unwrap()], &AbsorbOptions::default(), &unwatched);
    let (found, stats) = (found.unwrap(), merged.stats());
    assert_eq!((found.put, found.only_own), (5999, 0));
    // From each of four super tables: less than a buffer, and what the stashes and filters of the others leave.
    let config = bufferhash::Config::tiny();
    let buffer_entries = u64::from(config.filter.entries_max());
    let logged = stats.inserts - before.inserts;
    assert!(stats.flushes >= 4 && logged < 4 * buffer_entries + stats.flushes * 64, "{stats:?}");
    assert!(logged < 6000 / 2, "{logged}");
    assert_eq!(merged.get_u64(17).unwrap(), Some(99), "the first table's stays");
    assert_eq!(contents(&merged).len(), 6000);
}

#[test]
fn a_table_that_hashes_otherwise_is_read_once_for_each_share() {
    let other = table("bufferhash", 99);
    let map = fill(&other, updates(5, 4000, 0..4000));
    let mut merged = table("slicehash", 7);
    let options = AbsorbOptions { ram_bytes: ram_for(1050), ..AbsorbOptions::default() };
    let found = merged.absorb(&[other.versions().unwrap()], &options, &unwatched).unwrap();
    assert_eq!(found.passes, 4, "{found:?}");
    assert_eq!(contents(&merged), map);
    let options = AbsorbOptions::default();
    let found = count_shared(
        &[merged.versions().unwrap(), other.versions().unwrap()],
        &options,
        &unwatched,
    );
    let found = found.unwrap();
    assert_eq!((found.passes, found.shared, found.keys), (1, map.len() as u64, map.len() as u64));
}

#[test]
fn what_cannot_merge_is_refused_with_the_reason() {
    let (mut merged, other) = (table("bufferhash", 7), table("bufferhash", 7));
    fill(&other, updates(1, 3000, 0..3000));
    let refused = |result: Result<Absorbed>, reason: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    let wide = slicehash::Config { key_bytes: 16, entries_max: 1200, ..slicehash::Config::tiny() };
    let wide = table_on(Arc::new(MemoryDevice::new()), &wide.into(), 7);
    let (usual, wide) = (AbsorbOptions::default(), wide.versions().unwrap());
    refused(merged.absorb(&[wide], &usual, &unwatched), "keys of 16 bytes");
    refused(count_shared(&[other.versions().unwrap(), wide], &usual, &unwatched), "widths");
    let few = AbsorbOptions { ram_bytes: 1 << 20, ..usual };
    let versions = [other.versions().unwrap()];
    refused(merged.absorb(&versions, &few, &unwatched), "are needed");
    refused(table("rhik", 7).absorb(&versions, &usual, &unwatched), "cannot be merged");
    assert!(table("rhik", 7).versions().is_err());
    assert_eq!(count_shared(&[], &usual, &unwatched).unwrap().keys, 0);
    let stop = |_: f64| ControlFlow::Break(());
    assert!(matches!(merged.absorb(&versions, &usual, &stop), Err(Error::Stopped)));
    assert!(matches!(count_shared(&versions, &usual, &stop), Err(Error::Stopped)));
    assert_eq!(contents(&merged), Map::new());
}

#[test]
fn a_table_that_is_too_small_says_so_or_evicts_and_tells() {
    let others: Vec<_> =
        (0..3u64).map(|nth| counted("slicehash", nth * 6000..(nth + 1) * 6000).1).collect();
    let versions: Vec<_> = others.iter().map(|other| other.versions().unwrap()).collect();
    let options = AbsorbOptions::default();
    for kind in ["bufferhash", "slicehash"] {
        let mut evicting = table(kind, 7);
        let found = evicting.absorb(&versions, &options, &unwatched).unwrap();
        assert_eq!((found.keys, found.put), (18_000, 18_000));
        assert!(found.evicted > 3000, "{kind}: {found:?}");
        assert_eq!(contents(&evicting).len() as u64, found.keys - found.evicted, "{kind}");
    }
    let config =
        bufferhash::Config { policy: bufferhash::Policy::Reject, ..bufferhash::Config::tiny() };
    let slices = slicehash::Config { policy: WhenFull::Refuse, ..slicehash::Config::tiny() };
    for config in [AnyConfig::from(config), slices.into()] {
        let mut refusing = table_on(Arc::new(MemoryDevice::new()), &config, 7);
        let error = refusing.absorb(&versions, &options, &unwatched).unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
        let found = contents(&refusing);
        assert!(found.len() > 3000, "{}", found.len());
        assert!(found.iter().all(|(key, value)| key == value));
    }
}

/// Changes a byte of every page of this kind.
fn damage(device: &MemoryDevice, kind: PageKind) {
    let image = device.image();
    for (page, bytes) in (0..).zip(image.chunks_exact(PAGE_BYTES)) {
        if bytes[4..8] == *b"ndx1" && bytes[8] == kind as u8 {
            let mut buf = PageBuf::zeroed(1);
            buf.copy_from_slice(bytes);
            buf[3000] ^= 4;
            device.write(PageId(page), buf).unwrap();
        }
    }
}

#[test]
fn a_damaged_page_ends_a_merge_and_is_named_but_filters_are_not_read() {
    for (kind, data) in [("bufferhash", PageKind::Data), ("slicehash", PageKind::Slice)] {
        let device = MemoryDevice::new();
        let source = table_on(Arc::new(device.clone()), &tiny(kind), 7);
        let map = fill(&source, (0..6000).map(|key| (key, Some(key))));
        let merge = || {
            let mut merged = table("slicehash", 7);
            let versions = [source.versions().unwrap()];
            let found = merged.absorb(&versions, &AbsorbOptions::default(), &unwatched);
            found.map(|_| contents(&merged))
        };
        damage(&device, PageKind::Filter);
        assert_eq!(merge().unwrap(), map, "{kind}");
        damage(&device, data);
        let error = merge().unwrap_err();
        assert!(matches!(error, Error::Store(nandex_store::Error::Corrupt { .. })), "{error}");
    }
}

#[test]
fn tables_of_one_volume_merge_too() {
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options(7)).unwrap();
    let create = |name| BufferHash::create(&volume, name, bufferhash::Config::tiny()).unwrap();
    let (mut one, two) = (create("one"), create("two"));
    let three = SliceHash::create(&volume, "three", slicehash::Config::tiny()).unwrap();
    for key in 0..2000u64 {
        one.insert_u64(key, 1).unwrap();
        two.insert_u64(key + 1000, 2).unwrap();
        three.insert_u64(key + 2500, 3).unwrap();
    }
    let options = AbsorbOptions::default();
    let found = one.absorb(&[two.versions(), three.versions()], &options).unwrap();
    assert_eq!(found.keys_of, [2000, 2000, 2000]);
    assert_eq!((found.keys, found.shared, found.put), (4500, 1500, 2500));
    for (key, value) in [(0, 1), (1999, 1), (2000, 2), (2999, 2), (3000, 3), (4499, 3)] {
        assert_eq!(one.get_u64(key).unwrap(), Some(value), "key {key}");
    }
    assert_eq!(one.get_u64(4500).unwrap(), None);
}
