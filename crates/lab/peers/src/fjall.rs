//! fjall, tuned for point lookups in little memory.
//!
//! * Bloom filters of 12 bits per key on every level; filter and index blocks pinned in memory on every
//!   level, so that only data blocks are ever read. Blocks of 2 KiB, which cross
//!   into a second page less often than larger ones, no compression (random bytes).
//! * If filters do not fit into half of the budget, the last level has none (`expect_point_read_hits`): a hit
//!   costs the same, and filters that must be read from disk would cost a read each.
//! * A load in key order goes through fjall's own ingestion, slice by slice.
//! * The budget's rest after filters, indexes and memtables is shared by the block cache and the page cache,
//!   because fjall does not read with O_DIRECT.
//! * Inserts go in write batches; the journal is never synced at `--durability never`, by fjall's own
//!   timer at `every`, per batch at `always`. The load ends with a rotation of the memtable, which is
//!   timed. fjall has no batched lookup; a batch is a loop.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    PinningPolicy,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use nandex_bench::order::Order;
use nandex_bench::subject::{Bulk, Client, Durability, Spec, Subject};
use nandex_bench::values::Values;

const FILTER_BITS_PER_KEY: u64 = 12;
/// The bytes of a block for each byte of the index, which has a few dozen bytes for each block of 2 KiB: with
/// keys and values of 16 bytes some 100 entries are a block, and four of them take a byte of the index.
const BLOCK_BYTES_PER_INDEX_BYTE: u64 = 4 * 16;

/// An open fjall database with its one keyspace.
pub struct Fjall {
    database: Database,
    keyspace: Keyspace,
    always: bool,
    value_bytes: usize,
}

impl Fjall {
    /// Opens the database in `dir`, or creates it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let memtable = (spec.ram_bytes / 16).max(1 << 20);
        let filters = if filters_fit(spec) { spec.entries * FILTER_BITS_PER_KEY / 8 } else { 0 };
        let index = spec.entries * spec.entry_bytes() / BLOCK_BYTES_PER_INDEX_BYTE;
        let resident = filters + index + 2 * memtable;
        let cache = (spec.ram_bytes.saturating_sub(resident) / 2).max(1 << 20);
        let database = Database::builder(dir)
            .cache_size(cache)
            .worker_threads(2)
            .manual_journal_persist(spec.durability == Durability::Never)
            .open()?;
        let keyspace = database.keyspace("entries", || options(spec, memtable))?;
        let always = spec.durability == Durability::Always;
        Ok(Self { database, keyspace, always, value_bytes: spec.value_bytes })
    }

    fn persist(&self) -> Result<()> {
        if self.always { Ok(self.database.persist(PersistMode::SyncData)?) } else { Ok(()) }
    }
}

fn options(spec: &Spec, memtable: u64) -> KeyspaceCreateOptions {
    let bloom = BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY as f32);
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable)
        .expect_point_read_hits(!filters_fit(spec))
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bloom)))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .data_block_size_policy(BlockSizePolicy::all(2048))
        .data_block_compression_policy(CompressionPolicy::disabled())
}

fn filters_fit(spec: &Spec) -> bool {
    spec.entries * FILTER_BITS_PER_KEY / 8 <= spec.ram_bytes / 2
}

impl Subject for Fjall {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(FjallClient { fjall: self, values: Values::new(self.value_bytes) }))
    }

    fn sync(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn order(&self) -> Order {
        Order::Bytes
    }

    fn bulk(&self) -> Result<Option<Box<dyn Bulk + '_>>> {
        Ok(Some(Box::new(FjallBulk { fjall: self, values: Values::new(self.value_bytes) })))
    }

    fn settle(&self) -> Result<()> {
        // A compaction may follow another after a moment, so rest means three quiet polls in a row.
        let mut quiet = 0;
        while quiet < 3 {
            thread::sleep(Duration::from_millis(100));
            let busy = self.database.active_compactions() + self.database.outstanding_flushes();
            quiet = if busy == 0 { quiet + 1 } else { 0 };
        }
        Ok(())
    }
}

struct FjallBulk<'a> {
    fjall: &'a Fjall,
    values: Values,
}

impl Bulk for FjallBulk<'_> {
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()> {
        let mut ingestion = self.fjall.keyspace.start_ingestion()?;
        for &(key, value) in sorted {
            ingestion.write(key.to_le_bytes(), self.values.one(value))?;
        }
        Ok(ingestion.finish()?)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.fjall.sync()
    }
}

struct FjallClient<'a> {
    fjall: &'a Fjall,
    values: Values,
}

impl Client for FjallClient<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.fjall.keyspace.insert(key.to_le_bytes(), self.values.one(value))?;
        self.fjall.persist()
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.replace_many(&[], pairs)
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        self.replace_many(keys, &[])
    }

    fn replace_many(&mut self, removed: &[u64], pairs: &[(u64, u64)]) -> Result<()> {
        let mut batch = self.fjall.database.batch();
        for key in removed {
            batch.remove(&self.fjall.keyspace, key.to_le_bytes());
        }
        for &(key, value) in pairs {
            batch.insert(&self.fjall.keyspace, key.to_le_bytes(), self.values.one(value));
        }
        batch.commit()?;
        self.fjall.persist()
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let value = self.fjall.keyspace.get(key.to_le_bytes())?;
        value.map(|value| self.values.number(&value)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        for &key in keys {
            found.push(self.get(key)?);
        }
        Ok(())
    }
}
