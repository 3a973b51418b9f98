//! Creating and opening a volume.

use std::collections::HashSet;
use std::sync::Arc;

use nandex_device::{Access, Device, PageBuf, PageId, random_u128};

use super::backup::Source;
use super::replay::LogReplay;
use super::{FRESH_LOG, Root, StaleSuperblock, Volume, VolumeOpenOptions, VolumeOptions, Work};
use crate::checkpoint::{self, Catalog, pages_for};
use crate::kept_geometry::{check_kept, described};
use crate::log::{AnchorSource, Log, LogAnchor, LogEnd, LogOptions, LogRegion};
use crate::mutants::{Barrier, is_on};
use crate::space::{Extent, Space};
use crate::superblock::{SUPERBLOCK_PAGES, Superblock};
use crate::{Error, Lsn, Poison, Result, StructureId};

impl Volume {
    /// Creates a volume on an empty device.
    ///
    /// # Errors
    /// A device that holds a volume already, invalid options, no space, a failed write.
    pub fn create(device: Arc<dyn Device>, mut options: VolumeOptions) -> Result<Self> {
        options.validate()?;
        let (device, backup) = Source::watch(device, &mut options.log_device);
        refuse_existing(&*device)?;
        options.geometry.iter().try_for_each(|kept| check_kept(&*device, kept))?;
        let device = described(device, options.geometry);
        let catalog = options.completion.first_catalog();
        let (superblock, space) = lay_out(&options, catalog.encode().len())?;
        device.grow(space.page_count())?;
        let region = log_region(&device, options.log_device.as_ref(), &superblock)?;
        region.device.grow(superblock.log.end().0)?;
        write_first(&*device, &superblock, &catalog)?;
        let idle = catalog.entries.iter().map(|entry| entry.id).collect();
        let removed = Vec::new();
        let root = Root { superblock, catalog, space, spare: None, removed, checkpoints: 0, idle };
        let VolumeOptions { durability, threads, log_bytes_max, .. } = options;
        let work = Work { access: Access::ReadWrite, durability, threads, log_bytes_max };
        Self::start((device, backup), root, region, FRESH_LOG.next, work, FRESH_LOG)
    }

    /// Opens a volume, for reading and writing unless [`VolumeOpenOptions::access`] says otherwise.
    ///
    /// Reads the superblocks, the checkpoint and the log's tail; the time does not depend on the
    /// volume's size.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::Version`], [`Error::Truncated`], [`Error::Corrupt`], [`Error::Stale`],
    /// [`Error::LogDevice`], or a failure of the device.
    pub fn open(device: Arc<dyn Device>, mut options: VolumeOpenOptions) -> Result<Self> {
        let (device, backup) = Source::watch(device, &mut options.log_device);
        // Data of a killed process may still be in a cache; it must not be lost after we built on it.
        if is_on(Barrier::OpenSyncsWhatItReads) {
            device.sync()?;
        }
        let mut superblock = read_superblock(&*device)?;
        let device = described(device, superblock.geometry);
        let catalog = checkpoint::read(&device, &superblock)?;
        let space = space_of(&superblock, &catalog)?;
        let region = log_region(&device, options.log_device.as_ref(), &superblock)?;
        let (end, idle) = find_end(&region, &mut superblock, &catalog, options.stale)?;
        superblock.epoch = superblock.epoch.max(end.epoch) + 1;
        let tail = superblock.log_tail;
        let removed = Vec::new();
        let VolumeOpenOptions { access, durability, threads, log_bytes_max, .. } = options;
        let log_bytes_max = log_bytes_max.filter(|_| superblock.log_grows);
        let root = Root { superblock, catalog, space, spare: None, removed, checkpoints: 0, idle };
        let work = Work { access, durability, threads, log_bytes_max };
        Self::start((device, backup), root, region, tail, work, end)
    }

    fn start(
        (device, backup): (Arc<dyn Device>, Source),
        mut root: Root,
        region: LogRegion,
        tail: Lsn,
        work: Work,
        end: LogEnd,
    ) -> Result<Self> {
        let poison = Arc::new(Poison::default());
        let volume_id = root.superblock.volume_id;
        let log_options = LogOptions {
            region: region.clone(),
            volume_id,
            epoch: root.superblock.epoch,
            durability: work.durability,
            threads: work.threads,
        };
        let replay = LogReplay::new(region, volume_id, end);
        let log = Log::start(log_options, end, tail, Arc::clone(&poison))?;
        if work.access == Access::ReadWrite {
            begin_epoch(&*device, &mut root.superblock, &log)?;
        }
        Self::assemble((device, backup), root, log, replay, poison, work)
    }
}

/// Finds the log's end. A stale superblock, if it may be opened, gets the generation of the newest one that a block
/// names, so that it is newer from now on.
fn find_end(
    region: &LogRegion,
    superblock: &mut Superblock,
    catalog: &Catalog,
    stale: StaleSuperblock,
) -> Result<(LogEnd, HashSet<StructureId>)> {
    let anchor = superblock.log_anchor();
    match LogReplay::find_end(region, superblock, anchor, catalog) {
        Err(Error::Stale { newest, .. }) if stale == StaleSuperblock::Open => {
            let anchor = LogAnchor { source: AnchorSource::Stale, ..anchor };
            superblock.generation = newest;
            LogReplay::find_end(region, superblock, anchor, catalog)
        }
        found => found,
    }
}

pub(super) fn refuse_existing(device: &dyn Device) -> Result<()> {
    if device.page_count() < SUPERBLOCK_PAGES {
        return Ok(());
    }
    let pages = device.read(PageId(0), PageBuf::zeroed(2))?;
    match Superblock::choose([pages.page(0), pages.page(1)]) {
        Err(Error::Foreign { .. }) => Ok(()),
        _ => Err(Error::config(
            "path",
            "there is a nandex volume already; open it, or remove it first",
        )),
    }
}

/// Lays out superblocks, log and the first checkpoint one after another.
fn lay_out(options: &VolumeOptions, checkpoint_bytes: usize) -> Result<(Superblock, Space)> {
    let mut space = Space::full(SUPERBLOCK_PAGES);
    let log = match options.log_device {
        // A separate log begins at its device's start.
        Some(_) => Extent { start: PageId(0), pages: options.log_pages() },
        None => space.allocate(options.log_pages()),
    };
    let copy = space.allocate(1).start;
    let checkpoint = space.allocate(pages_for(checkpoint_bytes));
    let superblock = Superblock {
        generation: 1,
        volume_id: options.volume_id.map_or_else(random_u128, Ok)?,
        hash: options.hash,
        hash_key: options.hash_key.map_or_else(random_u128, Ok)?,
        epoch: 1,
        page_count: space.page_count(),
        checkpoint,
        checkpoint_bytes: checkpoint_bytes as u64,
        checkpoint_generation: 1,
        log: log.into(),
        log_apart: options.log_device.is_some(),
        log_grows: options.log_bytes_max.is_some(),
        log_block_bytes: u32::try_from(options.log_block_bytes).expect("validated"),
        log_tail: Lsn(0),
        log_synced: Lsn(0),
        copy: Some(copy),
        geometry: options.geometry,
    };
    Ok((superblock, space))
}

/// Writes the empty catalog, and both superblocks so that neither page is ever foreign.
fn write_first(device: &dyn Device, superblock: &Superblock, catalog: &Catalog) -> Result<()> {
    let bytes = catalog.encode();
    checkpoint::write(device, superblock.checkpoint, superblock.checkpoint_generation, &bytes)?;
    if is_on(Barrier::FirstCheckpointSynced) {
        device.sync()?;
    }
    let mut first = Superblock { generation: 0, ..superblock.clone() };
    write_superblock(device, &mut first)?;
    if is_on(Barrier::SuperblockSynced) {
        device.sync()?;
    }
    Ok(())
}

/// Writes a superblock to its place and to that of the third copy, and makes both durable; then writes it as the next
/// generation to the other place, so that damage to either loses nothing. The sync before the next superblock makes
/// that one durable. Returns the generation that is durable.
pub(super) fn write_superblock(device: &dyn Device, superblock: &mut Superblock) -> Result<u64> {
    write_one(device, superblock, superblock.place())?;
    if let Some(copy) = superblock.copy.filter(|_| is_on(Barrier::SuperblockCopied)) {
        write_one(device, superblock, copy)?;
    }
    if is_on(Barrier::SuperblockSynced) {
        device.sync()?;
    }
    let durable = superblock.generation;
    superblock.generation += 1;
    write_one(device, superblock, superblock.place())?;
    Ok(durable)
}

fn write_one(device: &dyn Device, superblock: &Superblock, place: PageId) -> Result<()> {
    let mut buf = PageBuf::zeroed(1);
    superblock.encode_at(&mut buf, place);
    device.write(place, buf)?;
    Ok(())
}

/// Reads the newest superblock.
///
/// # Errors
/// As [`Superblock::choose`]; a device shorter than two pages is foreign.
pub fn read_superblock(device: &dyn Device) -> Result<Superblock> {
    let page_count = device.page_count();
    if page_count < SUPERBLOCK_PAGES {
        let reason = match page_count {
            0 => "it is empty, or shorter than a page of 4096 bytes".to_owned(),
            _ => format!("it has {page_count} page of 4096 bytes, a volume has at least 2"),
        };
        return Err(Error::Foreign { reason });
    }
    let pages = device.read(PageId(0), PageBuf::zeroed(2))?;
    let newer = Superblock::choose([pages.page(0), pages.page(1)])?;
    // Past the end of a truncated volume there is no copy, which is reported later.
    match newer.copy.filter(|copy| copy.0 < page_count) {
        Some(copy) => Ok(newer.or_copy(&device.read(copy, PageBuf::zeroed(1))?, copy)),
        None => Ok(newer),
    }
}

/// Returns the space that the superblock and the catalog leave free.
pub fn space_of(superblock: &Superblock, catalog: &Catalog) -> Result<Space> {
    let mut taken =
        vec![Extent { start: PageId(0), pages: SUPERBLOCK_PAGES }, superblock.checkpoint];
    taken.extend(superblock.copy.map(|start| Extent { start, pages: 1 }));
    if !superblock.log_apart {
        taken.extend(superblock.log.extents());
    }
    taken.extend(catalog.entries.iter().flat_map(|entry| &entry.extents));
    Space::around(taken, superblock.page_count).ok_or_else(|| {
        let place = superblock.checkpoint.start;
        Error::corrupt("checkpoint", place, "extents side by side", "extents that overlap")
    })
}

/// Returns the log's pages, on the volume or on its own device.
pub fn log_region(
    device: &Arc<dyn Device>,
    log_device: Option<&Arc<dyn Device>>,
    superblock: &Superblock,
) -> Result<LogRegion> {
    let device = match (superblock.log_apart, log_device) {
        (false, None) => Arc::clone(device),
        (true, Some(log_device)) => Arc::clone(log_device),
        (true, None) => {
            let reason = "give it as log_device when opening".into();
            return Err(Error::LogDevice { reason });
        }
        (false, Some(_)) => {
            let reason = "this volume keeps its log in itself; open it without a log device".into();
            return Err(Error::LogDevice { reason });
        }
    };
    let block_bytes = superblock.log_block_bytes as usize;
    Ok(LogRegion { device, parts: superblock.log.clone(), block_bytes })
}

/// Records durably that the volume is written from now on, so that log blocks of this opening differ from those that an
/// earlier one may have left behind.
fn begin_epoch(device: &dyn Device, superblock: &mut Superblock, log: &Log) -> Result<()> {
    let LogAnchor { tail, synced, epoch, .. } = log.anchor(superblock.log_tail);
    (superblock.log_tail, superblock.log_synced, superblock.epoch) = (tail, synced, epoch);
    if !is_on(Barrier::OpenNotesEpoch) {
        return Ok(());
    }
    superblock.generation += 1;
    log.note_superblock(write_superblock(device, superblock)?);
    Ok(())
}
