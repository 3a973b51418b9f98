//! The configuration of a growing table, and that of each of its generations.

use super::KIND;
use super::generations::GENERATIONS_MAX;
use super::ram::ram_bytes_of;
use super::sizes::{SUPER_TABLES_MAX, of_super_tables};
use crate::bufferhash::model::FIXED_RAM_BYTES;
use crate::bufferhash::{self, Placement, Policy};
use crate::schema::{Range, parameters};
use crate::{Error, OpenOptions, Result};

/// The number of super tables of the newest generation for which a new log is long enough.
const LOG_SUPER_TABLES: u32 = 32;

parameters! {
    /// The configuration of a growing table.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config: KIND, version 2, tiny [];

    /// Incarnations of a super table of later generations. A first generation for few entries has fewer.
    incarnations_max: u32 = 4;

    /// RAM that all generations may take together, in bytes; `None` for no limit.
    ram_bytes_max: Option<u64> = None;

    /// The first generation, which rejects updates when it is full. Later ones have more super tables, or larger
    /// buffers.
    first: bufferhash::Config = tiny_generation();

    /// Pages of the buffers of a generation for many entries. One for fewer has a quarter of them, a sixteenth and so
    /// on, but at least as many as the first has. 0 for those of the first in all generations, as in tables of version
    /// 1.
    buffer_pages_max: u32 = 0, in Range::Within(0, 65_535), since 2;
}

/// Returns a super table of 2-page buffers, five of which fill a generation.
fn tiny_generation() -> bufferhash::Config {
    let tiny = bufferhash::Config::tiny();
    let first = bufferhash::Config { incarnations_max: 4, policy: Policy::Reject, ..tiny };
    of_super_tables(&first, 1)
}

impl Config {
    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.first.validate()?;
        self.sizes().iter().try_for_each(bufferhash::Config::validate)?;
        let refuse = |field, reason: &str| Err(Error::Config { field, reason: reason.into() });
        if self.first.policy != Policy::Reject {
            return refuse(
                "policy",
                "a generation that is full is followed by the next one; choose reject for it",
            );
        }
        if self.first.placement != Placement::Shared {
            return refuse("placement", "a chip keeps its size, and a growing table does not");
        }
        Ok(())
    }

    /// Returns its generations until they hold `entries` entries, with a log that is long enough.
    pub(crate) fn generations(&self, entries: u64) -> Vec<bufferhash::Config> {
        let mut generations = vec![self.first.clone()];
        let mut capacity = self.first.entries_capacity();
        while capacity < entries
            && generations.last().is_some_and(|it| it.super_tables < SUPER_TABLES_MAX)
        {
            let next = self.next(generations.iter(), u64::MAX, u64::MAX);
            capacity = capacity.saturating_add(next.entries_capacity());
            generations.push(next);
        }
        generations
    }

    /// Returns the number of entries that it is guaranteed to hold within its RAM, with a log that is long enough.
    pub(super) fn entries_capacity(&self) -> u64 {
        let all = match self.ram_bytes_max {
            Some(most) => self.generations_within(most),
            None => self.generations(u64::MAX),
        };
        all.iter().map(bufferhash::Config::entries_capacity).sum()
    }

    /// Returns its generations, until the next one does not fit the RAM.
    fn generations_within(&self, ram_bytes_max: u64) -> Vec<bufferhash::Config> {
        let mut generations = Vec::new();
        let mut next = self.first.clone();
        let mut left = ram_bytes_max.saturating_sub(FIXED_RAM_BYTES);
        while next.ram_bytes() <= left && generations.len() < GENERATIONS_MAX {
            generations.push(next);
            left = ram_bytes_max.saturating_sub(ram_bytes_of(generations.iter()));
            next = self.next(generations.iter(), u64::MAX, left);
        }
        generations
    }

    /// Returns the length in bytes of a log that seldom forces generations of 32 super tables to flush early.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let super_tables = self.first.super_tables.max(LOG_SUPER_TABLES);
        let bytes = self.of_super_tables(super_tables).log_bytes_good();
        bytes.next_multiple_of(1 << 20).max(self.first.log_bytes_best())
    }
}

/// Removes the cache's bytes from the configuration and the options of a table's parts, since the cache belongs to the
/// whole table.
pub(super) fn without_cache(config: Config, options: OpenOptions) -> (Config, OpenOptions) {
    let left = |most: u64| most.saturating_sub(options.cache_bytes);
    let config = Config { ram_bytes_max: config.ram_bytes_max.map(left), ..config };
    (config, OpenOptions { cache_bytes: 0, ..options })
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;
    use nandex_store::bytes::Reader;

    use super::*;

    fn read_back(bytes: &[u8]) -> Result<Config> {
        Config::decode(&mut Reader::new(bytes, "configuration", PageId(0)))
    }

    #[test]
    fn a_configuration_reads_back_and_never_panics_when_cut() {
        for ram_bytes_max in [None, Some(7 << 20)] {
            let config = Config { ram_bytes_max, ..Config::tiny() };
            let bytes = config.encode();
            assert_eq!(read_back(&bytes).unwrap(), config);
            for length in 0..bytes.len() {
                assert!(read_back(&bytes[..length]).is_err());
            }
        }
    }

    #[test]
    fn each_generation_has_as_many_super_tables_as_all_before_it() {
        let config = Config::tiny();
        let tables = |entries| -> Vec<_> {
            config.generations(entries).iter().map(|it| it.super_tables).collect()
        };
        let one = config.first.entries_capacity();
        assert_eq!(tables(one), [1]);
        assert_eq!(tables(one + 1), [1, 1]);
        assert_eq!(tables(5 * one), [1, 1, 2, 4]);
        for generation in config.generations(100 * one) {
            generation.validate().unwrap();
            assert!(generation.entries_capacity() >= one * u64::from(generation.super_tables));
        }
    }

    #[test]
    fn a_short_log_and_little_ram_keep_generations_small() {
        let config = Config::tiny();
        let log_bytes = config.of_super_tables(4).log_bytes_good();
        let before = config.generations(100 * config.first.entries_capacity());
        let next = |count, log_bytes, ram_bytes| {
            config.next(before[..count].iter(), log_bytes, ram_bytes).super_tables
        };
        let most = u64::MAX;
        assert_eq!([next(6, log_bytes, most), next(6, 1, most), next(3, most, most)], [4, 1, 4]);
        let ram_bytes = config.of_super_tables(4).ram_bytes();
        assert_eq!([next(6, most, ram_bytes), next(6, most, ram_bytes - 1)], [4, 2]);
        assert_eq!(next(6, most, 1), 1);
    }

    #[test]
    fn a_small_first_generation_does_not_count_for_the_next_one() {
        let tiny = Config::tiny();
        let small = bufferhash::Config { incarnations_max: 3, ..tiny.first.clone() };
        let config = Config { first: of_super_tables(&small, 1), ..tiny };
        let all = config.generations(20 * config.first.entries_capacity());
        let all: Vec<_> = all.iter().map(|it| (it.super_tables, it.incarnations_max)).collect();
        assert_eq!(all[..5], [(1, 3), (1, 4), (1, 4), (2, 4), (4, 4)]);
    }

    #[test]
    fn ram_limits_the_entries() {
        let least = Config::tiny().first.ram_bytes() + FIXED_RAM_BYTES;
        let with = |ram_bytes| Config { ram_bytes_max: Some(ram_bytes), ..Config::tiny() };
        assert_eq!(with(least - 1).entries_capacity(), 0);
        assert_eq!(with(least).entries_capacity(), Config::tiny().first.entries_capacity());
        assert!(Config::tiny().entries_capacity() > 1000 * with(least).entries_capacity());
        // Nearly all of it is used, whatever the size.
        let one = Config::tiny().first;
        for ram_bytes in (least..80 * one.ram_bytes()).step_by(one.ram_bytes() as usize * 3 / 2) {
            let generations = with(ram_bytes).generations_within(ram_bytes);
            let taken = ram_bytes_of(generations.iter());
            assert!(taken <= ram_bytes && taken + 2 * one.ram_bytes() > ram_bytes, "{ram_bytes}");
        }
    }

    #[test]
    fn a_generation_must_refuse_and_be_on_the_volume() {
        let tiny = Config::tiny();
        let evicting = bufferhash::Config { policy: Policy::Fifo, ..tiny.first.clone() };
        let error = Config { first: evicting, ..tiny }.validate().unwrap_err();
        assert!(error.to_string().contains("choose reject"), "{error}");
    }
}
