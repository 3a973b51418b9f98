//! Recovery of the maps from the checkpoint and the moves in the log; the write path restores its own state.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::hash::KeyHasher;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::ring::{Reuse, Ring, RingShape, SegmentId, SegmentTag};
use nandex_store::shadow::{MAP_UPDATE_BYTES, Shadow, ShadowRecovery};
use nandex_store::space::Extent;
use nandex_store::{Lsn, Structure, StructureId, Volume};

use super::filter::{Filters, RecentMisses};
use super::front::{Front, Run};
use super::layout::Slicing;
use super::older::Older;
use super::overflow::Overflow;
use super::{Config, Inner, Level, SliceHash, SlicetableJob, Slicetables};
use crate::lookup::TableCache;
use crate::options::{FLUSH_THREADS, IO_CHUNK_PAGES};
use crate::write::new_keys::NewKeys;
use crate::write::{
    self, CapturedMaps, Checkpoints, Levels, Recovery, StateOf, TableOpening, apply_moves, pool,
};
use crate::{OpenOptions, Result};

/// The bytes of a move after those that all moves have: in earlier versions, and with the share of new keys.
const MOVE_BYTES: [usize; 2] = [MAP_UPDATE_BYTES + 8, MAP_UPDATE_BYTES + 12];

/// Opens a table, which may take over from an older one: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    runtime: OpenOptions,
    older: Option<Older>,
) -> Result<SliceHash> {
    let place = structure.extent()?.start;
    let mut reader = Reader::new(&structure.config, "slicehash configuration", place);
    let config = Config::decode(&mut reader)?;
    runtime.validate()?;
    let mut reader = Reader::new(&structure.state, "slicehash state", place);
    let opening = TableOpening {
        shape: config.shape()?,
        flush_threads: runtime.flush_threads.unwrap_or(FLUSH_THREADS),
        snapshots_at: place.plus(config.slicetable_pages() + config.front_pages()),
        reads: runtime.reads(volume, volume.device()),
    }
    .of(volume, structure);
    let from = Source {
        id: structure.id,
        place,
        epoch: volume.epoch(),
        state: &structure.state,
        takes_over: older.is_some(),
    };
    let cache = TableCache::new(runtime.cache_bytes, (config.key_bytes, config.value_bytes))?;
    let maps = Maps::restore(&from, config, &mut reader)?;
    let recovery = Recovering { maps, runtime, hasher: volume.hasher(), older };
    let count = |inner: &Inner| {
        let entries = inner.partitions.iter().map(|partition| partition.read().level.entries);
        inner.counters.flushed_entries.store(entries.sum(), Relaxed);
        Ok(())
    };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, count)?;
    handle.core.lookups.use_cache(cache);
    Ok(handle)
}

/// The source of a table's maps.
pub(super) struct Source<'s> {
    pub id: StructureId,
    /// The first page of the table.
    pub place: PageId,
    /// The volume's epoch, which is unique to this session.
    pub epoch: u64,
    /// The state that the reader reads; empty for a table just created.
    pub state: &'s [u8],
    /// Whether it is one of a growing table's parts, whose state has the overflow of splits.
    pub takes_over: bool,
}

impl Source<'_> {
    fn shadow(&self, config: &Config, reader: &mut Reader<'_>) -> Result<ShadowRecovery> {
        let (shape, pages) = (config.shadow_shape(), config.slicetable_pages());
        let extent = Extent { start: self.place, pages };
        if self.state.is_empty() {
            return Ok(ShadowRecovery::blank(self.id, extent, shape, self.epoch));
        }
        Ok(ShadowRecovery::start(self.id, extent, shape, self.epoch, reader)?)
    }

    fn overflow(&self, config: &Config, reader: &mut Reader<'_>) -> Result<Vec<(u32, Overflow)>> {
        if self.state.is_empty() || !self.takes_over {
            return Ok(Vec::new());
        }
        Overflow::decode_all(config, reader)
    }

    fn front(&self, config: &Config, reader: &mut Reader<'_>) -> Result<Option<Ring>> {
        if config.front_runs == 0 {
            return Ok(None);
        }
        let shape = RingShape {
            segment_pages: config.buffer_pages,
            segments: config.front_runs.into(),
            reuse: Reuse::Oldest,
        };
        let start = self.place.plus(config.slicetable_pages());
        let extent = Extent { start, pages: config.front_pages() };
        Ok(Some(if self.state.is_empty() {
            Ring::create(self.id, extent, shape, self.epoch)
        } else {
            Ring::restore(self.id, extent, shape, self.epoch, reader)?
        }))
    }
}

/// The maps during recovery.
pub(super) struct Maps {
    pub config: Config,
    shadow: ShadowRecovery,
    front: Option<Ring>,
    /// The newest merged run of each partition that moved, by its generation.
    merged_runs: HashMap<u32, u64>,
    overflow: HashMap<u32, Overflow>,
    /// The share of new keys in the last move, if moves have it.
    pub new_keys: Option<NewKeys>,
    place: PageId,
}

/// The recovered maps.
pub(super) struct Restored {
    pub shadow: Shadow,
    pub front: Front,
    /// The level of each partition.
    pub levels: Vec<Level>,
}

impl Maps {
    /// Restores the maps of the checkpoint.
    ///
    /// # Errors
    /// Bytes that contradict the configuration.
    pub fn restore(from: &Source<'_>, config: Config, reader: &mut Reader<'_>) -> Result<Self> {
        let shadow = from.shadow(&config, reader)?;
        let front = from.front(&config, reader)?;
        let overflow = from.overflow(&config, reader)?.into_iter().collect();
        let (merged_runs, place) = (HashMap::new(), from.place);
        Ok(Self { config, shadow, front, merged_runs, overflow, new_keys: None, place })
    }

    /// Applies a move's bytes, in the log's order; returns whether it came after the checkpoint.
    ///
    /// # Errors
    /// Bytes that contradict the configuration.
    pub fn moved(&mut self, partition: u32, bytes: &[u8]) -> Result<bool> {
        let before = self.shadow.block(partition);
        let mut reader = Reader::new(bytes, "move of a slicetable", self.place);
        let update = self.shadow.replay(&mut reader)?;
        if update.logical != partition || !MOVE_BYTES.contains(&bytes.len()) {
            let expected = format!("a move of partition {partition}");
            let found = format!("{} bytes, of partition {}", bytes.len(), update.logical);
            return Err(reader.refuse(expected, found).into());
        }
        let newest = reader.u64()?;
        if newest > 0 {
            self.merged_runs.insert(partition, newest);
        }
        let is_news = self.shadow.block(partition) != before;
        if is_news {
            // A move with overflow is not logged.
            self.overflow.remove(&partition);
            if reader.left() > 0 {
                self.new_keys = Some(NewKeys::take(&mut reader)?);
            }
        }
        Ok(is_news)
    }

    /// Returns the maps, once all moves are applied.
    ///
    /// # Errors
    /// Maps that contradict each other.
    pub fn finish(self) -> Result<Restored> {
        let shadow = self.shadow.finish();
        let front = Front::new(&self.config, self.front);
        let mut levels = levels(&self.config, &shadow, &front, &self.merged_runs, self.place)?;
        for (partition, overflow) in self.overflow {
            levels[partition as usize].overflow = overflow;
        }
        Ok(Restored { shadow, front, levels })
    }
}

/// A table during recovery, between the checkpoint's maps and its final state.
struct Recovering {
    maps: Maps,
    runtime: OpenOptions,
    hasher: KeyHasher,
    older: Option<Older>,
}

impl Recovery<Slicetables> for Recovering {
    fn apply_moves(
        &mut self,
        volume: &Volume,
        structure: &Structure,
        state: &mut StateOf<Slicetables>,
    ) -> Result<()> {
        apply_moves(volume, structure, state, |partition, own| self.maps.moved(partition, own))?;
        state.new_keys = self.maps.new_keys.unwrap_or(state.new_keys);
        Ok(())
    }

    fn finish(self) -> Result<(Slicetables, Levels<Slicetables>)> {
        let config = self.maps.config;
        let Restored { shadow, front, levels } = self.maps.finish()?;
        let builders = self.runtime.flush_threads.unwrap_or(FLUSH_THREADS);
        let filters = Filters::new(&config, self.runtime.filter_bytes, builders);
        let layout = Slicetables {
            shape: config.shape()?,
            hasher: self.hasher,
            slices: config.slice_layout(),
            slicing: Slicing::new(&config),
            io_chunk_pages: self.runtime.io_chunk_pages.unwrap_or(IO_CHUNK_PAGES),
            maps: Mutex::default(),
            captured: Captured::default(),
            filters,
            older: self.older,
            shadow,
            front,
            config,
        };
        Ok((layout, levels.into_iter().map(|level| (level, RecentMisses::default())).collect()))
    }
}

/// Gives each partition its entries and its runs, in the order of the ring.
fn levels(
    config: &Config,
    shadow: &Shadow,
    front: &Front,
    merged: &HashMap<u32, u64>,
    place: PageId,
) -> Result<Vec<Level>> {
    let level = |partition| {
        let entries = shadow.block(partition).map_or(0, |block| block.entries.into());
        Level { entries, ..Level::default() }
    };
    let mut levels: Vec<Level> = (0..config.partitions).map(level).collect();
    let mut gone = VecDeque::new();
    for (id, SegmentTag { owner, entries, .. }) in front.ring.iter().flat_map(Ring::segments) {
        let Some(level) = levels.get_mut(owner as usize) else {
            let expected = format!("runs of {} partitions", config.partitions);
            let found = format!("one of partition {owner}");
            let error = nandex_store::Error::corrupt("slicehash state", place, expected, found);
            return Err(error.into());
        };
        match merged.get(&owner) {
            Some(&newest) if !id.is_after(newest) && is_on(Barrier::MoveTakesItsRuns) => {
                gone.push_back(id);
            }
            _ => level.runs.push_back(Run { id, entries, filter: None }),
        }
    }
    front.merged(gone.into_iter());
    Ok(levels)
}

/// The map updates in the last capture of each map.
#[derive(Debug, Default)]
pub(super) struct Captured {
    updates: AtomicU64,
    oldest_run: AtomicU64,
}

impl Slicetables {
    /// Locks buffers, runs and slicetable while a merge changes them, or while all of them are captured. A checkpoint
    /// with some from before a merge and others from after it would shadow newer entries by older ones.
    pub(super) fn hold_maps(&self) -> MutexGuard<'_, ()> {
        self.maps.lock().expect("no holder of the maps' lock panics")
    }
}

impl Checkpoints for Slicetables {
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        is_on(Barrier::CaptureHoldsMaps).then(|| self.hold_maps())
    }

    fn capture(core: &Inner, log_now: Lsn) -> CapturedMaps {
        let layout = &core.layout;
        let capture = layout.shadow.capture(log_now);
        layout.captured.updates.store(capture.mark, Release);
        let mut bytes = capture.bytes;
        layout.captured.oldest_run.store(layout.front.capture(&mut bytes), Release);
        if layout.older.is_some() {
            let overflow: Vec<_> =
                core.partitions.iter().map(|it| it.read().level.overflow.clone()).collect();
            Overflow::encode_all((0..).zip(&overflow), &mut bytes);
        }
        CapturedMaps { bytes, extents: None }
    }

    fn committed(core: &Inner) {
        let layout = &core.layout;
        layout.shadow.committed(layout.captured.updates.load(Acquire));
        layout.front.committed(layout.captured.oldest_run.load(Acquire));
    }

    /// Queues merges of the runs that existed at open.
    fn recovered(core: &Inner) {
        for (index, partition) in core.partitions.iter().enumerate() {
            if !partition.read().level.runs.is_empty() {
                core.work.push(pool::Job::Own(SlicetableJob::Drain(index)));
            }
        }
    }
}

impl Inner {
    /// Returns whether this run is still to be merged.
    pub(super) fn has_run(&self, index: usize, id: SegmentId) -> bool {
        self.partitions[index].read().level.runs.iter().any(|run| run.id == id)
    }
}
