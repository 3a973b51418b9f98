//! What all modules share: configurations, keys and values made from numbers, and the oracle.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::filter::FilterShape;
use nandex::bufferhash::{Config, Policy, RuntimeOptions};
use nandex::device::Device;
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, WhenFull};
use nandex::store::entries::EntryLayout;
use nandex::store::hash::HashKind;
use nandex::{
    BufferHash, Durability, LargeTable, OpenOptions, Result, Threads, Volume, VolumeOptions,
};

/// All durabilities; a period so long that only explicit syncs make anything durable.
pub const DURABILITIES: [Durability; 3] =
    [Durability::Always, Durability::Every(Duration::from_secs(3600)), Durability::Never];

/// The oracle: what must be found.
pub type Map = HashMap<Vec<u8>, Vec<u8>>;

/// One configuration of everything.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub durability: Durability,
    pub threads: Threads,
    pub hash: HashKind,
    pub values: ValuesConfig,
}

impl Setup {
    /// Small segments, everything on the calling thread.
    pub fn new(durability: Durability, when_full: WhenFull) -> Self {
        let values = ValuesConfig { when_full, segments: 8, ..ValuesConfig::tiny() };
        Self { durability, threads: Threads::Inline, hash: HashKind::Xxh3, values }
    }

    /// The same with room for everything.
    pub fn roomy(self) -> Self {
        let values =
            ValuesConfig { segment_pages: 64, segments: 64, io_chunk_pages: 8, ..self.values };
        Self { values, ..self }
    }

    fn flush_threads(&self) -> usize {
        usize::from(self.threads == Threads::Background)
    }

    fn table(&self) -> Config {
        let layout = EntryLayout::new(TABLE_KEY_BYTES, TABLE_VALUE_BYTES).unwrap();
        let entries = u32::try_from(2 * layout.slots() * 95 / 100).unwrap();
        Config {
            key_bytes: TABLE_KEY_BYTES,
            value_bytes: TABLE_VALUE_BYTES,
            super_tables: 2,
            filter: FilterShape::fuse(entries, 12, 1).unwrap(),
            segments: 4 * 56,
            incarnations_max: 56,
            policy: Policy::Reject,
            ..Config::tiny()
        }
    }

    fn runtime(&self) -> RuntimeOptions {
        RuntimeOptions { flush_threads: self.flush_threads(), ..RuntimeOptions::default() }
    }

    pub fn create(&self, device: Arc<dyn Device>) -> Result<LargeTable<BufferHash>> {
        let Self { durability, threads, hash, .. } = *self;
        let volume_id = Some(7);
        let options =
            VolumeOptions { durability, threads, hash, volume_id, ..VolumeOptions::tiny() };
        let volume = Volume::create(device, options)?;
        let table = BufferHash::create_with(&volume, "t", self.table(), self.runtime())?;
        LargeTable::create(&volume, "v", table, self.values)
    }

    pub fn open(&self, device: Arc<dyn Device>) -> Result<LargeTable<BufferHash>> {
        let Self { durability, threads, .. } = *self;
        let options = OpenOptions { durability, threads, ..OpenOptions::default() };
        let volume = Volume::open(device, options)?;
        let table = BufferHash::open_with(&volume, "t", self.runtime())?;
        LargeTable::open(&volume, "v", table)
    }
}

/// A key of that number: of 0 to some hundred bytes.
pub fn key(number: u64) -> Vec<u8> {
    let bytes = if number == 0 { 0 } else { 8 + (number * 37 % 300) as usize };
    stretch(number, bytes)
}

/// A value of so many bytes that no other number has.
pub fn value(number: u64, bytes: usize) -> Vec<u8> {
    stretch(number ^ 0xfeed_0000_0000, bytes)
}

fn stretch(number: u64, bytes: usize) -> Vec<u8> {
    let mut dice = Dice(number);
    let mut out = number.to_le_bytes().to_vec();
    while out.len() < bytes {
        out.extend_from_slice(&dice.next().to_le_bytes());
    }
    out.truncate(bytes);
    out
}

/// A seeded sequence of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Mostly some hundred bytes, now and then some pages.
    pub fn value_bytes(&mut self) -> usize {
        let limit = [1, 300, 1000, 9000][self.below(4) as usize];
        self.below(limit) as usize
    }
}
