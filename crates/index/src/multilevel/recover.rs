//! From flash back to memory: the maps of the checkpoint; snapshots and the log are the write path's.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::reads::ReadPool;
use nandex_store::schedule::Channels;
use nandex_store::space::Extent;
use nandex_store::{Lsn, Structure, Volume};

use super::levels::LevelMap;
use super::page_cache::PageCache;
use super::stats::LevelCounters;
use super::{Config, Inner, Leveled, Multilevel, RuntimeOptions};
use crate::Result;
use crate::lookup::TableCache;
use crate::write::groups::is_own;
use crate::write::{
    self, CapturedMaps, Checkpoints, Levels, OnFlash, Recovery, Retired, TableOpening,
    snapshot_pages,
};

/// The version of the state's bytes.
const STATE_VERSION: u8 = 1;

/// Bytes of the state before the maps.
const HEAD_BYTES: usize = 9;

/// Bytes that the write path adds for each partition, or more.
const PARTITION_RECORD_BYTES: usize = 32;

/// Opens a table: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: RuntimeOptions,
) -> Result<Multilevel> {
    let mut reader = Reader::new(&structure.config, "multilevel configuration", PageId(0));
    let config = limited(Config::decode(&mut reader)?, &options)?;
    let mut reader = Reader::new(&structure.state, "multilevel state", PageId(0));
    let RestoredLevels { snapshots, maps } = restore(structure, &config, &mut reader)?;
    let channels = options.channels.unwrap_or_else(|| Channels::of(&volume.device().geometry()));
    let opening = TableOpening {
        shape: config.shape()?,
        flush_threads: options.flush_threads,
        snapshots_at: snapshots.start,
        reads: ReadPool::new(Arc::clone(volume.device()), channels, options.read_depth),
    }
    .of(volume, structure);
    let cached = options.cache_bytes;
    let layout = Leveled {
        shape: config.shape()?,
        hasher: volume.hasher(),
        plan: config.plan(),
        records: config.record_layout(),
        cache: PageCache::new(config.page_cache_bytes),
        entries_max: Config {
            ram_bytes_max: config.ram_bytes_max.map(|most| most.saturating_sub(cached)),
            ..config
        }
        .entries_max(options.flush_threads),
        snapshots,
        maps: Mutex::default(),
        retired: Retired::new(structure.extents.clone()),
        counters: LevelCounters::default(),
        config,
    };
    let count = |inner: &Inner| {
        let levels = inner.partitions.iter().map(|partition| Arc::clone(&partition.read().level));
        for map in levels {
            inner.counters.flushed_entries.fetch_add(map.entries, Relaxed);
            inner.layout.counters.pages.fetch_add(map.pages(), Relaxed);
        }
        Ok(())
    };
    let recovery = Recovering { layout, maps };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, count)?;
    handle.core.lookups.use_cache(TableCache::new(cached, config.key_bytes, config.value_bytes));
    Ok(Multilevel { handle })
}

/// The configuration with the RAM of this opening.
fn limited(config: Config, options: &RuntimeOptions) -> Result<Config> {
    let ram_bytes_max = options.ram_bytes_max.or(config.ram_bytes_max);
    let limited = Config { ram_bytes_max, ..config };
    limited.validate()?;
    limited.check_ram(options.flush_threads)?;
    Ok(limited)
}

/// What a checkpoint keeps of a table.
pub(super) struct RestoredLevels {
    /// The places for snapshots of buffers.
    pub snapshots: Extent,
    /// Each partition's.
    pub maps: Vec<LevelMap>,
}

/// The map of each partition, from the checkpoint.
///
/// # Errors
/// Bytes that contradict the configuration, or pages that are not the table's.
pub(super) fn restore(
    structure: &Structure,
    config: &Config,
    reader: &mut Reader<'_>,
) -> Result<RestoredLevels> {
    let pages = snapshot_pages(&config.shape()?);
    if structure.state.is_empty() {
        let snapshots = Extent { start: structure.extent()?.start, pages };
        let maps = (0..config.partitions).map(|_| LevelMap::default()).collect();
        return Ok(RestoredLevels { snapshots, maps });
    }
    let version = reader.u8()?;
    if version != STATE_VERSION {
        return Err(reader.refuse(format!("a state of version {STATE_VERSION}"), version).into());
    }
    let snapshots = Extent { start: PageId(reader.u64()?), pages };
    let mut own = structure.extents.clone();
    own.sort_by_key(|extent| extent.start);
    let mut maps = Vec::new();
    for _ in 0..config.partitions {
        let map = LevelMap::decode(structure.id, config.plan(), reader)?;
        maps.push(map);
    }
    let groups = maps.iter().flat_map(LevelMap::groups).map(|group| group.extent());
    let lost = groups.chain([snapshots]).find(|extent| !is_own(&own, *extent));
    match lost {
        None => Ok(RestoredLevels { snapshots, maps }),
        Some(lost) => {
            let expected = "pages on extents of the structure's own";
            Err(reader.refuse(expected, format!("{lost:?}")).into())
        }
    }
}

/// A table during recovery, between the checkpoint's maps and its final state.
struct Recovering {
    layout: Leveled,
    maps: Vec<LevelMap>,
}

impl Recovery<Leveled> for Recovering {
    fn finish(self) -> Result<(Leveled, Levels<Leveled>)> {
        let levels = self.maps.into_iter().map(|it| (Arc::new(it), ())).collect();
        Ok((self.layout, levels))
    }
}

impl Checkpoints for Leveled {
    fn lock_maps(&self) -> Option<std::sync::MutexGuard<'_, ()>> {
        is_on(Barrier::RecordsCaptureHoldsMaps).then(|| self.hold_maps())
    }

    fn capture(core: &Inner, _log_now: Lsn) -> CapturedMaps {
        let layout = &core.layout;
        let maps: Vec<_> =
            core.partitions.iter().map(|partition| Arc::clone(&partition.read().level)).collect();
        let length = maps.iter().map(|it| it.encoded_bytes()).sum::<usize>();
        let partitions = maps.len() * PARTITION_RECORD_BYTES;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + length + partitions);
        bytes.push(STATE_VERSION);
        bytes.extend_from_slice(&layout.snapshots.start.0.to_le_bytes());
        maps.iter().for_each(|map| map.encode(&mut bytes));
        let groups = || maps.iter().flat_map(|it| it.groups());
        let mut extents = Vec::with_capacity(groups().count() + 1);
        extents.push(layout.snapshots);
        extents.extend(groups().map(|group| group.extent()));
        drop(maps);
        let extents = layout.retired.extents(&core.volume, extents);
        layout.counters.replaced_pages.store(0, Relaxed);
        CapturedMaps { bytes, extents: Some(extents) }
    }

    fn committed(_core: &Inner) {}
}
