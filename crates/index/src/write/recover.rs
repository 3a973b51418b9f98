//! Recovery: restores the layout's maps, the snapshots, and then the log.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, Weak};

use nandex_store::bytes::Reader;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::reads::ReadPool;
use nandex_store::{Captured, Checkpointed, Durability, Lsn, Structure, Volume};

use super::format::{AddsUp, PartitionRecord, WriteState};
use super::pace::Pace;
use super::partition::Partition;
use super::pool::{BufferPool, JobLimits, ScratchPool, WorkQueue};
use super::snapshot::{Snapshots, Store};
use super::stats::WriteCounters;
use super::{
    Boundary, Checkpoints, Core, Handle, Layout, Options, PartitionState, SnapshotRef,
    SnapshotStore, TableShape, WriteBuffer, WriteShape,
};
use crate::lookup::Lookups;
use crate::model::text;
use crate::{Error, Result};

/// Returns the bytes that the contents of a table's buffers take in the log, when all are full.
pub(crate) fn logged_bytes(shape: &TableShape) -> u64 {
    let entries = u64::from(shape.partitions) * u64::from(shape.entries_max);
    entries * (1 + shape.layout.entry_bytes() as u64)
}

/// Fails for a table whose buffers the volume's log cannot cover.
pub(crate) fn check_log(volume: &Volume, shape: &TableShape) -> Result<()> {
    let bytes = logged_bytes(shape);
    check_log_covers(volume, bytes, &text::bytes(bytes), "the table with fewer or smaller buffers")
}

/// Returns whether the volume's log covers a table's buffers, or may grow long enough to.
pub(crate) fn may_cover(volume: &Volume, shape: &TableShape) -> bool {
    volume.log_bytes_max() >= logged_bytes(shape).saturating_mul(2)
}

/// Fails for a structure whose `buffers`, which take `bytes` in the log, the volume's log cannot cover. Log space is
/// released only as buffers are flushed, so the log must hold at least the contents of all buffers, and more meanwhile.
/// A log that may grow does so as it fills. `instead` describes what can be created instead.
pub(crate) fn check_log_covers(
    volume: &Volume,
    bytes: u64,
    buffers: &str,
    instead: &str,
) -> Result<()> {
    // The length that buffers work best with.
    volume.let_log_grow(bytes.saturating_mul(8))?;
    let log_bytes = volume.log_bytes_max();
    if log_bytes >= bytes.saturating_mul(2) {
        return Ok(());
    }
    let reason = format!(
        "the volume's log of {} is too small for buffers of {buffers}; create the volume with a log of at least {}, or \
         {instead}",
        text::bytes(log_bytes),
        text::bytes(bytes.saturating_mul(4))
    );
    Err(Error::ShortLog { field: "log_bytes", reason })
}

/// Checks the log as [`check_log_covers`] does, for a structure whose updates add up. Without durability the log need
/// not cover the buffers: if the structure is later opened with durability, it saves them before they are full.
pub(crate) fn check_log_of_sums(
    volume: &Volume,
    bytes: u64,
    buffers: &str,
    instead: &str,
) -> Result<()> {
    match volume.durability() {
        Durability::Never => Ok(()),
        _ => check_log_covers(volume, bytes, buffers, instead),
    }
}

/// The parameters of the write path for opening a structure.
pub(crate) struct Opening<B: WriteBuffer> {
    pub shape: WriteShape,
    pub options: Options,
    /// The pool that reads the structure's pages for lookups.
    pub reads: ReadPool,
    pub codec: B::Codec,
    pub snapshots: B::Snapshots,
}

/// The level of each partition on flash, and its state that is read without a lock.
pub(crate) type Levels<L> = Vec<(<L as Layout>::Level, <L as Layout>::Unlocked)>;

/// The state of a layout's buffers.
pub(crate) type StateOf<L> = WriteState<SnapshotRef<<L as Layout>::Buffer>>;

/// A layout during recovery, between the checkpoint's maps and its final state.
pub(crate) trait Recovery<L: Layout> {
    /// Applies the moves in the log since the checkpoint, if the layout logs them.
    ///
    /// # Errors
    /// A failed read, or records that contradict each other.
    fn apply_moves(
        &mut self,
        _volume: &Volume,
        _structure: &Structure,
        _state: &mut StateOf<L>,
    ) -> Result<()> {
        Ok(())
    }

    /// Returns the layout, once all moves are applied.
    ///
    /// # Errors
    /// Maps that contradict each other.
    fn finish(self) -> Result<(L, Levels<L>)>;
}

/// Opens a structure: a list of steps. The reader is after the layout's own maps; `prove` is called before
/// anything is written.
pub(crate) fn open<L: Checkpoints>(
    volume: &Volume,
    structure: &Structure,
    reader: &mut Reader<'_>,
    opening: Opening<L::Buffer>,
    mut recovery: impl Recovery<L>,
    prove: impl FnOnce(&Core<L>) -> Result<()>,
) -> Result<Handle<L>> {
    let mut state = restore::<L>(structure, &opening, reader)?;
    recovery.apply_moves(volume, structure, &mut state)?;
    let (layout, levels) = recovery.finish()?;
    let core = Arc::new(assemble(volume, structure, opening, (layout, levels), &state));
    prove(&core)?;
    let WriteState { partitions, .. } = state;
    let tails: Vec<Lsn> = partitions.iter().map(|record| record.tail).collect();
    core.load_snapshots(partitions.into_iter().map(|record| record.snapshot).collect())?;
    let registered: Weak<dyn Checkpointed> =
        Arc::downgrade(&(Arc::clone(&core) as Arc<dyn Checkpointed>));
    volume.register(structure.id, registered);
    use_background(&core)?;
    // From here on, dropping the handle ends the background work.
    let handle = Handle { core, closed: false };
    handle.core.replay(structure, &tails)?;
    L::recovered(&handle.core);
    Ok(handle)
}

/// Returns the buffers' state in the checkpoint; an empty one for a structure just created.
fn restore<L: Layout>(
    structure: &Structure,
    opening: &Opening<L::Buffer>,
    reader: &mut Reader<'_>,
) -> Result<StateOf<L>> {
    let partitions = opening.shape.partitions as usize;
    if structure.state.is_empty() {
        return Ok(WriteState::new(partitions, structure.tail));
    }
    let decode = |reader: &mut Reader<'_>| opening.snapshots.decode(reader);
    let state = WriteState::decode_with(AddsUp::of::<L::Buffer>(), reader, decode)?;
    if state.partitions.len() != partitions {
        return Err(reader.refuse(partitions, state.partitions.len()).into());
    }
    Ok(state)
}

fn assemble<L: Layout>(
    volume: &Volume,
    structure: &Structure,
    opening: Opening<L::Buffer>,
    (layout, levels): (L, Levels<L>),
    state: &StateOf<L>,
) -> Core<L> {
    let Opening { shape, mut options, reads, codec, snapshots } = opening;
    if volume.is_read_only() {
        // There is nothing to flush.
        options.flush_threads = 0;
    }
    let is_new = structure.state.is_empty();
    let buffer = |limit| {
        let mut buffer = layout.new_buffer();
        buffer.limit(limit);
        buffer
    };
    let partition = |(index, ((level, unlocked), record)): (usize, (_, &PartitionRecord<_>))| {
        let first_limit = shape.first_limit(index);
        let active = buffer(if is_new { first_limit } else { shape.buffer_entries_max });
        let flushed = flushed(record, structure.tail);
        Partition::new(PartitionState::new(active, level, flushed), unlocked)
    };
    let levels = levels.into_iter().zip(&state.partitions);
    let next_boundary = state.partitions.iter().map(|it| it.boundary + 1).max().unwrap_or(1);
    let spares = (0..shape.spare_buffers).map(|_| buffer(shape.buffer_entries_max)).collect();
    let policy = layout.policy();
    Core {
        volume: volume.clone(),
        id: structure.id,
        hasher: volume.hasher(),
        partitions: levels.enumerate().map(partition).collect(),
        pool: BufferPool::new(spares),
        lookups: Lookups::new(reads),
        work: WorkQueue::default(),
        pace: Pace::new(policy.pace_updates, options.flush_threads),
        counters: WriteCounters::restore(state.life, state.new_keys),
        snapshots: Snapshots::new(snapshots, shape.partitions as usize, state.next_generation),
        scratches: ScratchPool::default(),
        next_boundary: AtomicU64::new(next_boundary),
        replayed: AtomicU64::new(structure.tail.0),
        moved: AtomicBool::new(false),
        ready: AtomicBool::new(false),
        flush_lock: Mutex::default(),
        shape,
        options,
        policy,
        codec,
        layout,
    }
}

/// Returns the end of the buffers that a partition has on flash. While a structure is closed, later checkpoints advance
/// its tail and drop the record of its boundary from the log. The tail then replaces the boundary: a replay that waited
/// for the record would skip every update.
fn flushed<R>(record: &PartitionRecord<R>, structure_tail: Lsn) -> Boundary {
    let is_dropped = structure_tail > record.tail && is_on(Barrier::DroppedBoundaryIsAPlace);
    let number = if is_dropped { 0 } else { record.boundary };
    Boundary { number, at: record.tail.max(structure_tail) }
}

/// Lets the volume's background threads flush the structure's buffers, unless the updating threads do.
fn use_background<L: Layout>(core: &Arc<Core<L>>) -> Result<()> {
    let (flushes, own) = (core.options.flush_threads, core.policy.own_jobs);
    if flushes > 0 {
        let asker = core.volume.serve(core, flushes + own)?;
        core.work.use_background(asker, JobLimits { flushes, own });
    }
    Ok(())
}

/// Turns an error of a structure into one of the volume.
pub(crate) fn into_store(error: Error) -> nandex_store::Error {
    match error {
        Error::Store(error) => error,
        Error::Device(error) => error.into(),
        other => nandex_store::Error::config("structure", other),
    }
}

impl<L: Checkpoints> Checkpointed for Core<L> {
    fn prepare(&self) -> nandex_store::Result<()> {
        L::prepare(self).map_err(into_store)?;
        self.write_snapshots().map_err(into_store)
    }

    fn capture(&self) -> Captured {
        // The log position is read first, and the layout's maps last. What goes to flash in between is then in both,
        // which does no harm; in the other order it would be in neither. If updates add up it would count twice, so a
        // partition is captured as a whole, under its lock.
        self.moved.store(false, SeqCst);
        let _maps = L::lock_maps(&self.layout);
        let now = self.log_now();
        let mut partitions = Vec::with_capacity(self.partitions.len());
        for partition in &self.partitions {
            let state = partition.read();
            // A boundary that is a position covers exactly the updates before it, even before a replay has reached it.
            let latest = if L::Buffer::ADDS_UP { Lsn(u64::MAX) } else { now };
            partitions.push(PartitionRecord {
                tail: state.tail().map_or(now, |since| since.min(latest)),
                boundary: state.covered().number,
                snapshot: state.needed_snapshot().map(|snapshot| snapshot.place.clone()),
            });
        }
        let tail = partitions.iter().fold(now, |oldest, record| oldest.min(record.tail));
        self.snapshots.capture(partitions.iter().map(|it| it.snapshot.clone()).collect());
        let maps = L::capture(self, now);
        let mut state = maps.bytes;
        let next_generation = self.snapshots.next_generation();
        // Read after the maps, so that no eviction is reflected in the maps but not counted.
        let (life, new_keys) = (self.counters.life(), self.counters.new_keys.get());
        let written = WriteState { next_generation, partitions, life, new_keys };
        let adds_up = AddsUp::of::<L::Buffer>();
        written.encode_with(adds_up, &mut state, Store::<L::Buffer>::encode);
        Captured { state, tail, extents: maps.extents }
    }

    fn committed(&self) {
        self.snapshots.committed();
        L::committed(self);
    }

    fn flush_before(&self, before: Lsn) -> nandex_store::Result<()> {
        self.snapshot_before(before);
        Ok(())
    }

    fn run_deferred(&self) -> nandex_store::Result<()> {
        self.catch_up_now().map(drop).map_err(into_store)
    }
}
