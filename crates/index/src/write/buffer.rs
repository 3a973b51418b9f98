//! The write buffer, which collects updates in RAM until it is full.
//!
//! Two traits define what the write path needs of a buffer. [`WriteBuffer`] is the buffer itself, and [`LogCodec`]
//! writes its updates to the log. [`SnapshotStore`](super::SnapshotStore) saves a buffer to flash before it is full.
//!
//! Tables collect entries in the store's cuckoo [`Buffer`](nandex_store::buffer::Buffer), where a newer
//! update replaces an older one of the same key. The cascade filter collects fingerprints in a quotient
//! filter, where updates add up.

use std::fmt::Debug;

use nandex_store::hash::KeyHasher;
use nandex_store::{Log, Lsn, StructureId};

use super::SnapshotStore;
use crate::Result;
use crate::lookup::TableCache;

/// Collects updates in RAM.
pub(crate) trait WriteBuffer: Debug + Send + Sync + Sized + 'static {
    /// One update.
    type Update<'u>: Copy;
    /// The encoding of its updates in the log.
    type Codec: LogCodec<Self>;
    /// The store that saves it to flash before it is full.
    type Snapshots: SnapshotStore<Self>;

    /// Whether updates add up. Then a replay must apply each exactly once, and the log has a record for the end of each
    /// buffer. If a later update replaces an earlier one instead, a replay may apply some twice.
    const ADDS_UP: bool;

    /// Applies updates in order, up to the first that does not fit or can never be applied, such as a count out of
    /// range. Returns how many were applied.
    ///
    /// # Errors
    /// The first update can never be applied. Nothing has changed then.
    fn apply(&mut self, updates: &[Self::Update<'_>]) -> Result<usize>;

    /// Accepts an update however full the buffer is, and returns whether it removes something. Only for layouts whose
    /// [policy](super::WritePolicy) forces removals.
    fn force(&mut self, _update: Self::Update<'_>) -> bool {
        unreachable!("a layout that forces removals has a buffer that takes them")
    }

    /// The number of entries in the buffer.
    fn entries(&self) -> u64;

    /// Makes the buffer count as full at `entries_max` entries at the latest.
    fn limit(&mut self, entries_max: u64);

    /// Empties the buffer for reuse and lifts its limit.
    fn clear(&mut self);

    /// Tells the cache of a table that this buffer is about to leave RAM.
    fn leave(&self, _cache: &TableCache, _hasher: KeyHasher) {}

    /// The RAM that it takes, in bytes.
    fn ram_bytes(&self) -> u64;
}

/// Writes updates of a buffer to the log and reads them back.
pub(crate) trait LogCodec<B: WriteBuffer>: Debug + Send + Sync {
    /// The bytes that these updates take in the log, without the log's own overhead.
    fn logged_bytes(&self, updates: &[B::Update<'_>]) -> u64;

    /// Appends updates of one partition to the log. `records` is the caller's scratch memory.
    ///
    /// # Errors
    /// As [`Log::append`].
    fn append(
        &self,
        log: &Log,
        of: (StructureId, usize),
        updates: &[B::Update<'_>],
        records: &mut Vec<u8>,
    ) -> Result<()>;

    /// Reads an update and its partition; `None` for bytes that are not an update.
    fn decode<'b>(&self, bytes: &'b [u8]) -> Option<(usize, B::Update<'b>)>;

    /// Reads an update that a flush has put back into a buffer, its partition, and the position in the log from which a
    /// replay also finds the update's first record; `None` for other bytes.
    fn decode_put_back<'b>(&self, _bytes: &'b [u8]) -> Option<(usize, Lsn, B::Update<'b>)> {
        None
    }

    /// Reads the updates of a log entry and passes on each with its partition; returns false for bytes that are not an
    /// update. An entry has one update, unless it spans several partitions.
    ///
    /// # Errors
    /// Those of `visit`, which ends the walk.
    fn decode_each<'b>(
        &self,
        bytes: &'b [u8],
        visit: &mut dyn FnMut(usize, B::Update<'b>) -> Result<()>,
    ) -> Result<bool> {
        let Some((index, update)) = self.decode(bytes) else { return Ok(false) };
        visit(index, update).map(|()| true)
    }
}
