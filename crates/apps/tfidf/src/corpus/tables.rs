//! The volume of an index and its structures: what each is for, and its share of the RAM.
//!
//! | structure | key | value | share |
//! |---|---|---|---|
//! | `tfidf-df-N` | term | documents that have it | filled at once: hardly any |
//! | `tfidf-cf-N` | term | occurrences in all documents | hardly any |
//! | `texts` | number of a run and a block | the block; and the state of the index | 1/16 |
//! | `documents` | hash of a document's id | hash of its text | 1/8 |
//!
//! A batch of documents takes 1/2 while documents come in, and a fitted model 1/4 and more afterwards. What is left is for
//! the log's blocks and what is being read and written.
//!
//! The table of documents is asked mostly for keys that are not there, which a growing BufferHash answers without a read.

use std::path::Path;
use std::sync::Arc;

use nandex::device::{Allocation, Create, Device, FileDevice, FileOptions};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, WhenFull, table_name};
use nandex::{
    AnyOptions, AnyTable, LargeTable, OpenOptions, Policy, Requirements, Threads, Volume,
    VolumeOptions, bufferhash, slicehash,
};

use super::CorpusConfig;
use crate::Result;

/// Entries for which a table begins; it grows from there.
const ENTRIES_FIRST: u64 = 100_000;

/// Blocks for which the table of blocks begins.
const BLOCKS_FIRST: u64 = 10_000;

/// Bytes of the log, at least.
const LOG_BYTES_MIN: u64 = 32 << 20;

/// Space for runs as a multiple of that for texts: a fold has the old and the new ones.
const COPIES: u64 = 3;

/// The structures' names.
const TEXTS: &str = "texts";
const DOCUMENTS: &str = "documents";

/// The structures of an index, without the counting tables, which come and go.
#[derive(Debug)]
pub(super) struct Tables {
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
        let widths = (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32);
        let references = requirements(BLOCKS_FIRST, widths, config.ram_bytes / 16);
        let references = create_sparse(volume, &table_name(TEXTS), &references)?;
        let values = ValuesConfig::holding(config.text_bytes_max * COPIES, WhenFull::Keep);
        let documents = requirements(ENTRIES_FIRST, (16, 16), config.ram_bytes / 8);
        Ok(Self {
            texts: LargeTable::create(volume, TEXTS, references, values)?,
            documents: create_sparse(volume, DOCUMENTS, &documents)?,
        })
    }

    pub(super) fn open(volume: &Volume, config: &CorpusConfig) -> Result<Self> {
        let table = |name: &str, ram_bytes: u64| {
            let mut options = options(volume);
            options.ram_bytes_max = Some(ram_bytes);
            AnyTable::open_with(volume, name, &options)
        };
        let references = table(&table_name(TEXTS), config.ram_bytes / 16)?;
        Ok(Self {
            texts: LargeTable::open(volume, TEXTS, references)?,
            documents: table(DOCUMENTS, config.ram_bytes / 8)?,
        })
    }
}

/// Tables of a volume without threads have none.
fn options(volume: &Volume) -> AnyOptions {
    let mut options = AnyOptions::default();
    if volume.threads() == Threads::Inline {
        let usual = bufferhash::RuntimeOptions::default();
        options = options.with(bufferhash::RuntimeOptions { flush_threads: 0, ..usual });
    }
    options
}

fn requirements(
    entries: u64,
    (key_bytes, value_bytes): (u32, u32),
    ram_bytes: u64,
) -> Requirements {
    let asked = Requirements::new(entries, key_bytes, value_bytes).ram(ram_bytes);
    Requirements { policy: Policy::Grow, ..asked }
}

/// A growing SliceHash, for keys that are updated often.
pub(crate) fn create_dense(
    volume: &Volume,
    name: &str,
    widths: (u32, u32),
    ram_bytes: u64,
) -> Result<AnyTable> {
    let asked = requirements(ENTRIES_FIRST, widths, ram_bytes);
    let config = slicehash::growing::Config::advised(&asked)?;
    Ok(AnyTable::create(volume, name, &config.into())?)
}

/// A growing BufferHash, for keys that are asked for before they are there.
fn create_sparse(volume: &Volume, name: &str, asked: &Requirements) -> Result<AnyTable> {
    let config = bufferhash::growing::Config::advised(asked)?;
    Ok(AnyTable::create_with(volume, name, &config.into(), &options(volume))?)
}
