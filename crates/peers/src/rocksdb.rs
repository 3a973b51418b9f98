//! RocksDB, tuned for point lookups in little memory.
//!
//! * Full Bloom filters of 12 bits per key on whole keys, and indexes, are held outside the block cache
//!   (`cache_index_and_filter_blocks` off), so no read ever fetches one: misses cost almost no read.
//! * What the budget leaves after filters (1.5 bytes per key), indexes (0.3 bytes) and write buffers is
//!   block cache. Data is read with O_DIRECT, so the page cache takes nothing from the limit.
//! * Blocks of 4 KiB with a hash index inside, no compression (keys and values are random),
//!   format version 5, `max_open_files` unlimited: one read per hit once levels are settled.
//! * Write buffers of an eighth of the budget together; compactions use direct I/O and two threads.
//! * Inserts go in write batches; the write-ahead log is off only at `--durability never`, and synced
//!   per batch at `always`.
//! * Batches of lookups use the batched MultiGet.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use nandex_bench::subject::{Durability, Lane, Spec, Subject, number};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType,
    DataBlockIndexType, FlushOptions, Options, ReadOptions, WriteBatch, WriteOptions,
};

use crate::engine::part;

const FILTER_BITS_PER_KEY: u64 = 12;
const FAMILY: &str = "default";

/// An open RocksDB.
pub struct Rocks {
    db: DB,
    durability: Durability,
}

impl Rocks {
    /// Opens the database in `dir`, or makes it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let options = options(spec)?;
        let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
        let db = DB::open_cf_descriptors(&options, dir, [family])?;
        Ok(Self { db, durability: spec.durability })
    }

    fn family(&self) -> Result<&ColumnFamily> {
        self.db.cf_handle(FAMILY).context("the default column family is missing")
    }

    fn property(&self, name: &str) -> Result<u64> {
        Ok(self.db.property_int_value(name)?.unwrap_or(0))
    }
}

fn options(spec: &Spec) -> Result<Options> {
    let write_buffers = part(spec.ram_bytes, 1, 8);
    let resident = spec.entries * FILTER_BITS_PER_KEY / 8 + spec.entries * 3 / 10;
    let left = spec.ram_bytes.saturating_sub(resident + write_buffers as u64);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(part(left, 3, 4).max(1 << 20))?);
    table.set_block_size(4096);
    table.set_bloom_filter(FILTER_BITS_PER_KEY as f64, false);
    table.set_whole_key_filtering(true);
    table.set_cache_index_and_filter_blocks(false);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table.set_format_version(5);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::None);
    options.set_use_direct_reads(true);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_compaction_readahead_size(1 << 20);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_write_buffer_size(write_buffers / 4);
    options.set_db_write_buffer_size(write_buffers);
    options.set_max_write_buffer_number(4);
    options.set_max_background_jobs(2);
    options.set_max_open_files(-1);
    options.set_stats_dump_period_sec(0);
    Ok(options)
}

impl Subject for Rocks {
    fn lane(&self) -> Result<Box<dyn Lane + '_>> {
        let mut write = WriteOptions::default();
        write.disable_wal(self.durability == Durability::Never);
        write.set_sync(self.durability == Durability::Always);
        let mut read = ReadOptions::default();
        read.set_verify_checksums(true);
        Ok(Box::new(RocksLane { rocks: self, family: self.family()?, write, read }))
    }

    fn sync(&self) -> Result<()> {
        let mut wait = FlushOptions::default();
        wait.set_wait(true);
        Ok(self.db.flush_opt(&wait)?)
    }

    fn settle(&self) -> Result<()> {
        let busy = ["rocksdb.compaction-pending", "rocksdb.num-running-compactions"];
        while busy.iter().map(|name| self.property(name)).sum::<Result<u64>>()? > 0 {
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn ram_bytes(&self) -> Option<u64> {
        let held = [
            "rocksdb.estimate-table-readers-mem",
            "rocksdb.cur-size-all-mem-tables",
            "rocksdb.block-cache-usage",
        ];
        held.iter().map(|name| self.property(name)).sum::<Result<u64>>().ok()
    }
}

struct RocksLane<'a> {
    rocks: &'a Rocks,
    family: &'a ColumnFamily,
    write: WriteOptions,
    read: ReadOptions,
}

impl Lane for RocksLane<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        Ok(self.rocks.db.put_opt(key.to_le_bytes(), value.to_le_bytes(), &self.write)?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in pairs {
            batch.put(key.to_le_bytes(), value.to_le_bytes());
        }
        Ok(self.rocks.db.write_opt(batch, &self.write)?)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let found = self.rocks.db.get_pinned_opt(key.to_le_bytes(), &self.read)?;
        found.map(|value| number(&value)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let keys: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let all = self.rocks.db.batched_multi_get_cf_opt(self.family, &keys, false, &self.read);
        for value in all {
            found.push(value?.map(|value| number(&value)).transpose()?);
        }
        Ok(())
    }
}
