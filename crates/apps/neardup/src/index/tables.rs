//! The volume of an index and its structures: what each is for, and its share of the RAM.
//!
//! | structure | key | value | share |
//! |---|---|---|---|
//! | `neardup-records` | a document's number | its [record](super::record); and the state of the index | 3/16 |
//! | `neardup-keys` | hash of an id, or of a text | the number of a document that has it | 1/4 |
//! | `neardup-alike` | bucket keys of a signature | numbers of documents | 7/16, of which 4/16 at most for its filter |
//!
//! A batch of documents takes some MiB while documents come in, and clusters take 1/4.
//!
//! The table of keys is asked mostly for keys that are not there, which a growing BufferHash answers without a read.

use std::path::Path;
use std::sync::Arc;

use nandex::device::{Allocation, Create, Device, FileDevice, FileOptions};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, WhenFull, table_name};
use nandex::signature::Family;
use nandex::store::schedule::Channels;
use nandex::{
    AnyConfig, AnyNeighbors, AnyOptions, AnyTable, LargeTable, NeighborsRequirements, OpenOptions,
    Policy, Requirements, Threads, Volume, VolumeOptions, bufferhash, slicelsh,
};

use crate::{Error, IndexConfig, Result};

/// Documents for which the tables begin; they grow from there.
const DOCUMENTS_FIRST: u64 = 10_000;

/// Bytes of the log, at least and at most.
const LOG_BYTES_MIN: u64 = 8 << 20;
const LOG_BYTES_MAX: u64 = 256 << 20;

/// Bytes of a document's number.
pub(super) const NUMBER_BYTES: usize = 8;

/// The structures' names.
const RECORDS: &str = "neardup-records";
const KEYS: &str = "neardup-keys";
const ALIKE: &str = "neardup-alike";

/// The structures of an index.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) records: LargeTable<AnyTable>,
    pub(super) keys: AnyTable,
    pub(super) alike: AnyNeighbors,
}

/// How an index's file is opened.
fn file(path: &Path, create: Create) -> Result<Arc<dyn Device>> {
    let allocation = Allocation::Sparse;
    let options = FileOptions { create, allocation, ..FileOptions::default() };
    Ok(Arc::new(FileDevice::open(path, &options)?))
}

/// Makes the volume of a new index.
pub(super) fn create_volume(path: &Path, log_bytes: u64) -> Result<Volume> {
    let options = VolumeOptions { log_bytes, ..VolumeOptions::default() };
    Ok(Volume::create(file(path, Create::New)?, options)?)
}

/// Opens the volume of an index.
pub(super) fn open_volume(path: &Path) -> Result<Volume> {
    Ok(Volume::open(file(path, Create::Open)?, OpenOptions::default())?)
}

impl Tables {
    pub(super) fn create(volume: &Volume, family: &Family, config: &IndexConfig) -> Result<Self> {
        let alike = neighbors(family, config)?;
        // Where the channels of the device are known, each table has channels of its own.
        let alike = alike.placed_on(&Channels::of(&volume.device().geometry())).into();
        let options = neighbors_options(volume, config);
        let alike = AnyNeighbors::create_with(volume, ALIKE, &alike, &options)?;
        Self::create_over(volume, config, alike)
    }

    /// The same over this index of neighbours.
    pub(super) fn create_over(
        volume: &Volume,
        config: &IndexConfig,
        alike: AnyNeighbors,
    ) -> Result<Self> {
        let widths = (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32);
        let records = growing(DOCUMENTS_FIRST, widths, records_bytes(config))?;
        let widths = (16, NUMBER_BYTES as u32);
        let keys = growing(2 * DOCUMENTS_FIRST, widths, keys_bytes(config))?;
        let create =
            |name: &str, it: &AnyConfig| AnyTable::create_with(volume, name, it, &options(volume));
        let references = create(&table_name(RECORDS), &records)?;
        let values = ValuesConfig::holding(0, WhenFull::Grow);
        Ok(Self {
            records: LargeTable::create(volume, RECORDS, references, values)?,
            keys: create(KEYS, &keys)?,
            alike,
        })
    }

    pub(super) fn open(volume: &Volume, config: &IndexConfig) -> Result<Self> {
        let alike = AnyNeighbors::open(volume, ALIKE, &neighbors_options(volume, config))?;
        check_ram(&alike, config)?;
        Self::open_over(volume, config, alike)
    }

    /// The same over this index of neighbours.
    pub(super) fn open_over(
        volume: &Volume,
        config: &IndexConfig,
        alike: AnyNeighbors,
    ) -> Result<Self> {
        let table = |name: &str, ram_bytes: u64| {
            let mut options = options(volume);
            options.ram_bytes_max = Some(ram_bytes);
            AnyTable::open_with(volume, name, &options)
        };
        let references = table(&table_name(RECORDS), records_bytes(config))?;
        Ok(Self {
            records: LargeTable::open(volume, RECORDS, references)?,
            keys: table(KEYS, keys_bytes(config))?,
            alike,
        })
    }
}

/// The index of neighbours of a family. It refuses more documents than it is for: what it evicted would come back as
/// new.
pub(super) fn neighbors(family: &Family, config: &IndexConfig) -> Result<slicelsh::Config> {
    let asked = NeighborsRequirements {
        bucket_ids_max: config.bucket_ids_max,
        policy: Policy::Reject,
        family: family.encode(),
        ..NeighborsRequirements::new(config.documents, family.tables())
    };
    let advised = |ram_bytes| {
        let asked = NeighborsRequirements { ram_bytes: Some(ram_bytes), ..asked.clone() };
        slicelsh::Config::advised(&asked)
    };
    // Where that is too little for the buffers, the filter has what they leave.
    let all = neighbors_bytes(config);
    Ok(advised(all - filter_bytes(config)).or_else(|_| advised(all))?)
}

/// RAM of the table of records, at most.
const fn records_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 16 * 3
}

/// RAM of the table of ids and texts, at most.
const fn keys_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 4
}

/// RAM of the index of neighbours with its filter, at most.
const fn neighbors_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 16 * 7
}

/// RAM for the filter of the index of neighbours: most documents are new, and their buckets need not be read.
const fn filter_bytes(config: &IndexConfig) -> u64 {
    config.ram_bytes / 4
}

/// Refuses RAM that is too little for the buffers that the index was made with.
fn check_ram(alike: &AnyNeighbors, config: &IndexConfig) -> Result<()> {
    let made = alike.config();
    let needed = made.of::<slicelsh::Config>()?.ram_bytes();
    if needed <= neighbors_bytes(config) {
        return Ok(());
    }
    let reason = format!(
        "{} bytes; the buffers of this index take {needed} of seven sixteenths of it, so give {} or more",
        config.ram_bytes,
        needed.div_ceil(7) * 16
    );
    Err(Error::option("ram_bytes", reason))
}

/// The length of the log, in bytes: what the buffers of the index of neighbours need, and the tables' few updates.
pub(super) fn log_bytes(family: &Family, config: &IndexConfig) -> Result<u64> {
    let wanted = neighbors(family, config)?.log_bytes_best() + config.ram_bytes / 32;
    Ok(wanted.next_multiple_of(1 << 20).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX))
}

/// A growing BufferHash, for keys that are asked for before they are there.
fn growing(
    entries: u64,
    (key_bytes, value_bytes): (u32, u32),
    ram_bytes: u64,
) -> Result<AnyConfig> {
    let asked = Requirements::new(entries, key_bytes, value_bytes).ram(ram_bytes);
    let asked = Requirements { policy: Policy::Grow, ..asked };
    Ok(bufferhash::growing::Config::advised(&asked).map(AnyConfig::from)?)
}

/// The options of the index of neighbours.
fn neighbors_options(volume: &Volume, config: &IndexConfig) -> AnyOptions {
    let options = options(volume);
    let usual = options.of::<slicelsh::RuntimeOptions>().cloned().unwrap_or_default();
    let filter_bytes_max = filter_bytes(config);
    let ram_bytes_max = Some(neighbors_bytes(config));
    options.with(slicelsh::RuntimeOptions { filter_bytes_max, ram_bytes_max, ..usual })
}

/// Structures of a volume without threads have none.
fn options(volume: &Volume) -> AnyOptions {
    let mut options = AnyOptions::default();
    if volume.threads() == Threads::Inline {
        let usual = bufferhash::RuntimeOptions::default();
        options = options.with(bufferhash::RuntimeOptions { flush_threads: 0, ..usual });
        let usual = slicelsh::RuntimeOptions::default();
        options = options.with(slicelsh::RuntimeOptions { flush_threads: 0, ..usual });
    }
    options
}
