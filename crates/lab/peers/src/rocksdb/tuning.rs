//! The tuning of RocksDB that tables and counters share.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use nandex_bench::subject::Spec;
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, DataBlockIndexType, Options};

use crate::budget::part;

const FILTER_BITS_PER_KEY: u64 = 12;
/// The bytes of a block for each byte of the index, which has some 20 bytes for each block of 2 KiB; each
/// entry takes 11 bytes in a block in addition to its key and value: with 16 bytes of these, 75 entries are a
/// block, and four of them take a byte of the index.
const BLOCK_BYTES_PER_INDEX_BYTE: u64 = 4 * (16 + ENTRY_HEADER_BYTES);
const ENTRY_HEADER_BYTES: u64 = 11;

/// Returns its options for a memory budget.
pub fn options(spec: &Spec) -> Result<Options> {
    let write_buffers = part(spec.ram_bytes, 1, 8);
    let filters = if filters_fit(spec) { spec.entries * FILTER_BITS_PER_KEY / 8 } else { 0 };
    let left = spec.ram_bytes.saturating_sub(filters + index_bytes(spec) + write_buffers as u64);
    let mut table = table();
    table.set_block_cache(&Cache::new_lru_cache(part(left, 3, 4).max(1 << 20))?);
    table.set_bloom_filter(FILTER_BITS_PER_KEY as f64, false);
    table.set_whole_key_filtering(true);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_optimize_filters_for_hits(!filters_fit(spec));
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

/// Returns the options of blocks of a file, without a filter.
pub fn table() -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_size(2048);
    table.set_cache_index_and_filter_blocks(false);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table.set_format_version(5);
    table
}

/// Returns whether filters of all keys fit into half of the budget.
pub fn filters_fit(spec: &Spec) -> bool {
    spec.entries * FILTER_BITS_PER_KEY / 8 <= spec.ram_bytes / 2
}

/// Returns the memory of the indexes of all files.
fn index_bytes(spec: &Spec) -> u64 {
    spec.entries * (spec.entry_bytes() + ENTRY_HEADER_BYTES) / BLOCK_BYTES_PER_INDEX_BYTE
}

/// Waits for compactions.
pub fn settle(db: &DB) -> Result<()> {
    let busy = ["rocksdb.compaction-pending", "rocksdb.num-running-compactions"];
    while busy.iter().map(|name| property(db, name)).sum::<Result<u64>>()? > 0 {
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Returns the memory that it reports.
pub fn ram_bytes(db: &DB) -> Option<u64> {
    let held = [
        "rocksdb.estimate-table-readers-mem",
        "rocksdb.cur-size-all-mem-tables",
        "rocksdb.block-cache-usage",
    ];
    held.iter().map(|name| property(db, name)).sum::<Result<u64>>().ok()
}

/// Returns a property that is a number.
pub fn property(db: &DB, name: &str) -> Result<u64> {
    Ok(db.property_int_value(name)?.unwrap_or(0))
}
