//! The deck's sizes at a scale: keys, RAM for a filter, one drive.

use std::sync::Arc;

use nandex::cascade::Config;
use nandex::device::Device;
use nandex::raw::device::PAGE_BYTES;
use nandex::raw::store::fingerprint::Universe;
use nandex::raw::store::run::RunShape;
use nandex::{Cascade, OpenOptions, Volume, WhenFull};
use nandex_sim::SimDevice;

use crate::volume::volume;
use crate::{Drive, Filled, Result, Scale};

/// Hashes that the deck inserts.
pub const KEYS: u64 = 8_400_000_000;
/// The rate of false positives: the deck's 16 GB are 15 bits for each hash, about the size of a quotient
/// filter of this rate; nandex's takes 10.6.
pub const RATE: f64 = 1.0 / 256.0;
/// The filter over RAM: the deck's 16 GB over 0.994.
pub const FILTER_OVER_RAM: u64 = 16;
/// Pages of an I/O chunk: an eighth of the structure's default, so that a run of a few MiB has several.
pub const CHUNK_PAGES: u32 = 32;
/// The first of the keys that are in no filter.
pub const ABSENT: u64 = 1 << 40;
/// The maximum number of keys that are inserted with one call.
const BATCH: u64 = 512;
/// Pages that the drive must have on top of the filters' own.
const SPARE_PAGES: u64 = 8192;
/// The minimum log, on a device of its own: checkpoints forced by a small log are no part of the experiment.
const LOG_BYTES_MIN: u64 = 8 << 20;

/// The size of a filter, and its RAM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measures {
    /// Keys that are inserted.
    pub keys: u64,
    /// RAM for buffers, queues or cached pages, in bytes.
    pub ram_bytes: u64,
    /// A cascade filter's bytes on flash over those of RAM.
    pub filter_over_ram: u64,
    /// Parts of a cascade filter, each with a buffer and levels of its own.
    pub parts: u32,
    /// The scale.
    pub scale: Scale,
}

/// The fingerprints of a part, as the structure has it, over 32: so that small filters have several parts.
const PART_ENTRIES: u64 = (1 << 16) / 32;
/// The maximum number of parts that the structure takes.
const PARTS_MAX: u64 = 64;

impl Measures {
    /// Returns the deck's sizes at a scale.
    pub fn deck(scale: Scale) -> Result<Self> {
        Self::new(scale, scale.of(KEYS), FILTER_OVER_RAM)
    }

    /// Returns sizes for a number of keys in a cascade filter that takes a multiple of the RAM on flash.
    pub fn new(scale: Scale, keys: u64, filter_over_ram: u64) -> Result<Self> {
        let flash_bytes = flash_bytes(keys)?;
        let ram_bytes = flash_bytes / filter_over_ram;
        Ok(Self { keys, ram_bytes, filter_over_ram, parts: 1, scale })
    }

    /// Returns the same RAM in a filter of several parts, whose buffers fill one after another.
    pub fn in_parts(self) -> Result<Self> {
        let buffer_entries = self.config(None)?.buffer_entries;
        let parts = (buffer_entries / PART_ENTRIES).clamp(1, PARTS_MAX) as u32;
        Ok(Self { parts, ..self })
    }

    /// Creates the deck's drive, written once in order, without a volume.
    pub fn drive(&self) -> Result<SimDevice> {
        let pages_min = 4 * flash_bytes(self.keys)? / PAGE_BYTES as u64 + SPARE_PAGES;
        let model = Drive::X25M.model(self.scale, Filled::Once, pages_min)?;
        Ok(SimDevice::with_model(model).with_geometry(Drive::X25M.geometry()?))
    }

    /// Creates a cascade filter on this drive. It merges on the caller's thread, so that the same keys give
    /// the same operations; its log is elsewhere, and takes only the marks of full buffers.
    pub fn cascade(&self, fan_out: Option<u32>, drive: &SimDevice) -> Result<(Cascade, Volume)> {
        let config = self.config(fan_out)?;
        let log_bytes = config.log_bytes_best().max(LOG_BYTES_MIN);
        let volume = volume(Arc::new(drive.clone()), self.scale.seed(), log_bytes)?;
        let options = OpenOptions {
            flush_threads: Some(0),
            io_chunk_pages: Some(CHUNK_PAGES),
            ..OpenOptions::default()
        };
        let filter = Cascade::create_with(&volume, "deck", config, options)?;
        Ok((filter, volume))
    }

    /// Returns its configuration.
    pub fn config(&self, fan_out: Option<u32>) -> Result<Config> {
        let buffer_entries = ((self.keys as f64 * self.buffer_part()?) as u64).max(1);
        Ok(Config { buffer_entries, fan_out, parts: self.parts, ..config(self.keys) })
    }

    /// Returns the part of all keys in each of two buffers that share the RAM, or in the buffers of all
    /// parts. It is that of the deck's size, so that there are as many merges: small buffers take more bits
    /// for a fingerprint.
    fn buffer_part(&self) -> Result<f64> {
        let ram_bytes = flash_bytes(KEYS)? as f64 / self.filter_over_ram as f64;
        let mut entries = ram_bytes / 4.0;
        for _ in 0..16 {
            let parts = self.parts;
            let config = Config { buffer_entries: entries as u64, parts, ..config(KEYS) };
            let taken_bytes = match parts {
                1 => 2 * config.full_buffer_bytes()?,
                _ => config.buffer_bytes_max()?,
            };
            entries *= ram_bytes / taken_bytes as f64;
        }
        Ok(entries / KEYS as f64)
    }

    /// Returns the bits of RAM of a fingerprint in a full buffer at the deck's size, with its part of the
    /// empty one.
    pub fn ram_bits(&self) -> Result<f64> {
        let bits = flash_bytes(KEYS)? as f64 * 8.0 / self.filter_over_ram as f64;
        Ok(bits / (2.0 * self.buffer_part()? * KEYS as f64))
    }

    /// Returns the number of keys that are inserted with one call: a small part of a buffer.
    pub fn batch(buffer_entries: u64) -> u64 {
        (buffer_entries / 8).clamp(1, BATCH)
    }
}

const fn config(keys: u64) -> Config {
    Config {
        keys,
        rate: RATE,
        buffer_entries: 1,
        parts: 1,
        fan_out: None,
        counts: false,
        when_full: WhenFull::Grow,
    }
}

/// Returns the flash of a run of `keys` keys, in bytes.
pub fn flash_bytes(keys: u64) -> Result<u64> {
    let universe = Universe::for_rate(keys, RATE)?;
    Ok(RunShape::for_entries(universe, keys, 0).slot_pages * PAGE_BYTES as u64)
}

/// Returns the present time of a drive, in nanoseconds.
pub fn now_ns(drive: &SimDevice) -> u64 {
    Device::now(drive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_many_parts_take_more_fingerprints_in_the_same_ram() {
        let measures = Measures::deck(Scale::new(8192, 1).unwrap()).unwrap();
        let many = measures.in_parts().unwrap();
        assert!(many.parts > 4, "{}", many.parts);
        let [one, many] = [measures, many].map(|it| it.config(None).unwrap());
        let more = many.buffer_entries as f64 / one.buffer_entries as f64;
        // 2 of 8 buffers are full on top of half of all.
        assert!((2.0..4.0).contains(&more), "{more}");
        assert_eq!((one.parts, many.keys), (1, one.keys));
    }

    #[test]
    fn there_are_as_many_buffers_at_any_scale() {
        let buffers = |times, ratio| {
            let scale = Scale::new(times, 1).unwrap();
            let measures = Measures::new(scale, scale.of(KEYS), ratio).unwrap();
            measures.keys as f64 / measures.config(None).unwrap().buffer_entries as f64
        };
        assert!((buffers(64, 16) / buffers(8192, 16) - 1.0).abs() < 0.001);
        // Two buffers, and more bits for a fingerprint than on flash.
        assert!((50.0..65.0).contains(&buffers(1024, 16)), "{}", buffers(1024, 16));
        assert!(buffers(1024, 64) > 4.0 * buffers(1024, 16));
    }
}
