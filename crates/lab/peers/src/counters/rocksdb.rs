//! RocksDB as a counter: a merge operator that adds.
//!
//! * An addition is a merge of 1, which reads nothing; RocksDB adds up when it flushes, compacts or reads. Batches are
//!   write batches. Sums are `u64`, added by a merge operator that is associative, so that operands are added to one
//!   another before their key's count is known.
//! * `--durability every`: the write-ahead log is on, and a thread syncs it every 100 ms (`FlushWAL(sync)`), as often
//!   as nandex syncs its own. `always` syncs each batch, `never` has no log.
//! * Memory, blocks, filters, direct I/O and compactions are as for tables: see `rocksdb/tuning`. The log goes through
//!   the page cache, as RocksDB's logs always do.
//! * `max_successive_merges` is left at 0: a bound would make additions read.

#[path = "../rocksdb/tuning.rs"]
mod tuning;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use nandex_bench::keys::VALUE_BYTES;
use nandex_bench::subject::{Client, Durability, Spec, Status, Subject};
use nandex_bench::values::decode;
use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, FlushOptions, MergeOperands, ReadOptions, WriteBatch,
    WriteOptions,
};

use crate::ticker::Ticker;

const FAMILY: &str = "default";
/// The interval of syncs, equal to nandex's.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);
const ONE: [u8; 8] = 1u64.to_le_bytes();

/// Describes its configuration.
pub fn describe(spec: &Spec) -> String {
    let log = match spec.durability {
        Durability::Always => "write-ahead log synced with each batch",
        Durability::Every => "write-ahead log synced every 100 ms",
        Durability::Never => "no write-ahead log",
    };
    format!("merge operator (u64 addition), {log}, direct I/O, full filters of 12 bits a key")
}

/// An open RocksDB of counts.
pub struct RocksCounter {
    /// It ends before the database is closed.
    ticker: Option<Ticker>,
    db: Arc<DB>,
    durability: Durability,
}

impl RocksCounter {
    /// Opens the database in `dir`, or creates it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let mut options = tuning::options(spec)?;
        options.set_merge_operator_associative("nandex-peers add u64", add);
        let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
        let db = Arc::new(DB::open_cf_descriptors(&options, dir, [family])?);
        let synced = Arc::clone(&db);
        let ticker = (spec.durability == Durability::Every)
            .then(|| Ticker::start(SYNC_INTERVAL, move || Ok(synced.flush_wal(true)?)));
        Ok(Self { ticker, db, durability: spec.durability })
    }

    fn flush(&self) -> Result<()> {
        let mut wait = FlushOptions::default();
        wait.set_wait(true);
        Ok(self.db.flush_opt(&wait)?)
    }
}

/// Returns the sum of a count and its operands. Any operand that is no sum of 8 bytes makes the merge fail.
fn add(_key: &[u8], count: Option<&[u8]>, operands: &MergeOperands) -> Option<Vec<u8>> {
    let mut sum = 0u64;
    for part in count.into_iter().chain(operands) {
        sum = sum.checked_add(u64::from_le_bytes(part.try_into().ok()?))?;
    }
    Some(sum.to_le_bytes().to_vec())
}

impl Subject for RocksCounter {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        let mut write = WriteOptions::default();
        write.disable_wal(self.durability == Durability::Never);
        write.set_sync(self.durability == Durability::Always);
        let mut read = ReadOptions::default();
        read.set_verify_checksums(true);
        let family = self.db.cf_handle(FAMILY).context("the default column family is missing")?;
        Ok(Box::new(RocksClient { counter: self, family, write, read }))
    }

    fn sync(&self) -> Result<()> {
        match self.durability {
            Durability::Never => self.flush(),
            Durability::Every | Durability::Always => Ok(self.db.flush_wal(true)?),
        }
    }

    fn settle(&self) -> Result<()> {
        self.flush()?;
        tuning::settle(&self.db)
    }

    fn status(&self) -> Status {
        let property = |name| tuning::property(&self.db, name).ok();
        Status {
            entries: property("rocksdb.estimate-num-keys"),
            ram_bytes: tuning::ram_bytes(&self.db),
            flash_bytes: property("rocksdb.total-sst-files-size").unwrap_or(0),
            ..Status::default()
        }
    }
}

struct RocksClient<'a> {
    counter: &'a RocksCounter,
    family: &'a ColumnFamily,
    write: WriteOptions,
    read: ReadOptions,
}

impl Client for RocksClient<'_> {
    fn insert(&mut self, key: u64, _value: u64) -> Result<()> {
        self.add_many(&[key])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        let keys: Vec<_> = pairs.iter().map(|pair| pair.0).collect();
        self.add_many(&keys)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let found = self.counter.db.get_pinned_opt(key.to_le_bytes(), &self.read)?;
        found.map(|value| decode(&value, VALUE_BYTES)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let keys: Vec<_> = keys.iter().map(|key| key.to_le_bytes()).collect();
        let (db, family) = (&self.counter.db, self.family);
        for value in db.batched_multi_get_cf_opt(family, &keys, false, &self.read) {
            found.push(value?.map(|value| decode(&value, VALUE_BYTES)).transpose()?);
        }
        Ok(())
    }

    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        self.counter.ticker.as_ref().map_or(Ok(()), Ticker::check)?;
        let mut batch = WriteBatch::default();
        for key in keys {
            batch.merge(key.to_le_bytes(), ONE);
        }
        Ok(self.counter.db.write_opt(batch, &self.write)?)
    }

    fn count_many(&mut self, keys: &[u64], counts: &mut Vec<u64>) -> Result<()> {
        let mut found = Vec::with_capacity(keys.len());
        self.get_many(keys, &mut found)?;
        counts.extend(found.into_iter().map(Option::unwrap_or_default));
        Ok(())
    }
}
