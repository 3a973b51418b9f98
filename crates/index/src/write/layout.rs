//! The seams to a structure: where full buffers go, what a checkpoint keeps, and what a table adds.

use std::fmt::Debug;
use std::sync::MutexGuard;

use nandex_store::Lsn;
use nandex_store::buffer::Buffer;
use nandex_store::hash::KeyHash;
use nandex_store::space::Extent;

use super::{Core, Frozen, PartitionState, WriteBuffer};
use crate::{Error, Result};

/// Options of the write path that a structure chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct WritePolicy {
    /// Are updates logged whatever the durability? A structure that logs entries from flash again needs this:
    /// otherwise a replay would put the older entry over the newer one.
    pub logs_always: bool,
    /// Does a flush log where the buffer has moved? An opening then knows it without a checkpoint.
    pub logs_moves: bool,
    /// Are removals taken although the structure is full, because they make space?
    pub forces_removals: bool,
    /// Are logged updates taken by a full structure that refuses others? They were acknowledged when the same entries
    /// were arranged differently.
    pub forces_replayed: bool,
    /// Is a failed flush tried again, if the failure did not poison the volume?
    pub retries_flushes: bool,
    /// Jobs of the structure's own that run next to flushes, so that a long one keeps none of them waiting. With none
    /// they take turns with the flushes.
    pub own_jobs: usize,
    /// Spare buffers that updates leave to the structure.
    pub spares_kept: usize,
    /// Updates over which the time of a flush is spread, if updates wait for flushes a little at a time.
    pub pace_updates: Option<u64>,
}

/// RAM and flash of a structure, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Usage {
    pub ram_bytes: u64,
    pub flash_bytes: u64,
}

/// Space on flash for a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Space<R> {
    /// It has been reserved.
    Reserved(R),
    /// Only the partition's flushes under way can tell whether there is any: ask again after them.
    Pending,
}

/// What a full buffer becomes.
pub(crate) trait Layout: Debug + Send + Sync + Sized + 'static {
    /// What collects updates.
    type Buffer: WriteBuffer;
    /// What a partition has on flash; protected by the partition's lock.
    type Level: Debug + Send + Sync;
    /// What a partition has that is read without its lock.
    type Unlocked: Debug + Send + Sync;
    /// What is reserved on flash when a buffer is frozen.
    type Reserved: Clone + Debug + Default + Send + Sync;
    /// Background work other than flushes.
    type Job: Debug + Send;
    /// Memory that flushes use again and again.
    type Scratch: Send;

    /// How the write path treats this structure.
    fn policy(&self) -> WritePolicy;

    /// An empty buffer.
    fn new_buffer(&self) -> Self::Buffer;

    /// An empty buffer behind a full one that stays in RAM.
    fn new_buffer_behind(&self, _full: &Self::Buffer) -> Self::Buffer {
        self.new_buffer()
    }

    /// An empty buffer for what the last flush of a partition carries over when nothing will be inserted any more.
    fn new_retired_buffer(&self) -> Self::Buffer {
        self.new_buffer()
    }

    /// Nothing will be inserted any more: queues work that frees RAM which only updates need.
    fn retire(_core: &Core<Self>) {}

    /// Reserves what a buffer needs on flash before it is frozen.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full) where the structure may not evict.
    fn reserve(
        core: &Core<Self>,
        index: usize,
        state: &PartitionState<Self>,
    ) -> Result<Space<Self::Reserved>>;

    /// Entries of a buffer that is being written for which the active one keeps space, because its flush may put them
    /// back. Where it keeps none, a carry-over may outgrow the place for a snapshot, and the active buffer is flushed.
    fn carry_over_kept(&self, _state: &PartitionState<Self>, _frozen: &Frozen<Self>) -> u64 {
        0
    }

    /// Makes space on flash, while recovery replays the log, for a buffer that is full; nothing is locked. Returns
    /// whether buffers have changed.
    ///
    /// # Errors
    /// A failed read or write, damage.
    fn make_space(_core: &Core<Self>, _index: usize) -> Result<bool> {
        Ok(false)
    }

    /// Puts the oldest frozen buffer of a partition on flash and takes it out of the partition.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    fn flush(
        core: &Core<Self>,
        index: usize,
        frozen: Frozen<Self>,
        scratch: &mut Self::Scratch,
    ) -> Result<()>;

    /// Memory for flushes; the structure counts it as RAM.
    ///
    /// # Errors
    /// The device has no queue to give.
    fn new_scratch(core: &Core<Self>) -> Result<Self::Scratch>;

    /// Does background work of the structure's own.
    ///
    /// # Errors
    /// A failed read or write, damage.
    fn run(core: &Core<Self>, job: Self::Job, scratch: &mut Option<Self::Scratch>) -> Result<()>;

    /// RAM of the structure's own, without buffers, and the flash it occupies.
    fn usage(core: &Core<Self>) -> Usage;
}

/// A structure's maps, as a checkpoint keeps them.
#[derive(Debug, Default)]
pub(crate) struct CapturedMaps {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// The extents, for a structure that takes and gives back extents as it runs.
    pub extents: Option<Vec<Extent>>,
}

/// What a checkpoint asks of a structure.
pub(crate) trait Checkpoints: Layout {
    /// Runs before the checkpoint is captured.
    ///
    /// # Errors
    /// A failed read or write, damage.
    fn prepare(_core: &Core<Self>) -> Result<()> {
        Ok(())
    }

    /// Held while partitions and maps are captured, where a flush changes them together.
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        None
    }

    /// The structure's maps. `log_now` is the log's place before this call.
    fn capture(core: &Core<Self>, log_now: Lsn) -> CapturedMaps;

    /// The checkpoint of the last capture is durable.
    fn committed(core: &Core<Self>);

    /// The replay of the log has ended; lookups and updates may begin.
    fn recovered(_core: &Core<Self>) {}

    /// Buffers are saved and the background threads have ended: saves what helps the next opening, and takes a
    /// checkpoint if that must be named.
    ///
    /// # Errors
    /// A failed write or sync.
    fn closing(_core: &Core<Self>) -> Result<()> {
        Ok(())
    }
}

/// What a table adds: entries with keys, of which some are removed.
pub(crate) trait TableLayout: Checkpoints + Layout<Buffer = Buffer> {
    /// May a version of this key be older than the active buffer?
    fn may_be_older(
        core: &Core<Self>,
        index: usize,
        state: &PartitionState<Self>,
        hash: KeyHash,
        key: &[u8],
    ) -> bool;

    /// Entries below the buffers of a partition.
    fn entries_below(state: &PartitionState<Self>) -> u64;

    /// Those of them that wait on flash for a merge, as they were in their buffers.
    fn entries_waiting(_state: &PartitionState<Self>) -> u64 {
        0
    }

    /// Whether flash has nothing of a partition, so that each entry that waits is a new key.
    fn is_blank(_core: &Core<Self>, state: &PartitionState<Self>) -> bool {
        Self::entries_below(state) == 0
    }

    /// Keys of a partition, as far as it can tell them from versions of keys.
    fn keys(core: &Core<Self>, state: &PartitionState<Self>) -> u64 {
        core.keys_in(state)
    }

    /// The error of a full table, which holds that many entries on that many bytes of flash.
    fn refusal(_core: &Core<Self>, entries: u64, flash_bytes: u64) -> Error {
        Error::Full { entries, flash_bytes }
    }
}
