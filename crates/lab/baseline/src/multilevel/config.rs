//! The configuration of a multi-level index, which is stored with it on flash, and the options of each
//! opening.

use nandex::Result;
use nandex::raw::model::PAGE_BYTES;
use nandex::raw::schema::{Byte, ParameterSpec, Range, parameters};
use nandex::raw::{GroupConfig, GroupParameters, GroupRam};
use nandex_store::records::RecordLayout;

use super::levels::LevelPlan;
use super::page_cache::PageCache;

/// The number of slots from its home on that may hold an entry: hopscotch's H.
const NEIGHBOURHOOD: usize = 32;

parameters! {
    /// The configuration of a multi-level index. All of it is stored on flash and read back at open.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Config: super::KIND, version 1, tiny [const];

    /// Bytes in a key: 8 to 32.
    key_bytes: usize as Byte = 8, in Range::Within(8, 32);

    /// Bytes in a value: 0 to 64.
    value_bytes: usize as Byte = 8, in Range::Within(0, 64);

    /// Flush the first buffer of each partition early, each at another fill, so that they do not all flush at once.
    stagger: bool = false;

    /// Partitions, a power of two up to 65,536. Each has a write buffer and levels.
    partitions: u32 = 4, in Range::PowerOfTwo(1 << 16);

    /// Pages of 4 KiB in a write buffer, 1 to 65,535.
    buffer_pages: u32 = 2, in Range::Within(1, 65_535);

    /// Buffers in addition to one per partition, for partitions whose buffer is being written.
    spare_buffers: u32 = 2, in Range::Within(1, 65_536);

    /// Pages of a partition's first level, a power of two up to 65,536. Each further level has twice as many.
    first_pages: u32 = 1, in Range::PowerOfTwo(1 << 16);

    /// The most pages that are written at once: a power of two, 1 to 256.
    group_pages: u32 = 4, in Range::PowerOfTwo(256);

    /// RAM for pages of levels that lookups have read, in bytes: the DRAM of a drive's index; 0 for none.
    page_cache_bytes: u64 = 32 << 10;

    /// RAM that the table may take, in bytes; `None` for no limit. Its buffers and its cache of pages take their share
    /// of it, and the map of its pages grows within the rest.
    ram_bytes_max: Option<u64> = None;
}

impl Config {
    /// Refuses impossible values.
    ///
    /// # Errors
    /// Fails with [`Error::Config`](nandex::Error::Config), which names the field.
    pub fn validate(&self) -> Result<()> {
        self.check()
    }

    /// Returns the layout of a level's pages.
    #[must_use]
    pub fn record_layout(&self) -> RecordLayout {
        RecordLayout::new(self.key_bytes, self.value_bytes, NEIGHBOURHOOD)
    }

    /// Returns the division of its levels into pages and groups.
    pub(super) fn plan(&self) -> LevelPlan {
        LevelPlan { first_bits: self.first_pages.ilog2(), group_bits: self.group_pages.ilog2() }
    }
}

impl GroupConfig for Config {
    const KIND: &'static str = super::KIND;
    const BYTES: [&'static str; 2] = ["multilevel configuration", "multilevel state"];

    const SPECS: &'static [ParameterSpec] = Self::PARAMETERS;

    fn tiny() -> Self {
        Self::tiny()
    }

    fn common(&self) -> GroupParameters {
        GroupParameters {
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            partitions: self.partitions,
            buffer_pages: self.buffer_pages,
            spare_buffers: self.spare_buffers,
            group_pages: self.group_pages,
            stagger: self.stagger,
            ram_bytes_max: self.ram_bytes_max,
        }
    }

    fn with_common(self, common: GroupParameters) -> Self {
        Self {
            key_bytes: common.key_bytes,
            value_bytes: common.value_bytes,
            partitions: common.partitions,
            buffer_pages: common.buffer_pages,
            spare_buffers: common.spare_buffers,
            group_pages: common.group_pages,
            stagger: common.stagger,
            ram_bytes_max: common.ram_bytes_max,
            ..self
        }
    }

    /// Returns the RAM of groups. The first levels of a partition have groups of fewer pages. A flush has one
    /// group more, whose entries move up, and sorts those with the buffer's.
    fn ram(&self) -> GroupRam {
        GroupRam {
            short_groups: u64::from(1 + self.group_pages.ilog2()),
            fixed_bytes: PageCache::new(self.page_cache_bytes).ram_bytes(),
            rewrite_bytes: u64::from(self.group_pages) * PAGE_BYTES,
            sorted_buffers: 2,
            ..GroupRam::new(self.common(), self.record_layout())
        }
    }

    fn check(&self) -> Result<()> {
        self.check_ranges()?;
        self.ram().check(nandex::raw::FLUSH_THREADS)
    }
}

#[cfg(test)]
mod tests {
    use nandex::raw::group_model::GROUP_PAGES;
    use nandex_device::PageId;
    use nandex_store::bytes::Reader;

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

    /// Tests the example of docs/reference/format.md: a change here makes every multi-level index unreadable.
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
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
    }

    #[test]
    fn the_map_takes_a_small_part_of_a_byte_for_an_entry_and_threads_and_cache_their_own() {
        let config = Config { group_pages: GROUP_PAGES, ..Config::tiny() };
        let bytes = config.ram().map_bytes_per_entry(1);
        assert!((0.05..0.15).contains(&bytes), "{bytes}");
        let most = Some(config.ram().empty_bytes(1) + 100_000);
        let limited = Config { ram_bytes_max: most, ..config };
        assert_eq!(limited.ram().entries_max(1), (100_000.0 / bytes) as u64);
        // Another thread takes its own groups.
        assert_eq!(
            config.ram().empty_bytes(2) - config.ram().empty_bytes(0),
            config.ram().flush_bytes()
        );
        assert_eq!((limited.ram().entries_max(2), limited.ram().check(1).is_ok()), (0, true));
        let more = Config { page_cache_bytes: 1 << 20, ..limited };
        let error = more.ram().check(1).unwrap_err().to_string();
        assert!(error.starts_with("RAM: "), "{error}");
    }
}
