//! The same operations on a table and on a map give the same answers.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::large::WhenFull;
use nandex::{BufferHash, LargeTable, Threads};
use nandex_sim::workload::SplitMix64;

use super::support::{DURABILITIES, Map, Setup, key, value, value_bytes};

const KEYS: u64 = 150;

/// Some hundred puts and removes, and a look at each key on the way.
fn work(table: &LargeTable<BufferHash>, map: &mut Map, rng: &mut SplitMix64, steps: u64) {
    for step in 0..steps {
        let key = key(rng.below(KEYS));
        match rng.below(8) {
            0 | 1 => {
                table.remove(&key).unwrap();
                map.remove(&key);
            }
            2 => assert_eq!(table.get(&key).unwrap(), map.get(&key).cloned()),
            3 => {
                let pairs: Vec<_> = (0..5).map(|i| (self::key(rng.below(KEYS)), i)).collect();
                let bytes = value_bytes(rng);
                let pairs: Vec<_> =
                    pairs.into_iter().map(|(key, i)| (key, value(step * 10 + i, bytes))).collect();
                let borrowed: Vec<_> = pairs.iter().map(|(k, v)| (&k[..], &v[..])).collect();
                table.put_many(&borrowed).unwrap();
                map.extend(pairs);
            }
            _ => {
                let value = value(step * 10, value_bytes(rng));
                table.put(&key, &value).unwrap();
                map.insert(key, value);
            }
        }
    }
}

fn agree(table: &LargeTable<BufferHash>, map: &Map, story: &str) {
    let keys: Vec<_> = (0..KEYS + 5).map(key).collect();
    let borrowed: Vec<_> = keys.iter().map(|key| &key[..]).collect();
    let many = table.get_many(&borrowed).unwrap();
    for (key, found) in keys.iter().zip(many) {
        assert_eq!(found.as_ref(), map.get(key), "in a batch, {story}");
        assert_eq!(table.get(key).unwrap().as_ref(), map.get(key), "alone, {story}");
    }
}

/// A life of four openings; gives how many segments were cleaned.
fn live(setup: Setup) -> u64 {
    let device = MemoryDevice::new();
    let mut map = Map::new();
    let (mut rng, mut cleaned) = (SplitMix64::new(3), 0);
    let story = format!("{setup:?}");
    let mut table = setup.create(Arc::new(device.clone())).unwrap();
    for round in 0..4 {
        work(&table, &mut map, &mut rng, 400);
        agree(&table, &map, &story);
        match round {
            0 => table.sync().unwrap(),
            1 => table.flush().unwrap(),
            _ => {}
        }
        agree(&table, &map, &story);
        cleaned += table.stats().values.cleaned_segments;
        table.close().unwrap();
        table = setup.open(Arc::new(device.clone())).unwrap();
        agree(&table, &map, &format!("{story}, reopened"));
    }
    drop(table);
    let report = nandex::check(Arc::new(device), None, &mut |_| {}).unwrap();
    assert!(report.ok(), "{story}: {:?}", report.findings);
    cleaned
}

#[test]
fn a_table_of_large_values_answers_as_a_map_does() {
    for durability in DURABILITIES {
        live(Setup::new(durability, WhenFull::Overwrite).roomy());
    }
}

#[test]
fn a_table_of_large_values_answers_as_a_map_does_with_threads_in_the_background() {
    for durability in DURABILITIES {
        let setup = Setup::new(durability, WhenFull::Overwrite).roomy();
        live(Setup { threads: Threads::Background, ..setup });
    }
}

#[test]
fn a_value_log_that_is_cleaned_again_and_again_keeps_everything() {
    for (durability, threads) in
        DURABILITIES.into_iter().flat_map(|d| [(d, Threads::Inline), (d, Threads::Background)])
    {
        let mut setup = Setup::new(durability, WhenFull::Keep);
        setup.threads = threads;
        setup.values.segments = 112;
        let cleaned = live(setup);
        assert!(cleaned > 20, "{setup:?}: {cleaned} segments were cleaned")
    }
}

#[test]
fn threads_that_share_a_table_find_their_own_values() {
    for durability in DURABILITIES {
        let mut setup = Setup::new(durability, WhenFull::Keep);
        setup.threads = Threads::Background;
        setup.values.segments = 16;
        let device = MemoryDevice::new();
        let table = setup.create(Arc::new(device)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    let (mut map, mut rng) = (Map::new(), SplitMix64::new(thread));
                    for step in 0..400 {
                        let key = key(thread * 1000 + rng.below(20));
                        let value = value(step, value_bytes(&mut rng) / 4);
                        table.put(&key, &value).unwrap();
                        map.insert(key, value);
                        let other = self::key(thread * 1000 + rng.below(20));
                        assert_eq!(table.get(&other).unwrap().as_ref(), map.get(&other));
                    }
                });
            }
        });
        assert!(
            table.stats().values.cleaned_segments > 0,
            "{durability:?}: records moved meanwhile"
        );
    }
}

#[test]
fn the_same_calls_give_the_same_bytes_without_threads() {
    for durability in DURABILITIES {
        let image = || {
            let mut setup = Setup::new(durability, WhenFull::Keep);
            setup.values.segments = 40;
            let device = MemoryDevice::new();
            let table = setup.create(Arc::new(device.clone())).unwrap();
            work(&table, &mut Map::new(), &mut SplitMix64::new(5), 300);
            table.close().unwrap();
            device.image()
        };
        assert!(image() == image(), "{durability:?}");
    }
}
