//! The contracts: what a structure promises, and the figures it shows.
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
/// Laws: a `get` that begins after an `insert` of the same key has returned gives that value, unless
/// a later `insert` or `remove` intervened or the table's stated eviction policy dropped the entry.
/// Every method may be called from any number of threads at once.
pub trait Table: Send + Sync {
    /// Width of every key in bytes, as chosen at creation.
    fn key_bytes(&self) -> usize;

    /// Width of every value in bytes, as chosen at creation.
    fn value_bytes(&self) -> usize;

    /// Puts `value` under `key`, in place of what was there.
    ///
    /// # Errors
    /// A key or value of the wrong width, a full table whose policy is to refuse, a poisoned volume.
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes `key`; nothing happens when it is not there.
    ///
    /// # Errors
    /// As `insert`.
    fn remove(&self, key: &[u8]) -> Result<()>;

    /// The value under `key`.
    ///
    /// # Errors
    /// A key of the wrong width, a failed read, a page that fails its check.
    fn get(&self, key: &[u8]) -> Result<Option<Value>>;

    /// Is `key` there?
    ///
    /// # Errors
    /// As `get`.
    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Puts each pair, in order.
    ///
    /// # Errors
    /// As `insert`; pairs before the failing one are in, later ones may or may not be.
    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()>;

    /// Puts `value` under `key` unless the key is there, and returns the value that is there. Atomic: of
    /// several threads that do this with an absent key at one time, exactly one gets nothing. Costs a lookup
    /// and, if it puts, an insert.
    ///
    /// # Errors
    /// Those of `get` and of `insert`.
    fn get_or_insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Value>> {
        Ok(self.get_or_insert_many(&[(key, value)])?.into_iter().next().flatten())
    }

    /// As [`get_or_insert`](Self::get_or_insert) of each pair, in order; the reads overlap. Of pairs with one
    /// key the first puts, and the others get its value.
    ///
    /// # Errors
    /// As `get_or_insert`; pairs before the failing one may or may not be in.
    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>>;

    /// Puts `value` under `key` unless the key is there. Returns whether it did; atomic as
    /// [`get_or_insert`](Self::get_or_insert).
    ///
    /// # Errors
    /// As `get_or_insert`.
    fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.get_or_insert(key, value)?.is_none())
    }

    /// The values under all of `keys`, in their order; the reads overlap.
    ///
    /// # Errors
    /// As `get`.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>>;

    /// Lookups without batches: keys go in and answers come out while the device's queue stays full.
    ///
    /// # Errors
    /// As `get`.
    fn stream(&self) -> Result<Box<dyn LookupStream + '_>>;

    /// Makes everything acknowledged so far durable, whatever the durability mode.
    ///
    /// # Errors
    /// A failed write or sync, after which the volume is poisoned.
    fn sync(&self) -> Result<()>;

    /// Puts every buffered entry on flash and makes it durable.
    ///
    /// # Errors
    /// As `sync`.
    fn flush(&self) -> Result<()>;

    /// The three numbers, and what they come from.
    fn stats(&self) -> TableStats;

    /// Returns whether [`TableStats::entries`] is the number of its keys, within a percent or so. Of a BufferHash that
    /// evicts, or that an earlier version has made, it is the number of their versions.
    fn counts_keys(&self) -> bool {
        true
    }

    /// All its versions of keys in the order of the hash, to be read in long runs; `None` if its kind cannot give them.
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
    /// Starts a lookup; `token` comes back with the answer. Waits for one read when the table's limit of
    /// reads is in flight, never for all of them.
    ///
    /// Answers wait in RAM, about 80 bytes each, until they are taken.
    ///
    /// # Errors
    /// A key of the wrong width; a failed read or a damaged page of any lookup in progress. That lookup then
    /// has no answer, and the others continue.
    fn push(&mut self, key: &[u8], token: u64) -> Result<()>;

    /// An answer, if there is one now.
    ///
    /// # Errors
    /// As `push`.
    fn poll(&mut self) -> Result<Option<(u64, Option<Value>)>>;

    /// An answer. Waits for one while any lookup is in progress, and returns nothing when there is none.
    ///
    /// # Errors
    /// As `push`.
    fn pull(&mut self) -> Result<Option<(u64, Option<Value>)>>;

    /// Lookups whose answers were not taken yet.
    fn pending(&self) -> usize;
}

/// An approximate multiset of keys. For an absent key it may say "there", at a known rate; for a present key
/// it never says "not there". Keys are any bytes.
///
/// Laws: a `contains` that begins after an `insert` of the same key has returned says yes, as long as the key
/// was deleted fewer times than it was inserted. Two inserts take two deletes. Delete only keys that are
/// there: deleting another key may remove the fingerprint of a third one, which then counts as absent. Every
/// method may be called from any number of threads at once.
///
/// A filter of a window ([`FilterStats::window_keys`]) forgets its oldest inserts, and deletes none.
pub trait Filter: Send + Sync {
    /// Adds one occurrence of a key.
    ///
    /// # Errors
    /// A full filter that may not grow, a poisoned volume.
    fn insert(&self, key: &[u8]) -> Result<()>;

    /// Removes one occurrence of a key that is there.
    ///
    /// # Errors
    /// As `insert`; [`Error::NoDeletes`](crate::Error::NoDeletes) of a filter that cannot.
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// Is `key` there? Wrong at most at the rate of [`FilterStats::rate`], and only in saying yes.
    ///
    /// # Errors
    /// A failed read, a page that fails its check.
    fn contains(&self, key: &[u8]) -> Result<bool>;

    /// Adds one occurrence of each key, in order.
    ///
    /// # Errors
    /// As `insert`; keys before the failing one are in, later ones may or may not be.
    fn insert_many(&self, keys: &[&[u8]]) -> Result<()>;

    /// Adds one occurrence of a key unless it is there, and returns whether it did. Atomic: of several threads
    /// that do this with an absent key at one time, exactly one adds it. A new key that the filter takes for
    /// another one, at its rate, is not added.
    ///
    /// # Errors
    /// Those of `contains` and of `insert`.
    fn insert_if_absent(&self, key: &[u8]) -> Result<bool> {
        Ok(self.insert_if_absent_many(&[key])?.into_iter().any(|is_new| is_new))
    }

    /// As [`insert_if_absent`](Self::insert_if_absent) of each key, in order; the reads overlap. Of equal keys
    /// the first is added.
    ///
    /// # Errors
    /// As `insert_if_absent`; keys before the failing one may or may not be in.
    fn insert_if_absent_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// Removes one occurrence of each key.
    ///
    /// # Errors
    /// As `insert_many`; [`Error::NoDeletes`](crate::Error::NoDeletes) of a filter that cannot.
    fn delete_many(&self, keys: &[&[u8]]) -> Result<()>;

    /// Which of `keys` are there, in their order; the reads overlap.
    ///
    /// # Errors
    /// As `contains`.
    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// Makes everything acknowledged so far durable, whatever the durability mode. Does nothing where
    /// there is no flash.
    ///
    /// # Errors
    /// A failed write or sync, after which the volume is poisoned.
    fn sync(&self) -> Result<()>;

    /// Puts everything buffered on flash and makes it durable. Does nothing where there is no flash.
    ///
    /// # Errors
    /// As `sync`.
    fn flush(&self) -> Result<()>;

    /// The three numbers, the rate of false positives, and what they come from.
    fn stats(&self) -> FilterStats;
}

/// A filter that counts keys. A count is never too low, and too high only where another key has the same
/// fingerprint, at the rate of [`FilterStats::rate`]. Keys are any bytes.
///
/// Laws: a `count` that begins after an `add` has returned includes it. Subtract, by adding less than 0, only
/// what was added before. Every method may be called from any number of threads at once.
pub trait Counter: Filter {
    /// Adds `amount` to the count of a key.
    ///
    /// # Errors
    /// A full filter that may not grow, a count past 2^63, a poisoned volume.
    fn add(&self, key: &[u8], amount: i64) -> Result<()>;

    /// The count of a key; 0 for one that was never added.
    ///
    /// # Errors
    /// A failed read, a page that fails its check.
    fn count(&self, key: &[u8]) -> Result<u64>;

    /// Adds to the count of each key, in order.
    ///
    /// # Errors
    /// As `add`; keys before the failing one are in, later ones may or may not be.
    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()>;

    /// The counts of all of `keys`, in their order; the reads overlap.
    ///
    /// # Errors
    /// As `count`.
    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>>;
}

/// A value, held inline: at most [`VALUE_BYTES_MAX`] bytes, no allocation.
#[derive(Clone, Copy)]
pub struct Value {
    bytes: [u8; VALUE_BYTES_MAX],
    len: u8,
}

impl Value {
    /// A copy of `bytes`.
    ///
    /// # Panics
    /// If there are more than [`VALUE_BYTES_MAX`].
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
