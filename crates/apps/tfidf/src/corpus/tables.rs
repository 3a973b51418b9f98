//! The volume of an index and its structures: what each is for, and its share of the RAM.
//!
//! | structure | key | value | share |
//! |---|---|---|---|
//! | `df` | term | documents that have it | 1/8 |
//! | `cf` | term | occurrences in all documents | 1/8 |
//! | `texts` | term | its text; and the state of the index | 1/8 |
//! | `documents` | hash of a document's id | hash of its text | 1/8 |
//!
//! Terms known to have a text take 1/8, and a batch of documents 1/4. What is left is for the log's blocks and what is
//! being read and written.
//!
//! Counts are in counting tables: an addition reads nothing. The other two are asked mostly for keys that are not there,
//! which a growing BufferHash answers without a read.

use std::path::Path;
use std::sync::Arc;

use nandex::device::{Allocation, Create, Device, FileDevice, FileOptions};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, WhenFull, table_name};
use nandex::{
    AnyOptions, AnyTable, Counting, LargeTable, OpenOptions, Policy, Requirements, Volume,
    VolumeOptions, bufferhash, counting, slicehash,
};

use super::CorpusConfig;
use crate::Result;

/// Entries for which a table begins; it grows from there.
const ENTRIES_FIRST: u64 = 100_000;

/// Bytes of the log, at least.
const LOG_BYTES_MIN: u64 = 32 << 20;

/// The structures' names.
const DF: &str = "df";
const CF: &str = "cf";
const TEXTS: &str = "texts";
const DOCUMENTS: &str = "documents";

/// The structures of an index.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) df: Counting,
    pub(super) cf: Counting,
    pub(super) texts: LargeTable<AnyTable>,
    pub(super) documents: AnyTable,
}

/// How an index's file is opened.
fn file(path: &Path, create: Create) -> Result<Arc<dyn Device>> {
    let allocation = Allocation::Sparse;
    let options = FileOptions { create, allocation, ..FileOptions::default() };
    Ok(Arc::new(FileDevice::open(path, &options)?))
}

/// Makes the volume of a new index.
pub(super) fn create_volume(path: &Path, config: &CorpusConfig) -> Result<Volume> {
    let log_bytes = (config.ram_bytes / 2).next_multiple_of(1 << 20).max(LOG_BYTES_MIN);
    let options = VolumeOptions { log_bytes, ..VolumeOptions::default() };
    Ok(Volume::create(file(path, Create::New)?, options)?)
}

/// Opens the volume of an index.
pub(super) fn open_volume(path: &Path) -> Result<Volume> {
    Ok(Volume::open(file(path, Create::Open)?, OpenOptions::default())?)
}

impl Tables {
    pub(super) fn create(volume: &Volume, config: &CorpusConfig) -> Result<Self> {
        let share = config.share();
        let references = create_sparse(
            volume,
            &table_name(TEXTS),
            (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32),
            share,
        )?;
        let values = ValuesConfig::holding(config.text_bytes_max, WhenFull::Keep);
        Ok(Self {
            df: create_counts(volume, DF, share)?,
            cf: create_counts(volume, CF, share)?,
            texts: LargeTable::create(volume, TEXTS, references, values)?,
            documents: create_sparse(volume, DOCUMENTS, (16, 16), share)?,
        })
    }

    pub(super) fn open(volume: &Volume, config: &CorpusConfig) -> Result<Self> {
        let mut options = AnyOptions::default();
        options.ram_bytes_max = Some(config.share());
        let table = |name: &str| AnyTable::open_with(volume, name, &options);
        Ok(Self {
            df: Counting::open(volume, DF)?,
            cf: Counting::open(volume, CF)?,
            texts: LargeTable::open(volume, TEXTS, table(&table_name(TEXTS))?)?,
            documents: table(DOCUMENTS)?,
        })
    }
}

fn requirements((key_bytes, value_bytes): (u32, u32), ram_bytes: u64) -> Requirements {
    let policy = Policy::Grow;
    let asked = Requirements::new(ENTRIES_FIRST, key_bytes, value_bytes).ram(ram_bytes);
    Requirements { policy, ..asked }
}

/// A growing SliceHash, for keys that are updated often.
pub(crate) fn create_dense(
    volume: &Volume,
    name: &str,
    widths: (u32, u32),
    ram_bytes: u64,
) -> Result<AnyTable> {
    let config = slicehash::growing::Config::advised(&requirements(widths, ram_bytes))?;
    Ok(AnyTable::create(volume, name, &config.into())?)
}

/// A counting table of terms, with twice as many updates as queries. Its data segments grow past the terms that it is made
/// for; with half a term for each byte of RAM, merges are short.
pub(super) fn create_counts(volume: &Volume, name: &str, ram_bytes: u64) -> Result<Counting> {
    let config =
        counting::Config::for_budget(counting::Keys::Whole(16), ram_bytes / 2, ram_bytes, 2.0)?;
    Ok(Counting::create(volume, name, config)?)
}

/// A growing BufferHash, for keys that are asked for before they are there.
fn create_sparse(
    volume: &Volume,
    name: &str,
    widths: (u32, u32),
    ram_bytes: u64,
) -> Result<AnyTable> {
    let config = bufferhash::growing::Config::advised(&requirements(widths, ram_bytes))?;
    Ok(AnyTable::create(volume, name, &config.into())?)
}
