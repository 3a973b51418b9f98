//! Tables of keys and values of fixed widths.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use nandex::device::{Create, FileDevice, FileOptions};
use nandex::raw::{bufferhash, slicehash};
use nandex::{AnyTable, Policy, Requirements, Table, Volume, VolumeOptions, rhik};
use nandex_bench::keys::{KEY_BYTES, VALUE_BYTES};

use crate::keyed::{Keyed, Pairs, Store};
use crate::subject::{Row, Subject, Usage};
use crate::{Arguments, Workload};

/// The row of a BufferHash made for the keys.
pub(crate) const BUFFERHASH: Row =
    row("bufferhash", |arguments, file| sized(arguments, file, bufferhash::KIND));
/// The row of a SliceHash made for the keys.
pub(crate) const SLICEHASH: Row =
    row("slicehash", |arguments, file| sized(arguments, file, slicehash::KIND));
pub(crate) const GROWING: Row =
    row("growing", |arguments, file| growing(arguments, file, bufferhash::growing::KIND));
pub(crate) const GROWING_SLICEHASH: Row =
    row("growing-slicehash", |arguments, file| growing(arguments, file, slicehash::growing::KIND));
pub(crate) const RHIK: Row = row("rhik", |arguments, file| growing(arguments, file, rhik::KIND));

/// The number of entries that a growing table begins with.
const ENTRIES_FIRST: u64 = 1000;
const NAME: &str = "t";

struct TableStore {
    volume: Volume,
    table: AnyTable,
}

const fn row(name: &'static str, create: fn(&Arguments, &Path) -> Result<Box<dyn Subject>>) -> Row {
    Row { name, items: "keys", workload: Workload::Update, create }
}

fn sized(arguments: &Arguments, file: &Path, kind: &str) -> Result<Box<dyn Subject>> {
    create(arguments, file, (kind, Policy::Reject, arguments.entries))
}

fn growing(arguments: &Arguments, file: &Path, kind: &str) -> Result<Box<dyn Subject>> {
    create(arguments, file, (kind, Policy::Grow, ENTRIES_FIRST))
}

fn create(
    arguments: &Arguments,
    file: &Path,
    (kind, policy, entries): (&str, Policy, u64),
) -> Result<Box<dyn Subject>> {
    let widths = (u32::try_from(KEY_BYTES)?, u32::try_from(VALUE_BYTES)?);
    let ram_bytes = arguments.ram;
    let asked =
        Requirements { policy, ram_bytes, ..Requirements::new(entries, widths.0, widths.1) };
    let config = asked.advise_one(kind)?.config;
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = Arc::new(FileDevice::open(file, &options)?);
    let options = VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() };
    let volume = Volume::create(device, options)?;
    let table = AnyTable::create(&volume, NAME, &config)?.with_spare_ram();
    Keyed::boxed(TableStore { volume, table }, arguments.entries)
}

impl Store for TableStore {
    fn put(&self, pairs: &Pairs) -> Result<()> {
        Ok(self.table.insert_many(pairs)?)
    }

    fn remove(&self, keys: &[&[u8]]) -> Result<()> {
        Ok(keys.iter().try_for_each(|key| self.table.remove(key))?)
    }

    fn is_right(&self, (key, value): (&[u8], &[u8]), _puts: u64) -> Result<bool> {
        Ok(self.table.get(key)?.as_deref() == Some(value))
    }

    fn is_absent(&self, key: &[u8]) -> Result<bool> {
        Ok(self.table.get(key)?.is_none())
    }

    fn flush(&self) -> Result<()> {
        Ok(self.table.flush()?)
    }

    fn usage(&self) -> Usage {
        let stats = self.table.stats();
        Usage {
            written_bytes: Some(stats.data_bytes_written + stats.log_bytes_written),
            entries: stats.entries,
            flash_bytes: stats.flash_bytes,
            ram_bytes: stats.ram_bytes,
        }
    }

    fn reopened(self) -> Result<Self> {
        let Self { volume, table } = self;
        table.close()?;
        let table = AnyTable::open(&volume, NAME)?.with_spare_ram();
        Ok(Self { volume, table })
    }

    fn close(self) -> Result<()> {
        Ok(self.table.close()?)
    }
}
