//! One configuration of a BufferHash, as small as it can be: volumes of a few dozen pages.

use std::sync::Arc;
use std::time::Duration;

use nandex::bufferhash::filter::FilterShape;
use nandex::bufferhash::{Config, Policy, RuntimeOptions};
use nandex::device::{Device, PAGE_BYTES};
use nandex::store::entries::EntryLayout;
use nandex::{BufferHash, Durability, OpenOptions, Threads, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;

use crate::subject::pick;

/// All policies.
pub const POLICIES: [Policy; 6] = [
    Policy::Fifo,
    Policy::Lru,
    Policy::Update,
    Policy::Threshold(0),
    Policy::Top(500),
    Policy::Reject,
];

/// All durabilities; of the two periods one is always over and one never.
pub const DURABILITIES: [Durability; 4] = [
    Durability::Always,
    Durability::Never,
    Durability::Every(Duration::from_millis(1)),
    Durability::Every(Duration::from_secs(3600)),
];

/// Key and value widths in bytes; wide entries fill buffers with few puts.
const WIDTHS: [(usize, usize); 8] =
    [(16, 64), (32, 64), (8, 64), (20, 40), (16, 64), (32, 64), (8, 8), (32, 0)];

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which entries go.
    pub policy: Policy,
    /// When updates are durable.
    pub durability: Durability,
    fuse: bool,
    filter_words: u32,
    key_bytes: usize,
    value_bytes: usize,
    super_tables: u32,
    buffer_pages: u32,
    stagger: bool,
    log_block_pages: u64,
    /// The log's size in what all buffers hold.
    log_buffers: u64,
    /// Is the ring so large that nothing is ever evicted?
    pub is_roomy: bool,
}

impl Setup {
    /// Of 48 consecutive numbers each policy comes with each durability and each kind of filter; the rest
    /// is by chance.
    #[must_use]
    pub fn numbered(number: u64) -> Self {
        let mut dice = SplitMix64::stream(number, 1);
        let policy = POLICIES[(number % 6) as usize];
        let durability = DURABILITIES[(number / 6 % 4) as usize];
        let (key_bytes, value_bytes) = pick(&mut dice, &WIDTHS);
        Self {
            policy,
            durability,
            fuse: (number / 24).is_multiple_of(2),
            filter_words: pick(&mut dice, &[1, 1, 2]),
            key_bytes,
            value_bytes,
            super_tables: pick(&mut dice, &[1, 1, 1, 2]),
            buffer_pages: pick(&mut dice, &[1, 1, 2]),
            stagger: dice.below(2) == 0,
            log_block_pages: 1 + dice.below(2),
            log_buffers: pick(&mut dice, &[4, 6, 12]),
            is_roomy: policy == Policy::Reject || dice.below(4) == 0,
        }
    }

    fn buffer_entries(&self) -> u64 {
        let layout = self.layout();
        (layout.slots() * self.buffer_pages as usize * 95 / 100) as u64
    }

    fn layout(&self) -> EntryLayout {
        EntryLayout::new(self.key_bytes, self.value_bytes).expect("these widths are in range")
    }

    fn reserve_segments(&self) -> u64 {
        u64::from(self.super_tables).max(2)
    }

    fn columns(&self) -> u32 {
        64 * self.filter_words - 8
    }

    /// What the table is created with.
    #[must_use]
    pub fn config(&self) -> Config {
        let entries = u32::try_from(self.buffer_entries()).expect("buffers are small");
        let filter = if self.fuse {
            FilterShape::fuse(entries, 12, self.filter_words)
        } else {
            FilterShape::bloom(entries, 12.0, self.filter_words)
        };
        let tables = u64::from(self.super_tables);
        let per_table = if self.is_roomy { u64::from(self.columns()) } else { 6 };
        Config {
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            super_tables: self.super_tables,
            buffer_pages: self.buffer_pages,
            segments: tables * per_table + self.reserve_segments(),
            incarnations_max: if self.is_roomy { self.columns() } else { 14 },
            filter: filter.expect("these numbers are in range"),
            policy: self.policy,
            reserve_segments: self.reserve_segments(),
            stagger: self.stagger,
            ..Config::tiny()
        }
    }

    /// How many keys there are: so many that buffers fill, and where partial discards keep all live entries so
    /// few that there is room for them.
    #[must_use]
    pub fn keys(&self) -> u64 {
        let buffers = u64::from(self.super_tables) * self.buffer_entries();
        let keeps = matches!(self.policy, Policy::Update | Policy::Threshold(_));
        if keeps { buffers * 5 / 4 } else { buffers * 2 }
    }

    /// How many updates an entry survives at least; none where nothing is evicted.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        let keeps = matches!(self.policy, Policy::Reject | Policy::Update | Policy::Threshold(_));
        if self.is_roomy || keeps {
            return None;
        }
        // The ring holds six buffers of each super table behind the newest. Buffers are flushed before they
        // are quite full, and of what a partial discard leaves much may have been put back.
        let buffers = if self.policy.is_partial() { 1 } else { 2 };
        Some(buffers * self.buffer_entries())
    }

    fn runtime(&self) -> RuntimeOptions {
        RuntimeOptions { flush_threads: 0, ..RuntimeOptions::default() }
    }

    /// Makes a volume on an empty device, and a table in it.
    ///
    /// # Errors
    /// As [`Volume::create`] and [`BufferHash::create_with`].
    pub fn create(&self, device: Arc<dyn Device>) -> nandex::Result<(Volume, BufferHash)> {
        let entry_bytes = (1 + self.key_bytes + self.value_bytes) as u64;
        let buffers_bytes = u64::from(self.super_tables) * self.buffer_entries() * entry_bytes;
        let block_bytes = self.log_block_pages * PAGE_BYTES as u64;
        let log_bytes = (self.log_buffers * buffers_bytes).max(8 * block_bytes);
        let options = VolumeOptions {
            log_bytes: log_bytes.next_multiple_of(block_bytes),
            log_block_bytes: usize::try_from(block_bytes).expect("one or two pages"),
            durability: self.durability,
            threads: Threads::Inline,
            volume_id: Some(7),
            ..VolumeOptions::tiny()
        };
        let volume = Volume::create(device, options)?;
        let table = BufferHash::create_with(&volume, "t", self.config(), self.runtime())?;
        Ok((volume, table))
    }

    /// Opens the table of a volume.
    ///
    /// # Errors
    /// As [`Volume::open`] and [`BufferHash::open_with`].
    pub fn open(&self, device: Arc<dyn Device>) -> nandex::Result<(Volume, BufferHash)> {
        let (durability, threads) = (self.durability, Threads::Inline);
        let options = OpenOptions { durability, threads, ..OpenOptions::default() };
        let volume = Volume::open(device, options)?;
        let table = BufferHash::open_with(&volume, "t", self.runtime())?;
        Ok((volume, table))
    }

    /// The key of that number.
    #[must_use]
    pub fn key(&self, number: u64) -> Vec<u8> {
        stretch(number, self.key_bytes)
    }

    /// The value that the put of that number gives the key.
    #[must_use]
    pub fn value(&self, key: u64, put: u64) -> Vec<u8> {
        stretch(put << 16 | key, self.value_bytes)
    }
}

/// Bytes that begin with the number and go on with others that depend on it.
fn stretch(number: u64, bytes: usize) -> Vec<u8> {
    let mut dice = SplitMix64::new(number);
    let mut out = number.to_le_bytes().to_vec();
    while out.len() < bytes {
        out.extend_from_slice(&dice.roll().to_le_bytes());
    }
    out.truncate(bytes);
    out
}
