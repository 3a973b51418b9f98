//! The common part of all modules: the configurations of cascade filters.

use std::sync::Arc;

use nandex::cascade::{Cascade, Config};
use nandex::device::Device;
use nandex::{Durability, OpenOptions, Threads, Volume, VolumeOpenOptions, VolumeOptions};

/// The size of each level over the previous one; nothing for a single wide one.
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
    /// Creates a setup with buffers of 200 fingerprints, a universe without collisions, all on the calling
    /// thread.
    pub fn exact(durability: Durability) -> Self {
        let config = Config { keys: 1_000_000, rate: 1e-9, ..Config::tiny() };
        Self { config, durability, threads: Threads::Inline, merge_threads: 0, io_chunk_pages: 3 }
    }

    /// Returns the setup with other levels.
    pub fn fanned(self, fan_out: Option<u32>) -> Self {
        Self { config: Config { fan_out, ..self.config }, ..self }
    }

    /// Returns the setup in `parts` parts, each with buffers of the same size.
    pub fn with_parts(self, parts: u32) -> Self {
        let buffer_entries = self.config.buffer_entries * u64::from(parts);
        Self { config: Config { parts, buffer_entries, ..self.config }, ..self }
    }

    /// Returns the setup for counting.
    pub fn counting(self) -> Self {
        Self { config: Config { counts: true, ..self.config }, ..self }
    }

    /// Returns the setup with background threads.
    pub fn threaded(self) -> Self {
        Self { threads: Threads::Background, merge_threads: 2, ..self }
    }

    pub fn volume_options(&self) -> VolumeOptions {
        let Self { durability, threads, .. } = *self;
        VolumeOptions { durability, threads, volume_id: Some(7), ..VolumeOptions::tiny() }
    }

    pub fn open_options(&self) -> VolumeOpenOptions {
        let Self { durability, threads, .. } = *self;
        VolumeOpenOptions { durability, threads, ..VolumeOpenOptions::default() }
    }

    pub fn runtime(&self) -> OpenOptions {
        let Self { merge_threads, io_chunk_pages, .. } = *self;
        OpenOptions {
            flush_threads: Some(merge_threads),
            io_chunk_pages: Some(io_chunk_pages),
            ..OpenOptions::default()
        }
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
