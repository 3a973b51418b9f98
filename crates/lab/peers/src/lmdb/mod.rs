//! LMDB through heed, tuned for a load that may be lost and for random lookups.
//!
//! * Keys are native integers with LMDB's integer comparison, its cheapest.
//! * `WRITE_MAP` and `NO_SYNC` (not at `--durability always`): pages are written once, by the kernel, at a
//!   time of its choice. The load ends with a forced sync, which is timed.
//! * `NO_READ_AHEAD`: random lookups gain nothing from neighbours, and memory is short.
//! * `NO_MEM_INIT`. No cache of its own: the page cache is one, and the cgroup bounds it.
//! * One write transaction per 65,536 inserts (per call at `always`); batches are sorted first, so that
//!   neighbours in the tree are touched together. One read transaction per thread.
//! * A load in key order appends (`MDB_APPEND`), which fills pages completely.
//! * LMDB has no batched lookup; a batch is a loop.

pub mod env;

use std::path::Path;

use anyhow::Result;
use heed::types::Bytes;
use heed::{Env, PutFlags, RoTxn, RwTxn, WithoutTls};
use nandex_bench::subject::{Bulk, Client, Durability, Spec, Subject};
use nandex_bench::values::Values;

use crate::budget::pairs_as_long_as;
use env::Table;

/// Inserts per write transaction.
const COMMIT_AFTER: usize = 1 << 16;
/// Appends of 8 + 8 bytes per write transaction of a load in key order: some 6,000 pages.
const APPENDS: usize = 1 << 20;

/// An open LMDB environment with its one table.
pub struct Lmdb {
    env: Env<WithoutTls>,
    table: Table<Bytes>,
    commit_after: usize,
    value_bytes: usize,
    appends: usize,
}

impl Lmdb {
    /// Opens the environment in `dir`, or creates it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let (env, table) = env::open(dir, spec)?;
        let durable = spec.durability == Durability::Always;
        let commit_after = if durable { 1 } else { COMMIT_AFTER };
        let appends = pairs_as_long_as(APPENDS, spec.entry_bytes());
        Ok(Self { env, table, commit_after, value_bytes: spec.value_bytes, appends })
    }
}

impl Subject for Lmdb {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(LmdbClient {
            lmdb: self,
            read: None,
            write: None,
            uncommitted: 0,
            sorted: Vec::new(),
            values: Values::new(self.value_bytes),
        }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn bulk(&self) -> Result<Option<Box<dyn Bulk + '_>>> {
        Ok(Some(Box::new(LmdbBulk { lmdb: self, values: Values::new(self.value_bytes) })))
    }
}

struct LmdbBulk<'a> {
    lmdb: &'a Lmdb,
    values: Values,
}

impl Bulk for LmdbBulk<'_> {
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()> {
        for pairs in sorted.chunks(self.lmdb.appends) {
            let mut write = self.lmdb.env.write_txn()?;
            for &(key, value) in pairs {
                let value = self.values.one(value);
                self.lmdb.table.put_with_flags(&mut write, PutFlags::APPEND, &key, value)?;
            }
            write.commit()?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.lmdb.sync()
    }
}

struct LmdbClient<'a> {
    lmdb: &'a Lmdb,
    read: Option<RoTxn<'a, WithoutTls>>,
    write: Option<RwTxn<'a>>,
    uncommitted: usize,
    sorted: Vec<(u64, u64)>,
    values: Values,
}

impl LmdbClient<'_> {
    /// Removes and puts sorted keys in the open transaction, and commits it if it is large.
    fn change(&mut self, removed: &[u64], sorted: &[(u64, u64)]) -> Result<()> {
        self.read = None;
        let write = match &mut self.write {
            Some(write) => write,
            none => none.insert(self.lmdb.env.write_txn()?),
        };
        for key in removed {
            self.lmdb.table.delete(write, key)?;
        }
        for &(key, value) in sorted {
            self.lmdb.table.put(write, &key, self.values.one(value))?;
        }
        self.uncommitted += removed.len() + sorted.len();
        if self.uncommitted >= self.lmdb.commit_after { self.finish() } else { Ok(()) }
    }
}

impl Client for LmdbClient<'_> {
    fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.change(&[], &[(key, value)])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.replace_many(&[], pairs)
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        self.replace_many(keys, &[])
    }

    fn replace_many(&mut self, removed: &[u64], pairs: &[(u64, u64)]) -> Result<()> {
        let mut removed = removed.to_vec();
        removed.sort_unstable();
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend_from_slice(pairs);
        // A stable sort, so that of two inserts of one key the later one stays.
        sorted.sort_by_key(|pair| pair.0);
        let done = self.change(&removed, &sorted);
        self.sorted = sorted;
        done
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        self.finish()?;
        let read = match &self.read {
            Some(read) => read,
            None => self.read.insert(self.lmdb.env.read_txn()?),
        };
        let value = self.lmdb.table.get(read, &key)?;
        value.map(|value| self.values.number(value)).transpose()
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        for &key in keys {
            found.push(self.get(key)?);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.uncommitted = 0;
        match self.write.take() {
            Some(write) => Ok(write.commit()?),
            None => Ok(()),
        }
    }
}
