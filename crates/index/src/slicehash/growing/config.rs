//! The configuration of a growing SliceHash, and that of each of its tables.

use super::KIND;
use crate::model::PAGE_BYTES;
use crate::schema::parameters;
use crate::slicehash;
use crate::slicehash::model::{self, PARTITION_BYTES, PARTITIONS_MAX};
use crate::write::logged_bytes;
use crate::{Error, OpenOptions, Result, WhenFull};

/// RAM that does not depend on the size: the log's blocks, pages of lookups in progress.
pub(super) const FIXED_RAM_BYTES: u64 = 9 << 17;
/// The maximum number of I/O chunks of a merge in memory.
const CHUNKS: u64 = 5;
/// Pages of an I/O chunk of a small table, and of a large one.
const IO_CHUNK_PAGES: (u32, u32) = (16, 128);
/// The partitions for which a new log is twice as long as buffers of the first table's size need.
const LOG_PARTITIONS: u32 = 256;

parameters! {
    /// The configuration of a growing SliceHash.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Config: KIND, version 1, tiny [];

    /// RAM that the table may take, in bytes; `None` for no limit.
    ram_bytes_max: Option<u64> = None;

    /// The first table, which rejects updates when it is full. Each later one has twice the partitions of the one
    /// before.
    first: slicehash::Config = with_partitions(slicehash::Config::tiny(), 1);
}

impl Config {
    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.first.validate()?;
        if self.first.policy != WhenFull::Refuse {
            let reason =
                "a table that is full is followed by one of twice the size; choose reject for it";
            return Err(Error::Config { field: "policy", reason: reason.into() });
        }
        Ok(())
    }

    /// Returns the size in bytes of a log with which tables of up to 512 partitions keep the first one's buffers. With
    /// 256 it is twice the least.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let partitions = self.first.partitions.max(LOG_PARTITIONS);
        let bytes = 2 * log_bytes_min(&with_partitions(self.first, partitions));
        bytes.next_multiple_of(1 << 20).max(slicehash::Config::LOG_BYTES_MIN)
    }

    /// Returns the number of entries that it is guaranteed to hold within its RAM.
    pub(super) fn entries_capacity(&self) -> u64 {
        let mut table = self.first;
        if self.ram_bytes_max.is_some_and(|most| FIXED_RAM_BYTES + ram_bytes(&table) > most) {
            return 0;
        }
        while let Some(next) = next(&table, u64::MAX)
            && self.ram_bytes_max.is_none_or(|most| self.ram_bytes_with(&table, &next) <= most)
        {
            table = next;
        }
        capacity(&table)
    }

    /// Returns the RAM while the next table takes over from this one, in bytes.
    pub(super) fn ram_bytes_with(
        &self,
        table: &slicehash::Config,
        next: &slicehash::Config,
    ) -> u64 {
        FIXED_RAM_BYTES + ram_bytes(table) + ram_bytes(next)
    }

    /// Returns the first of its tables that holds `entries` entries.
    pub(super) fn holding(&self, entries: u64) -> slicehash::Config {
        self.holding_with(entries, u64::MAX)
    }

    /// Returns the first of its tables that holds `entries` entries, as far as its tables can grow with a log of
    /// `log_bytes`.
    pub(super) fn holding_with(&self, entries: u64, log_bytes: u64) -> slicehash::Config {
        let mut table = self.first;
        while capacity(&table) < entries
            && let Some(next) = next(&table, log_bytes)
        {
            table = next;
        }
        table
    }
}

/// Returns whether a table has the entries and the slicetables of this configuration's first table.
pub(super) fn has_shape(config: &Config, table: &slicehash::Config) -> bool {
    let shape = |it: &slicehash::Config| (it.key_bytes, it.value_bytes, it.slices, it.slice_parts);
    shape(table) == shape(&config.first) && table.block_pages() == config.first.block_pages()
}

/// Returns the number of entries that a table is guaranteed to take.
pub(super) fn capacity(table: &slicehash::Config) -> u64 {
    u64::from(table.partitions) * u64::from(table.entries_max)
}

/// RAM of a table's buffers and maps, and of the I/O chunks of a merge, in bytes.
pub(super) fn ram_bytes(table: &slicehash::Config) -> u64 {
    buffer_bytes(table) + u64::from(table.partitions) * PARTITION_BYTES + chunk_bytes(table)
}

/// RAM of the I/O chunks of a merge, in bytes.
fn chunk_bytes(table: &slicehash::Config) -> u64 {
    CHUNKS * u64::from(io_chunk_pages(table)) * PAGE_BYTES
}

/// Returns the RAM that a growing table with this newest table shares with other structures of the volume, in bytes.
pub(super) fn shared_ram_bytes(table: &slicehash::Config) -> u64 {
    FIXED_RAM_BYTES + chunk_bytes(table)
}

/// Returns the pages of an I/O chunk of a table: the few entries of a small table do not justify long chunks.
pub(super) fn io_chunk_pages(table: &slicehash::Config) -> u32 {
    let (least, most) = IO_CHUNK_PAGES;
    (2 * table.partitions).clamp(least, most)
}

/// RAM of a table's buffers, with their stashes, in bytes.
pub(super) fn buffer_bytes(table: &slicehash::Config) -> u64 {
    let entry_bytes = (table.key_bytes + table.value_bytes) as u64;
    let one = model::buffer_bytes(table.buffer_pages.into(), entry_bytes);
    (u64::from(table.partitions) + u64::from(table.spare_buffers)) * one
}

/// Returns the table with `partitions` partitions.
pub(super) fn with_partitions(table: slicehash::Config, partitions: u32) -> slicehash::Config {
    slicehash::Config {
        partitions,
        spare_buffers: (partitions / 64).clamp(2, 8),
        spare_blocks: (partitions / 32).max(if partitions < 8 { 2 } else { 4 }),
        policy: WhenFull::Refuse,
        front_runs: 0,
        stagger: partitions > 1,
        ..table
    }
}

/// Returns the table that follows a full one: twice its partitions, with slicetables of the same shape. If a log of
/// `log_bytes` is too short for the buffers, they become smaller, and each merge adds fewer entries. `None` if it has
/// the most partitions, or buffers of one page that the log is too short for.
pub(super) fn next(table: &slicehash::Config, log_bytes: u64) -> Option<slicehash::Config> {
    let partitions = table.partitions.checked_mul(2).filter(|it| *it <= PARTITIONS_MAX)?;
    let mut next = with_partitions(*table, partitions);
    while next.buffer_pages > 1 && log_bytes_min(&next) > log_bytes {
        next.buffer_pages /= 2;
    }
    (log_bytes_min(&next) <= log_bytes).then_some(next)
}

/// Returns the least log for a table's buffers: twice their contents, in bytes.
fn log_bytes_min(table: &slicehash::Config) -> u64 {
    2 * table.shape().map_or(0, |shape| logged_bytes(&shape))
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
    fn each_table_has_twice_the_partitions_up_to_the_most() {
        let mut table = Config::tiny().first;
        let mut partitions = vec![table.partitions];
        while let Some(next) = next(&table, u64::MAX) {
            next.validate().unwrap();
            partitions.push(next.partitions);
            table = next;
        }
        assert_eq!(partitions, (0..=16).map(|power| 1 << power).collect::<Vec<_>>());
    }

    #[test]
    fn a_short_log_makes_buffers_smaller_and_ends_growth_at_one_page() {
        let table = with_partitions(Config::tiny().first, 8);
        let log_bytes = log_bytes_min(&with_partitions(table, 16));
        assert_eq!(next(&table, log_bytes).unwrap().buffer_pages, 2);
        assert_eq!(next(&table, log_bytes - 1).unwrap().buffer_pages, 1);
        assert_eq!(next(&table, log_bytes / 2).unwrap().buffer_pages, 1);
        assert_eq!(next(&table, log_bytes / 2 - 1), None);
    }

    #[test]
    fn ram_limits_the_entries() {
        let least = FIXED_RAM_BYTES + ram_bytes(&Config::tiny().first);
        let with = |ram_bytes| Config { ram_bytes_max: Some(ram_bytes), ..Config::tiny() };
        assert_eq!(with(least - 1).entries_capacity(), 0);
        assert_eq!(with(least).entries_capacity(), capacity(&Config::tiny().first));
        assert!(Config::tiny().entries_capacity() > 1000 * with(least).entries_capacity());
    }

    #[test]
    fn a_table_that_evicts_is_refused() {
        let evicting = slicehash::Config { policy: WhenFull::EvictOldest, ..Config::tiny().first };
        let error = Config { first: evicting, ram_bytes_max: None }.validate().unwrap_err();
        assert!(error.to_string().contains("choose reject"), "{error}");
    }
}
