//! The interface between workloads and engines: the operations of a table, a filter or an index of neighbours
//! that workloads need.
//!
//! A [`Maker`] creates or reopens one engine; a [`Subject`] is the open engine; a [`Client`] is one thread's
//! view of it, so that engines with transactions can keep one open across calls. A filter uses keys alone: it
//! ignores values, and answers [`yes`] for a key that is there.

use std::path::PathBuf;

use anyhow::{Result, bail};
pub use nandex::counting::Discipline;
pub use nandex::raw::model::StoredKeys;
use nandex::{NeighborsStats, TableStats};
use serde::{Deserialize, Serialize};

use crate::documents::DocumentSettings;
use crate::keys::KEY_BYTES;
use crate::order::Order;
use crate::reads::RandomReads;
use crate::workload::{Kind, Workload};

/// The time at which an acknowledged write is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When the call returns.
    Always,
    /// Some milliseconds later; the engine's own default interval.
    Every,
    /// When the engine flushes, or at the sync that ends the timed load.
    Never,
}

/// The requested engine.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    /// The directory of its files, which exists.
    pub dir: PathBuf,
    /// The entries it will contain.
    pub entries: u64,
    /// Whether a table that does not grow must refuse more entries rather than evict its oldest.
    pub keeps_all: bool,
    /// The bytes of a value, for tables.
    pub value_bytes: usize,
    /// The RAM it may use in all, if it is on flash.
    pub ram_bytes: u64,
    /// The part of it that the table's cache of entries may take; `None` for the rest that the table leaves.
    pub cache_bytes: Option<u64>,
    /// Device operations in flight per client.
    pub depth: usize,
    /// Clients used at once.
    pub threads: usize,
    /// The durability of writes.
    pub durability: Durability,
    /// The maximum rate of false positives at `entries` entries, for filters.
    pub rate: f64,
    /// The size of each level over the previous one, for filters with levels on flash.
    pub fan_out: Option<u32>,
    /// Whether it stores counts, for filters.
    pub counts: Counts,
    /// The stored form of a key, for filters.
    pub stored_keys: StoredKeys,
    /// The way in which full buffers reach flash, for counting tables; `None` for the suitable one.
    pub discipline: Option<Discipline>,
    /// The documents, for indexes of neighbours.
    pub documents: DocumentSettings,
    /// Seed of the keys.
    pub seed: u64,
}

impl Spec {
    /// Returns the bytes of a key and its value.
    #[must_use]
    pub const fn entry_bytes(&self) -> u64 {
        (KEY_BYTES + self.value_bytes) as u64
    }
}

/// The information that a filter stores of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Its presence.
    Membership,
    /// The number of times that it was added.
    Kept,
}

/// Creates and reopens one kind of engine.
pub trait Maker {
    /// Returns the engine's name in reports.
    fn name(&self) -> &str;

    /// Returns its kind.
    fn kind(&self) -> Kind {
        Kind::Table
    }

    /// Returns whether it keeps its entries when it is dropped and reopened.
    fn lasting(&self) -> bool {
        true
    }

    /// Returns whether it supports a workload of its kind.
    fn supports(&self, _workload: Workload) -> bool {
        true
    }

    /// Returns the file or directory of its data, if it has one of its own.
    fn path(&self, _spec: &Spec) -> Option<PathBuf> {
        None
    }

    /// Describes briefly how it is configured for this spec, if it knows.
    ///
    /// # Errors
    /// Fails for a spec that cannot be met.
    fn describe(&self, _spec: &Spec) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns whether it takes writes from one thread at a time. If so, one thread loads it: more would only
    /// wait, each with buffers of its own.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// Creates an empty engine; an earlier one in the directory is removed.
    ///
    /// # Errors
    /// Returns any error of the engine or the file system.
    fn create(&self, spec: &Spec) -> Result<Box<dyn Subject>>;

    /// Opens the engine that `create` made with the same spec and that was dropped since.
    ///
    /// # Errors
    /// Fails as `create` does, and when there is none.
    fn open(&self, spec: &Spec) -> Result<Box<dyn Subject>>;
}

/// An open engine.
pub trait Subject: Send + Sync {
    /// Returns a view of it for one thread.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn client(&self) -> Result<Box<dyn Client + '_>>;

    /// Makes everything written so far durable; a static filter is built here. Part of the timed load.
    ///
    /// # Errors
    /// Fails on a failed write or sync.
    fn sync(&self) -> Result<()>;

    /// Flushes all buffers if lookups would suffer from them, and waits for background work; not timed, but
    /// its bytes and its CPU time count.
    ///
    /// # Errors
    /// Returns the failure of that work.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the order in which it stores its keys.
    fn order(&self) -> Order {
        Order::Number
    }

    /// Begins a load of the empty engine in that order, if it has a faster way than batches of inserts.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn bulk(&self) -> Result<Option<Box<dyn Bulk + '_>>> {
        Ok(None)
    }

    /// Returns the pages of its own file that lookups may read, if it knows them. The device's limit is
    /// measured on them; without them, on the scratch file.
    ///
    /// # Errors
    /// Returns the file system's error.
    fn own_pages(&self) -> Result<Option<RandomReads>> {
        Ok(None)
    }

    /// Returns its present status.
    fn status(&self) -> Status {
        Status::default()
    }
}

/// The status of an engine at one time, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The number of entries or fingerprints.
    pub entries: Option<u64>,
    /// The RAM in use.
    pub ram_bytes: Option<u64>,
    /// The flash it occupies, by its own count; 0 if it does not know.
    pub flash_bytes: u64,
    /// The present rate of false positives, for filters.
    pub rate: f64,
    /// Pages read by lookups since it was opened, if it is no table.
    pub lookup_reads: Option<u64>,
    /// The maximum pages that a lookup reads, if that is a parameter: hash functions, or hash tables.
    pub lookup_reads_max: Option<u32>,
    /// The levels on flash that lookups read, for filters.
    pub levels: Option<u64>,
    /// Bytes written since it was opened, as it counts them, if it is no table.
    pub written: Option<BytesWritten>,
    /// The figures of a nandex table since it was opened.
    pub table: Option<TableStats>,
    /// The figures of an index of neighbours since it was opened.
    pub neighbors: Option<NeighborsStats>,
}

/// Bytes that an engine has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BytesWritten {
    /// Bytes written to its data.
    pub data: u64,
    /// Bytes written to its log.
    pub log: u64,
}

/// A view of an engine for one thread.
pub trait Client {
    /// Puts one pair.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn insert(&mut self, key: u64, value: u64) -> Result<()>;

    /// Puts each pair, in one call of the engine if it has one.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()>;

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn get(&mut self, key: u64) -> Result<Option<u64>>;

    /// Appends the values of all `keys` to `found`, in one call of the engine if it has one.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()>;

    /// Looks up all `keys` and passes each answer to `answer` with its key, in any order. Engines that can
    /// keep the device's queue full from the first key to the last do so; others take batches of `batch`.
    ///
    /// # Errors
    /// Returns any error of the engine or of `answer`.
    fn stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        batch: usize,
        answer: &mut dyn FnMut(u64, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        in_batches(keys, batch, |some, found| self.get_many(some, found), answer)
    }

    /// Appends the answers for all keys to `found` and inserts the pairs, in one call: the answers are those
    /// before the inserts.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn get_then_insert_many(
        &mut self,
        pairs: &[(u64, u64)],
        _found: &mut Vec<Option<u64>>,
    ) -> Result<()> {
        bail!("{} keys to look up and insert in one call of an engine that has none", pairs.len())
    }

    /// Removes each key; from a filter, one insert of each.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        bail!("{} keys to delete from an engine that cannot delete", keys.len())
    }

    /// Removes keys and inserts pairs, as many of each: in one transaction of the engine if it has them, else
    /// by [`delete_many`](Self::delete_many) and then an insert. One of each are single calls.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn replace_many(&mut self, removed: &[u64], pairs: &[(u64, u64)]) -> Result<()> {
        self.delete_many(removed)?;
        match *pairs {
            [(key, value)] => self.insert(key, value),
            _ => self.insert_many(pairs),
        }
    }

    /// Adds 1 to the count of each key.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        bail!("{} keys to count by an engine that cannot count", keys.len())
    }

    /// Appends the counts of `keys` to `counts`.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn count_many(&mut self, keys: &[u64], _counts: &mut Vec<u64>) -> Result<()> {
        bail!("{} counts asked of an engine that cannot count", keys.len())
    }

    /// Looks up counts as [`stream`](Self::stream) looks up values.
    ///
    /// # Errors
    /// Returns any error of the engine or of `answer`.
    fn count_stream(
        &mut self,
        keys: &mut dyn Iterator<Item = u64>,
        batch: usize,
        answer: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        in_batches(keys, batch, |some, counts| self.count_many(some, counts), answer)
    }

    /// Ends open work, such as a transaction; the last call, and timed.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Looks up keys in batches, and passes each answer on with its key.
pub(crate) fn in_batches<A: Copy>(
    keys: &mut dyn Iterator<Item = u64>,
    batch: usize,
    mut look_up: impl FnMut(&[u64], &mut Vec<A>) -> Result<()>,
    answer: &mut dyn FnMut(u64, A) -> Result<()>,
) -> Result<()> {
    let (mut some, mut found) = (Vec::new(), Vec::new());
    loop {
        some.clear();
        some.extend((&mut *keys).take(batch));
        if some.is_empty() {
            return Ok(());
        }
        found.clear();
        look_up(&some, &mut found)?;
        some.iter().zip(&found).try_for_each(|(&key, &found)| answer(key, found))?;
    }
}

/// Returns a filter's answer: no value if the key is absent, and a meaningless one if it is present.
#[must_use]
pub fn yes(found: bool) -> Option<u64> {
    found.then_some(0)
}

/// A load in key order. It is never timed.
pub trait Bulk {
    /// Puts pairs that ascend in the engine's order and come after all earlier ones.
    ///
    /// # Errors
    /// Returns any error of the engine.
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()>;

    /// Ends the load and makes it durable.
    ///
    /// # Errors
    /// Fails on a failed write or sync.
    fn finish(self: Box<Self>) -> Result<()>;
}
