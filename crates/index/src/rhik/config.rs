//! The configuration of a RHIK, stored with it on flash, and the options of an opening.

use nandex_store::entries::EntryLayout;
use nandex_store::records::RecordLayout;

use super::rewrite::{Bodies, Occupancy};
pub use crate::OpenOptions;
use crate::Result;
use crate::groups::model::TABLES_PER_BUFFER;
use crate::groups::{GroupConfig, GroupParameters, GroupRam};
use crate::schema::{Byte, ParameterSpec, Range, parameters};

/// The default number of slots from its home on in which an entry may be.
pub const NEIGHBOURHOOD: u32 = 32;

/// The default share of slots in use, in thousandths, above which a table splits.
pub const SPLIT_PERMILLE: u32 = 900;

/// The default number of tables of a group: 256 KiB.
pub const GROUP_PAGES: u32 = crate::groups::model::GROUP_PAGES;

parameters! {
    /// The configuration of a RHIK. All of it is stored on flash and read back at open.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Config: super::KIND, version 1, tiny [const];

    /// Bytes in a key: 8 to 32.
    key_bytes: usize as Byte = 8, in Range::Within(8, 32);

    /// Bytes in a value: 0 to 64.
    value_bytes: usize as Byte = 8, in Range::Within(0, 64);

    /// Flush the first buffer of each partition early, each at another fill, so that they do not all flush at once.
    stagger: bool = false;

    /// Partitions, a power of two up to 65,536. Each has a write buffer and a directory.
    partitions: u32 = 4, in Range::PowerOfTwo(1 << 16);

    /// The maximum number of pages of 4 KiB in a write buffer, 1 to 65,535. Without a RAM limit a buffer may have as
    /// few as a sixteenth of its partition's tables.
    buffer_pages: u32 = 2, in Range::Within(1, 65_535);

    /// Buffers in addition to one per partition, for partitions whose buffer is being written.
    spare_buffers: u32 = 2, in Range::Within(1, 65_536);

    /// Slots from its home on in which an entry may be: hopscotch's H, 1 to 64.
    neighbourhood: u32 = NEIGHBOURHOOD, in Range::Within(1, 64);

    /// The share of slots in use, in thousandths, above which a table splits: 500 to 1000. Two tables that would fill
    /// half of that together are joined.
    split_permille: u32 = SPLIT_PERMILLE, in Range::Within(500, 1000);

    /// The maximum number of tables that are written at once: 1 to 256.
    group_pages: u32 = 4, in Range::Within(1, 256);

    /// RAM that the table may take, in bytes; `None` for no limit. Its buffers take their share of it at once, and its
    /// directory grows within the rest.
    ram_bytes_max: Option<u64> = None;
}

impl Config {
    /// The least that [`log_bytes_best`](Self::log_bytes_best) returns, in bytes.
    pub const LOG_BYTES_MIN: u64 = GroupParameters::LOG_BYTES_MIN;

    /// Returns the size in bytes of a log that seldom forces a table of this configuration to flush early: four times
    /// the contents of its buffers, and at least 2 MiB.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        self.common().log_bytes_best()
    }

    /// The layout of buffer pages.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for widths out of range.
    pub fn layout(&self) -> Result<EntryLayout> {
        self.common().layout()
    }

    /// The layout of record tables.
    #[must_use]
    pub fn record_layout(&self) -> RecordLayout {
        RecordLayout::new(self.key_bytes, self.value_bytes, self.neighbourhood as usize)
    }

    /// Fails for a configuration that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check()
    }

    /// Returns when tables split and join.
    pub(super) fn occupancy(&self) -> Occupancy {
        let slots = self.record_layout().slots();
        let split_above = slots * self.split_permille as usize / 1000;
        Occupancy { split_above, join_below: split_above / 2 }
    }

    /// Returns the pages of a write buffer if all tables together have `tables` pages: a sixteenth of them, up to the
    /// configured number. Within a RAM limit, a buffer has all pages from the start: growing buffers would leave holes
    /// in the allocator's memory, which the limit could not count.
    pub(super) fn buffer_pages_at(&self, tables: u64) -> usize {
        if self.ram_bytes_max.is_some() {
            return self.buffer_pages as usize;
        }
        let share = tables / TABLES_PER_BUFFER / u64::from(self.partitions);
        share.clamp(1, self.buffer_pages.into()) as usize
    }
}

impl GroupConfig for Config {
    const KIND: &'static str = super::KIND;
    const BYTES: [&'static str; 2] = ["rhik configuration", "rhik state"];

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

    /// A partition's last group has any number of tables, tables that split are in memory, and half of the directory's
    /// entries may be second names.
    fn ram(&self) -> GroupRam {
        GroupRam {
            name_bytes: 2 * size_of::<u32>() as u64,
            rewrite_bytes: Bodies::RAM_BYTES,
            ..GroupRam::new(self.common(), self.record_layout())
        }
    }

    fn check(&self) -> Result<()> {
        self.check_ranges()?;
        self.ram().check(crate::options::FLUSH_THREADS)
    }
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

    /// The example of docs/reference/format.md: a change here makes every RHIK unreadable.
    #[test]
    fn a_configuration_is_the_bytes_that_the_format_says() {
        let hex: String =
            Config::tiny().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "0108080004000000020000000200000020000000840300000400000\
             00000000000000000"
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
            (Config { neighbourhood: 65, ..tiny }, "neighbourhood"),
            (Config { split_permille: 499, ..tiny }, "split_permille"),
            (Config { group_pages: 257, ..tiny }, "group_pages"),
            (Config { ram_bytes_max: Some(9 << 10), ..tiny }, "RAM"),
        ] {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field}: ")), "{field}: {error}");
        }
    }

    #[test]
    fn a_table_keeps_nine_tenths_of_its_slots_and_its_directory_a_small_part_of_a_byte() {
        let config = Config { group_pages: GROUP_PAGES, ..Config::tiny() };
        assert_eq!(config.occupancy(), Occupancy { split_above: 214, join_below: 107 });
        let bytes = config.ram().map_bytes_per_entry(1);
        assert!((0.1..0.25).contains(&bytes), "{bytes}");
        let most = Some(config.ram().empty_bytes(1) + 100_000);
        let limited = Config { ram_bytes_max: most, ..config };
        assert_eq!(limited.ram().entries_max(1), (100_000.0 / bytes) as u64);
        // Another thread takes its own groups.
        assert_eq!(
            config.ram().empty_bytes(2) - config.ram().empty_bytes(0),
            config.ram().flush_bytes()
        );
        assert_eq!((limited.ram().entries_max(2), limited.ram().check(1).is_ok()), (0, true));
        let error = limited.ram().check(2).unwrap_err().to_string();
        assert!(error.starts_with("RAM: "), "{error}");
    }
}
