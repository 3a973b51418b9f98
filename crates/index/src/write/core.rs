//! What a structure's handle, its threads and the volume's checkpoints share.

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
    /// Entries at which a buffer counts as full.
    pub buffer_entries_max: u64,
    pub stagger: Stagger,
}

/// The fill at which each partition's first buffer is flushed. Hashing fills all partitions alike: without
/// this all would be full at once, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stagger {
    /// Each when it is full.
    Off,
    /// At numbers of entries that are spread evenly over the partitions.
    Between { least: u64, most: u64 },
}

impl WriteShape {
    /// Entries at which the first buffer of partition `index` is full.
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
    /// Threads that write full buffers; with 0 the updating thread does.
    pub flush_threads: usize,
}

/// What a structure's handle, its threads and the volume's checkpoints share.
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
    /// The log's place that recovery has reached; after recovery, past every place.
    pub(super) replayed: AtomicU64,
    /// May what is on flash have changed since the last capture? Set after each change.
    pub(crate) moved: AtomicBool,
    /// Was the whole log replayed?
    pub(crate) ready: AtomicBool,
    /// One `flush_all` at a time.
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
    /// Are updates logged? Without durability only if the layout asks for it.
    pub(crate) fn logs(&self) -> bool {
        self.volume.durability() != Durability::Never || self.policy.logs_always
    }

    /// The log's place before which this structure has applied everything: the log's end, or during recovery
    /// where the replay reads.
    pub(super) fn log_now(&self) -> Lsn {
        let replayed = self.replayed.load(std::sync::atomic::Ordering::Acquire);
        self.volume.log().next_lsn().min(Lsn(replayed))
    }
}
