//! Lives of tables, each of minimum size.

use std::sync::Arc;

use nandex::bufferhash::{self, Policy};
use nandex::device::Device;
use nandex::raw::bufferhash::{KIND as BUFFERHASH, growing};
use nandex::raw::slicehash;
use nandex::testing::{Retention, TableRequest, TestTable};
use nandex::{
    AnyConfig, AnyTable, Durability, OpenOptions, Result, Table, Threads, Volume, VolumeOptions,
    rhik,
};
use nandex_baseline::registry::{self, Family};
use nandex_trial::table::{TableContract, stretch};
use nandex_trial::{Contract, Session, Stop};

use super::Life;
use super::figures::{BOUNDS, Bounds, Figures};
use super::living::Lived;
use crate::devices::DURABILITIES;

/// The widths of keys and values: a page has some fifty entries.
pub const WIDTHS: (usize, usize) = (16, 64);

/// A table of one configuration.
#[derive(Clone, Debug)]
pub struct LivedTable {
    pub label: String,
    config: AnyConfig,
    options: OpenOptions,
    retention: Retention,
    durability: Durability,
    keys: u64,
}

/// Returns the configuration of a kind and variant for tests.
pub fn tested(
    kind: &str,
    (key_bytes, value_bytes): (usize, usize),
    (variant, partitions): (u64, u32),
) -> TestTable {
    let request = TableRequest {
        variant,
        key_bytes,
        value_bytes,
        partitions,
        buffer_pages: 1,
        keys: None,
        cache_bytes: 0,
        threads: 0,
    };
    match registry::find(kind).map(|row| &row.family) {
        Some(Family::Table(row)) => (row.testing.config)(&request),
        _ => panic!("{kind} is no table"),
    }
}

/// Returns the partitions of a table that is made for `keys` keys: few, so that no buffers have all keys.
fn partitions_of(keys: u64) -> u32 {
    if keys > 5000 { 4 } else { 2 }
}

/// Creates a BufferHash that is made for `keys` keys, and refuses more.
pub fn bufferhash(widths: (usize, usize), keys: u64, partitions: u32) -> TestTable {
    let made = tested("bufferhash", widths, (17, partitions));
    let config = made.config.of::<bufferhash::Config>().unwrap().clone();
    // Seven tenths of the space that is not kept free are live entries.
    let tables = u64::from(config.super_tables);
    let of_table = (keys * 10).div_ceil(7 * tables * u64::from(config.filter.entries_max())) + 1;
    let reserve_segments = of_table + 3 + tables.max(4);
    let config = bufferhash::Config {
        policy: Policy::Reject,
        segments: tables * of_table + reserve_segments,
        reserve_segments,
        incarnations_max: 120,
        entries_max: keys,
        ..config
    };
    TestTable { config: config.into(), retention: Retention::All, ..made }
}

/// Creates a SliceHash that is made for `keys` keys, and refuses more.
fn slicehash(variant: u64, keys: u64) -> TestTable {
    let made = tested("slicehash", WIDTHS, (variant, partitions_of(keys)));
    let config = *made.config.of::<slicehash::Config>().unwrap();
    let of_table = keys.div_ceil(config.partitions.into());
    let slices = (of_table * 10).div_ceil(6 * u64::from(config.slice_entries())) + 2;
    let config = slicehash::Config {
        slices: u32::try_from(slices).unwrap(),
        entries_max: u32::try_from(of_table).unwrap(),
        ..config
    };
    TestTable { config: config.into(), retention: Retention::All, ..made }
}

/// Creates a BufferHash that grows, from a generation of three incarnations on.
pub fn growing(widths: (usize, usize)) -> TestTable {
    let made = tested("growing", widths, (0, 1));
    let config = made.config.of::<growing::Config>().unwrap().clone();
    TestTable { config: growing::Config { incarnations_max: 24, ..config }.into(), ..made }
}

/// Creates a SliceHash that grows. Slicetables have space for ten buffers.
fn growing_slicehash(variant: u64) -> TestTable {
    let made = tested("growing-slicehash", WIDTHS, (variant, 1));
    let config = *made.config.of::<slicehash::growing::Config>().unwrap();
    let slices = 12 / config.first.slice_parts;
    let entries_max = slices * config.first.slice_entries() * 7 / 8;
    let first = slicehash::Config { slices, entries_max, ..config.first };
    TestTable { config: slicehash::growing::Config { first, ..config }.into(), ..made }
}

impl LivedTable {
    fn new(made: TestTable, durability: Durability, keys: u64) -> Self {
        let TestTable { label, config, mut options, retention, .. } = made;
        options.ram_bytes_max = Some(4 << 20);
        Self { label, config, options, retention, durability, keys }
    }

    /// Returns tables that keep the keys they are made for, `live` keys, or as many as are put. A life has
    /// `keys` keys in all.
    pub fn keeping(life: Life, (live, keys): (u64, u64)) -> impl Iterator<Item = Self> {
        let fixed =
            [bufferhash(WIDTHS, live, partitions_of(live)), slicehash(1, live), slicehash(3, live)];
        let growing = [growing(WIDTHS), growing_slicehash(0), growing_slicehash(1)];
        let rhik = [0, 1].map(|variant| tested("rhik", WIDTHS, (variant, 1)));
        let durabilities = DURABILITIES.into_iter().cycle().skip(life as usize);
        let all = fixed.into_iter().chain(growing).chain(rhik).zip(durabilities);
        all.map(move |(made, durability)| Self::new(made, durability, keys))
    }

    /// Returns the number of its keys: more than it has space for, unless it keeps entries that were not
    /// updated.
    pub fn evicted_keys(&self, space: u64) -> u64 {
        if matches!(self.retention, Retention::AllUnlessForced(_)) { space / 2 } else { 2 * space }
    }

    /// Returns tables that evict, of each policy, with space for about 1000 keys.
    pub fn evicting(keys: u64) -> impl Iterator<Item = Self> {
        let bufferhash = (0..5).map(|variant| tested("bufferhash", WIDTHS, (variant, 2)));
        let slicehash = [0, 2, 4].map(|variant| tested("slicehash", WIDTHS, (variant, 2)));
        let durabilities = DURABILITIES.into_iter().cycle();
        let all = bufferhash.chain(slicehash).zip(durabilities);
        all.map(move |(made, durability)| Self::new(made, durability, keys))
    }
}

impl TableContract for LivedTable {
    fn made(&self) -> (AnyConfig, OpenOptions) {
        (self.config.clone(), self.options.clone())
    }

    fn volume(&self) -> VolumeOptions {
        VolumeOptions {
            durability: self.durability,
            threads: Threads::Inline,
            volume_id: Some(7),
            log_bytes: 256 << 10,
            ..VolumeOptions::tiny()
        }
    }

    fn keys(&self) -> u64 {
        self.keys
    }

    fn retention(&self) -> Retention {
        self.retention
    }

    fn key(&self, number: u64) -> Vec<u8> {
        stretch(number, WIDTHS.0)
    }

    fn value(&self, key: u64, put: u64) -> Vec<u8> {
        stretch(put << 16 | key, WIDTHS.1)
    }

    fn inline(&self) -> Self {
        self.clone()
    }
}

/// Returns the figures of a table.
pub fn figures_of(table: &AnyTable) -> Figures {
    let stats = table.stats();
    let ram_bytes = stats.ram_bytes - stats.cache_bytes;
    let (flash_bytes, entries) = (stats.flash_bytes, stats.entries);
    Figures { flash_bytes, ram_bytes, entries, ..Figures::default() }
}

impl Lived for LivedTable {
    fn label(&self) -> String {
        self.label.clone()
    }

    fn key_count(&self) -> u64 {
        self.keys
    }

    fn bounds(&self, life: Life) -> Bounds {
        // A merge brings as many entries as a buffer has, and the count errs by a part of these.
        let noisy = Bounds { off: 0.1, ..BOUNDS };
        match (self.config.kind(), life) {
            // Filters of incarnations that a fresh one does not have.
            (BUFFERHASH, Life::Shrinks) => Bounds { ram: 1.8, ..BOUNDS },
            (BUFFERHASH | growing::KIND, Life::Churn) => Bounds { off: 0.03, ..BOUNDS },
            // Generations stay until they are compacted. After a power cut a page of the log is replayed as a whole,
            // some 200 removals, and those that were on flash already are counted again.
            (growing::KIND, Life::Shrinks) => Bounds { flash: 9.0, ram: 6.5, off: 0.15, ..BOUNDS },
            // Ten times the keys, in up to twice the partitions.
            (slicehash::growing::KIND, Life::Shrinks) => Bounds { flash: 8.0, ram: 8.0, ..noisy },
            // Tables join when two of them would fill less than half of one.
            (rhik::KIND, Life::Shrinks) => Bounds { flash: 2.2, ..BOUNDS },
            (rhik::KIND | slicehash::KIND | slicehash::growing::KIND, _) => noisy,
            _ => BOUNDS,
        }
    }

    fn compacted_bounds(&self) -> Option<Bounds> {
        let grows = [growing::KIND, slicehash::growing::KIND].contains(&self.config.kind());
        grows.then_some(BOUNDS)
    }

    fn evicts(&self) -> bool {
        self.retention != Retention::All
    }

    fn pages_per_lookup(&self) -> f64 {
        if self.label.contains("3 parts") { 3.0 } else { 1.0 }
    }

    fn put(session: &mut Session<Self>, keys: &[u64]) -> std::result::Result<(), Stop> {
        session.insert_many(keys)
    }

    fn remove(session: &mut Session<Self>, key: u64) -> std::result::Result<(), Stop> {
        session.remove(key)
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

    fn open_without_cache(&self, device: Arc<dyn Device>) -> Result<AnyTable> {
        let volume = Volume::open(device, self.open_options())?;
        AnyTable::open_with(&volume, "t", &self.options)
    }

    fn find(&self, table: &AnyTable, key: u64) -> Result<bool> {
        Ok(table.get(&self.key(key))?.is_some())
    }

    fn stats(table: &AnyTable) -> Figures {
        figures_of(table)
    }
}
