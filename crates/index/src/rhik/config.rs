//! What a RHIK is created with, kept with it on flash, and what can be chosen at each opening.

use nandex_store::bytes::Reader;
use nandex_store::entries::EntryLayout;
use nandex_store::records::RecordLayout;

use super::rewrite::{Bodies, Occupancy};
pub use crate::OpenOptions;
use crate::Result;
use crate::groups::model::TABLES_PER_BUFFER;
use crate::groups::{GroupConfig, GroupParameters, GroupRam};

/// Slots from its home on in which an entry may be, unless the configuration says otherwise.
pub const NEIGHBOURHOOD: u32 = 32;

/// The share of slots in use, in thousandths, above which a table splits unless the configuration says otherwise.
pub const SPLIT_PERMILLE: u32 = 900;

/// Tables of a group unless the configuration says otherwise: 256 KiB.
pub const GROUP_PAGES: u32 = crate::groups::model::GROUP_PAGES;

/// What a RHIK is created with. All of it is kept on flash and read back at open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes in a key: 8 to 32.
    pub key_bytes: usize,
    /// Bytes in a value: 0 to 64.
    pub value_bytes: usize,
    /// Partitions, a power of two up to 65,536. Each has a write buffer and a directory.
    pub partitions: u32,
    /// Pages of 4 KiB in a write buffer at most, 1 to 65,535. Without a limit of RAM a buffer has as few as a sixteenth
    /// of its partition's tables.
    pub buffer_pages: u32,
    /// Buffers in addition to one per partition, for partitions whose buffer is being written.
    pub spare_buffers: u32,
    /// Slots from its home on in which an entry may be: hopscotch's H, 1 to 64.
    pub neighbourhood: u32,
    /// The share of slots in use, in thousandths, above which a table splits: 500 to 1000. Two tables that would fill
    /// half of that together are joined.
    pub split_permille: u32,
    /// The most tables that are written at once: 1 to 256.
    pub group_pages: u32,
    /// Flush the first buffer of each partition early, each at another fill, so that they do not all flush at once.
    pub stagger: bool,
    /// RAM that the table may take, in bytes; `None` for no limit. Its buffers take their share of it at once, and its
    /// directory grows within the rest.
    pub ram_bytes_max: Option<u64>,
}

impl Config {
    /// The smallest limits that work, so that tests reach every one of them: 4 partitions of 2-page buffers, and groups
    /// of 4 tables.
    #[must_use]
    pub const fn tiny() -> Self {
        Self {
            key_bytes: 8,
            value_bytes: 8,
            partitions: 4,
            buffer_pages: 2,
            spare_buffers: 2,
            neighbourhood: NEIGHBOURHOOD,
            split_permille: SPLIT_PERMILLE,
            group_pages: 4,
            stagger: false,
            ram_bytes_max: None,
        }
    }

    /// The least that [`log_bytes_best`](Self::log_bytes_best) gives, in bytes.
    pub const LOG_BYTES_MIN: u64 = GroupParameters::LOG_BYTES_MIN;

    /// The size of a log that seldom makes a table of this configuration flush early: four times what its buffers hold,
    /// at least 2 MiB, in bytes.
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

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), naming the field.
    pub fn validate(&self) -> Result<()> {
        self.check()
    }

    /// When tables split and join.
    pub(super) fn occupancy(&self) -> Occupancy {
        let slots = self.record_layout().slots();
        let split_above = slots * self.split_permille as usize / 1000;
        Occupancy { split_above, join_below: split_above / 2 }
    }

    /// Pages of a write buffer where all tables together are that many pages: a sixteenth of them, as long as that is
    /// no more than the configuration allows. Within a limit of RAM, all pages from the start: buffers that grew would
    /// leave holes in the allocator's memory, which the limit could not count.
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
        self.common().check(&[
            ("neighbourhood", self.neighbourhood, 1, 64),
            ("split_permille", self.split_permille, 500, 1000),
        ])?;
        self.ram().check(crate::options::FLUSH_THREADS)
    }

    fn encode(&self) -> Vec<u8> {
        self.common().encode(&[self.neighbourhood, self.split_permille], &[])
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let (common, [neighbourhood, split_permille], []) = GroupParameters::decode(reader)?;
        let own = Self { neighbourhood, split_permille, ..Self::tiny() };
        let config = own.with_common(common);
        config.check().map_err(|error| reader.refuse("a configuration that works", error))?;
        Ok(config)
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

    /// The example of docs/format.md: a change here makes every RHIK unreadable.
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
