//! The interface to a structure: where full buffers go, what a checkpoint stores, and what a table adds.

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
    /// Whether updates are logged whatever the durability. A structure that logs entries from flash again needs this:
    /// otherwise a replay would put the older entry over the newer one.
    pub logs_always: bool,
    /// Whether a flush logs where the buffer has moved, so that an opening knows it without a checkpoint.
    pub logs_moves: bool,
    /// Whether a full structure accepts removals, because they make space.
    pub forces_removals: bool,
    /// Whether a full structure that rejects other updates accepts logged ones. They were acknowledged when the same
    /// entries were arranged differently.
    pub forces_replayed: bool,
    /// Whether a failed flush is tried again, if the failure did not poison the volume.
    pub retries_flushes: bool,
    /// The structure's own jobs that may run concurrently with flushes, so that a long one delays none of them. With 0
    /// they take turns with the flushes.
    pub own_jobs: usize,
    /// The spare buffers that updates leave to the structure.
    pub spares_kept: usize,
    /// The number of updates over which the time of a flush is spread, if updates are paced.
    pub pace_updates: Option<u64>,
}

/// The RAM and flash of a structure, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Usage {
    pub ram_bytes: u64,
    pub flash_bytes: u64,
}

/// The space on flash for a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Space<R> {
    /// The space has been reserved.
    Reserved(R),
    /// Only the partition's running flushes can determine whether there is space; check again after them.
    Pending,
}

/// The part of a structure that writes full buffers to flash.
pub(crate) trait Layout: Debug + Send + Sync + Sized + 'static {
    /// The buffer that collects updates.
    type Buffer: WriteBuffer;
    /// The part of a partition on flash; protected by the partition's lock.
    type Level: Debug + Send + Sync;
    /// The part of a partition that is read without its lock.
    type Unlocked: Debug + Send + Sync;
    /// The space on flash that is reserved when a buffer is frozen.
    type Reserved: Clone + Debug + Default + Send + Sync;
    /// Background work other than flushes.
    type Job: Debug + Send;
    /// Memory that flushes reuse.
    type Scratch: Send;

    /// Returns the options of the write path for this structure.
    fn policy(&self) -> WritePolicy;

    /// Creates an empty buffer.
    fn new_buffer(&self) -> Self::Buffer;

    /// Creates an empty buffer behind a full one that stays in RAM.
    fn new_buffer_behind(&self, _full: &Self::Buffer) -> Self::Buffer {
        self.new_buffer()
    }

    /// Creates an empty buffer for the carry-over of a partition's last flush, after which no inserts follow.
    fn new_retired_buffer(&self) -> Self::Buffer {
        self.new_buffer()
    }

    /// Queues work that frees RAM which only updates need, because no more inserts follow.
    fn retire(_core: &Core<Self>) {}

    /// Reserves the space on flash that a buffer needs, before it is frozen.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full) if the structure may not evict.
    fn reserve(
        core: &Core<Self>,
        index: usize,
        state: &PartitionState<Self>,
    ) -> Result<Space<Self::Reserved>>;

    /// Returns the number of entries of a buffer being written for which the active one reserves space, because the
    /// flush may put them back. Without a reservation, a carry-over may outgrow the place for a snapshot; then the
    /// active buffer is flushed.
    fn carry_over_kept(&self, _state: &PartitionState<Self>, _frozen: &Frozen<Self>) -> u64 {
        0
    }

    /// Makes space on flash for a full buffer while recovery replays the log; nothing is locked. Returns whether
    /// buffers have changed.
    ///
    /// # Errors
    /// A failed read or write, damage.
    fn make_space(_core: &Core<Self>, _index: usize) -> Result<bool> {
        Ok(false)
    }

    /// Flushes the oldest frozen buffer of a partition and removes it from the partition.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    fn flush(
        core: &Core<Self>,
        index: usize,
        frozen: Frozen<Self>,
        scratch: &mut Self::Scratch,
    ) -> Result<()>;

    /// Allocates memory for a flush; the structure counts it as RAM.
    ///
    /// # Errors
    /// The device has no free queue.
    fn new_scratch(core: &Core<Self>) -> Result<Self::Scratch>;

    /// Performs the structure's own background work.
    ///
    /// # Errors
    /// A failed read or write, damage.
    fn run(core: &Core<Self>, job: Self::Job, scratch: &mut Option<Self::Scratch>) -> Result<()>;

    /// Returns the structure's own RAM, without buffers, and the flash that it occupies.
    fn usage(core: &Core<Self>) -> Usage;
}

/// A structure's maps, as a checkpoint stores them.
#[derive(Debug, Default)]
pub(crate) struct CapturedMaps {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// The extents, for a structure that allocates and frees extents as it runs.
    pub extents: Option<Vec<Extent>>,
}

/// The part of a structure that checkpoints use.
pub(crate) trait Checkpoints: Layout {
    /// Runs before the checkpoint is captured.
    ///
    /// # Errors
    /// A failed read or write, damage.
    fn prepare(_core: &Core<Self>) -> Result<()> {
        Ok(())
    }

    /// Locks what a flush changes together, while partitions and maps are captured.
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        None
    }

    /// Captures the structure's maps. `log_now` is the log position before this call.
    fn capture(core: &Core<Self>, log_now: Lsn) -> CapturedMaps;

    /// Called when the checkpoint of the last capture is durable.
    fn committed(core: &Core<Self>);

    /// Called when the replay of the log has ended; lookups and updates may begin.
    fn recovered(_core: &Core<Self>) {}

    /// Saves what speeds up the next opening, after buffers are saved and the background threads have ended. Takes a
    /// checkpoint if that must refer to it.
    ///
    /// # Errors
    /// A failed write or sync.
    fn closing(_core: &Core<Self>) -> Result<()> {
        Ok(())
    }
}

/// The part of a structure with entries of keys and values, some of which are removals.
pub(crate) trait TableLayout: Checkpoints + Layout<Buffer = Buffer> {
    /// Returns whether there may be a version of this key older than the active buffer.
    fn may_be_older(
        core: &Core<Self>,
        index: usize,
        state: &PartitionState<Self>,
        hash: KeyHash,
        key: &[u8],
    ) -> bool;

    /// Returns the number of entries below the buffers of a partition.
    fn entries_below(state: &PartitionState<Self>) -> u64;

    /// Returns the number of these that wait on flash for a merge, unchanged from their buffers.
    fn entries_waiting(_state: &PartitionState<Self>) -> u64 {
        0
    }

    /// Returns whether flash has nothing of a partition, so that each waiting entry is a new key.
    fn is_blank(_core: &Core<Self>, state: &PartitionState<Self>) -> bool {
        Self::entries_below(state) == 0
    }

    /// Returns the number of keys of a partition, as far as keys can be told apart from versions of keys.
    fn keys(core: &Core<Self>, state: &PartitionState<Self>) -> u64 {
        core.keys_in(state)
    }

    /// Returns the error of a full table, which holds `entries` on `flash_bytes` of flash.
    fn refusal(_core: &Core<Self>, entries: u64, flash_bytes: u64) -> Error {
        Error::Full { entries, flash_bytes }
    }
}
