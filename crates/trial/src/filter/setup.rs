//! One configuration of a cascade filter, as small as it can be: volumes of a few dozen pages.

use std::sync::Arc;

use nandex::cascade::{Cascade, Config, RuntimeOptions};
use nandex::device::{Device, PAGE_BYTES};
use nandex::{Durability, OpenOptions, Threads, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;

use crate::subject::pick;
use crate::table::DURABILITIES;

/// How much larger each level is; nothing for a single wide one.
const FAN_OUTS: [Option<u32>; 3] = [Some(2), Some(4), None];

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// When updates are durable.
    pub durability: Durability,
    config: Config,
    io_chunk_pages: u32,
    log_block_pages: u64,
    /// The log's size in what both buffers hold.
    log_buffers: u64,
}

impl Setup {
    /// Of 48 consecutive numbers each fan-out comes with each durability, with and without counts, and with
    /// a universe so large that no two keys share a fingerprint and one in which many do; the rest is by
    /// chance.
    #[must_use]
    pub fn cascade(number: u64) -> Self {
        let mut dice = SplitMix64::stream(number, 1);
        let is_exact = (number / 24).is_multiple_of(2);
        let parts = pick(&mut dice, &[1, 1, 2, 5]);
        let config = Config {
            keys: 1000,
            rate: if is_exact { 1e-9 } else { pick(&mut dice, &[0.5, 0.1]) },
            // A key takes up to eight places of a part's buffer.
            buffer_entries: pick(&mut dice, &[8, 20, 50, 120]).max(8 * u64::from(parts)),
            parts,
            fan_out: FAN_OUTS[(number % 3) as usize],
            counts: (number / 12).is_multiple_of(2),
            ..Config::tiny()
        };
        Self {
            durability: DURABILITIES[(number / 3 % 4) as usize],
            config,
            io_chunk_pages: pick(&mut dice, &[1, 3]),
            log_block_pages: 1 + dice.below(2),
            log_buffers: pick(&mut dice, &[2, 4, 12]),
        }
    }

    /// Structure and sort, for lists.
    #[must_use]
    pub fn policy(&self) -> String {
        let Config { fan_out, counts, .. } = self.config;
        format!("Cascade fan-out {fan_out:?} counts {counts}")
    }

    /// Is a fingerprint of two keys out of the question?
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.config.rate < 1e-6
    }

    /// How many keys there are: what four buffers hold.
    #[must_use]
    pub const fn keys(&self) -> u64 {
        let keys = 4 * self.config.buffer_entries;
        if keys > 250 { 250 } else { keys }
    }

    fn options(&self) -> RuntimeOptions {
        let io_chunk_pages = self.io_chunk_pages;
        RuntimeOptions { merge_threads: 0, io_chunk_pages, ..RuntimeOptions::default() }
    }

    /// Makes a volume on an empty device, and a filter in it.
    ///
    /// # Errors
    /// As [`Volume::create`] and [`Cascade::create_with`].
    pub fn create(&self, device: Arc<dyn Device>) -> nandex::Result<(Volume, Cascade)> {
        let block_bytes = self.log_block_pages * PAGE_BYTES as u64;
        let log_bytes = self.log_buffers * 2 * 16 * self.config.buffer_entries;
        let blocks = 8 + 8 * u64::from(self.config.parts);
        let options = VolumeOptions {
            // Each part that is saved ends its updates with a cut, which may take a block to itself.
            log_bytes: log_bytes.max(blocks * block_bytes).next_multiple_of(block_bytes),
            log_block_bytes: usize::try_from(block_bytes).expect("one or two pages"),
            durability: self.durability,
            threads: Threads::Inline,
            volume_id: Some(7),
            ..VolumeOptions::tiny()
        };
        let volume = Volume::create(device, options)?;
        let filter = Cascade::create_with(&volume, "f", self.config, self.options())?;
        Ok((volume, filter))
    }

    /// Opens the filter of a volume.
    ///
    /// # Errors
    /// As [`Volume::open`] and [`Cascade::open_with`].
    pub fn open(&self, device: Arc<dyn Device>) -> nandex::Result<(Volume, Cascade)> {
        let (durability, threads) = (self.durability, Threads::Inline);
        let options = OpenOptions { durability, threads, ..OpenOptions::default() };
        let volume = Volume::open(device, options)?;
        let filter = Cascade::open_with(&volume, "f", self.options())?;
        Ok((volume, filter))
    }
}
