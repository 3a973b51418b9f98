//! Lives of maps: one that grows, and one that refuses more than it has space for.

use std::sync::Arc;

use nandex::device::{Device, MemoryDevice};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, table_name};
use nandex::testing::{Retention, TestTable};
use nandex::{
    AnyConfig, AnyTable, Durability, LargeTable, OpenOptions, Result, Threads, Volume,
    VolumeOptions, WhenFull,
};
use nandex_sim::workload::SplitMix64;
use nandex_trial::table::{Found, Past, stretch};
use nandex_trial::{Contract, Session, Stop};

use super::Life;
use super::figures::{BOUNDS, Bounds, Figures};
use super::living::Lived;
use super::tables::{bufferhash, figures_of, growing};
use crate::devices::DURABILITIES;

/// The RAM of its cache, which has space for some of the records.
const CACHE_BYTES: u64 = 100 << 10;

type Map = LargeTable<AnyTable>;

/// A map of one configuration.
#[derive(Clone, Debug)]
pub struct LivedMap {
    config: AnyConfig,
    options: OpenOptions,
    values: ValuesConfig,
    durability: Durability,
    keys: u64,
}

impl LivedMap {
    /// Returns a map that grows and one that is made for `live` keys. A life has `keys` keys in all.
    pub fn keeping(life: Life, (live, keys): (u64, u64)) -> impl Iterator<Item = Self> {
        let widths = (TABLE_KEY_BYTES, TABLE_VALUE_BYTES);
        let values = ValuesConfig { segment_pages: 2, ..ValuesConfig::tiny() };
        let grows = ValuesConfig { segments: 5, when_full: WhenFull::Grow, ..values };
        // A record has 260 bytes on average, and a segment 31 of them. Seven tenths are live.
        let segments = u32::try_from(8 + live / 20).unwrap();
        let refuses = ValuesConfig { segments, when_full: WhenFull::Refuse, ..values };
        let all = [(growing(widths), grows), (bufferhash(widths, live, 1), refuses)];
        let durabilities = DURABILITIES.into_iter().cycle().skip(life as usize);
        all.into_iter().zip(durabilities).map(move |((made, values), durability)| {
            let TestTable { config, options, .. } = made;
            Self { config, options, values, durability, keys }
        })
    }

    fn key(&self, number: u64) -> Vec<u8> {
        stretch(number, 8 + (number * 37 % 30) as usize)
    }

    fn value(&self, key: u64, put: u64) -> Vec<u8> {
        stretch(put << 16 | key, 8 + (put * 37 % 380) as usize)
    }

    fn get_many(session: &mut Session<Self>) -> std::result::Result<Vec<Option<Found>>, Stop> {
        let keys: Vec<_> = (0..session.past.count()).map(|it| session.setup().key(it)).collect();
        let borrowed: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        let result = session.handle().get_many(&borrowed);
        // One by one, so that an error does not hide another key's answer.
        let values = match session.allowed(result)? {
            Some(values) => values.into_iter().map(Some).collect(),
            None => {
                let each = keys.iter().map(|key| {
                    let result = session.handle().get(key);
                    session.allowed(result)
                });
                each.collect::<std::result::Result<Vec<_>, _>>()?
            }
        };
        let proven = |(number, value): (u64, Option<Option<Vec<u8>>>)| {
            let value = value?;
            Some(Found::proven(value.as_deref(), |put| session.setup().value(number, put)))
        };
        Ok((0..).zip(values).map(proven).collect())
    }
}

impl Contract for LivedMap {
    type Handle = Map;
    type Past = Past;

    fn past(&self) -> Past {
        Past::new(self.keys, Retention::All)
    }

    fn volume_options(&self) -> VolumeOptions {
        VolumeOptions {
            durability: self.durability,
            threads: Threads::Inline,
            volume_id: Some(7),
            log_bytes: 256 << 10,
            ..VolumeOptions::tiny()
        }
    }

    fn create(&self, volume: &Volume, name: &str) -> Result<Map> {
        let table = AnyTable::create_with(volume, &table_name(name), &self.config, &self.options)?;
        LargeTable::create(volume, name, table, self.values)?.with_cache(CACHE_BYTES)
    }

    fn open(&self, volume: &Volume, name: &str) -> Result<Map> {
        let table = AnyTable::open_with(volume, &table_name(name), &self.options)?;
        LargeTable::open(volume, name, table)?.with_cache(CACHE_BYTES)
    }

    fn without_threads(&self) -> Self {
        self.clone()
    }

    fn close(map: Map) -> Result<()> {
        // The table below is dropped afterwards, which cannot report what it then fails to save.
        map.flush()?;
        map.close()
    }

    fn call(session: &mut Session<Self>, rng: &mut SplitMix64) -> std::result::Result<(), Stop> {
        let key = rng.below(session.past.count());
        Self::put(session, &[key])
    }

    fn look(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        for (key, found) in (0..).zip(Self::get_many(session)?) {
            if let Some(found) = found {
                session.past.judge(key, found, session.trust()).map_err(Stop::Wrong)?;
                session.past.settle(key, found);
            }
        }
        Ok(())
    }

    fn updates(_session: &mut Session<Self>) -> Vec<(&'static str, Result<()>)> {
        Vec::new()
    }
}

impl Lived for LivedMap {
    fn label(&self) -> String {
        format!("Map {:?}", self.values.when_full)
    }

    fn key_count(&self) -> u64 {
        self.keys
    }

    fn bounds(&self, life: Life) -> Bounds {
        match (self.values.when_full, life) {
            (_, Life::Churn) => Bounds { off: 0.03, ..BOUNDS },
            // Neither generations nor segments are freed, and a compacted log begins with more than these.
            (WhenFull::Grow, Life::Shrinks) => Bounds { flash: 8.0, ram: 2.5, ..BOUNDS },
            // Filters of incarnations that a fresh one does not have.
            (_, Life::Shrinks) => Bounds { ram: 2.0, ..BOUNDS },
            _ => BOUNDS,
        }
    }

    /// Returns the pages of the table, and at most one of the record's two.
    fn pages_per_lookup(&self) -> f64 {
        2.0
    }

    fn put(session: &mut Session<Self>, keys: &[u64]) -> std::result::Result<(), Stop> {
        let mut pairs = Vec::with_capacity(keys.len());
        for &key in keys {
            let put = session.past.attempt(key, false);
            pairs.push((session.setup().key(key), session.setup().value(key, put)));
        }
        let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let result = session.handle().put_many(&borrowed);
        session.updated(keys, result)
    }

    fn remove(session: &mut Session<Self>, key: u64) -> std::result::Result<(), Stop> {
        session.past.attempt(key, true);
        let result = session.handle().remove(&session.setup().key(key));
        session.updated(&[key], result)
    }

    fn sync(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let result = session.handle().sync();
        session.synced(result)
    }

    fn flush(session: &mut Session<Self>) -> std::result::Result<(), Stop> {
        let result = session.handle().flush();
        session.synced(result)
    }

    fn is_there(session: &Session<Self>, key: u64) -> bool {
        session.past.is_there(key)
    }

    fn open_without_cache(&self, device: Arc<dyn Device>) -> Result<Map> {
        let volume = Volume::open(device, self.open_options())?;
        let table = AnyTable::open_with(&volume, &table_name("t"), &self.options)?;
        LargeTable::open(&volume, "t", table)
    }

    fn find(&self, map: &Map, key: u64) -> Result<bool> {
        Ok(map.get(&self.key(key))?.is_some())
    }

    fn stats(map: &Map) -> Figures {
        let (stats, of_table) = (map.stats(), figures_of(map.table()));
        Figures {
            flash_bytes: of_table.flash_bytes + stats.values.flash_bytes,
            ram_bytes: stats.ram_bytes - stats.cache_bytes,
            ..of_table
        }
    }
}

/// Replaces all keys: its table got the new keys of a batch before it lost the old ones, and was full with
/// the keys it was made for.
#[test]
fn a_map_with_all_of_its_keys_takes_a_new_one_for_each_that_is_removed() {
    let keys = 800;
    let setup = LivedMap::keeping(Life::Churn, (keys, 3 * keys)).nth(1).unwrap();
    // A batch has more keys than the table's buffers.
    let values = ValuesConfig { segment_pages: 8, io_chunk_pages: 8, ..setup.values };
    let setup = LivedMap { values, durability: Durability::Never, ..setup };
    let map = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    (0..keys).for_each(|number| map.put(&setup.key(number), b"old").unwrap());
    for first in (0..20 * keys).step_by(400) {
        let some = |first: u64| (first..first + 400).map(|number| setup.key(number % (3 * keys)));
        some(first).for_each(|key| map.remove(&key).unwrap());
        some(first + keys).for_each(|key| map.put(&key, b"new").unwrap());
        map.flush().unwrap();
    }
    assert_eq!(map.iter().unwrap().count() as u64, keys);
}
