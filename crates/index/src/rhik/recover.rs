//! From flash back to memory: the directories of the checkpoint; snapshots and the log are the write path's.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nandex_device::PageId;
use nandex_store::buffer::Buffer;
use nandex_store::bytes::Reader;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::reads::ReadPool;
use nandex_store::schedule::Channels;
use nandex_store::{Lsn, Structure, Volume};

use super::directory::Directory;
use super::stats::Counters;
use super::{Config, Inner, Records, Rhik, RuntimeOptions};
use crate::Result;
use crate::lookup::TableCache;
use crate::write::groups::{RestoredMaps, capture_maps};
use crate::write::{
    self, CapturedMaps, Checkpoints, Layout, Levels, Recovery, Retired, TableOpening, copy_entries,
    snapshot_pages,
};

/// Opens a table: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: RuntimeOptions,
) -> Result<Rhik> {
    let mut reader = Reader::new(&structure.config, "rhik configuration", PageId(0));
    let config = limited(Config::decode(&mut reader)?, &options)?;
    let mut reader = Reader::new(&structure.state, "rhik state", PageId(0));
    let RestoredMaps { snapshots, maps: directories } = restore(structure, &config, &mut reader)?;
    let channels = options.channels.unwrap_or_else(|| Channels::of(&volume.device().geometry()));
    let opening = TableOpening {
        shape: config.shape()?,
        flush_threads: options.flush_threads,
        snapshots_at: snapshots.start,
        reads: ReadPool::new(Arc::clone(volume.device()), channels, options.read_depth),
    }
    .of(volume, structure);
    let cached = options.cache_bytes;
    let layout = Records {
        shape: config.shape()?,
        hasher: volume.hasher(),
        records: config.record_layout(),
        entries_max: Config {
            ram_bytes_max: config.ram_bytes_max.map(|most| most.saturating_sub(cached)),
            ..config
        }
        .entries_max(options.flush_threads),
        snapshots,
        maps: Mutex::default(),
        retired: Retired::new(structure.extents.clone()),
        counters: Counters::default(),
        // A table that was just created has no snapshots.
        is_open: AtomicBool::new(structure.state.is_empty()),
        config,
    };
    let count = |inner: &Inner| {
        let levels = inner.partitions.iter().map(|partition| Arc::clone(&partition.read().level));
        for directory in levels {
            inner.counters.flushed_entries.fetch_add(directory.entries, Relaxed);
            inner.layout.counters.pages.fetch_add(directory.pages(), Relaxed);
        }
        Ok(())
    };
    let recovery = Recovering { layout, directories };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, count)?;
    handle.core.lookups.use_cache(TableCache::new(cached, config.key_bytes, config.value_bytes));
    Ok(Rhik { handle })
}

/// The configuration with the RAM of this opening.
fn limited(config: Config, options: &RuntimeOptions) -> Result<Config> {
    let ram_bytes_max = options.ram_bytes_max.or(config.ram_bytes_max);
    let limited = Config { ram_bytes_max, ..config };
    limited.validate()?;
    limited.check_ram(options.flush_threads)?;
    Ok(limited)
}

/// The directory of each partition, and the places for snapshots, from the checkpoint.
///
/// # Errors
/// Bytes that contradict the configuration, or pages that are not the table's.
pub(super) fn restore(
    structure: &Structure,
    config: &Config,
    reader: &mut Reader<'_>,
) -> Result<RestoredMaps<Directory>> {
    let partitions = (config.partitions, snapshot_pages(&config.shape()?));
    RestoredMaps::read(structure, partitions, reader, |reader| {
        Directory::decode(structure.id, reader)
    })
}

/// A table during recovery, between the checkpoint's directories and its final state.
struct Recovering {
    layout: Records,
    directories: Vec<Directory>,
}

impl Recovery<Records> for Recovering {
    fn finish(self) -> Result<(Records, Levels<Records>)> {
        let levels = self.directories.into_iter().map(|it| (Arc::new(it), ())).collect();
        Ok((self.layout, levels))
    }
}

impl Checkpoints for Records {
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

    /// Replaces buffers with more pages than suit the tables there are, and what they hold.
    fn recovered(core: &Inner) {
        let layout = &core.layout;
        layout.is_open.store(true, Relaxed);
        let (entries, least) = (layout.shape.layout, layout.buffer_pages());
        for partition in &core.partitions {
            let mut state = partition.write();
            // Three quarters of a page's slots: that many fit whatever their hashes are, with the stash.
            let held = state.active.len().div_ceil(entries.slots() * 3 / 4);
            let pages = least.max(held);
            if pages < state.active.page_count() {
                let mut small = Buffer::new(entries, core.hasher, pages);
                copy_entries(&state.active, &mut small, core.hasher);
                state.active = small;
            }
        }
        let spares = (0..core.shape.spare_buffers).map_while(|_| core.pool.take(0)).count();
        (0..spares).for_each(|_| core.pool.give(layout.new_buffer()));
    }
}
