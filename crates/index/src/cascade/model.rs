//! The advisor of cascade filters: the size of buffers for a RAM budget, the number of levels, and the cost of both.
//!
//! With N keys, buffers of M fingerprints and R = N / M buffers' worth of keys:
//!
//! - **One level** takes every buffer as it comes. The j-th of them writes j buffers' worth, so a key is written
//!   (R + 1) / 2 times, and a lookup reads one page. With R = 16 that is 8.5 times, at 11 bits a key about 12 bytes:
//!   less than the log's 5 bytes and one key of 8 together. Up to 16 there is one level.
//! - **Levels** of fan-out T: level l holds M T^(l+1), and what arrives in it is u(l) buffers' worth: u(0) = 1, and
//!   u(l) = T^(l-1) (T + 1), because T buffers fill level 0 and the next one takes them down. The c-th arrival
//!   writes c u(l). A level that fills up and is taken down, T arrivals in level 0 and T - 1 below, writes
//!   T (T + 1) / 2 there and u(l) T (T - 1) / 2 below: a key T / 2 or (T - 1) / 2 times. So 63 buffers' worth at
//!   T = 8 make 7 arrivals of 9 in level 1: 28 x 9 + 7 x 36 = 504 buffers are written, a key 8 times, where one
//!   level would write it 32 times. Above 16 buffers the fan-out is the root of R for the fewest levels that keep
//!   it at 16 or less.
//!
//! A full buffer has its fingerprints in buckets of 12 to 24: a slot takes the bits that distinguish the fingerprints
//! of a bucket, and a byte for its count if there are counts. A bucket takes a byte. Lists with space for a 32nd of a
//! full buffer have the latest updates, at 4 or 8 bytes each. Every part has a buffer, and they fill up in turn: M is
//! their total when all are full. On average they hold half of that. For 100 million keys at a rate of 0.39 % in 32
//! buffers of 375,000 fingerprints each, slots have 15 bits, and a buffered key takes 17.7.

use nandex_store::fingerprint::Universe;
use nandex_store::run::RunShape;

use super::Config;
use crate::model::PAGE_BYTES;
use crate::model::StoredKeys;
use crate::model::text::bytes;
pub use crate::model::{FanOut, FilterRequirements};
use crate::options::MERGE_THREADS;
use crate::quotient::REPEATS_MAX;
use crate::{Error, Result};

/// The maximum number of buffers' worth of keys in a single level, and the largest fan-out of several.
pub const FAN_OUT_MAX: u32 = 16;

/// The hash key of filters that will be merged, unless the caller chooses another: `nandex filter 01` in ASCII. Filters
/// merge only if they hash alike. This key is public, so an attacker can choose keys that collide: a filter for
/// untrusted keys needs a secret key, and SipHash.
pub const SHARED_HASH_KEY: u128 = u128::from_be_bytes(*b"nandex filter 01");

/// RAM that does not depend on sizes: eight blocks of the log, and the pages of a batch of lookups.
const FIXED_RAM_BYTES: u64 = (8 << 17) + 32 * PAGE_BYTES;

/// The smallest buffer, if there are enough keys: a smaller one is not worth a merge.
const BUFFER_ENTRIES_MIN: u64 = 1024;

/// The fingerprints for one part, and the most parts that the advisor uses: with more, merges are already short enough.
const PART_ENTRIES: u64 = 1 << 16;
const PARTS_ADVISED_MAX: u64 = 64;

/// The I/O chunks that a run has in memory while it is read or written.
const CHUNKS: u64 = 3;

/// The divisor of the buffers' RAM that limits I/O chunks. At 8 MiB a chunk still has 80 KiB.
const CHUNKS_SHARE: u64 = 6;

/// The costs of a filter once it has as many keys as it was made for.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct FilterCosts {
    /// The levels on flash: the most pages that a lookup reads, and one more while a half-full buffer that was saved is
    /// on flash too.
    pub levels: u32,
    /// Buffers' worth of keys.
    pub buffers: f64,
    /// The number of times that a key is written to a level.
    pub times_written: f64,
    /// Bytes written to levels, for each key.
    pub written_bytes_per_key: f64,
    /// Bytes read by merges, for each key.
    pub read_bytes_per_key: f64,
    /// Bytes written to the log, for each key.
    pub log_bytes_per_key: f64,
    /// RAM in bytes: buffers, I/O chunks of two merges of all levels, lookups, and the log's buffers.
    pub ram_bytes: u64,
    /// RAM of a buffer for each key in it, in bits, the average while it fills up.
    pub ram_bits_per_buffered_key: f64,
    /// Flash in bytes when everything is in one run.
    pub flash_bytes: u64,
    /// Bits of flash for each key then.
    pub bits_per_key: f64,
}

/// Returns the number of places of a buffer, which holds a quarter of all fingerprints, that one key may take.
fn fewest(counts: bool) -> u64 {
    if counts { 1 } else { REPEATS_MAX as u64 }
}

impl Config {
    /// Returns the rate of a filter for this number of keys, with counts or without, for which `rate` is asked: that,
    /// or a lower one if a few keys have too few fingerprints.
    pub(crate) fn rate_for((keys, counts): (u64, bool), rate: f64) -> f64 {
        rate.min(keys as f64 / (4 * fewest(counts)) as f64)
    }

    /// Returns the configuration with the largest buffers that fit the RAM; buffers are not larger than all keys need,
    /// or than the smallest buffer. The rate is the required one, or a lower one if a few keys at a high rate have too
    /// few fingerprints.
    ///
    /// # Errors
    /// [`Error::Config`] for keys, rates and fan-outs that cannot work, and for too little RAM, with the
    /// least that is enough.
    pub fn advised(requirements: &FilterRequirements) -> Result<Self> {
        if let StoredKeys::Whole(_) = requirements.stored_keys {
            let reason = "whole; a cascade filter stores fingerprints, a counting table can store keys whole".into();
            return Err(Error::Config { field: "stored_keys", reason });
        }
        let universe = Universe::for_rate(requirements.keys, requirements.rate)?;
        let fewest = fewest(requirements.counts);
        let rate = Self::rate_for((requirements.keys, requirements.counts), requirements.rate);
        let requirements = &FilterRequirements { rate, ..*requirements };
        let with_buffers = |entries| with_buffers(requirements, entries);
        let most = requirements.keys.min(universe.size() / 4).max(fewest);
        let least = most.min(BUFFER_ENTRIES_MIN);
        let smallest = with_buffers(least);
        smallest.validate()?;
        let needed = smallest.ram_bytes()?;
        if needed > requirements.ram_bytes {
            let FilterRequirements { keys, rate, ram_bytes, .. } = requirements;
            let reason = format!(
                "{ram_bytes} bytes ({}); a filter for {keys} keys at a rate of {rate} needs {needed} ({})",
                bytes(*ram_bytes),
                bytes(needed)
            );
            return Err(Error::TooLittleRam { field: "ram_bytes", reason });
        }
        let (mut fitting, mut too_many) = (least, most + 1);
        while too_many - fitting > 1 {
            let middle = fitting.midpoint(too_many);
            if with_buffers(middle).ram_bytes()? <= requirements.ram_bytes {
                fitting = middle;
            } else {
                too_many = middle;
            }
        }
        let config = with_buffers(fitting);
        config.validate()?;
        Ok(config)
    }
}

fn with_buffers(requirements: &FilterRequirements, buffer_entries: u64) -> Config {
    let &FilterRequirements { keys, rate, counts, when_full, fan_out, .. } = requirements;
    let fan_out = match fan_out {
        FanOut::OneLevel => None,
        FanOut::Times(times) => Some(times),
        FanOut::Advised => advised(keys as f64 / buffer_entries as f64),
    };
    let parts = (buffer_entries / PART_ENTRIES).clamp(1, PARTS_ADVISED_MAX) as u32;
    Config { keys, rate, buffer_entries, parts, fan_out, counts, when_full }
}

/// Returns the fan-out for this number of buffers' worth of keys; `None` for a single level.
fn advised(buffers: f64) -> Option<u32> {
    let most = f64::from(FAN_OUT_MAX);
    if buffers <= most {
        return None;
    }
    let levels = (buffers.ln() / most.ln() - 1e-9).ceil().max(2.0);
    let times = buffers.powf(1.0 / levels);
    // A rounding error must not add a level.
    Some(((times - 1e-9).ceil() as u32).clamp(2, FAN_OUT_MAX))
}

impl Config {
    /// Returns the configuration for `keys` keys at a rate, in a budget of RAM: see [`FilterRequirements::new`].
    ///
    /// # Errors
    /// As [`advised`](Self::advised).
    pub fn for_budget(keys: u64, rate: f64, ram_bytes: u64) -> Result<Self> {
        Self::advised(&FilterRequirements::new(keys, rate, ram_bytes))
    }

    /// Returns the costs of a filter of this configuration when it has as many keys as it was made for.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid configuration.
    pub fn costs(&self) -> Result<FilterCosts> {
        let universe = self.universe()?;
        let buffers = self.keys as f64 / self.buffer_entries as f64;
        let levels = self.levels();
        let run = RunShape::for_entries(universe, self.keys, 0);
        let flash_bytes = run.slot_pages * PAGE_BYTES;
        let bits_per_key = (flash_bytes * 8) as f64 / self.keys as f64;
        let buffer_bits = self.mean_buffer_bytes()? as f64 * 8.0;
        let (mut times_written, mut written_bytes) = (0.0, 0.0);
        for (written, held) in self.writes(buffers) {
            let entries = (held * self.buffer_entries as f64).max(1.0) as u64;
            let pages = RunShape::for_entries(universe, entries, 0).slot_pages;
            times_written += written / buffers;
            written_bytes += written / buffers * (pages * PAGE_BYTES) as f64 / entries as f64;
        }
        Ok(FilterCosts {
            levels,
            buffers,
            times_written,
            written_bytes_per_key: written_bytes,
            // Everything written to a level was read there, except what arrives, and that was read in the level above;
            // only the buffer comes from RAM.
            read_bytes_per_key: written_bytes * (times_written - 1.0) / times_written.max(1.0),
            log_bytes_per_key: Self::update_bytes(universe) as f64,
            ram_bytes: self.ram_bytes()?,
            ram_bits_per_buffered_key: buffer_bits / (self.part_entries() as f64 / 2.0),
            flash_bytes,
            bits_per_key,
        })
    }

    /// Returns for each level the average buffers' worth that it writes, and that it then holds.
    fn writes(&self, buffers: f64) -> Vec<(f64, f64)> {
        let levels = self.levels() as usize;
        let times = f64::from(self.fan_out.unwrap_or(0));
        let mut writes = vec![(0.0, 1.0); levels];
        let mut left = buffers;
        for level in (0..levels).rev() {
            let arrival = self.arrival(level);
            let count = if level == 0 { left } else { (left / arrival).floor() };
            left -= count * arrival;
            writes[level].0 += count * (count + 1.0) / 2.0 * arrival;
            writes[level].1 = (count * 2.0 / 3.0).max(1.0) * arrival;
            // The arriving fingerprints have filled the levels above.
            for (above, write) in writes.iter_mut().enumerate().take(level) {
                let full = if above == 0 { times } else { times - 1.0 };
                let own = times * if above == 0 { times + 1.0 } else { times - 1.0 } / 2.0;
                let often = count * times.powf((level - 1 - above) as f64);
                write.0 += often * own * self.arrival(above);
                write.1 = (full * 2.0 / 3.0).max(1.0) * self.arrival(above);
            }
        }
        writes
    }

    /// Returns the buffers' worth that arrives in a level at once.
    fn arrival(&self, level: usize) -> f64 {
        match (self.fan_out, level) {
            (_, 0) => 1.0,
            (None, _) => f64::INFINITY,
            (Some(times), _) => {
                let times = f64::from(times);
                times.powf((level - 1) as f64) * (times + 1.0)
            }
        }
    }

    /// Returns the number of levels in use with all keys: those that enough keys can have reached.
    fn levels(&self) -> u32 {
        let buffers = self.keys as f64 / self.buffer_entries as f64;
        let reached = (1..64).take_while(|level| self.arrival(*level) <= buffers);
        reached.last().map_or(1, |last| last as u32 + 1)
    }

    /// RAM in all, in bytes.
    fn ram_bytes(&self) -> Result<u64> {
        Ok(self.buffer_bytes_max()? + self.shared_ram_bytes()?)
    }

    /// Returns the part of the RAM that structures of a volume share: I/O chunks of merges, and the fixed part.
    pub(super) fn shared_ram_bytes(&self) -> Result<u64> {
        let io_chunk_pages = u64::from(self.io_chunk_pages()?);
        Ok(self.io_chunks() * io_chunk_pages * PAGE_BYTES + FIXED_RAM_BYTES)
    }

    /// Returns the I/O chunks in memory while each thread merges all levels of a part into a new run.
    fn io_chunks(&self) -> u64 {
        (u64::from(self.levels()) + 1) * CHUNKS * MERGE_THREADS as u64
    }

    /// Pages of an I/O chunk: up to 1 MiB, and a sixth of the buffers' RAM for all chunks.
    pub(super) fn io_chunk_pages(&self) -> Result<u32> {
        let bytes = self.buffer_bytes_max()? / CHUNKS_SHARE / self.io_chunks();
        Ok(u32::try_from((bytes / PAGE_BYTES).clamp(4, 256)).expect("at most 256"))
    }
}

#[cfg(test)]
mod tests {
    use crate::OpenOptions;
    use std::sync::Arc;

    use nandex_device::MemoryDevice;
    use nandex_store::{Durability, Threads, Volume, VolumeOptions};

    use super::*;
    use crate::{Cascade, Filter};

    fn near(found: f64, expected: f64, share: f64) -> bool {
        (found - expected).abs() <= expected.abs() * share
    }

    #[test]
    fn one_level_up_to_sixteen_buffers_then_as_few_as_keep_the_fan_out_there() {
        let expected = [
            (1.0, None),
            (16.0, None),
            (16.1, Some(5)),
            (64.0, Some(8)),
            (256.0, Some(16)),
            (257.0, Some(7)),
            (4096.0, Some(16)),
        ];
        for (buffers, fan_out) in expected {
            assert_eq!(advised(buffers), fan_out, "{buffers}");
        }
    }

    #[test]
    fn the_worked_numbers_of_the_page_are_what_comes_out() {
        let config = |buffers: u64, fan_out| Config {
            keys: 12_000_000 * buffers,
            rate: 0.0039,
            buffer_entries: 12_000_000,
            fan_out,
            ..Config::tiny()
        };
        let times = |buffers, fan_out| config(buffers, fan_out).costs().unwrap().times_written;
        assert_eq!(times(16, None), 8.5);
        assert_eq!((times(63, Some(8)), times(63, None)), (8.0, 32.0));
        let sixteen = config(16, None).costs().unwrap();
        assert!(near(sixteen.written_bytes_per_key, 12.0, 0.05), "{sixteen:?}");
        assert_eq!((sixteen.levels, sixteen.log_bytes_per_key), (1, 5.0));
        assert_eq!(config(64, Some(8)).costs().unwrap().levels, 2);
        let hundred = Config { keys: 100_000_000, parts: 32, ..config(1, None) }.costs().unwrap();
        assert!(near(hundred.ram_bits_per_buffered_key, 17.7, 0.01), "{hundred:?}");
        assert!(near(hundred.bits_per_key, 10.5, 0.01), "{hundred:?}");
    }

    #[test]
    fn buffers_fill_the_budget_and_never_more() {
        for (keys, ram_bytes) in [(100_000_000, 64 << 20), (1 << 33, 1 << 30), (5_000_000, 6 << 20)]
        {
            for counts in [false, true] {
                let need = FilterRequirements {
                    counts,
                    ..FilterRequirements::new(keys, 0.001, ram_bytes)
                };
                let config = Config::advised(&need).unwrap();
                let costs = config.costs().unwrap();
                assert!(costs.ram_bytes <= ram_bytes, "{need:?}: {costs:?}");
                assert!(
                    near(costs.ram_bytes as f64, ram_bytes as f64, 0.01),
                    "{need:?}: {costs:?}"
                );
            }
        }
        let small = Config::for_budget(500, 0.01, 64 << 20).unwrap();
        assert_eq!((small.buffer_entries, small.fan_out), (500, None));
        let error = Config::for_budget(1 << 30, 0.001, 1 << 20).unwrap_err().to_string();
        assert!(error.starts_with("ram_bytes: 1048576 bytes (1.00 MiB); a filter for"), "{error}");
        assert!(Config::for_budget(0, 0.01, 1 << 30).is_err());
        let fan_out = FanOut::Times(1);
        let times = FilterRequirements { fan_out, ..FilterRequirements::new(1000, 0.1, 1 << 30) };
        assert!(Config::advised(&times).unwrap_err().to_string().starts_with("fan_out"));
        let stored_keys = StoredKeys::Whole(8);
        let whole =
            FilterRequirements { stored_keys, ..FilterRequirements::new(1000, 0.1, 1 << 30) };
        let error = Config::advised(&whole).unwrap_err().to_string();
        assert!(
            error.starts_with("stored_keys: whole") && error.contains("counting table"),
            "{error}"
        );
    }

    #[test]
    fn a_filter_writes_as_often_and_takes_as_much_ram_as_the_model_says() {
        for (fan_out, buffers) in [(None, 12), (Some(2), 40), (Some(4), 60), (Some(8), 64)] {
            let buffer_entries = 8000;
            let keys = buffer_entries * buffers;
            let config = Config { keys, buffer_entries, fan_out, rate: 1e-6, ..Config::tiny() };
            let options = OpenOptions::default().inline();
            let volume_options = VolumeOptions {
                log_bytes: config.log_bytes_best(),
                durability: Durability::Never,
                threads: Threads::Inline,
                ..VolumeOptions::tiny()
            };
            let volume = Volume::create(Arc::new(MemoryDevice::new()), volume_options).unwrap();
            let filter = Cascade::create_with(&volume, "f", config, options).unwrap();
            // One more key, so that the last full buffer is merged rather than saved.
            let all: Vec<_> = (0..=keys).map(u64::to_le_bytes).collect();
            filter.insert_many(&all.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
            let (stats, costs) = (filter.stats(), config.costs().unwrap());
            let written = stats.data_bytes_written as f64 / keys as f64;
            let shown = format!("{fan_out:?}: {written} {costs:?} {stats:?}");
            assert!(near(written, costs.written_bytes_per_key, 0.12), "{shown}");
            let read = stats.merge_bytes_read as f64 / keys as f64;
            assert!(near(read, costs.read_bytes_per_key, 0.16), "{shown}");
            assert!(stats.levels.len() <= costs.levels as usize + 1, "{shown}");
            assert!(stats.ram_bytes <= costs.ram_bytes, "{shown}");
        }
    }
}
