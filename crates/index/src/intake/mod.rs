//! The intake: what every table does before its own layout on flash begins.
//!
//! Keys are spread over partitions by the first bits of their hash. Each partition collects updates in
//! a RAM buffer and the write-ahead log; a full buffer is frozen and handed to the room, which puts it
//! on flash in its own way. Everything up to there, and everything that must survive a crash up to
//! there, is the same for all tables and stands here once.
//!
//! ```text
//!   insert, remove           partition 0             partition 1
//!        |                 +-------------+         +-------------+
//!        +--> log -------> | active      |         | active      |      images: buffers saved
//!                          +-------------+         +-------------+      before they are full
//!                          | frozen, ... |         |             |
//!                          +------|------+         +------|------+
//!   . . . . . . . . . . . . . . . | . . . . . . . . . . . | . . . . . . . . . the room begins
//!                          R::flush: an incarnation, a slicetable, ...
//! ```
//!
//! Invariants
//! 1. A key's newest version is in the active buffer of its partition, else in the newest frozen buffer
//!    that has it, else below, where the room finds it.
//! 2. A frozen buffer leaves RAM in the same moment, under the partition's lock, in which the room's
//!    level has its entries on flash.
//! 3. Every logged update is in the room's pages, in an image, or at or after the log tail that the next
//!    checkpoint will hold.
//! 4. What a partition has on flash changes only in its turn.
//! 5. Locks are taken in this order: a turn, what guards the room's maps together, a partition's state, then
//!    single maps, the log or a pool; nobody waits for a checkpoint or a free buffer while holding one.
//!
//! | act | flash reads | flash writes |
//! |---|---|---|
//! | insert, remove | 0 | its share of the log: 1 + key + value bytes |
//! | image of a buffer | 0 | the buffer's pages and its stash |
//! | open | images, and the log's tail | 0 |

mod background;
pub(crate) mod check;
pub(crate) mod format;
mod handle;
pub(crate) mod image;
mod left_over;
pub(crate) mod partition;
pub(crate) mod pool;
mod recover;
pub(crate) mod stats;
mod write;

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard};

use nandex_store::buffer::STASH_LEN_MAX;
use nandex_store::entries::EntryLayout;
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::{Lsn, StructureId, Volume};

use crate::lookup::Lookups;
use crate::{Error, Result};

pub(crate) use handle::{Handle, delegate_table};
pub(crate) use partition::{Frozen, Partition, PartitionState};
pub(crate) use recover::{Levels, Opening, Recovery, check_log, into_store, open};

use image::Images;
use pool::{BufferPool, ScratchPool, WorkQueue};
use stats::Counters;

/// What a table's buffers are, taken from its room's configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// How entry pages are cut up.
    pub layout: EntryLayout,
    /// Partitions, a power of two.
    pub partitions: u32,
    /// Pages of 4 KiB in a buffer.
    pub buffer_pages: u32,
    /// Entries in a buffer's pages at which it counts as full; its stash comes on top.
    pub entries_max: u32,
    /// Entries that flushes may leave behind of the buffers that one image has to hold, stashes aside.
    pub left_over_max: u32,
    /// Buffers beside one per partition.
    pub spare_buffers: u32,
    /// Is the first buffer of each partition flushed early, each at another fill?
    pub stagger: bool,
}

impl Shape {
    /// Entries that fit a buffer, stash included.
    pub(crate) fn buffer_limit(&self) -> usize {
        (self.entries_max as usize).saturating_add(STASH_LEN_MAX)
    }

    /// The partition of a key: the first bits of its hash.
    #[inline]
    pub(crate) fn partition_of(&self, hash: KeyHash) -> usize {
        // The shift is split so that a single partition (0 bits) works too.
        (hash.place >> 1 >> (63 - self.partitions.trailing_zeros())) as usize
    }
}

/// What is chosen at each opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    /// Threads that write full buffers; with 0 the inserting thread does.
    pub flush_threads: usize,
}

/// What a room adds to the intake: where full buffers go. How lookups find them there says its
/// [`KeyLookup`](crate::lookup::KeyLookup).
pub(crate) trait Room: Debug + Send + Sync + Sized + 'static {
    /// What a partition has on flash; under the partition's lock.
    type Level: Debug + Send;
    /// What a partition has beside its lock.
    type Beside: Debug + Send + Sync;
    /// What is taken when a buffer is frozen.
    type Held: Clone + Debug + Send;
    /// Work in the background beside flushes.
    type Job: Debug + Send;
    /// What a flush needs again and again.
    type Scratch: Send;

    /// May a version of this key lie below the active buffer?
    fn may_be_older(
        inner: &Intake<Self>,
        index: usize,
        state: &PartitionState<Self>,
        hash: KeyHash,
        key: &[u8],
    ) -> bool;

    /// Takes what a buffer needs before it is frozen, or says that the table is full.
    fn hold(inner: &Intake<Self>, index: usize, state: &PartitionState<Self>)
    -> Result<Self::Held>;

    /// Puts the oldest frozen buffer of a partition on flash and takes it out of the partition.
    fn flush(
        inner: &Intake<Self>,
        index: usize,
        frozen: Frozen<Self>,
        scratch: &mut Self::Scratch,
    ) -> Result<()>;

    /// What a flush needs; counted as RAM.
    fn new_scratch(inner: &Intake<Self>) -> Result<Self::Scratch>;

    /// Does other work.
    fn run(inner: &Intake<Self>, job: Self::Job, scratch: &mut Option<Self::Scratch>)
    -> Result<()>;

    /// Does the room put into the log what was durable elsewhere, so that all must be logged whatever the
    /// volume's durability?
    fn logs_always(&self) -> bool {
        false
    }

    /// Spare buffers that inserts leave to the room.
    fn spares_left(&self) -> usize {
        0
    }

    /// Entries below the buffers of a partition.
    fn entries_below(state: &PartitionState<Self>) -> u64;

    /// RAM of the room's own, in bytes.
    fn ram_bytes(inner: &Intake<Self>) -> u64;

    /// Bytes of flash that the table occupies.
    fn flash_bytes(inner: &Intake<Self>) -> u64;

    /// Before a checkpoint is captured.
    fn prepare(_inner: &Intake<Self>) -> Result<()> {
        Ok(())
    }

    /// Held while the partitions and the room's maps are captured, where a flush changes them together.
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        None
    }

    /// The room's maps for the checkpoint. `log_now` is the log's place before this call.
    fn capture(inner: &Intake<Self>, log_now: Lsn) -> Vec<u8>;

    /// The checkpoint of the last capture is durable.
    fn committed(inner: &Intake<Self>);

    /// Does the room take removals although it is full, because they make room?
    const FORCES_REMOVALS: bool = false;

    /// Does the room log when a buffer has moved to flash, so that its opening need not wait for a
    /// checkpoint to know?
    const LOGS_MOVES: bool = false;

    /// The log was replayed; lookups and inserts may begin.
    fn recovered(_inner: &Intake<Self>) {}
}

/// What a table's handle, its threads and the volume's checkpoints share.
pub(crate) struct Intake<R: Room> {
    pub(crate) volume: Volume,
    pub(crate) id: StructureId,
    pub(crate) shape: Shape,
    pub(crate) options: Options,
    pub(crate) layout: EntryLayout,
    pub(crate) hasher: KeyHasher,
    pub(crate) room: R,
    pub(crate) partitions: Vec<Partition<R>>,
    pub(crate) pool: BufferPool,
    pub(crate) lookups: Lookups,
    pub(crate) work: WorkQueue<R::Job>,
    pub(crate) counters: Counters,
    images: Images,
    scratches: ScratchPool<R::Scratch>,
    /// The log's place that recovery has reached; past every place once it has finished.
    replayed: AtomicU64,
    /// Were all log entries read?
    pub(crate) ready: AtomicBool,
    /// One `flush` at a time.
    flush_turn: Mutex<()>,
}

impl<R: Room> Debug for Intake<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Intake");
        out.field("id", &self.id).field("shape", &self.shape).field("room", &self.room);
        out.finish_non_exhaustive()
    }
}

impl<R: Room> Intake<R> {
    /// The partition of a key.
    #[inline]
    pub(crate) fn partition_of(&self, hash: KeyHash) -> usize {
        self.shape.partition_of(hash)
    }

    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        Error::check_width("key", key, self.layout.key_bytes())
    }

    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        Error::check_width("value", value, self.layout.value_bytes())
    }
}
