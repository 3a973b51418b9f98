//! The volume of an index of documents, and the tables in it that grow with the documents.
//!
//! Both kinds of table are asked mostly for absent keys, which a growing BufferHash answers without a read: one has
//! keys and values of fixed widths, and the other has records of any size, with their references in a table of the
//! first kind.

use std::path::Path;

use nandex::device::Create;
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, table_name};
use nandex::raw::Stated;
use nandex::raw::bufferhash::growing;
use nandex::{
    AnyTable, Database, Error, LargeTable, OpenOptions, Policy, Requirements, Result, Volume,
    VolumeOptions,
};

/// The number of documents for which a table with an entry for each begins; it grows from there.
pub const DOCUMENTS_FIRST: u64 = 10_000;

/// The least and the most bytes of a log.
const LOG_BYTES_MIN: u64 = 8 << 20;
const LOG_BYTES_MAX: u64 = 256 << 20;

/// Creates the volume of a new index, with a log that grows up to `log_bytes`. Its file takes space as it is written.
///
/// # Errors
/// A file that exists, no space, a failed write.
pub fn create_volume(path: &Path, log_bytes: u64) -> Result<Database> {
    let volume = VolumeOptions::default().with_growing_log(log_bytes);
    nandex::options().create(Create::New).sparse().volume(volume).open(path)
}

/// Opens the volume of an index.
///
/// # Errors
/// No such file, a file that is not a volume or is in use, damage, a failed read.
pub fn open_volume(path: &Path) -> Result<Database> {
    nandex::options().create(Create::Open).sparse().open(path)
}

/// Returns the length of the log of an index whose structures work well with `wanted` bytes: whole MiB, at least 8 and
/// at most 256.
#[must_use]
pub fn log_bytes(wanted: u64) -> u64 {
    wanted.next_multiple_of(1 << 20).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX)
}

/// Returns whether an update failed for lack of space, and nothing was changed.
#[must_use]
pub fn is_full(error: &Error) -> bool {
    matches!(error, Error::ValuesFull { .. } | Error::GrowthStopped { .. } | Error::Full { .. })
}

/// A table that grows: its name, and its limits. It is created and opened with the given options of an opening;
/// parameters are given in its configuration.
#[derive(Clone, Copy, Debug)]
pub struct TablePlan {
    /// The name of the table.
    pub name: &'static str,
    /// The number of entries for which a new table begins.
    pub entries_first: u64,
    /// The most RAM of its buffers and filters, in bytes; `None` for as much as they need.
    pub ram_bytes_max: Option<u64>,
    /// RAM for a cache of its entries, in bytes.
    pub cache_bytes: u64,
}

impl TablePlan {
    /// Returns the plan of a table within a share of the RAM, without a cache.
    #[must_use]
    pub const fn within(ram_bytes: u64, name: &'static str, entries_first: u64) -> Self {
        Self { name, entries_first, ram_bytes_max: Some(ram_bytes), cache_bytes: 0 }
    }

    /// Returns the configuration of a table whose keys and values have these widths, in bytes.
    ///
    /// # Errors
    /// Too little RAM.
    pub fn config(self, (key, value): (usize, usize)) -> Result<growing::Config> {
        let asked = Requirements {
            policy: Policy::Grow,
            ram_bytes: self.ram_bytes_max,
            ..Requirements::new(self.entries_first, key as u32, value as u32)
        };
        growing::Config::advised(&asked)
    }

    /// Creates a table of this configuration.
    ///
    /// # Errors
    /// Too little RAM, a name that is in use, no space, a failed write; an invalid option.
    pub fn create(
        self,
        volume: &Volume,
        config: growing::Config,
        stated: &Stated,
    ) -> Result<AnyTable> {
        self.create_as(volume, self.name, config, stated)
    }

    /// Opens a table of this plan.
    ///
    /// # Errors
    /// Too little RAM, no such table, damage, a failed read; an invalid option.
    pub fn open(self, volume: &Volume, stated: &Stated) -> Result<AnyTable> {
        self.open_as(volume, self.name, stated)
    }

    /// Opens a table of this plan, which must have all given parameters.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Stated::check`].
    pub fn open_checked(self, volume: &Volume, stated: &Stated) -> Result<AnyTable> {
        let table = self.open(volume, stated)?;
        stated.check(self.name, &table.config()).map(|()| table)
    }

    /// Creates a table of records of any size, which are in a value log of these sizes.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_records(
        self,
        volume: &Volume,
        values: ValuesConfig,
        stated: &Stated,
    ) -> Result<LargeTable<AnyTable>> {
        let config = self.config((TABLE_KEY_BYTES, TABLE_VALUE_BYTES))?;
        let references = self.create_as(volume, &table_name(self.name), config, stated)?;
        LargeTable::create(volume, self.name, references, values)
    }

    /// Opens a table of records.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_records(self, volume: &Volume, stated: &Stated) -> Result<LargeTable<AnyTable>> {
        let references = self.open_as(volume, &table_name(self.name), stated)?;
        LargeTable::open(volume, self.name, references)
    }

    fn create_as(
        self,
        volume: &Volume,
        name: &str,
        config: growing::Config,
        stated: &Stated,
    ) -> Result<AnyTable> {
        AnyTable::create_with(volume, name, &config.into(), &self.options(volume, stated)?)
    }

    fn open_as(self, volume: &Volume, name: &str, stated: &Stated) -> Result<AnyTable> {
        AnyTable::open_with(volume, name, &self.options(volume, stated)?)
    }

    fn options(self, volume: &Volume, stated: &Stated) -> Result<OpenOptions> {
        let Self { ram_bytes_max, cache_bytes, .. } = self;
        let usual = OpenOptions { ram_bytes_max, cache_bytes, ..OpenOptions::suited_to(volume) };
        stated.options(growing::KIND, usual)
    }
}

/// Returns the value log of a new table of records. It begins with the least size, and grows as records need it.
#[must_use]
pub fn growing_values() -> ValuesConfig {
    ValuesConfig::holding(0, nandex::WhenFull::Grow)
}

#[cfg(test)]
mod tests {
    use nandex::Table;

    use super::*;

    const KEYS: TablePlan = TablePlan::within(16 << 20, "keys", 1000);
    const RECORDS: TablePlan = TablePlan { name: "records", cache_bytes: 1 << 20, ..KEYS };

    #[test]
    fn what_tables_were_given_is_there_when_they_are_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.nandex");
        let db = create_volume(&path, log_bytes(0)).unwrap();
        let none = Stated::default();
        let keys = KEYS.create(db.volume(), KEYS.config((8, 4)).unwrap(), &none).unwrap();
        keys.insert(b"document", b"0001").unwrap();
        keys.close().unwrap();
        let records = RECORDS.create_records(db.volume(), growing_values(), &none).unwrap();
        records.put(b"state", &[7; 9000]).unwrap();
        records.close().unwrap();
        drop(db);
        let db = open_volume(&path).unwrap();
        let keys = KEYS.open(db.volume(), &none).unwrap();
        let records = RECORDS.open_records(db.volume(), &none).unwrap();
        assert_eq!(keys.get(b"document").unwrap().as_deref(), Some(&b"0001"[..]));
        assert_eq!(records.get(b"state").unwrap(), Some(vec![7; 9000]));
    }

    #[test]
    fn a_log_is_of_whole_mib_within_its_limits() {
        assert_eq!(log_bytes(0), 8 << 20);
        assert_eq!(log_bytes((9 << 20) + 1), 10 << 20);
        assert_eq!(log_bytes(1 << 40), 256 << 20);
    }
}
