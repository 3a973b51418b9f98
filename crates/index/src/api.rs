//! The public traits: what each structure promises, and the statistics it reports.
//!
//! A structure implements exactly one of these traits, for single and batched calls alike. Batches give flash
//! parallelism: `get_many` keeps the device's whole queue busy from one thread.

use std::fmt;
use std::ops::Deref;

use crate::Result;
use crate::write::absorb::Versions;

pub use crate::neighbors::{CandidateStream, Neighbors, NeighborsStats};
pub(crate) use crate::stats::ratio;
pub use crate::stats::{FilterStats, LevelStats, READS_HISTOGRAM_LEN, TableStats};

/// The longest value a table holds inline, in bytes.
pub const VALUE_BYTES_MAX: usize = 64;

/// A hash table from fixed-width keys to fixed-width values.
///
/// Laws: a `get` that begins after an `insert` of the same key has returned returns that value, unless a later `insert`
/// or `remove` intervened or the table's stated eviction policy dropped the entry.
/// Every method may be called from any number of threads at once.
pub trait Table: Send + Sync {
    /// The width of every key in bytes, as chosen at creation.
    fn key_bytes(&self) -> usize;

    /// The width of every value in bytes, as chosen at creation.
    fn value_bytes(&self) -> usize;

    /// Inserts `value` under `key`, replacing any earlier value.
    ///
    /// # Errors
    /// A key or value of the wrong width, a full table whose policy rejects inserts, a poisoned volume.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes `key`. Does nothing if the key is absent.
    ///
    /// # Errors
    /// As `insert`.
    fn remove(&self, key: &[u8]) -> Result<()>;

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// A key of the wrong width, a failed read, a page that fails its check.
    fn get(&self, key: &[u8]) -> Result<Option<Value>>;

    /// Returns whether `key` is present.
    ///
    /// # Errors
    /// As `get`.
    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Inserts each pair, in order.
    ///
    /// # Errors
    /// As `insert`; pairs before the failing one are inserted, later ones may or may not be.
    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()>;

    /// Inserts `value` under `key` if the key is absent, and returns the existing value otherwise. Atomic: if several
    /// threads do this with one absent key at the same time, exactly one gets `None`. Costs a lookup and, if it
    /// inserts, an insert.
    ///
    /// # Errors
    /// Those of `get` and of `insert`.
    fn get_or_insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Value>> {
        Ok(self.get_or_insert_many(&[(key, value)])?.into_iter().next().flatten())
    }

    /// Performs [`get_or_insert`](Self::get_or_insert) for each pair, in order; the reads overlap. Of several pairs
    /// with one key, the first inserts and the others get its value.
    ///
    /// # Errors
    /// As `get_or_insert`; pairs before the failing one may or may not be inserted.
    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>>;

    /// Inserts `value` under `key` if the key is absent, and returns whether it did. Atomic as
    /// [`get_or_insert`](Self::get_or_insert) is.
    ///
    /// # Errors
    /// As `get_or_insert`.
    fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.get_or_insert(key, value)?.is_none())
    }

    /// Returns the values of all `keys`, in their order; the reads overlap.
    ///
    /// # Errors
    /// As `get`.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>>;

    /// Opens a stream of lookups: keys go in and answers come out while the device's queue stays full.
    ///
    /// # Errors
    /// As `get`.
    fn stream(&self) -> Result<Box<dyn LookupStream + '_>>;

    /// Makes everything acknowledged so far durable, whatever the durability mode.
    ///
    /// # Errors
    /// A failed write or sync, after which the volume is poisoned.
    fn sync(&self) -> Result<()>;

    /// Flushes every buffered entry and makes it durable.
    ///
    /// # Errors
    /// As `sync`.
    fn flush(&self) -> Result<()>;

    /// Returns the table's statistics.
    fn stats(&self) -> TableStats;

    /// Returns whether [`TableStats::entries`] counts keys, to within about a percent. It counts versions of keys
    /// instead in a BufferHash that evicts or that an earlier version of nandex created.
    fn counts_keys(&self) -> bool {
        true
    }

    /// Returns all versions of its keys in hash order, for reading in long runs; `None` if this kind cannot provide
    /// them.
    fn all_versions(&self) -> Option<Versions<'_>> {
        None
    }
}

/// A stream of lookups over one queue of the device; see [`Table::stream`].
///
/// ```
/// use std::sync::Arc;
/// use nandex::bufferhash::Config;
/// use nandex::{BufferHash, Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = BufferHash::create(&volume, "seen", Config::tiny())?;
/// table.insert_u64(17, 4)?;
/// let mut stream = table.stream()?;
/// stream.push(&17u64.to_le_bytes(), 1)?;
/// stream.push(&18u64.to_le_bytes(), 2)?;
/// while let Some((token, value)) = stream.pull()? {
///     assert_eq!(value.is_some(), token == 1);
/// }
/// # Ok::<(), nandex::Error>(())
/// ```
pub trait LookupStream {
    /// Starts a lookup; `token` is returned with the answer. Waits for one read when the table's limit of reads in
    /// flight is reached, never for all of them.
    ///
    /// Answers wait in RAM, about 80 bytes each, until they are taken.
    ///
    /// # Errors
    /// A key of the wrong width; a failed read or a damaged page of any lookup in progress. That lookup then
    /// has no answer, and the others continue.
    fn push(&mut self, key: &[u8], token: u64) -> Result<()>;

    /// Returns an answer if one is ready.
    ///
    /// # Errors
    /// As `push`.
    fn poll(&mut self) -> Result<Option<(u64, Option<Value>)>>;

    /// Returns the next answer, waiting while any lookup is in progress; `None` if there is none.
    ///
    /// # Errors
    /// As `push`.
    fn pull(&mut self) -> Result<Option<(u64, Option<Value>)>>;

    /// The number of lookups whose answers have not been taken yet.
    fn pending(&self) -> usize;
}

/// An approximate multiset of keys. It may report an absent key as present, at a known rate; it never reports a present
/// key as absent. Keys are any bytes.
///
/// Laws: a `contains` that begins after an `insert` of the same key has returned is true, as long as the key was
/// deleted fewer times than it was inserted. Two inserts take two deletes. Delete only keys that are present: deleting
/// another key may remove the fingerprint of a third one, which then counts as absent. Every method may be called from
/// any number of threads at once.
///
/// A filter of a window ([`FilterStats::window_keys`]) forgets its oldest inserts, and does not support deletes.
pub trait Filter: Send + Sync {
    /// Adds one occurrence of a key.
    ///
    /// # Errors
    /// A full filter that may not grow, a poisoned volume.
    fn insert(&self, key: &[u8]) -> Result<()>;

    /// Removes one occurrence of a key that is present.
    ///
    /// # Errors
    /// As `insert`; [`Error::NoDeletes`](crate::Error::NoDeletes) from a filter without deletes.
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// Returns whether `key` is present. It is wrong at most at the rate of [`FilterStats::rate`], and only by
    /// returning true.
    ///
    /// # Errors
    /// A failed read, a page that fails its check.
    fn contains(&self, key: &[u8]) -> Result<bool>;

    /// Adds one occurrence of each key, in order.
    ///
    /// # Errors
    /// As `insert`; keys before the failing one are inserted, later ones may or may not be.
    fn insert_many(&self, keys: &[&[u8]]) -> Result<()>;

    /// Adds one occurrence of a key if it is absent, and returns whether it did. Atomic: if several threads do this
    /// with one absent key at the same time, exactly one adds it. A new key that is a false positive, at the filter's
    /// rate, is not added.
    ///
    /// # Errors
    /// Those of `contains` and of `insert`.
    fn insert_if_absent(&self, key: &[u8]) -> Result<bool> {
        Ok(self.insert_if_absent_many(&[key])?.into_iter().any(|is_new| is_new))
    }

    /// Performs [`insert_if_absent`](Self::insert_if_absent) for each key, in order; the reads overlap. Of equal keys
    /// the first is added.
    ///
    /// # Errors
    /// As `insert_if_absent`; keys before the failing one may or may not be inserted.
    fn insert_if_absent_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// Removes one occurrence of each key.
    ///
    /// # Errors
    /// As `insert_many`; [`Error::NoDeletes`](crate::Error::NoDeletes) from a filter without deletes.
    fn delete_many(&self, keys: &[&[u8]]) -> Result<()>;

    /// Returns which of `keys` are present, in their order; the reads overlap.
    ///
    /// # Errors
    /// As `contains`.
    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// Makes everything acknowledged so far durable, whatever the durability mode. Does nothing if there is no flash.
    ///
    /// # Errors
    /// A failed write or sync, after which the volume is poisoned.
    fn sync(&self) -> Result<()>;

    /// Flushes everything buffered and makes it durable. Does nothing if there is no flash.
    ///
    /// # Errors
    /// As `sync`.
    fn flush(&self) -> Result<()>;

    /// Returns the filter's statistics, among them its false-positive rate.
    fn stats(&self) -> FilterStats;
}

/// A filter that counts keys. A count is never too low, and is too high only if another key has the same fingerprint,
/// at the rate of [`FilterStats::rate`]. Keys are any bytes.
///
/// Laws: a `count` that begins after an `add` has returned includes it. Subtract (add a negative amount) only what was
/// added before. Every method may be called from any number of threads at once.
pub trait Counter: Filter {
    /// Adds `amount` to the count of a key.
    ///
    /// # Errors
    /// A full filter that may not grow, a count past 2^63, a poisoned volume.
    fn add(&self, key: &[u8], amount: i64) -> Result<()>;

    /// Returns the count of a key; 0 for one that was never added.
    ///
    /// # Errors
    /// A failed read, a page that fails its check.
    fn count(&self, key: &[u8]) -> Result<u64>;

    /// Adds to the count of each key, in order.
    ///
    /// # Errors
    /// As `add`; keys before the failing one are added, later ones may or may not be.
    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()>;

    /// Returns the counts of all `keys`, in their order; the reads overlap.
    ///
    /// # Errors
    /// As `count`.
    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>>;
}

/// A value stored inline: at most [`VALUE_BYTES_MAX`] bytes, no allocation.
#[derive(Clone, Copy)]
pub struct Value {
    bytes: [u8; VALUE_BYTES_MAX],
    len: u8,
}

impl Value {
    /// Creates a value with a copy of `bytes`.
    ///
    /// # Panics
    /// If there are more than [`VALUE_BYTES_MAX`] bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut value = Self { bytes: [0; VALUE_BYTES_MAX], len: 0 };
        value.bytes[..bytes.len()].copy_from_slice(bytes);
        value.len = u8::try_from(bytes.len()).expect("at most 64 bytes");
        value
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
