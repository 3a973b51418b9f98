//! One configuration of a cascade filter, as small as it can be: volumes of a few dozen pages.

use nandex::cascade::Config;
use nandex::raw::device::PAGE_BYTES;
use nandex::{AnyConfig, Durability, OpenOptions, Threads, VolumeOptions};
use nandex_baseline::registry::{self, FilterRow, Row};
use nandex_sim::workload::SplitMix64;

use crate::contract::pick;
use crate::table::DURABILITIES;

/// How much larger each level is; `None` for a single wide one.
const FAN_OUTS: [Option<u32>; 3] = [Some(2), Some(4), None];

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub struct FilterSetup {
    /// When updates are durable.
    pub durability: Durability,
    config: Config,
    /// The registry's row and the number of its variant, if it is used instead.
    row: Option<(&'static FilterRow, u64)>,
    io_chunk_pages: u32,
    log_block_pages: u64,
    /// The log's size, in full buffers.
    log_buffers: u64,
    threads: Threads,
    keys_max: u64,
    /// The width of keys; `None` for many.
    key_bytes: Option<usize>,
}

impl FilterSetup {
    /// Of 48 consecutive numbers each fan-out comes with each durability, with and without counts, and with a
    /// universe so large that no two keys share a fingerprint and one in which many do. The rest is random.
    #[must_use]
    pub fn cascade(number: u64) -> Self {
        let mut rng = SplitMix64::stream(number, 1);
        let is_exact = (number / 24).is_multiple_of(2);
        let parts = pick(&mut rng, &[1, 1, 2, 5]);
        let config = Config {
            keys: 1000,
            rate: if is_exact { 1e-9 } else { pick(&mut rng, &[0.5, 0.1]) },
            // A key takes up to eight places of a part's buffer.
            buffer_entries: pick(&mut rng, &[8, 20, 50, 120]).max(8 * u64::from(parts)),
            parts,
            fan_out: FAN_OUTS[(number % 3) as usize],
            counts: (number / 12).is_multiple_of(2),
            ..Config::tiny()
        };
        Self {
            durability: DURABILITIES[(number / 3 % 4) as usize],
            config,
            row: None,
            io_chunk_pages: pick(&mut rng, &[1, 3]),
            log_block_pages: 1 + rng.below(2),
            log_buffers: pick(&mut rng, &[2, 4, 12]),
            threads: Threads::Inline,
            keys_max: 250,
            key_bytes: None,
        }
    }

    /// A filter of this row: of consecutive numbers each variant comes in turn, and with each durability.
    #[must_use]
    pub fn registered(row: &'static FilterRow, number: u64) -> Self {
        let durability = DURABILITIES[(number / row.testing.variants % 4) as usize];
        let plain = Self::cascade(number);
        // For logs large enough for its buffers.
        let config = Config { buffer_entries: 500, ..plain.config };
        let variant = number % row.testing.variants;
        let key_bytes = (row.testing.config)(variant, 0).key_bytes;
        Self { durability, config, row: Some((row, variant)), key_bytes, ..plain }
    }

    /// The configuration and the options to open it with.
    pub(super) fn made(&self) -> (AnyConfig, OpenOptions) {
        let threads = if self.threads == Threads::Inline { 0 } else { 1 };
        if let Some((row, variant)) = self.row {
            let made = (row.testing.config)(variant, threads);
            return (made.config, made.options);
        }
        let io_chunk_pages = self.io_chunk_pages;
        let own = OpenOptions {
            flush_threads: Some(threads),
            io_chunk_pages: Some(io_chunk_pages),
            ..OpenOptions::default()
        };
        (self.config.into(), own)
    }

    /// Structure and sort, for lists.
    #[must_use]
    pub fn policy(&self) -> String {
        if let Some((row, variant)) = self.row {
            return (row.testing.config)(variant, 0).label;
        }
        let Config { fan_out, counts, .. } = self.config;
        format!("Cascade fan-out {fan_out:?} counts {counts}")
    }

    /// Is it impossible that two keys share a fingerprint?
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self.row {
            Some((row, variant)) => (row.testing.config)(variant, 0).universe > 1 << 40,
            None => self.config.rate < 1e-6,
        }
    }

    /// Does it delete keys?
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.row.is_none_or(|(row, _)| row.deletes)
    }

    /// How many of the most recent inserts are surely there; `None` for all.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.row.and_then(|(row, variant)| (row.testing.config)(variant, 0).window)
    }

    /// The bytes of a key: of many lengths where the filter takes them, none of them twice.
    #[must_use]
    pub fn key(&self, number: u64) -> Vec<u8> {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.resize(self.key_bytes.unwrap_or(8 + (number % 23) as usize), 0x5a);
        bytes
    }

    /// How many keys there are: as many as four buffers hold.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        let keys = 4 * self.config.buffer_entries;
        if keys > self.keys_max { self.keys_max } else { keys }
    }

    /// The same with buffers and runs of several pages.
    #[must_use]
    pub const fn wide(mut self) -> Self {
        self.config.buffer_entries = 1000;
        self.config.parts = 1;
        self.keys_max = 4000;
        self.io_chunk_pages = 3;
        self
    }

    /// The same with that many keys, more than its buffers hold.
    #[must_use]
    pub const fn with_keys(mut self, keys: u64) -> Self {
        self.config.buffer_entries = keys.div_ceil(4);
        self.keys_max = keys;
        self
    }

    /// The same with updates durable at other times.
    #[must_use]
    pub const fn durable(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// The same with a thread for merges.
    #[must_use]
    pub const fn threaded(self) -> Self {
        Self { threads: Threads::Background, ..self }
    }

    /// The same without threads in the background.
    #[must_use]
    pub const fn inline(self) -> Self {
        Self { threads: Threads::Inline, ..self }
    }

    /// The options for creating the volume.
    pub(super) fn volume(&self) -> VolumeOptions {
        let block_bytes = self.log_block_pages * PAGE_BYTES as u64;
        let log_bytes = self.log_buffers * 2 * 16 * self.config.buffer_entries;
        let blocks = 8 + 8 * u64::from(self.config.parts);
        VolumeOptions {
            // Each saved part ends its updates with a boundary, which may take a block of its own.
            log_bytes: log_bytes.max(blocks * block_bytes).next_multiple_of(block_bytes),
            log_block_bytes: usize::try_from(block_bytes).expect("one or two pages"),
            durability: self.durability,
            threads: self.threads,
            volume_id: Some(7),
            ..VolumeOptions::tiny()
        }
    }
}

/// The rows of filters that have no configurations of their own here.
pub fn further() -> impl Iterator<Item = (&'static Row, &'static FilterRow)> {
    registry::filters().filter(|(row, _)| row.kind != "cascade")
}
