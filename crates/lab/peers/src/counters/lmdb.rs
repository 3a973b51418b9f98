//! LMDB as a counter: each addition reads the count and writes it back.
//!
//! * A batch is sorted first, and additions of one key are added up, so that neighbours in the tree are touched
//!   together and a key once.
//! * `--durability every`: one write transaction is committed and synced (`mdb_env_sync`) when it is 100 ms old, as
//!   often as nandex syncs its log; `always` does so for each batch, `never` at the end alone. `WRITE_MAP` and
//!   `NO_SYNC` as for tables: see `lmdb/env`.
//! * It is loaded and looked up as a table is.

#[path = "../lmdb/env.rs"]
mod env;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use heed::byteorder::NativeEndian;
use heed::types::U64;
use heed::{Env, RoTxn, RwTxn, WithoutTls};
use nandex_bench::subject::{Client, Durability, Spec, Status, Subject};

/// The interval of syncs, equal to nandex's.
const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// Describes its configuration.
pub fn describe(spec: &Spec) -> String {
    let sync = match spec.durability {
        Durability::Always => "committed and synced with each batch",
        Durability::Every => "committed and synced every 100 ms",
        Durability::Never => "synced at the end",
    };
    format!("counts are read and written back, batches sorted, {sync}")
}

/// An open LMDB environment of counts.
pub struct LmdbCounter {
    env: Env<WithoutTls>,
    table: env::Table<U64<NativeEndian>>,
    /// Age at which a transaction is committed and synced; none at `never`.
    age_max: Option<Duration>,
}

impl LmdbCounter {
    /// Opens the environment in `dir`, or creates it.
    pub fn open(dir: &Path, spec: &Spec) -> Result<Self> {
        let (env, table) = env::open(dir, spec)?;
        let age_max = match spec.durability {
            Durability::Always => Some(Duration::ZERO),
            Durability::Every => Some(SYNC_INTERVAL),
            Durability::Never => None,
        };
        Ok(Self { env, table, age_max })
    }
}

impl Subject for LmdbCounter {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(LmdbClient { counter: self, read: None, write: None, sorted: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn status(&self) -> Status {
        let flash_bytes = self.env.real_disk_size().unwrap_or(0);
        Status { flash_bytes, ..Status::default() }
    }
}

struct LmdbClient<'a> {
    counter: &'a LmdbCounter,
    read: Option<RoTxn<'a, WithoutTls>>,
    /// The open transaction, and when it began.
    write: Option<(RwTxn<'a>, Instant)>,
    sorted: Vec<u64>,
}

impl LmdbClient<'_> {
    fn add_sorted(&mut self, sorted: &[u64]) -> Result<()> {
        self.read = None;
        let counter = self.counter;
        let (write, began) = match &mut self.write {
            Some(open) => open,
            none => none.insert((counter.env.write_txn()?, Instant::now())),
        };
        for same in sorted.chunk_by(|one, other| one == other) {
            let count = counter.table.get(write, &same[0])?.unwrap_or(0);
            counter.table.put(write, &same[0], &(count + same.len() as u64))?;
        }
        let is_old = counter.age_max.is_some_and(|age_max| began.elapsed() >= age_max);
        if is_old {
            self.finish()?;
            counter.env.force_sync()?;
        }
        Ok(())
    }
}

impl Client for LmdbClient<'_> {
    fn insert(&mut self, key: u64, _value: u64) -> Result<()> {
        self.add_sorted(&[key])
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        let keys: Vec<_> = pairs.iter().map(|pair| pair.0).collect();
        self.add_many(&keys)
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        self.finish()?;
        let read = match &self.read {
            Some(read) => read,
            None => self.read.insert(self.counter.env.read_txn()?),
        };
        Ok(self.counter.table.get(read, &key)?)
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        for &key in keys {
            found.push(self.get(key)?);
        }
        Ok(())
    }

    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend_from_slice(keys);
        sorted.sort_unstable();
        let done = self.add_sorted(&sorted);
        self.sorted = sorted;
        done
    }

    fn count_many(&mut self, keys: &[u64], counts: &mut Vec<u64>) -> Result<()> {
        for &key in keys {
            counts.push(self.get(key)?.unwrap_or(0));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        match self.write.take() {
            Some((write, _)) => Ok(write.commit()?),
            None => Ok(()),
        }
    }
}
