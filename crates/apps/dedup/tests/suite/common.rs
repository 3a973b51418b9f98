//! The common part of the tests: noise, and a watched table.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nandex::raw::LookupStream;
use nandex::raw::oracle::MapTable;
use nandex::{Result, Table, TableStats, Value};
use nandex_dedup::{Hash, Options, Summary, VALUE_BYTES, dedup};

/// Returns reproducible noise: xorshift64*.
pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let step = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes()[7]
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

/// Runs without progress reports or cancelling.
pub(crate) fn run(table: &dyn Table, options: &Options) -> Summary {
    dedup(table, options, &(), &AtomicBool::new(false)).unwrap()
}

/// Returns the summary without the fields that differ from run to run.
pub(crate) fn timeless(summary: Summary) -> Summary {
    Summary { elapsed_s: 0.0, bytes_per_s: 0.0, ..summary }
}

/// A table in memory that records its calls and may fail after a number of inserts.
pub(crate) struct Watched {
    table: MapTable,
    pub(crate) inserted: Mutex<Vec<Vec<u8>>>,
    pub(crate) insert_batches: AtomicU64,
    pub(crate) lookups: AtomicU64,
    pub(crate) lookup_batches: AtomicU64,
    pub(crate) largest_batch: AtomicU64,
    pub(crate) syncs: AtomicU64,
    space: usize,
}

impl Watched {
    pub(crate) fn new(hash: Hash) -> Self {
        Self {
            table: MapTable::new(hash.key_bytes(), VALUE_BYTES),
            inserted: Mutex::default(),
            insert_batches: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
            lookup_batches: AtomicU64::new(0),
            largest_batch: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            space: usize::MAX,
        }
    }

    pub(crate) fn with_space(hash: Hash, space: usize) -> Self {
        Self { space, ..Self::new(hash) }
    }
}

impl Table for Watched {
    fn key_bytes(&self) -> usize {
        self.table.key_bytes()
    }

    fn value_bytes(&self) -> usize {
        self.table.value_bytes()
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert_many(&[(key, value)])
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.table.remove(key)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.table.get(key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        let mut inserted = self.inserted.lock().unwrap();
        inserted.extend(pairs.iter().map(|(key, _)| key.to_vec()));
        if inserted.len() > self.space {
            return Err(nandex::Error::Full { entries: inserted.len() as u64, flash_bytes: 0 });
        }
        self.insert_batches.fetch_add(1, Ordering::Relaxed);
        self.table.insert_many(pairs)
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        let keys: Vec<_> = pairs.iter().map(|(key, _)| *key).collect();
        let found = self.get_many(&keys)?;
        let new = pairs.iter().zip(&found).filter(|(_, found)| found.is_none());
        let new: Vec<_> = new.map(|(pair, _)| *pair).collect();
        if !new.is_empty() {
            self.insert_many(&new)?;
        }
        Ok(found)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.lookup_batches.fetch_add(1, Ordering::Relaxed);
        self.lookups.fetch_add(keys.len() as u64, Ordering::Relaxed);
        self.largest_batch.fetch_max(keys.len() as u64, Ordering::Relaxed);
        self.table.get_many(keys)
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        self.table.stream()
    }

    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.table.sync()
    }

    fn flush(&self) -> Result<()> {
        self.table.flush()
    }

    fn stats(&self) -> TableStats {
        let mut stats = self.table.stats();
        stats.misses = self.lookups.load(Ordering::Relaxed);
        stats.miss_reads = 2 * stats.misses;
        stats.ram_bytes = 3 * stats.entries;
        stats.flash_bytes = 40 * stats.entries;
        stats
    }
}
