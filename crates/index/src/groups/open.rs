//! Recovery of the maps from the checkpoint; the write path restores snapshots and the log.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::{Structure, Volume};

use super::checkpoint::RestoredMaps;
use super::layout::GroupCounters;
use super::{GroupConfig, GroupMap, GroupStructure, Grouped};
use crate::lookup::TableCache;
use crate::options::FLUSH_THREADS;
use crate::schema::Stored;
use crate::write::{self, Core, Handle, Levels, Recovery, Retired, TableOpening, snapshot_pages};
use crate::{OpenOptions, Result};

/// Opens a table: a list of steps.
pub(super) fn open<S: GroupStructure>(
    volume: &Volume,
    structure: &Structure,
    options: &OpenOptions,
) -> Result<Handle<Grouped<S>>> {
    let [configuration, state] = S::Config::BYTES;
    let mut reader = Reader::new(&structure.config, configuration, PageId(0));
    let config = limited(<S::Config as Stored>::take(&mut reader)?, options)?;
    let mut reader = Reader::new(&structure.state, state, PageId(0));
    let RestoredMaps { snapshots, maps } = restore::<S>(structure, &config, &mut reader)?;
    let flush_threads = options.flush_threads.unwrap_or(FLUSH_THREADS);
    let (common, ram) = (config.common(), config.ram());
    let opening = TableOpening {
        shape: common.shape()?,
        flush_threads,
        snapshots_at: snapshots.start,
        reads: options.reads(volume, volume.device()),
    }
    .of(volume, structure);
    let cached = options.cache_bytes;
    let cache = TableCache::new(cached, (common.key_bytes, common.value_bytes))?;
    let rest = common.ram_bytes_max.map(|most| most.saturating_sub(cached));
    let layout = Grouped {
        own: S::new(&config),
        shape: common.shape()?,
        hasher: volume.hasher(),
        records: ram.records,
        entries_max: limited_to(config, rest).ram().entries_max(flush_threads),
        snapshots,
        maps: Mutex::default(),
        retired: Retired::new(structure.extents.clone()),
        counters: GroupCounters::default(),
        // A table that was just created has no snapshots.
        is_open: AtomicBool::new(structure.state.is_empty()),
        config,
    };
    let recovery = Recovering { layout, maps };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, count)?;
    handle.core.lookups.use_cache(cache);
    Ok(handle)
}

/// Returns the configuration with the RAM limit of this opening.
fn limited<C: GroupConfig>(config: C, options: &OpenOptions) -> Result<C> {
    let config = limited_to(config, options.ram_bytes_max.or(config.common().ram_bytes_max));
    config.check()?;
    config.ram().check(options.flush_threads.unwrap_or(FLUSH_THREADS))?;
    Ok(config)
}

fn limited_to<C: GroupConfig>(config: C, ram_bytes_max: Option<u64>) -> C {
    let common = config.common();
    config.with_common(super::GroupParameters { ram_bytes_max, ..common })
}

/// Counts the restored groups.
fn count<S: GroupStructure>(core: &Core<Grouped<S>>) -> Result<()> {
    for partition in &core.partitions {
        let map = Arc::clone(&partition.read().level);
        core.counters.flushed_entries.fetch_add(map.entries(), Relaxed);
        core.layout.counters.pages.fetch_add(map.pages(), Relaxed);
    }
    Ok(())
}

/// Restores the map of each partition, and the places for snapshots, from the checkpoint.
///
/// # Errors
/// Bytes that contradict the configuration, or pages that are not the table's.
pub(super) fn restore<S: GroupStructure>(
    structure: &Structure,
    config: &S::Config,
    reader: &mut Reader<'_>,
) -> Result<RestoredMaps<S::Map>> {
    let common = config.common();
    let partitions = (common.partitions, snapshot_pages(&common.shape()?));
    RestoredMaps::read(structure, partitions, reader, |reader| {
        S::decode_map(config, structure.id, reader)
    })
}

/// A table during recovery, between the checkpoint's maps and its final state.
struct Recovering<S: GroupStructure> {
    layout: Grouped<S>,
    maps: Vec<S::Map>,
}

impl<S: GroupStructure> Recovery<Grouped<S>> for Recovering<S> {
    fn finish(self) -> Result<(Grouped<S>, Levels<Grouped<S>>)> {
        let levels = self.maps.into_iter().map(|it| (Arc::new(it), ())).collect();
        Ok((self.layout, levels))
    }
}
