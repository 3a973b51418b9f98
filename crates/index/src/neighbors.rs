//! The trait of an index of similar documents, and its statistics. It is one of the [public traits](crate::api).

use nandex_device::PageId;

use crate::Result;
use crate::api::{READS_HISTOGRAM_LEN, ratio};

/// An index that finds candidates for similar documents: ids by bucket keys (locality-sensitive hashing, ANCS'14,
/// section 6).
///
/// A document has an id and a bucket key in each of [`tables`](Self::tables) hash tables, which a family of hashes
/// derives from its content: the more similar two documents are, the more likely they share a bucket. The documents
/// that share a bucket with a given one in any table are its candidates; the caller checks whether they are similar.
/// Documents are passed as rows of keys, one after another: `keys[d * tables + i]` is document d's key in table i.
///
/// Laws: an id is a candidate of a row that shares a bucket with its own if an `insert` of it, and no later `remove`,
/// has returned before the call begins, unless the index has dropped it by its stated policies: a full bucket keeps its
/// oldest ids, and a full index may evict. An id that was removed, or never inserted into that bucket, is not a
/// candidate. Inserting a document again changes nothing. Every method may be called from any number of threads at
/// once.
pub trait Neighbors: Send + Sync {
    /// The number of hash tables, which is also the number of keys of a document.
    fn tables(&self) -> u32;

    /// Adds `id` to the bucket `keys[i]` of each table i. After a crash it is in all of them or in none.
    ///
    /// # Errors
    /// A number of keys other than [`tables`](Self::tables), a full index whose policy rejects inserts, a poisoned
    /// volume.
    fn insert(&self, id: u64, keys: &[u64]) -> Result<()>;

    /// Performs [`insert`](Self::insert) for each id with its row of keys, in order.
    ///
    /// # Errors
    /// As `insert`; documents before the failing one are inserted, later ones are not.
    fn insert_many(&self, ids: &[u64], keys: &[u64]) -> Result<()>;

    /// Returns the different ids that share at least one bucket with these keys, ascending. Reads at most one page for
    /// each table, all at once.
    ///
    /// # Errors
    /// A wrong number of keys, a failed read, a page that fails its check.
    fn candidates(&self, keys: &[u64]) -> Result<Vec<u64>>;

    /// Returns the candidates of each row of keys, in their order; the reads of all overlap.
    ///
    /// # Errors
    /// As `candidates`; keys that are not a whole number of rows.
    fn candidates_many(&self, keys: &[u64]) -> Result<Vec<Vec<u64>>>;

    /// Opens a stream of lookups, which keeps the device's queue full without pauses between batches.
    ///
    /// # Errors
    /// The device has no free queue.
    fn stream(&self) -> Result<Box<dyn CandidateStream + '_>>;

    /// Returns the candidates of each document as they were before it is inserted, and then inserts it: the answer to
    /// "is this document new?". Atomic for each document, in their order: a later one sees the earlier ones, and of two
    /// threads with documents that share a bucket, at least one sees the other's. The reads of different documents
    /// overlap.
    ///
    /// # Errors
    /// Those of `candidates` and of `insert`; documents before the failing one are inserted.
    fn candidates_then_insert_many(&self, ids: &[u64], keys: &[u64]) -> Result<Vec<Vec<u64>>>;

    /// Removes `id` from the bucket `keys[i]` of each table i. Does nothing in a table where it is absent. Pass the
    /// keys that it was inserted with. After a crash it is removed from all of them or from none.
    ///
    /// # Errors
    /// As `insert`, but a full index accepts removals.
    fn remove(&self, id: u64, keys: &[u64]) -> Result<()> {
        self.remove_many(&[id], keys)
    }

    /// Performs [`remove`](Self::remove) for each id with its row of keys, in order. They share reservations in the log
    /// and the acknowledgement; only merges of full buffers read anything.
    ///
    /// # Errors
    /// As `remove`; documents before the failing one are removed, later ones are not.
    fn remove_many(&self, ids: &[u64], keys: &[u64]) -> Result<()>;

    /// Makes everything acknowledged so far durable, whatever the durability mode.
    ///
    /// # Errors
    /// A failed write or sync, after which the volume is poisoned.
    fn sync(&self) -> Result<()>;

    /// Flushes everything buffered and makes it durable.
    ///
    /// # Errors
    /// As `sync`.
    fn flush(&self) -> Result<()>;

    /// The index's statistics.
    fn stats(&self) -> NeighborsStats;
}

/// A stream of lookups over one queue of the device; see [`Neighbors::stream`].
///
/// ```
/// # use std::sync::Arc;
/// use nandex::slicelsh::Config;
/// use nandex::{Neighbors, SliceLsh, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let alike = SliceLsh::create(&volume, "alike", Config::tiny())?;
/// alike.insert(17, &[100, 200, 300])?;
/// let mut stream = alike.stream()?;
/// stream.push(&[100, 201, 301], 1)?;
/// stream.push(&[101, 201, 301], 2)?;
/// while let Some((token, candidates)) = stream.pull()? {
///     assert_eq!(candidates.contains(&17), token == 1);
/// }
/// # Ok::<(), nandex::Error>(())
/// ```
pub trait CandidateStream {
    /// Starts a lookup of a row of keys; `token` is returned with its candidates. Waits for some reads when the index's
    /// limit of reads in flight is reached, never for all of them.
    ///
    /// Answers wait in RAM, a few words for each read and 8 bytes for each id, until they are taken.
    ///
    /// # Errors
    /// A wrong number of keys; a failed read or a damaged page of any lookup in progress. That lookup then has no
    /// answer, and the others continue.
    fn push(&mut self, keys: &[u64], token: u64) -> Result<()>;

    /// Returns the candidates of a row, as [`Neighbors::candidates`] does, if an answer is ready.
    ///
    /// # Errors
    /// As `push`.
    fn poll(&mut self) -> Result<Option<(u64, Vec<u64>)>>;

    /// Returns the candidates of a row, waiting while any lookup is in progress; `None` if there is none.
    ///
    /// # Errors
    /// As `push`.
    fn pull(&mut self) -> Result<Option<(u64, Vec<u64>)>>;

    /// The number of lookups whose answers have not been taken yet.
    fn pending(&self) -> usize;
}

/// Statistics that every index of neighbours reports, since it was opened unless said otherwise. An entry is an id in a
/// bucket; a document has one in each table.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NeighborsStats {
    /// The hash tables, which is also the number of entries of a document.
    pub tables: u32,
    /// Entries, in RAM and on flash. Removed entries on flash count until their partition is merged; removals that wait
    /// in RAM do not count as entries.
    pub entries: u64,
    /// Damaged pages of saved write buffers, in a volume that was opened read-only. No other figure counts their
    /// entries.
    pub lost_pages: Vec<PageId>,
    /// Entries among these that are in RAM.
    pub buffered: u64,
    /// Bytes of RAM of the structure: buffers, merges, its share of the log's buffers.
    pub ram_bytes: u64,
    /// Bytes of flash the structure occupies.
    pub flash_bytes: u64,
    /// Channels of the device that the tables are spread over, each table on its own; 1 if the tables are striped
    /// because the device's channels are unknown.
    pub channels: u32,
    /// Documents inserted.
    pub inserts: u64,
    /// Documents removed.
    pub removes: u64,
    /// Rows of keys with candidates.
    pub hits: u64,
    /// Rows of keys without candidates.
    pub misses: u64,
    /// Candidates returned.
    pub candidates: u64,
    /// Lookups of rows by the number of pages they read: 0, 1, 2, ...; the last bucket is "this number or more".
    pub reads_histogram: [u64; READS_HISTOGRAM_LEN],
    /// Pages read by lookups.
    pub lookup_reads: u64,
    /// Buffers merged into flash.
    pub flushes: u64,
    /// Entries in those buffers divided by their slots: the mean fill at flush.
    pub flush_fill: f64,
    /// Bytes written to the structure's own pages.
    pub data_bytes_written: u64,
    /// Bytes written to the write-ahead log on its behalf.
    pub log_bytes_written: u64,
    /// Entries that full buckets have dropped; each bucket keeps its oldest.
    pub dropped: u64,
    /// Entries that a full index has evicted.
    pub evicted: u64,
    /// As [`dropped`](Self::dropped), over all openings. It is saved with every checkpoint: a crash loses what was
    /// counted since the last one.
    pub dropped_life: u64,
    /// As [`evicted`](Self::evicted), over all openings, saved like `dropped_life`.
    pub evicted_life: u64,
}

impl NeighborsStats {
    /// Returns the RAM for the entries of one document, in bytes.
    #[must_use]
    pub fn ram_bytes_per_document(&self) -> f64 {
        ratio(self.ram_bytes * u64::from(self.tables), self.entries)
    }

    /// Returns the pages read for each row of keys.
    #[must_use]
    pub fn reads_per_lookup(&self) -> f64 {
        ratio(self.lookup_reads, self.hits + self.misses)
    }
}
