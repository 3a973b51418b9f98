//! What a multi-level index is created with, kept with it on flash, and what can be chosen at each opening.

use nandex_store::buffer::STASH_LEN_MAX;
use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;
use nandex_store::records::RecordLayout;
use nandex_store::schedule::Channels;

use super::levels::LevelPlan;
use super::page_cache::PageCache;
use crate::model::PAGE_BYTES;
use crate::write::groups::{
    CHECKPOINT_COPIES, GROUP_CHECKPOINT_RAM_BYTES, GROUP_PAGES_MAX, GROUP_RAM_BYTES, GROUPS_IN_RAM,
    Incoming,
};
use crate::write::{TableShape, snapshot_pages};
use crate::{Error, Result};

/// The most partitions.
pub(super) const PARTITIONS_MAX: u32 = 1 << 16;

/// Slots from its home on in which an entry may be: hopscotch's H.
const NEIGHBOURHOOD: usize = 32;

/// The most pages of a partition's first level.
const FIRST_PAGES_MAX: u32 = 1 << 16;

/// Pages of a group unless the configuration says otherwise: 256 KiB.
pub const GROUP_PAGES: u32 = 64;

/// Pages of levels over those of the buffers, unless RAM is stated.
pub(super) const LEVELS_PER_BUFFER: u64 = 16;

/// RAM that does not depend on the configuration: the log's blocks, pages of lookups under way.
pub(super) const FIXED_RAM_BYTES: u64 = 9 << 17;

/// RAM of a partition without its buffer, in bytes.
pub(super) const PARTITION_BYTES: u64 = 2304;

/// The share of the groups that were replaced since the last checkpoint, at most.
const REPLACED: f64 = 0.25;

/// Threads that flush buffers unless the options say otherwise.
pub(super) const FLUSH_THREADS: usize = 1;

/// RAM of an entry in a buffer's stash, in addition to its bytes.
const STASHED_BYTES: u64 = 32;

/// The most threads that flush buffers.
const FLUSH_THREADS_MAX: usize = 64;

const VERSION: u8 = 1;

/// What a multi-level index is created with. All of it is kept on flash and read back at open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes in a key: 8 to 32.
    pub key_bytes: usize,
    /// Bytes in a value: 0 to 64.
    pub value_bytes: usize,
    /// Partitions, a power of two up to 65,536. Each has a write buffer and levels.
    pub partitions: u32,
    /// Pages of 4 KiB in a write buffer, 1 to 65,535.
    pub buffer_pages: u32,
    /// Buffers in addition to one per partition, for partitions whose buffer is being written.
    pub spare_buffers: u32,
    /// Pages of a partition's first level, a power of two up to 65,536. Each further level has twice as many.
    pub first_pages: u32,
    /// The most pages that are written at once: a power of two, 1 to 256.
    pub group_pages: u32,
    /// Flush the first buffer of each partition early, each at another fill, so that they do not all flush at once.
    pub stagger: bool,
    /// RAM for pages of levels that lookups have read, in bytes: the DRAM of a drive's index; 0 for none.
    pub page_cache_bytes: u64,
    /// RAM that the table may take, in bytes; `None` for no limit. Its buffers and its cache of pages take their share
    /// of it, and the map of its pages grows within the rest.
    pub ram_bytes_max: Option<u64>,
}

impl Config {
    /// The smallest limits that work, so that tests reach every one of them: 4 partitions of 2-page buffers, a first
    /// level of 1 page each, groups of 4 pages, and a cache of a few pages.
    #[must_use]
    pub const fn tiny() -> Self {
        Self {
            key_bytes: 8,
            value_bytes: 8,
            partitions: 4,
            buffer_pages: 2,
            spare_buffers: 2,
            first_pages: 1,
            group_pages: 4,
            stagger: false,
            page_cache_bytes: 32 << 10,
            ram_bytes_max: None,
        }
    }

    /// The least that [`log_bytes_best`](Self::log_bytes_best) gives, in bytes.
    pub const LOG_BYTES_MIN: u64 = 2 << 20;

    /// The size of a log that seldom makes a table of this configuration flush early: four times what its buffers hold,
    /// at least 2 MiB, in bytes.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        let bytes = u64::from(self.partitions) * u64::from(self.buffer_pages) * PAGE_BYTES;
        (4 * bytes).next_multiple_of(1 << 20).max(Self::LOG_BYTES_MIN)
    }

    /// The layout of buffer pages.
    ///
    /// # Errors
    /// [`Error::Config`] for widths out of range.
    pub fn layout(&self) -> Result<EntryLayout> {
        Ok(EntryLayout::new(self.key_bytes, self.value_bytes)?)
    }

    /// The layout of a level's pages.
    #[must_use]
    pub fn record_layout(&self) -> RecordLayout {
        RecordLayout::new(self.key_bytes, self.value_bytes, NEIGHBOURHOOD)
    }

    /// How its levels are cut into pages and groups.
    pub(super) fn plan(&self) -> LevelPlan {
        LevelPlan { first_bits: self.first_pages.ilog2(), group_bits: self.group_pages.ilog2() }
    }

    pub(super) fn shape(&self) -> Result<TableShape> {
        let layout = self.layout()?;
        let slots = u32::try_from(layout.slots()).expect("at most 508") * self.buffer_pages;
        Ok(TableShape {
            layout,
            partitions: self.partitions,
            buffer_pages: self.buffer_pages,
            entries_max: slots,
            // Removals that a table without RAM to grow takes into full buffers.
            carry_over_max: slots / 16,
            spare_buffers: self.spare_buffers,
            stagger: self.stagger,
        })
    }

    /// RAM of all buffers with their stashes, in bytes.
    pub(super) fn buffer_bytes(&self) -> u64 {
        let buffers = u64::from(self.partitions) + u64::from(self.spare_buffers);
        let stashed = STASHED_BYTES + (self.key_bytes + self.value_bytes) as u64;
        buffers * (u64::from(self.buffer_pages) * (PAGE_BYTES + 8) + STASH_LEN_MAX as u64 * stashed)
    }

    /// RAM that each thread takes to flush buffers, in bytes: groups, and a buffer's entries in the order of hashes,
    /// with as many that move up.
    pub(super) fn flush_ram_bytes(&self) -> u64 {
        let entries = self.shape().map_or(0, |shape| 2 * shape.buffer_limit());
        let sorted = (entries * size_of::<Incoming<'_>>()) as u64;
        (GROUPS_IN_RAM + 1) * u64::from(self.group_pages) * PAGE_BYTES + sorted
    }

    /// RAM of the copy of a buffer that a checkpoint saves, in bytes.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        let places = 2 * u64::from(self.partitions);
        self.shape().map_or(0, |shape| snapshot_pages(&shape) / places * PAGE_BYTES)
    }

    /// RAM that it takes without the map of its pages, in bytes, with a full cache and that many threads that flush
    /// buffers; 0 is one, the updating one.
    pub(super) fn ram_bytes_empty(&self, flush_threads: usize) -> u64 {
        // The first levels of a partition have groups of fewer pages.
        let short = u64::from(1 + self.plan().group_bits);
        let groups = short * (GROUP_RAM_BYTES + GROUP_CHECKPOINT_RAM_BYTES);
        FIXED_RAM_BYTES
            + PageCache::new(self.page_cache_bytes).ram_bytes()
            + self.buffer_bytes()
            + u64::from(self.partitions) * (PARTITION_BYTES + groups)
            + self.snapshot_bytes()
            + self.flush_ram_bytes() * flush_threads.max(1) as u64
    }

    /// RAM of the map for each entry at most, in bytes, with that of checkpoints: when a level was just begun and all
    /// its groups are there, pages are two fifths full on average.
    pub(super) fn map_bytes_per_entry(&self, flush_threads: usize) -> f64 {
        let per_page = |bytes: u64| bytes as f64 / f64::from(self.group_pages);
        let group = 1.0 + per_page(GROUP_RAM_BYTES);
        // Each thread makes the next map of one partition, which shares groups with the old one.
        let next = flush_threads.max(1) as f64 / f64::from(self.partitions);
        let checkpoint = CHECKPOINT_COPIES as f64 + per_page(GROUP_CHECKPOINT_RAM_BYTES);
        let page = group * (1.0 + next) + group * REPLACED + checkpoint;
        page / (0.4 * self.record_layout().slots() as f64)
    }

    /// Entries that it surely holds within its RAM.
    pub(super) fn entries_max(&self, flush_threads: usize) -> u64 {
        self.ram_bytes_max.map_or(u64::MAX, |most| {
            let left = most.saturating_sub(self.ram_bytes_empty(flush_threads));
            (left as f64 / self.map_bytes_per_entry(flush_threads)) as u64
        })
    }

    /// Refuses less RAM than it takes without entries.
    pub(super) fn check_ram(&self, flush_threads: usize) -> Result<()> {
        let least = self.ram_bytes_empty(flush_threads);
        match self.ram_bytes_max.filter(|most| *most < least) {
            Some(most) => Err(crate::model::too_little("RAM", most, least)),
            None => Ok(()),
        }
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        self.layout()?;
        let refuse = |field, reason: String| Err(Error::Config { field, reason });
        if !self.partitions.is_power_of_two() || self.partitions > PARTITIONS_MAX {
            let reason = format!("{} is no power of two up to 65,536", self.partitions);
            return refuse("partitions", reason);
        }
        let fields = [
            ("buffer_pages", self.buffer_pages, 1, 65_535),
            ("spare_buffers", self.spare_buffers, 1, 65_536),
            ("first_pages", self.first_pages, 1, FIRST_PAGES_MAX),
            ("group_pages", self.group_pages, 1, GROUP_PAGES_MAX),
        ];
        for (field, found, least, most) in fields {
            if !(least..=most).contains(&found) {
                return refuse(field, format!("{found} is not in {least}..={most}"));
            }
        }
        for (field, found) in [("first_pages", self.first_pages), ("group_pages", self.group_pages)]
        {
            if !found.is_power_of_two() {
                return refuse(field, format!("{found} is no power of two"));
            }
        }
        self.check_ram(FLUSH_THREADS)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let width = |bytes: usize| u8::try_from(bytes).expect("at most 64");
        let mut out = vec![VERSION, width(self.key_bytes), width(self.value_bytes)];
        out.push(u8::from(self.stagger));
        for number in [
            self.partitions,
            self.buffer_pages,
            self.spare_buffers,
            self.first_pages,
            self.group_pages,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for bytes in [self.page_cache_bytes, self.ram_bytes_max.unwrap_or(0)] {
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let version = reader.u8()?;
        if version != VERSION {
            return Err(reader.refuse(format!("version {VERSION}"), version).into());
        }
        let (key_bytes, value_bytes) = (reader.u8()?.into(), reader.u8()?.into());
        let stagger = match reader.u8()? {
            0 => false,
            1 => true,
            other => return Err(reader.refuse("0 or 1", other).into()),
        };
        let config = Self {
            key_bytes,
            value_bytes,
            partitions: reader.u32()?,
            buffer_pages: reader.u32()?,
            spare_buffers: reader.u32()?,
            first_pages: reader.u32()?,
            group_pages: reader.u32()?,
            stagger,
            page_cache_bytes: reader.u64()?,
            ram_bytes_max: Some(reader.u64()?).filter(|bytes| *bytes > 0),
        };
        config.validate().map_err(|error| reader.refuse("a configuration that works", error))?;
        Ok(config)
    }
}

/// Options chosen at each opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuntimeOptions {
    /// Threads that put full buffers into the levels, 0 to 64. With 0 the updating thread does.
    pub flush_threads: usize,
    /// Reads in flight in a batch of lookups: 1 to 4096.
    pub read_depth: usize,
    /// RAM for a cache of entries, in bytes; 0 for none. It is asked before the cache of pages.
    pub cache_bytes: u64,
    /// RAM that the table may take from this opening on, in bytes, its cache included; `None` for what it was created
    /// with.
    pub ram_bytes_max: Option<u64>,
    /// The device's channels, if it does not tell them itself.
    pub channels: Option<Channels>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            flush_threads: FLUSH_THREADS,
            read_depth: 32,
            cache_bytes: 0,
            ram_bytes_max: None,
            channels: None,
        }
    }
}

impl RuntimeOptions {
    pub(super) fn validate(&self) -> Result<()> {
        let refuse = |field, reason| Err(Error::Config { field, reason });
        if self.flush_threads > FLUSH_THREADS_MAX {
            let reason = format!("{}; they must be 0 to {FLUSH_THREADS_MAX}", self.flush_threads);
            return refuse("flush_threads", reason);
        }
        if !(1..=4096).contains(&self.read_depth) {
            return refuse("read_depth", format!("{}; it must be 1 to 4096", self.read_depth));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::*;

    fn read_back(bytes: &[u8]) -> Result<Config> {
        Config::decode(&mut Reader::new(bytes, "configuration", PageId(0)))
    }

    #[test]
    fn a_configuration_reads_back_and_never_panics_when_cut() {
        for ram_bytes_max in [None, Some(7 << 20)] {
            let config = Config { ram_bytes_max, stagger: true, ..Config::tiny() };
            let bytes = config.encode();
            assert_eq!(read_back(&bytes).unwrap(), config);
            assert!((0..bytes.len()).all(|length| read_back(&bytes[..length]).is_err()));
            for (at, value) in [(0, 9), (1, 7), (2, 65), (3, 2), (4, 3)] {
                let mut bad = bytes.clone();
                bad[at] = value;
                assert!(read_back(&bad).is_err(), "{at}");
            }
        }
    }

    /// The example of docs/format.md: a change here makes every multi-level index unreadable.
    #[test]
    fn a_configuration_is_the_bytes_that_the_format_says() {
        let hex: String =
            Config::tiny().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "01080800040000000200000002000000010000000400000000800000\
             000000000000000000000000"
        );
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_name() {
        let tiny = Config::tiny();
        for (config, field) in [
            (Config { key_bytes: 7, ..tiny }, "key_bytes"),
            (Config { partitions: 3, ..tiny }, "partitions"),
            (Config { buffer_pages: 0, ..tiny }, "buffer_pages"),
            (Config { spare_buffers: 0, ..tiny }, "spare_buffers"),
            (Config { first_pages: 0, ..tiny }, "first_pages"),
            (Config { first_pages: 3, ..tiny }, "first_pages"),
            (Config { first_pages: 1 << 17, ..tiny }, "first_pages"),
            (Config { group_pages: 6, ..tiny }, "group_pages"),
            (Config { group_pages: 512, ..tiny }, "group_pages"),
            (Config { ram_bytes_max: Some(9 << 10), ..tiny }, "RAM"),
        ] {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
    }

    #[test]
    fn the_map_takes_a_small_part_of_a_byte_for_an_entry_and_threads_and_cache_their_own() {
        let config = Config { group_pages: GROUP_PAGES, ..Config::tiny() };
        let bytes = config.map_bytes_per_entry(1);
        assert!((0.05..0.15).contains(&bytes), "{bytes}");
        let most = Some(config.ram_bytes_empty(1) + 100_000);
        let limited = Config { ram_bytes_max: most, ..config };
        assert_eq!(limited.entries_max(1), (100_000.0 / bytes) as u64);
        // Another thread takes its own groups.
        assert_eq!(config.ram_bytes_empty(2) - config.ram_bytes_empty(0), config.flush_ram_bytes());
        assert_eq!((limited.entries_max(2), limited.check_ram(1).is_ok()), (0, true));
        let more = Config { page_cache_bytes: 1 << 20, ..limited };
        let error = more.check_ram(1).unwrap_err().to_string();
        assert!(error.starts_with("RAM: "), "{error}");
    }
}
