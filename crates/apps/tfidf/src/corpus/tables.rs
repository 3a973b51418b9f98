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

use nandex::device::Create;
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, table_name};
use nandex::raw::bufferhash;
use nandex::{
    AnyConfig, AnyTable, Database, LargeTable, OpenOptions, Policy, Requirements, Volume, WhenFull,
};

use super::CorpusConfig;
use crate::Result;

/// Documents for which their table begins; it grows from there.
const DOCUMENTS_FIRST: u64 = 10_000;

/// Blocks for which the table of blocks begins.
const BLOCKS_FIRST: u64 = 1000;

/// Bytes of the log, at least and at most.
const LOG_BYTES_MIN: u64 = 8 << 20;
const LOG_BYTES_MAX: u64 = 64 << 20;

/// The structures' names.
const TEXTS: &str = "texts";
const DOCUMENTS: &str = "documents";

/// The structures of an index, without the counting tables, which come and go.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) texts: LargeTable<AnyTable>,
    pub(super) documents: AnyTable,
}

/// Makes the volume of a new index.
pub(super) fn create_volume(path: &Path, config: &CorpusConfig) -> Result<Database> {
    Ok(nandex::options().create(Create::New).sparse().log(log_bytes(config)).open(path)?)
}

/// Opens the volume of an index.
pub(super) fn open_volume(path: &Path) -> Result<Database> {
    Ok(nandex::options().create(Create::Open).sparse().open(path)?)
}

impl Tables {
    pub(super) fn create(
        volume: &Volume,
        config: &CorpusConfig,
        values: ValuesConfig,
    ) -> Result<Self> {
        let [references, documents] = configs(config)?;
        let create = |name: &str, config: AnyConfig| {
            AnyTable::create_with(volume, name, &config, &OpenOptions::suited_to(volume))
        };
        let references = create(&table_name(TEXTS), references)?;
        Ok(Self {
            texts: LargeTable::create(volume, TEXTS, references, values)?,
            documents: create(DOCUMENTS, documents)?,
        })
    }

    pub(super) fn open(volume: &Volume, config: &CorpusConfig) -> Result<Self> {
        let table = |name: &str, ram_bytes: u64| {
            let mut options = OpenOptions::suited_to(volume);
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

/// The tables of blocks and of documents: growing BufferHashes, for keys that are asked for before they are there.
fn configs(config: &CorpusConfig) -> Result<[AnyConfig; 2]> {
    let widths = (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32);
    let advised = |asked| bufferhash::growing::Config::advised(&asked).map(AnyConfig::from);
    Ok([
        advised(requirements(BLOCKS_FIRST, widths, config.ram_bytes / 16))?,
        advised(requirements(DOCUMENTS_FIRST, (16, 16), config.ram_bytes / 8))?,
    ])
}

/// The log of blocks. It begins with the least, and takes more as blocks need it.
pub(super) fn values() -> ValuesConfig {
    ValuesConfig::holding(0, WhenFull::Grow)
}

/// The length of the log, in bytes. The tables' updates are few: some 60 bytes for each document and each block.
pub(super) fn log_bytes(config: &CorpusConfig) -> u64 {
    (config.ram_bytes / 16).next_multiple_of(1 << 20).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX)
}

fn requirements(
    entries: u64,
    (key_bytes, value_bytes): (u32, u32),
    ram_bytes: u64,
) -> Requirements {
    let asked = Requirements::new(entries, key_bytes, value_bytes).ram(ram_bytes);
    Requirements { policy: Policy::Grow, ..asked }
}
