//! One configuration of a cascade filter, of minimum size: volumes of a few dozen pages.

use nandex::cascade::Config;
use nandex::raw::device::PAGE_BYTES;
use nandex::{AnyConfig, Durability, OpenOptions, Threads, VolumeOptions};
use nandex_baseline::registry::{self, FilterRow, Row};
use nandex_sim::workload::SplitMix64;

use crate::contract::pick;
use crate::table::DURABILITIES;

/// The size of each level over the previous one; `None` for a single wide one.
const FAN_OUTS: [Option<u32>; 3] = [Some(2), Some(4), None];

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub struct FilterSetup {
    /// The durability of updates.
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
    /// Creates a configuration. Among 48 consecutive numbers each fan-out comes with each durability, with
    /// and without counts, and with a universe so large that no two keys share a fingerprint and one in which
    /// many do. The rest is random.
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

    /// Creates a filter of this row: consecutive numbers take each variant in turn, and each durability.
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

    /// Returns the configuration and the options to open it with.
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

    /// Returns the structure and its kind, for lists.
    #[must_use]
    pub fn policy(&self) -> String {
        if let Some((row, variant)) = self.row {
            return (row.testing.config)(variant, 0).label;
        }
        let Config { fan_out, counts, .. } = self.config;
        format!("Cascade fan-out {fan_out:?} counts {counts}")
    }

    /// Returns whether two keys cannot share a fingerprint.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        match self.row {
            Some((row, variant)) => (row.testing.config)(variant, 0).universe > 1 << 40,
            None => self.config.rate < 1e-6,
        }
    }

    /// Returns whether it deletes keys.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.row.is_none_or(|(row, _)| row.deletes)
    }

    /// Returns the number of the most recent inserts that are certainly present; `None` for all.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.row.and_then(|(row, variant)| (row.testing.config)(variant, 0).window)
    }

    /// Returns the bytes of a key: of many lengths if the filter takes them, all different.
    #[must_use]
    pub fn key(&self, number: u64) -> Vec<u8> {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.resize(self.key_bytes.unwrap_or(8 + (number % 23) as usize), 0x5a);
        bytes
    }

    /// Returns the number of keys: as many as fill four buffers.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        let keys = 4 * self.config.buffer_entries;
        if keys > self.keys_max { self.keys_max } else { keys }
    }

    /// Returns the configuration with buffers and runs of several pages.
    #[must_use]
    pub const fn wide(mut self) -> Self {
        self.config.buffer_entries = 1000;
        self.config.parts = 1;
        self.keys_max = 4000;
        self.io_chunk_pages = 3;
        self
    }

    /// Returns the configuration with `keys` keys, more than its buffers contain.
    #[must_use]
    pub const fn with_keys(mut self, keys: u64) -> Self {
        self.config.buffer_entries = keys.div_ceil(4);
        self.keys_max = keys;
        self
    }

    /// Returns the configuration with another durability.
    #[must_use]
    pub const fn durable(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Returns the configuration with a thread for merges.
    #[must_use]
    pub const fn threaded(self) -> Self {
        Self { threads: Threads::Background, ..self }
    }

    /// Returns the configuration without background threads.
    #[must_use]
    pub const fn inline(self) -> Self {
        Self { threads: Threads::Inline, ..self }
    }

    /// Returns the options for creating the volume.
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

/// Returns the rows of filters that have no configurations of their own here.
pub fn further() -> impl Iterator<Item = (&'static Row, &'static FilterRow)> {
    registry::filters().filter(|(row, _)| row.kind != "cascade")
}
