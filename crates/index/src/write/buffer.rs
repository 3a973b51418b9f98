//! The write buffer: what collects updates in RAM until it is full.
//!
//! Two traits say what the write path needs to know of one. [`WriteBuffer`] is the buffer itself, [`LogCodec`]
//! is how its updates are written to the log. What a buffer is kept as on flash before it is full is
//! [`SnapshotStore`](super::SnapshotStore)'s.
//!
//! Tables collect entries in the store's cuckoo [`Buffer`](nandex_store::buffer::Buffer), of which an update
//! replaces an older one of its key. The cascade filter collects fingerprints in a quotient filter, where
//! updates add up.

use std::fmt::Debug;

use nandex_store::{Log, StructureId};

use super::SnapshotStore;
use crate::Result;

/// Collects updates in RAM.
pub(crate) trait WriteBuffer: Debug + Send + Sync + Sized + 'static {
    /// One update.
    type Update<'u>: Copy;
    /// How updates are written to the log.
    type Codec: LogCodec<Self>;
    /// Where it is kept on flash before it is full.
    type Snapshots: SnapshotStore<Self>;

    /// Do updates add up? Then a replay must apply each exactly once, and the log has a record for the end of
    /// each buffer. Where a later update replaces an earlier one, a replay may apply some twice.
    const ADDS_UP: bool;

    /// Applies updates in order, up to the first that finds no room. Returns how many were applied.
    ///
    /// # Errors
    /// An update that can never be applied, such as a count out of range. Those before it are applied.
    fn apply(&mut self, updates: &[Self::Update<'_>]) -> Result<usize>;

    /// Takes an update however full the buffer is, and returns whether it removes something. Asked of layouts whose
    /// [policy](super::WritePolicy) forces removals.
    fn force(&mut self, _update: Self::Update<'_>) -> bool {
        unreachable!("a layout that forces removals has a buffer that takes them")
    }

    /// Entries held.
    fn entries(&self) -> u64;

    /// Makes the buffer count as full at that many entries at the latest.
    fn limit(&mut self, entries_max: u64);

    /// Empties the buffer for reuse; it has no limit then.
    fn clear(&mut self);

    /// RAM it holds, in bytes.
    fn ram_bytes(&self) -> u64;
}

/// Writes updates of a buffer to the log and reads them back.
pub(crate) trait LogCodec<B: WriteBuffer>: Debug + Send + Sync {
    /// Bytes of the log that these updates take, without what the log adds.
    fn logged_bytes(&self, updates: &[B::Update<'_>]) -> u64;

    /// Appends updates of one partition to the log. `records` is scratch memory of the caller.
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

    /// Reads an update and its partition back; `None` for bytes that are no update.
    fn decode<'b>(&self, bytes: &'b [u8]) -> Option<(usize, B::Update<'b>)>;
}
