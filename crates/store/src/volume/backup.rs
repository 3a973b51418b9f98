//! Copies of a volume: of an open one while it is written, and of one without a writer.
//!
//! A copy of an open volume is what a power cut at one moment would have left, so opening it is an ordinary recovery.
//! Everything that was logged before the call is in it. It has the pages that the durable checkpoint and the log of
//! that moment lead to.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use nandex_device::{CopyBeforeWrite, CopyOrder, Device, PageId, copy_pages};

use super::opening::{refuse_existing, write_superblock};
use super::replay::LogReplay;
use super::{Root, Volume, log_region, read_superblock, space_of};
use crate::checkpoint::{self, Catalog};
use crate::space::Extent;
use crate::superblock::{SUPERBLOCK_PAGES, Superblock};
use crate::{Error, Lsn, Result};

/// The devices of a volume.
#[derive(Clone, Debug)]
pub struct VolumeDevices {
    /// The device of its pages.
    pub volume: Arc<dyn Device>,
    /// The device of its log, if that is separate.
    pub log: Option<Arc<dyn Device>>,
}

impl From<Arc<dyn Device>> for VolumeDevices {
    /// Returns the devices of a volume with its log on the same device.
    fn from(volume: Arc<dyn Device>) -> Self {
        Self { volume, log: None }
    }
}

/// The source of a backup of an open volume.
#[derive(Debug)]
pub(super) struct Source {
    /// The devices, below the watched ones.
    below: VolumeDevices,
    copier: CopyBeforeWrite,
    /// Allows one backup at a time.
    one: Mutex<()>,
}

impl Source {
    /// Watches the writes to a volume's devices from now on; returns the devices to write to.
    pub(super) fn watch(
        volume: Arc<dyn Device>,
        log: &mut Option<Arc<dyn Device>>,
    ) -> (Arc<dyn Device>, Self) {
        let copier = CopyBeforeWrite::default();
        let below = VolumeDevices { volume: Arc::clone(&volume), log: log.clone() };
        *log = log.take().map(|log| copier.watch(log));
        (copier.watch(volume), Self { below, copier, one: Mutex::default() })
    }
}

impl Volume {
    /// Copies the volume to empty devices while it is open and others continue to write to it. The copy has every
    /// update that was acknowledged before the call, and is durable when this returns. Without durability
    /// ([`Durability::Never`](crate::Durability::Never)) it has what was synced or flushed before the call.
    ///
    /// Writers wait only for the copies of the pages that they overwrite. Until this returns, the target is not a
    /// volume that may be opened: create it under another name. Incarnations on a raw chip are not copied.
    ///
    /// # Errors
    /// A target that holds a volume, is too small, or has no device for a separate log; a failed read or write; a
    /// poisoned volume. None of these errors affects the volume.
    pub fn backup(&self, to: &VolumeDevices) -> Result<()> {
        let inner = &self.inner;
        let _one = inner.backup.one.lock().unwrap_or_else(PoisonError::into_inner);
        refuse_target(to, &inner.root().superblock)?;
        // This leaves recovery little to replay, and syncs what was acknowledged and is not durable.
        self.checkpoint()?;
        inner.log.sync()?;
        let root = inner.root();
        let orders = self.orders(&root, to)?;
        // The pages that the superblock leads to stay as they are until the moment has passed.
        Ok(inner.backup.copier.copy(orders, || drop(root))?)
    }

    fn orders(&self, root: &Root, to: &VolumeDevices) -> Result<Vec<CopyOrder>> {
        let Root { superblock, catalog, removed, .. } = root;
        let mut pages = needed(superblock, catalog);
        pages.push(Extent { start: PageId(0), pages: SUPERBLOCK_PAGES });
        // The durable checkpoint may still refer to them.
        pages.extend(removed);
        let log: Vec<_> = superblock.log.extents().collect();
        let VolumeDevices { volume: from, log: log_from } = &self.inner.backup.below;
        let mut orders = Vec::new();
        match (log_from, &to.log) {
            (Some(from), Some(to)) => {
                to.grow(superblock.log.end().0)?;
                orders.push(order(from, to, log));
            }
            _ => pages.extend(log),
        }
        to.volume.grow(superblock.page_count)?;
        orders.push(order(from, &to.volume, pages));
        Ok(orders)
    }
}

fn order(from: &Arc<dyn Device>, to: &Arc<dyn Device>, extents: Vec<Extent>) -> CopyOrder {
    let pages = extents.into_iter().map(|extent| extent.start..extent.end()).collect();
    CopyOrder { from: Arc::clone(from), to: Arc::clone(to), pages }
}

/// Copies a volume without a writer to empty devices, in the least length: without the pages after the last one in use,
/// and with nothing written to free pages and to the log's free space. Returns the generation of the superblock that
/// was copied.
///
/// If another process writes meanwhile, the copy may be torn. It is whole if the newest superblock afterwards still has
/// that generation, since the pages that it leads to stay until the next one, and if a check of the copy finds nothing.
///
/// # Errors
/// As [`Volume::open`]; a target that holds a volume, is too small, or has no device for a separate log.
pub fn copy_closed(from: &VolumeDevices, to: &VolumeDevices) -> Result<u64> {
    let mut superblock = read_superblock(&*from.volume)?;
    let catalog = checkpoint::read(&from.volume, &superblock)?;
    space_of(&superblock, &catalog)?;
    let region = log_region(&from.volume, from.log.as_ref(), &superblock)?;
    let (end, _) = LogReplay::find_end(&region, &superblock, superblock.log_anchor(), &catalog)?;
    refuse_target(to, &superblock)?;
    let extents = needed(&superblock, &catalog);
    let mut runs: Vec<_> = extents.iter().map(|it| it.start.0..it.end().0).collect();
    let mut page_count = runs.iter().map(|run| run.end).max().unwrap_or(SUPERBLOCK_PAGES);
    let log = used_log(&superblock, end.next);
    match &to.log {
        Some(log_to) => {
            log_to.grow(superblock.log.end().0)?;
            copy_runs(&region.device, log_to, log)?;
            log_to.sync()?;
        }
        None => {
            page_count = page_count.max(superblock.log.end().0);
            runs.extend(log);
        }
    }
    to.volume.grow(page_count)?;
    copy_runs(&from.volume, &to.volume, runs)?;
    superblock.page_count = page_count;
    // No older superblock leads there.
    superblock.log.left.clear();
    to.volume.sync()?;
    let generation = superblock.generation;
    superblock.generation += 1;
    write_superblock(&*to.volume, &mut superblock)?;
    to.volume.sync()?;
    Ok(generation)
}

/// Returns the generation of a volume's newest superblock.
///
/// # Errors
/// A device without a volume, a failed read.
pub fn superblock_generation(volume: &dyn Device) -> Result<u64> {
    Ok(read_superblock(volume)?.generation)
}

fn copy_runs(
    from: &dyn Device,
    to: &dyn Device,
    runs: impl IntoIterator<Item = Range<u64>>,
) -> Result<()> {
    Ok(runs.into_iter().try_for_each(|run| copy_pages(from, to, run))?)
}

/// Returns the extents that a superblock and its catalog lead to, without the superblocks and the log.
fn needed(superblock: &Superblock, catalog: &Catalog) -> Vec<Extent> {
    let structures = catalog.entries.iter().flat_map(|entry| entry.extents.iter().copied());
    let copy = superblock.copy.map(|start| Extent { start, pages: 1 });
    std::iter::once(superblock.checkpoint).chain(copy).chain(structures).collect()
}

/// Returns the pages of the log from its tail to its end.
fn used_log(superblock: &Superblock, end: Lsn) -> Vec<Range<u64>> {
    let runs = superblock.log.runs(superblock.log_tail, end);
    runs.into_iter().map(|run| run.start.0..run.end().0).collect()
}

fn refuse_target(to: &VolumeDevices, superblock: &Superblock) -> Result<()> {
    refuse_existing(&*to.volume)?;
    let log_pages = superblock.log.end().0;
    let reason = match (superblock.log_apart, &to.log) {
        (true, None) => format!(
            "the volume has its log, of {log_pages} pages, on a device of its own; give another one for the copy"
        ),
        (false, Some(_)) => "the volume keeps its log in itself; give none for the copy".into(),
        _ => return Ok(()),
    };
    Err(Error::LogDevice { reason })
}
