//! RocksDB, tuned for point lookups in little memory.
//!
//! * Full Bloom filters of 12 bits per key on whole keys, and indexes, are outside the block cache
//!   (`cache_index_and_filter_blocks` off), so no read ever fetches one: misses cost almost no read.
//! * If filters do not fit into half of the budget, the last level has none (`optimize_filters_for_hits`): a
//!   hit costs the same, and filters in partitions that must be read from disk would cost a read each. The
//!   indexes, a quarter of a byte per entry, stay in memory whole.
//! * A load in key order writes SST files, one per slice, and ingests them into the last level.
//! * The budget's rest after filters (1.5 bytes per key), indexes and write buffers is block cache. Data is
//!   read with O_DIRECT, so the page cache takes nothing from the limit.
//! * Blocks of 2 KiB with a hash index inside, no compression (keys and values are random): blocks are not
//!   aligned, and half as many of this size cross into a second page of the disk as of 4 KiB.
//! * Format version 5, `max_open_files` unlimited: one read per hit once levels are compacted.
//! * Write buffers of an eighth of the budget together; compactions use direct I/O and two threads.
//! * Inserts go in write batches; the write-ahead log is off only at `--durability never`, and synced
//!   per batch at `always`.
//! * Batches of lookups use the batched MultiGet.

pub mod tuning;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex_bench::order::Order;
use nandex_bench::subject::{Bulk, Client, Durability, Spec, Status, Subject};
use nandex_bench::values::Values;
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, FlushOptions, IngestExternalFileOptions, Options,
    ReadOptions, SstFileWriter, WriteBatch, WriteOptions,
};

use tuning::{filters_fit, options, table};

const FAMILY: &str = "default";

/// An open RocksDB.
pub struct Rocks {
    db: DB,
    durability: Durability,
    last_level: Options,
    value_bytes: usize,
}

impl Rocks {
    /// Opens the database in `dir`, or creates it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let options = options(spec)?;
        let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
        let db = DB::open_cf_descriptors(&options, dir, [family])?;
        let last_level = last_level(spec, &options);
        Ok(Self { db, durability: spec.durability, last_level, value_bytes: spec.value_bytes })
    }

    fn family(&self) -> Result<&ColumnFamily> {
        self.db.cf_handle(FAMILY).context("the default column family is missing")
    }
}

/// Returns the options of files that go to the last level: without filters when they do not fit.
fn last_level(spec: &Spec, options: &Options) -> Options {
    let mut options = options.clone();
    if !filters_fit(spec) {
        options.set_block_based_table_factory(&table());
    }
    options
}

impl Subject for Rocks {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        let mut write = WriteOptions::default();
        write.disable_wal(self.durability == Durability::Never);
        write.set_sync(self.durability == Durability::Always);
        let mut read = ReadOptions::default();
        read.set_verify_checksums(true);
        let (family, values) = (self.family()?, Values::new(self.value_bytes));
        Ok(Box::new(RocksClient { rocks: self, family, write, read, values }))
    }

    fn sync(&self) -> Result<()> {
        let mut wait = FlushOptions::default();
        wait.set_wait(true);
        Ok(self.db.flush_opt(&wait)?)
    }

    fn order(&self) -> Order {
        Order::Bytes
    }

    fn bulk(&self) -> Result<Option<Box<dyn Bulk + '_>>> {
        let values = Values::new(self.value_bytes);
        Ok(Some(Box::new(RocksBulk { rocks: self, files: Vec::new(), values })))
    }

    fn settle(&self) -> Result<()> {
        tuning::settle(&self.db)
    }

    fn status(&self) -> Status {
        Status { ram_bytes: tuning::ram_bytes(&self.db), ..Status::default() }
    }
}

struct RocksBulk<'a> {
    rocks: &'a Rocks,
    files: Vec<PathBuf>,
    values: Values,
}

impl Bulk for RocksBulk<'_> {
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()> {
        let dir = self.rocks.db.path().join("ingest");
        fs::create_dir_all(&dir)?;
        let file = dir.join(format!("{}.sst", self.files.len()));
        let mut writer = SstFileWriter::create(&self.rocks.last_level);
        writer.open(&file)?;
        for &(key, value) in sorted {
            writer.put(key.to_le_bytes(), self.values.one(value))?;
        }
        writer.finish()?;
        self.files.push(file);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        Ok(self.rocks.db.ingest_external_file_opts(&options, self.files)?)
    }
}

struct RocksClient<'a> {
    rocks: &'a Rocks,
    family: &'a ColumnFamily,
    write: WriteOptions,
    read: ReadOptions,
    values: Values,
}

impl Client for RocksClient<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        Ok(self.rocks.db.put_opt(key.to_le_bytes(), self.values.one(value), &self.write)?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.replace_many(&[], pairs)
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        self.replace_many(keys, &[])
    }

    fn replace_many(&mut self, removed: &[u64], pairs: &[(u64, u64)]) -> Result<()> {
        let mut batch = WriteBatch::default();
        removed.iter().for_each(|key| batch.delete(key.to_le_bytes()));
        for &(key, value) in pairs {
            batch.put(key.to_le_bytes(), self.values.one(value));
        }
        Ok(self.rocks.db.write_opt(batch, &self.write)?)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let found = self.rocks.db.get_pinned_opt(key.to_le_bytes(), &self.read)?;
        found.map(|value| self.values.number(&value)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let keys: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let all = self.rocks.db.batched_multi_get_cf_opt(self.family, &keys, false, &self.read);
        for value in all {
            found.push(value?.map(|value| self.values.number(&value)).transpose()?);
        }
        Ok(())
    }
}
