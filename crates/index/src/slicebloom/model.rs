//! The costs of a SliceBloom, and the configuration that meets given requirements.
//!
//! The paper states .0008 false positives for 32 bits and 3 hash functions (section 6): those of one Bloom filter. A
//! lookup checks all incarnations, so the overall rate is about k times as high. The formulas here account for that.

use nandex_device::PAGE_BYTES;

use super::Config;
use super::config::{HASHES_MAX, PARTITIONS_MAX};
use super::flush::CHUNKS;
use super::format::FINGERPRINT_BYTES;
use crate::model::text::bytes;
use crate::model::{FanOut, FilterRequirements, OperationCosts, StoredKeys, log_bytes};
use crate::{Error, Result, WhenFull};

/// The maximum number of bytes of a slicetable, unless there are too many partitions.
const BLOCK_BYTES_MAX: u64 = 8 << 20;

/// The number of hash functions that the advisor prefers, the paper's: each is a page read.
const HASHES: u32 = 3;

/// The bits of a key above which it takes one more hash function.
const BITS_PER_KEY_USUAL: f64 = 64.0;

/// The choices of incarnations, cheapest in writes first.
const INCARNATIONS: [u32; 7] = [8, 16, 32, 64, 128, 256, 512];

/// The RAM of lookups in flight, and the log's buffers.
const FIXED_RAM_BYTES: u64 = 1 << 20;

/// RAM of a partition without its buffer: its locks and lists, its place in the map, and a spare's share.
const PARTITION_RAM_BYTES: u64 = 2048;

/// The costs of a full filter.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct SliceBloomCosts {
    /// The rate of false positives.
    pub rate: f64,
    /// Pages that a lookup reads, unless a buffer has the key.
    pub reads_per_lookup: f64,
    /// Bytes written to slicetables for each key, and as many are read.
    pub written_bytes_per_key: f64,
    /// Bytes written to the log for each key.
    pub log_bytes_per_key: f64,
    /// RAM of the buffers for each key of the window, in bits: the paper's m/n/k, without spare ones.
    pub buffer_bits_per_key: f64,
    /// RAM in addition to these buffers for each key of the window, in bits.
    pub other_bits_per_key: f64,
    /// RAM in bytes: buffers, spare ones, maps, I/O chunks of a flush, lookups, and the log's buffers.
    pub ram_bytes: u64,
    /// Flash in bytes.
    pub flash_bytes: u64,
}

impl Config {
    /// Returns the false-positive rate of one Bloom filter with `keys` keys: (1 - e^(-h keys / m))^h.
    pub(super) fn rate_of_one(&self, keys: u64) -> f64 {
        let hashes = f64::from(self.hashes);
        let share = -(-hashes * keys as f64 / f64::from(self.bits())).exp_m1();
        share.powf(hashes)
    }

    /// Returns the rate of `incarnations` full Bloom filters, and one with another rate.
    pub(super) fn rate_of(&self, incarnations: u64, another: f64) -> f64 {
        let full = self.rate_of_one(self.buffer_keys.into());
        let all = incarnations as f64 * (-full).ln_1p() + (-another).ln_1p();
        -all.exp_m1()
    }

    /// Returns the false-positive rate of a full filter: that of its incarnations and a full buffer. About (1 - e^(-h n
    /// / m))^h (k + 1).
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate_of(u64::from(self.incarnations) + 1, 0.0)
    }

    /// Returns the same parameters of the Bloom filters, for a window of `window_keys` keys: partitions whose
    /// slicetables have 4 to 8 MiB, or less for few keys.
    ///
    /// # Errors
    /// [`Error::Config`] for no keys, or too many.
    pub fn for_window(self, window_keys: u64) -> Result<Self> {
        if window_keys == 0 {
            return Err(Error::Config {
                field: "keys",
                reason: "0; a window has at least 1".into(),
            });
        }
        let incarnations = u64::from(self.incarnations);
        let key_bytes = u64::from(self.bits_per_key) * incarnations / 8;
        let kept_max = (BLOCK_BYTES_MAX / key_bytes.max(1)).max(1) * incarnations;
        let partitions = window_keys.div_ceil(kept_max).min(PARTITIONS_MAX.into());
        let partitions = partitions.next_power_of_two() as u32;
        let mean = window_keys.div_ceil(partitions.into());
        // Eight standard deviations, and the effect of rounding.
        let kept =
            if partitions == 1 { mean } else { mean + (8.0 * (mean as f64).sqrt()) as u64 + 9 };
        let buffer_keys = u32::try_from(kept.div_ceil(incarnations)).unwrap_or(u32::MAX);
        let spare_blocks = (partitions / 16).max(2);
        let config = Self { partitions, buffer_keys, spare_blocks, spare_buffers: 2, ..self };
        config.validate()?;
        Ok(config)
    }

    /// Returns the configuration that meets the requirements, with the keys as the window. It takes as many
    /// incarnations as the RAM makes necessary, because each key is written again with each of them, and the bits and
    /// hash functions that reach the rate.
    ///
    /// # Errors
    /// [`Error::Config`] for keys and rates that cannot work, and for unsupported requirements: counts, whole keys,
    /// rejecting more keys, or levels. [`Error::TooLittleRam`] with the least that is enough.
    pub fn advised(requirements: &FilterRequirements) -> Result<Self> {
        refuse_others(requirements)?;
        let configs = INCARNATIONS.map(|incarnations| for_incarnations(requirements, incarnations));
        let mut least = u64::MAX;
        for config in configs.iter().flatten() {
            let needed = config.ram_bytes();
            if needed <= requirements.ram_bytes {
                return Ok(*config);
            }
            least = least.min(needed);
        }
        let FilterRequirements { keys, rate, ram_bytes, .. } = requirements;
        if least == u64::MAX {
            // All of them fail for the same reason.
            return configs.into_iter().next_back().expect("there are seven");
        }
        let reason = format!(
            "{ram_bytes} bytes ({}); a window of {keys} keys at a rate of {rate} needs {least} ({})",
            bytes(*ram_bytes),
            bytes(least)
        );
        Err(Error::TooLittleRam { field: "ram_bytes", reason })
    }

    /// Returns the costs of a filter of this configuration when it is full.
    #[must_use]
    pub fn costs(&self) -> SliceBloomCosts {
        let window = self.window_keys() as f64;
        let block_bytes = f64::from(self.block_pages()) * PAGE_BYTES as f64;
        let buffers = u64::from(self.partitions) * self.buffer_bytes();
        SliceBloomCosts {
            rate: self.rate(),
            reads_per_lookup: self.reads_per_lookup(),
            written_bytes_per_key: block_bytes / f64::from(self.buffer_keys),
            log_bytes_per_key: log_bytes(FINGERPRINT_BYTES as u64 - 1),
            buffer_bits_per_key: buffers as f64 * 8.0 / window,
            other_bits_per_key: (self.ram_bytes() - buffers) as f64 * 8.0 / window,
            ram_bytes: self.ram_bytes(),
            flash_bytes: self.pages() * PAGE_BYTES as u64,
        }
    }

    /// Returns the costs in the form common to all structures.
    pub(super) fn usual_costs(&self) -> OperationCosts {
        let costs = self.costs();
        OperationCosts {
            reads_per_hit: costs.reads_per_lookup,
            reads_per_miss: costs.reads_per_lookup,
            insert_read_bytes: costs.written_bytes_per_key,
            insert_write_bytes: costs.written_bytes_per_key + costs.log_bytes_per_key,
            updates: None,
        }
    }

    /// Returns the average number of different pages among those of a key's positions.
    fn reads_per_lookup(&self) -> f64 {
        let pages = f64::from(self.slice_layout().pages(self.bits()));
        pages * (1.0 - (1.0 - 1.0 / pages).powf(self.hashes.into()))
    }

    fn buffer_bytes(&self) -> u64 {
        u64::from(self.bits().div_ceil(64)) * 8
    }

    fn ram_bytes(&self) -> u64 {
        let partitions = u64::from(self.partitions);
        let buffers = (partitions + u64::from(self.spare_buffers)) * self.buffer_bytes();
        buffers + partitions * PARTITION_RAM_BYTES + self.shared_ram_bytes()
    }

    /// Returns the part of the RAM that structures of a volume share: I/O chunks, and the fixed part.
    pub(super) fn shared_ram_bytes(&self) -> u64 {
        let chunk_pages = self.block_pages().min(super::config::IO_CHUNK_PAGES);
        CHUNKS as u64 * u64::from(chunk_pages) * PAGE_BYTES as u64 + FIXED_RAM_BYTES
    }
}

/// Fails for requirements that this filter does not support.
fn refuse_others(requirements: &FilterRequirements) -> Result<()> {
    let refuse = |field, reason: &str| Err(Error::Config { field, reason: reason.into() });
    if requirements.counts {
        return refuse(
            "counts",
            "yes; a SliceBloom keeps bits and cannot count; take a cascade filter",
        );
    }
    if let StoredKeys::Whole(_) = requirements.stored_keys {
        return refuse("stored_keys", "whole; a SliceBloom keeps bits; take a counting table");
    }
    if requirements.when_full == WhenFull::Refuse {
        let reason = "refuse; a SliceBloom forgets its oldest keys instead; take a cascade filter";
        return refuse("when_full", reason);
    }
    if let FanOut::Times(_) = requirements.fan_out {
        return refuse("fan_out", "a number; a SliceBloom has no levels; take a cascade filter");
    }
    if !(requirements.rate > 0.0 && requirements.rate < 1.0) {
        let reason = format!("{}; it must be between 0 and 1", requirements.rate);
        return Err(Error::Config { field: "rate", reason });
    }
    Ok(())
}

/// Returns the filter with `incarnations` incarnations that reaches the rate.
fn for_incarnations(requirements: &FilterRequirements, incarnations: u32) -> Result<Config> {
    let filters = f64::from(incarnations) + 1.0;
    let of_one = -((-requirements.rate).ln_1p() / filters).exp_m1();
    let bits = |hashes: u32| {
        let hashes = f64::from(hashes);
        -hashes / (-of_one.powf(1.0 / hashes)).ln_1p()
    };
    let usual = |hashes: &u32| bits(*hashes) <= BITS_PER_KEY_USUAL;
    let hashes = (HASHES..=HASHES_MAX).find(usual).unwrap_or(HASHES_MAX);
    let bits_per_key = bits(hashes).ceil() as u32;
    let config = Config { bits_per_key, hashes, incarnations, ..Config::tiny() };
    config.for_window(requirements.keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, share: f64) -> bool {
        (found - expected).abs() <= expected.abs() * share
    }

    /// Sections 6 and 7.5 as a worked example: 32 bits, 3 hash functions and 256 incarnations.
    #[test]
    fn the_papers_numbers_are_what_comes_out() {
        let config = Config::of_paper(2 << 30).unwrap();
        assert!(near(config.rate_of_one(config.buffer_keys.into()), 0.0008, 0.12));
        let costs = config.costs();
        assert!(near(costs.buffer_bits_per_key, 0.125, 0.01), "{costs:?}");
        assert!(costs.other_bits_per_key <= 0.1, "{costs:?}");
        // A block of 128 KiB for 128 keys, and the headers of pages.
        assert!(near(costs.written_bytes_per_key, 1024.0, 0.02), "{costs:?}");
        // Not in the paper: each of 256 incarnations may have a false positive.
        assert!(near(costs.rate, 0.168, 0.01), "{costs:?}");
        assert!(near(costs.reads_per_lookup, 3.0, 0.01), "{costs:?}");
        // 64 GB for two billion keys of 32 bits each, and a sixteenth of spares.
        assert!(near(costs.flash_bytes as f64, (2u64 << 30) as f64 * 4.0, 0.15), "{costs:?}");
    }

    #[test]
    fn advice_keeps_the_window_the_rate_and_the_ram() {
        for (keys, rate, ram_bytes) in [
            (1 << 30, 0.01, 256 << 20),
            (100_000_000, 1e-6, 64 << 20),
            (1_000_000, 0.1, 4 << 20),
            (500, 0.01, 64 << 20),
        ] {
            let asked = FilterRequirements::new(keys, rate, ram_bytes);
            let config = Config::advised(&asked).unwrap();
            let shown = format!("{asked:?}: {config:?} {:?}", config.costs());
            assert!(config.window_keys() >= keys, "{shown}");
            assert!(config.rate() <= rate && config.rate() > rate * 0.7, "{shown}");
            assert!(config.costs().ram_bytes <= ram_bytes, "{shown}");
            let fewer = INCARNATIONS.iter().rev().find(|it| **it < config.incarnations);
            let fewer = fewer.map(|it| for_incarnations(&asked, *it).unwrap().ram_bytes());
            assert!(fewer.is_none_or(|needed| needed > ram_bytes), "{shown}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_name() {
        let asked = FilterRequirements::new(1 << 30, 0.01, 256 << 20);
        let (stored_keys, fan_out) = (StoredKeys::Whole(8), FanOut::Times(4));
        for (requirements, field) in [
            (FilterRequirements { counts: true, ..asked }, "counts"),
            (FilterRequirements { stored_keys, ..asked }, "stored_keys"),
            (FilterRequirements { when_full: WhenFull::Refuse, ..asked }, "when_full"),
            (FilterRequirements { fan_out, ..asked }, "fan_out"),
            (FilterRequirements { rate: 0.0, ..asked }, "rate"),
            (FilterRequirements { rate: f64::NAN, ..asked }, "rate"),
            (FilterRequirements { keys: 0, ..asked }, "keys"),
            (FilterRequirements { ram_bytes: 2 << 20, ..asked }, "ram_bytes"),
        ] {
            let error = Config::advised(&requirements).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
    }
}
