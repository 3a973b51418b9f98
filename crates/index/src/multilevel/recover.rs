//! From flash back to memory: the maps of the checkpoint; snapshots and the log are the write path's.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::reads::ReadPool;
use nandex_store::schedule::Channels;
use nandex_store::{Lsn, Structure, Volume};

use super::levels::LevelMap;
use super::page_cache::PageCache;
use super::stats::LevelCounters;
use super::{Config, Inner, Leveled, Multilevel, RuntimeOptions};
use crate::Result;
use crate::lookup::TableCache;
use crate::write::groups::{RestoredMaps, capture_maps};
use crate::write::{
    self, CapturedMaps, Checkpoints, Levels, Recovery, Retired, TableOpening, snapshot_pages,
};

/// Opens a table: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: RuntimeOptions,
) -> Result<Multilevel> {
    let mut reader = Reader::new(&structure.config, "multilevel configuration", PageId(0));
    let config = limited(Config::decode(&mut reader)?, &options)?;
    let mut reader = Reader::new(&structure.state, "multilevel state", PageId(0));
    let RestoredMaps { snapshots, maps } = restore(structure, &config, &mut reader)?;
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

/// The map of each partition, and the places for snapshots, from the checkpoint.
///
/// # Errors
/// Bytes that contradict the configuration, or pages that are not the table's.
pub(super) fn restore(
    structure: &Structure,
    config: &Config,
    reader: &mut Reader<'_>,
) -> Result<RestoredMaps<LevelMap>> {
    let partitions = (config.partitions, snapshot_pages(&config.shape()?));
    RestoredMaps::read(structure, partitions, reader, |reader| {
        LevelMap::decode(structure.id, config.plan(), reader)
    })
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
        let captured = capture_maps(core, layout.snapshots, &layout.retired);
        layout.counters.replaced_pages.store(0, Relaxed);
        captured
    }

    fn committed(_core: &Inner) {}
}
