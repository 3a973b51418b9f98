//! The volume of an index and its structures: the purpose of each, and its share of the RAM.
//!
//! | structure | key | value | share |
//! |---|---|---|---|
//! | `tfidf-df-N` | term | documents that have it | filled at once: hardly any |
//! | `tfidf-cf-N` | term | occurrences in all documents | hardly any |
//! | `texts` | number of a run and a block | the block; and the state of the index | 1/16 |
//! | `documents` | hash of a document's id | hash of its text | 1/8 |
//!
//! A batch of documents takes 3/8 while documents come in, and a fitted model 1/4 and more afterwards. The rest is for
//! the log's blocks and for buffers of reads and writes.

use nandex::large::ValuesConfig;
use nandex::raw::Stated;
use nandex::raw::bufferhash::growing;
use nandex::{AnyTable, LargeTable, Volume};
use nandex_corpus::tables::{self, DOCUMENTS_FIRST, TablePlan};

use super::CorpusConfig;
use crate::{Error, Result};

/// The number of blocks for which the table of blocks begins.
const BLOCKS_FIRST: u64 = 1000;

/// The most bytes of the log.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a hash, of a document's id or of its text.
const HASH_BYTES: usize = 16;

/// The structures of an index, without the counting tables, which are replaced.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) texts: LargeTable<AnyTable>,
    pub(super) documents: AnyTable,
}

impl Tables {
    pub(super) fn create(
        volume: &Volume,
        (config, stated): (&CorpusConfig, &Stated),
        values: ValuesConfig,
    ) -> Result<Self> {
        let of_documents = documents_config(config, stated)?;
        Ok(Self {
            texts: texts(config).create_records(volume, values, stated)?,
            documents: documents(config).create(volume, of_documents, stated)?,
        })
    }

    pub(super) fn open(
        volume: &Volume,
        (config, stated): (&CorpusConfig, &Stated),
    ) -> Result<Self> {
        Ok(Self {
            documents: documents(config).open_checked(volume, stated)?,
            texts: texts(config).open_records(volume, stated)?,
        })
    }
}

const fn texts(config: &CorpusConfig) -> TablePlan {
    TablePlan::within(config.ram_bytes / 16, "texts", BLOCKS_FIRST)
}

const fn documents(config: &CorpusConfig) -> TablePlan {
    TablePlan::within(config.ram_bytes / 8, "documents", DOCUMENTS_FIRST)
}

/// Returns the configuration of the table of documents with the stated parameters.
///
/// # Errors
/// Parameters that the user cannot set; invalid parameters.
fn documents_config(config: &CorpusConfig, stated: &Stated) -> Result<growing::Config> {
    let made = documents(config).config((HASH_BYTES, HASH_BYTES))?;
    let with = stated.on_one(made.clone())?;
    let fixed = |it: &growing::Config| (it.ram_bytes_max, it.first.key_bytes, it.first.value_bytes);
    if fixed(&with) == fixed(&made) {
        return Ok(with);
    }
    let reason = "RAM and the widths of keys and values follow from what the index is".to_owned();
    Err(Error::option("parameter", reason))
}

/// Returns the length of the log, in bytes. The tables' updates are few: some 60 bytes for each document and each
/// block.
pub(super) fn log_bytes(config: &CorpusConfig) -> u64 {
    tables::log_bytes((config.ram_bytes / 16).min(LOG_BYTES_MAX))
}
