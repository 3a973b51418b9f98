//! What all modules share: the configurations of cascade filters.

use std::sync::Arc;

use nandex::cascade::{Cascade, Config, RuntimeOptions};
use nandex::device::Device;
use nandex::{Durability, OpenOptions, Threads, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;

use crate::ground::DURABILITIES;

/// Rates of false positives.
pub const RATES: [f64; 5] = [1e-1, 1e-2, 1e-3, 1e-6, 1e-9];

/// How much larger each level is; nothing for a single wide one.
pub const FAN_OUTS: [Option<u32>; 4] = [Some(2), Some(4), None, Some(16)];

/// One configuration of everything.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub config: Config,
    pub durability: Durability,
    pub threads: Threads,
    pub merge_threads: usize,
    pub io_chunk_pages: u32,
}

impl Setup {
    /// Buffers of 200 fingerprints over as many as make collisions impossible, all on the calling thread.
    pub fn exact(durability: Durability) -> Self {
        let config = Config { keys: 1_000_000, rate: 1e-9, ..Config::tiny() };
        Self { config, durability, threads: Threads::Inline, merge_threads: 0, io_chunk_pages: 3 }
    }

    /// Each 120 numbers in turn give all rates, fan-outs, durabilities and both answers to whether it counts;
    /// the rest is mixed.
    pub fn numbered(number: usize) -> Self {
        let mut rng = SplitMix64::new(number as u64);
        let rate = RATES[number % 5];
        let config = Config {
            // As many as come at most, or so many that the universe is wide for its rate.
            keys: if rng.below(3) == 0 { 100_000 } else { 3000 },
            rate,
            buffer_entries: 60 + rng.below(400),
            parts: 1 + rng.below(5) as u32,
            fan_out: FAN_OUTS[number / 5 % 4],
            counts: (number / 20).is_multiple_of(2),
            ..Config::tiny()
        };
        Self {
            config,
            durability: DURABILITIES[number / 40 % 3],
            threads: if rng.below(2) == 0 { Threads::Inline } else { Threads::Background },
            merge_threads: rng.below(2) as usize,
            io_chunk_pages: 1 + rng.below(6) as u32,
        }
    }

    /// The same with other levels.
    pub fn fanned(self, fan_out: Option<u32>) -> Self {
        Self { config: Config { fan_out, ..self.config }, ..self }
    }

    /// The same in so many parts, each with buffers as large.
    pub fn parted(self, parts: u32) -> Self {
        let buffer_entries = self.config.buffer_entries * u64::from(parts);
        Self { config: Config { parts, buffer_entries, ..self.config }, ..self }
    }

    /// The same, for counting.
    pub fn counting(self) -> Self {
        Self { config: Config { counts: true, ..self.config }, ..self }
    }

    /// The same, with threads in the background.
    pub fn threaded(self) -> Self {
        Self { threads: Threads::Background, merge_threads: 1, ..self }
    }

    /// How many fingerprints there are.
    pub fn universe(&self) -> f64 {
        self.config.universe().unwrap().size() as f64
    }

    pub fn volume_options(&self) -> VolumeOptions {
        let Self { durability, threads, .. } = *self;
        VolumeOptions { durability, threads, volume_id: Some(7), ..VolumeOptions::tiny() }
    }

    pub fn open_options(&self) -> OpenOptions {
        let Self { durability, threads, .. } = *self;
        OpenOptions { durability, threads, ..OpenOptions::default() }
    }

    pub fn runtime(&self) -> RuntimeOptions {
        let Self { merge_threads, io_chunk_pages, .. } = *self;
        RuntimeOptions { merge_threads, io_chunk_pages, ..RuntimeOptions::default() }
    }

    /// Creates a filter of this setup in a volume.
    pub fn create_filter(&self, volume: &Volume, name: &str) -> nandex::Result<Cascade> {
        Cascade::create_with(volume, name, self.config, self.runtime())
    }

    /// Opens a filter of this setup.
    pub fn open_filter(&self, volume: &Volume, name: &str) -> nandex::Result<Cascade> {
        Cascade::open_with(volume, name, self.runtime())
    }

    pub fn create(&self, device: Arc<dyn Device>) -> nandex::Result<Cascade> {
        self.create_filter(&Volume::create(device, self.volume_options())?, "f")
    }

    pub fn open(&self, device: Arc<dyn Device>) -> nandex::Result<Cascade> {
        self.open_filter(&Volume::open(device, self.open_options())?, "f")
    }
}
