//! A table with a cache of entries answers as one without, evictions and growth included, and reads less.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::testing::{TableRequest, TestTable};
use nandex::{
    AnyTable, Durability, Error, OpenOptions, Table, TableStats, Threads, Volume, VolumeOptions,
};
use nandex_baseline::registry;
use nandex_sim::workload::SplitMix64;

/// The number of keys that are inserted, several times the capacity of a table without space.
const KEYS: u64 = 40_000;

/// Keys that are inserted at a time.
const BATCH: u64 = 6;

/// The number of keys that are looked up repeatedly.
const HOT: u64 = 60;

/// Creates a table without threads: equal calls do the same to equal tables.
fn create(made: &TestTable) -> AnyTable {
    let options = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        volume_id: Some(3),
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    // The pages that were read determine which filters there are; these decide which removals leave a trace.
    let options = OpenOptions { filter_bytes: 0, ..made.options.clone() };
    AnyTable::create_with(&volume, "t", &made.config, &options).unwrap()
}

/// Makes one of the calls that a number names.
fn call(table: &AnyTable, step: u64, rng: &mut SplitMix64) -> Vec<Option<u64>> {
    let number = |found: Option<nandex::Value>| {
        found.map(|it| u64::from_le_bytes(it[..].try_into().unwrap()))
    };
    let hot = rng.below(HOT);
    let taken = |result: nandex::Result<()>| match result {
        Ok(()) | Err(Error::Full { .. } | Error::GrowthStopped { .. }) => {}
        Err(error) => panic!("{error}"),
    };
    match rng.below(40) {
        0 => taken(table.insert_u64(hot, step)),
        1 => taken(table.remove(&hot.to_le_bytes())),
        2 => table.flush().unwrap(),
        3..=24 => {
            let keys = (0..BATCH).map(|key| HOT + (BATCH * step + key) % KEYS);
            keys.for_each(|key| taken(table.insert_u64(key, step)));
        }
        25..=34 => return vec![number(table.get(&hot.to_le_bytes()).unwrap())],
        35 | 36 => {
            let recent = HOT + (BATCH * step).saturating_sub(rng.below(KEYS)) % KEYS;
            return vec![number(table.get(&recent.to_le_bytes()).unwrap())];
        }
        37 => {
            let mut stream = table.stream().unwrap();
            stream.push(&hot.to_le_bytes(), 0).unwrap();
            let (_, found) = stream.pull().unwrap().unwrap();
            return vec![number(found)];
        }
        _ => {
            let keys: Vec<_> = (0..HOT).map(u64::to_le_bytes).collect();
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            return table.get_many(&keys).unwrap().into_iter().map(number).collect();
        }
    }
    Vec::new()
}

/// Makes the same calls of two tables, which must answer the same. Returns their counts.
fn live_alike(tables: [AnyTable; 2], seed: u64, label: &str) -> [TableStats; 2] {
    let mut rngs = [seed, seed].map(SplitMix64::new);
    for step in 0..12_000 {
        let [one, other] = &mut rngs;
        let expected = call(&tables[0], step, one);
        assert_eq!(call(&tables[1], step, other), expected, "{label}, step {step}");
    }
    tables.map(|table| table.stats())
}

#[test]
fn a_table_that_grows_answers_from_lent_ram_as_one_without_a_cache() {
    let mut kinds = Vec::new();
    for (row, table) in registry::tables().filter(|(row, _)| row.kind.starts_with("growing")) {
        for variant in 0..table.testing.variants {
            let request = TableRequest { variant, threads: 0, ..TableRequest::default() };
            let mut made = (table.testing.config)(&request);
            made.options.ram_bytes_max = Some(8 << 20);
            let tables = [create(&made), create(&made).with_spare_ram()];
            let [without, with] = live_alike(tables, variant, &made.label);
            assert_eq!((with.hits, with.misses), (without.hits, without.misses), "{}", row.kind);
            assert!(with.cache_hits > 100 && with.hit_reads < without.hit_reads, "{with:?}");
        }
        kinds.push(row.kind);
    }
    assert_eq!(kinds, ["growing", "growing-slicehash"]);
}

#[test]
fn a_table_with_a_cache_answers_as_one_without() {
    let mut cached = BTreeMap::new();
    for (row, table) in registry::tables() {
        for (variant, keys) in
            (0..table.testing.variants).flat_map(|it| [(it, None), (it, Some(3320))])
        {
            let request = TableRequest { variant, keys, threads: 0, ..TableRequest::default() };
            let plain = (table.testing.config)(&request);
            let made = (table.testing.config)(&TableRequest { cache_bytes: 8 << 10, ..request });
            let tables = [create(&plain), create(&made)];
            let [without, with] = tables.each_ref().map(AnyTable::stats);
            assert_eq!(with.ram_bytes, without.ram_bytes + with.cache_bytes, "{}", made.label);
            let [without, with] = live_alike(tables, variant, &made.label);
            assert_eq!((with.hits, with.misses), (without.hits, without.misses));
            if with.cache_bytes == 0 {
                continue;
            }
            *cached.entry(row.kind).or_insert(0) += 1;
            let reads = [&with, &without].map(|it| it.hit_reads + it.miss_reads);
            assert!(
                with.cache_hits > 100 && reads[0] < reads[1],
                "{}: {with:?}, {reads:?}",
                made.label
            );
            assert!((0.1..1.0).contains(&with.cache_hit_rate()), "{with:?}");
        }
    }
    // Each variant twice. Four of BufferHash have the policy LRU, and no cache.
    let all = [
        ("bufferhash", 40),
        ("growing", 4),
        ("growing-slicehash", 4),
        ("multilevel", 4),
        ("rhik", 4),
        ("slicehash", 24),
    ];
    assert_eq!(cached, BTreeMap::from(all));
}
