//! The state that a structure's handle, its threads and the volume's checkpoints share.

use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use nandex_store::hash::KeyHasher;
use nandex_store::{Durability, Lsn, StructureId, Volume};

use super::pace::Pace;
use super::pool::{BufferPool, ScratchPool, WorkQueue};
use super::snapshot::Snapshots;
use super::stats::WriteCounters;
use super::{Layout, Partition, WriteBuffer, WritePolicy};
use crate::lookup::Lookups;

/// The codec of a layout's buffers.
pub(crate) type Codec<L> = <<L as Layout>::Buffer as WriteBuffer>::Codec;

/// The arrangement of a structure's buffers, from its configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WriteShape {
    pub partitions: u32,
    /// Buffers in addition to one per partition.
    pub spare_buffers: u32,
    /// The number of entries at which a buffer counts as full.
    pub buffer_entries_max: u64,
    pub stagger: Stagger,
}

/// The fill at which each partition's first buffer is flushed. Hashing fills all partitions alike: without staggering
/// all would be full at once, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stagger {
    /// Each is flushed when it is full.
    Off,
    /// Each is flushed at a number of entries; these numbers are spread evenly over the partitions.
    Between { least: u64, most: u64 },
}

impl WriteShape {
    /// Returns the number of entries at which the first buffer of partition `index` is full.
    pub(super) fn first_limit(&self, index: usize) -> u64 {
        match self.stagger {
            Stagger::Off => self.buffer_entries_max,
            Stagger::Between { least, most } => {
                let share = (index as u64 + 1) * (most - least) / u64::from(self.partitions);
                (least + share).max(1)
            }
        }
    }
}

/// Options chosen at each opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Options {
    /// The threads that write full buffers; with 0 the updating thread does.
    pub flush_threads: usize,
}

/// The state that a structure's handle, its threads and the volume's checkpoints share.
pub(crate) struct Core<L: Layout> {
    pub(crate) volume: Volume,
    pub(crate) id: StructureId,
    pub(crate) shape: WriteShape,
    pub(crate) options: Options,
    pub(crate) policy: WritePolicy,
    pub(crate) codec: Codec<L>,
    pub(crate) hasher: KeyHasher,
    pub(crate) layout: L,
    pub(crate) partitions: Vec<Partition<L>>,
    pub(crate) pool: BufferPool<L::Buffer>,
    pub(crate) lookups: Lookups,
    pub(crate) work: WorkQueue<L::Job>,
    pub(crate) pace: Pace,
    pub(crate) counters: WriteCounters,
    pub(super) snapshots: Snapshots<L::Buffer>,
    pub(crate) scratches: ScratchPool<L::Scratch>,
    /// The number of the next boundary in the log.
    pub(super) next_boundary: AtomicU64,
    /// The log position that recovery has reached; after recovery, past every position.
    pub(super) replayed: AtomicU64,
    /// Whether the data on flash may have changed since the last capture. Set after each change.
    pub(crate) moved: AtomicBool,
    /// Whether the whole log was replayed.
    pub(crate) ready: AtomicBool,
    /// Serializes `flush_all`.
    pub(super) flush_lock: Mutex<()>,
}

impl<L: Layout> Debug for Core<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Core");
        out.field("id", &self.id).field("shape", &self.shape).field("layout", &self.layout);
        out.finish_non_exhaustive()
    }
}

impl<L: Layout> Core<L> {
    /// Returns whether updates are logged. Without durability only if the layout asks for it.
    pub(crate) fn logs(&self) -> bool {
        self.volume.durability() != Durability::Never || self.policy.logs_always
    }

    /// Returns the log position before which this structure has applied everything: the log's end, or during recovery
    /// the position of the replay.
    pub(super) fn log_now(&self) -> Lsn {
        let replayed = self.replayed.load(std::sync::atomic::Ordering::Acquire);
        self.volume.log().next_lsn().min(Lsn(replayed))
    }
}
