//! One configuration of a table, of minimum size: volumes of a few dozen pages. The choices for all tables
//! are here; the rest is in the structure's module.

use std::time::Duration;

use nandex::raw::device::PAGE_BYTES;
use nandex::testing::{Retention, TestTable};
use nandex::{AnyConfig, Durability, OpenOptions, Threads, VolumeOptions};
use nandex_baseline::registry::TableRow;
use nandex_sim::workload::SplitMix64;

use super::TableContract;
use super::bufferhash::Rings;
use super::registered::Registered;
use super::slicehash::Slices;
use crate::contract::pick;

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

/// Widths of keys and values, and their bytes.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Bytes in a key.
    pub key_bytes: usize,
    /// Bytes in a value.
    pub value_bytes: usize,
}

/// The structure, and its own numbers.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A BufferHash.
    Rings(Rings),
    /// A SliceHash.
    Slices(Slices),
    /// Any table of the registry.
    Registered(Registered),
}

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub struct TableSetup {
    /// The durability of updates.
    pub durability: Durability,
    /// The structure.
    pub kind: Kind,
    widths: Widths,
    log_block_pages: u64,
    /// The log's size, in full buffers.
    log_buffers: u64,
    /// Whether there is enough space that nothing is ever evicted.
    pub is_roomy: bool,
    threads: Threads,
}

impl TableSetup {
    /// Creates a BufferHash: among 48 consecutive numbers each policy comes with each durability and each
    /// kind of filter; the rest is random.
    #[must_use]
    pub fn bufferhash(number: u64) -> Self {
        let durability = DURABILITIES[(number / 6 % 4) as usize];
        Self::drawn(number, durability, |rng, _| Kind::Rings(Rings::numbered(number, rng)))
    }

    /// Creates a SliceHash: among 48 consecutive numbers each policy comes with each durability and each kind
    /// of slices; the rest is random.
    #[must_use]
    pub fn slicehash(number: u64) -> Self {
        let durability = DURABILITIES[(number / 2 % 4) as usize];
        Self::drawn(number, durability, |rng, widths| {
            Kind::Slices(Slices::numbered(number, widths, rng))
        })
    }

    /// Creates a table of this row: consecutive numbers take each variant in turn, and each durability.
    #[must_use]
    pub fn registered(row: &'static TableRow, number: u64) -> Self {
        let durability = DURABILITIES[(number / row.testing.variants % 4) as usize];
        Self::drawn(number, durability, |rng, widths| {
            Kind::Registered(Registered::numbered(row, number, widths, rng))
        })
    }

    fn drawn(
        number: u64,
        durability: Durability,
        kind: impl FnOnce(&mut SplitMix64, Widths) -> Kind,
    ) -> Self {
        let mut rng = SplitMix64::stream(number, 1);
        let (key_bytes, value_bytes) = pick(&mut rng, &WIDTHS);
        let widths = Widths { key_bytes, value_bytes };
        let kind = kind(&mut rng, widths);
        let log_block_pages = 1 + rng.below(2);
        let log_buffers = pick(&mut rng, &[4, 6, 12]);
        let must_be_roomy = matches!(kind, Kind::Rings(rings) if rings.refuses());
        let is_roomy = must_be_roomy || rng.below(4) == 0;
        let threads = Threads::Inline;
        Self { durability, kind, widths, log_block_pages, log_buffers, is_roomy, threads }
    }

    /// Returns the structure and its policy, for lists.
    #[must_use]
    pub fn policy(&self) -> String {
        match self.kind {
            Kind::Rings(rings) => format!("BufferHash {:?}", rings.policy),
            Kind::Slices(slices) => format!("SliceHash {:?}", slices.policy),
            Kind::Registered(table) => table.made(0).label,
        }
    }

    /// Returns the entries of all buffers when they are full.
    fn buffered_entries(&self) -> u64 {
        match self.kind {
            Kind::Rings(rings) => rings.buffered_entries(self.widths),
            Kind::Slices(slices) => slices.buffered_entries(),
            Kind::Registered(table) => table.buffered_entries(),
        }
    }

    fn thread_count(&self) -> usize {
        if self.threads == Threads::Inline { 0 } else { 2 }
    }

    /// Returns the configuration with background threads. Then the same seed does not give the same
    /// operations.
    #[must_use]
    pub const fn threaded(self) -> Self {
        Self { threads: Threads::Background, ..self }
    }
}

impl TableContract for TableSetup {
    fn inline(&self) -> Self {
        Self { threads: Threads::Inline, ..*self }
    }

    fn made(&self) -> (AnyConfig, OpenOptions) {
        match self.kind {
            Kind::Rings(rings) => {
                let config = rings.config(self.widths, self.is_roomy);
                (config.into(), rings.options(self.threads))
            }
            Kind::Slices(slices) => {
                let config = slices.config(self.is_roomy);
                (config.into(), slices.options(self.threads))
            }
            Kind::Registered(table) => {
                let TestTable { config, options, .. } = table.made(self.thread_count());
                (config, options)
            }
        }
    }

    fn volume(&self) -> VolumeOptions {
        let Widths { key_bytes, value_bytes } = self.widths;
        let entry_bytes = (1 + key_bytes + value_bytes) as u64;
        let buffers_bytes = self.buffered_entries() * entry_bytes;
        let block_bytes = self.log_block_pages * PAGE_BYTES as u64;
        let log_bytes = (self.log_buffers * buffers_bytes).max(8 * block_bytes);
        VolumeOptions {
            log_bytes: log_bytes.next_multiple_of(block_bytes),
            log_block_bytes: usize::try_from(block_bytes).expect("one or two pages"),
            durability: self.durability,
            threads: self.threads,
            volume_id: Some(7),
            ..VolumeOptions::tiny()
        }
    }

    /// Returns the number of keys: enough to fill buffers, and if nothing may be evicted few enough that
    /// there is space for them.
    fn keys(&self) -> u64 {
        match self.kind {
            Kind::Rings(rings) => rings.keys(self.widths),
            Kind::Slices(slices) => slices.keys(self.is_roomy),
            Kind::Registered(table) => table.keys(),
        }
    }

    fn retention(&self) -> Retention {
        match self.kind {
            Kind::Registered(table) => table.retention(self.thread_count()),
            // A long life fills any table: older versions of a key stay.
            Kind::Rings(rings) if rings.refuses() => Retention::Refuses,
            _ if self.is_roomy => Retention::All,
            Kind::Rings(rings) => rings.retention(self.widths, self.threads),
            Kind::Slices(slices) => slices.retention(),
        }
    }

    fn full_from(&self) -> u64 {
        match self.kind {
            Kind::Rings(rings) => rings.full_from(self.widths),
            Kind::Slices(_) | Kind::Registered(_) => 0,
        }
    }

    fn key(&self, number: u64) -> Vec<u8> {
        stretch(number, self.widths.key_bytes)
    }

    fn value(&self, key: u64, put: u64) -> Vec<u8> {
        stretch(put << 16 | key, self.widths.value_bytes)
    }
}

/// Returns bytes that begin with the number and continue with others that depend on it.
#[must_use]
pub fn stretch(number: u64, bytes: usize) -> Vec<u8> {
    let mut rng = SplitMix64::new(number);
    let mut out = number.to_le_bytes().to_vec();
    while out.len() < bytes {
        out.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    out.truncate(bytes);
    out
}
