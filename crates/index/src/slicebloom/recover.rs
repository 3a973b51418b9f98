//! Recovery of the map from the checkpoint; the write path restores snapshots and the log.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::shadow::ShadowRecovery;
use nandex_store::space::Extent;
use nandex_store::{IoChunks, Structure, StructureId, Volume};

use super::config::IO_CHUNK_PAGES;
use super::flush::CHUNKS;
use super::format::{FingerprintCodec, decode_version};
use super::snapshot::BitmapSnapshots;
use super::{BloomSlicetables, Config, SliceBloom, SliceLevel};
use crate::options::FLUSH_THREADS;
use crate::write::{self, Levels, Opening, Options, Recovery, SnapshotPlaces};
use crate::{OpenOptions, Result};

/// Opens a filter: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: OpenOptions,
) -> Result<SliceBloom> {
    let extent = structure.extent()?;
    let mut reader = Reader::new(&structure.config, "slicebloom configuration", extent.start);
    let config = Config::decode(&mut reader)?;
    let mut reader = Reader::new(&structure.state, "slicebloom state", extent.start);
    let from = FilterSource { id: structure.id, start: extent.start, epoch: volume.epoch() };
    let maps = restore(&from, &config, structure.state.is_empty(), &mut reader)?;
    let opening = Opening {
        shape: config.write_shape(),
        options: Options { flush_threads: options.flush_threads.unwrap_or(FLUSH_THREADS) },
        reads: options.reads(volume, volume.device()),
        codec: FingerprintCodec(config.placing()),
        snapshots: BitmapSnapshots { volume: volume.clone(), places: from.places(&config) },
    };
    let chunks = IoChunks { chunk_pages: chunk_pages(&config, &options), chunks: CHUNKS };
    let recovery = Recovering { config, chunks, maps };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, |_| Ok(()))?;
    Ok(handle)
}

/// Returns the length of as few chunks as possible, all of about the same length.
fn chunk_pages(config: &Config, options: &OpenOptions) -> usize {
    let block_pages = config.block_pages();
    block_pages.div_ceil(block_pages.div_ceil(options.io_chunk_pages.unwrap_or(IO_CHUNK_PAGES)))
        as usize
}

/// The source of a filter's maps and pages.
pub(super) struct FilterSource {
    pub id: StructureId,
    /// The first page of the filter.
    pub start: PageId,
    /// The volume's epoch, which is unique to this session.
    pub epoch: u64,
}

impl FilterSource {
    /// Returns the places of snapshots, which follow the slicetables.
    pub(super) fn places(&self, config: &Config) -> SnapshotPlaces {
        let start = self.start.plus(config.slicetable_pages());
        SnapshotPlaces { structure: self.id, start, pages: config.snapshot_pages() }
    }
}

/// The state of a filter restored from a checkpoint.
pub(super) struct RestoredFilter {
    pub shadow: ShadowRecovery,
    /// The level of each partition.
    pub levels: Vec<SliceLevel>,
}

/// Restores the maps of the checkpoint; empty ones for a filter that was just created.
///
/// # Errors
/// Bytes that contradict the configuration.
pub(super) fn restore(
    from: &FilterSource,
    config: &Config,
    is_new: bool,
    reader: &mut Reader<'_>,
) -> Result<RestoredFilter> {
    let (shape, pages) = (config.shadow_shape(), config.slicetable_pages());
    let extent = Extent { start: from.start, pages };
    if is_new {
        let shadow = ShadowRecovery::blank(from.id, extent, shape, from.epoch);
        let levels = (0..config.partitions).map(|_| SliceLevel::default()).collect();
        return Ok(RestoredFilter { shadow, levels });
    }
    decode_version(reader)?;
    let shadow = ShadowRecovery::start(from.id, extent, shape, from.epoch, reader)?;
    let mut levels = Vec::with_capacity(config.partitions as usize);
    for partition in 0..config.partitions {
        let incarnations = reader.u64()?;
        let is_written = shadow.block(partition).is_some();
        if is_written != (incarnations > 0) {
            let expected = "a slicetable where there is an incarnation, and nowhere else";
            let found = format!("{incarnations} incarnations of partition {partition}");
            return Err(reader.refuse(expected, found).into());
        }
        levels.push(SliceLevel { incarnations });
    }
    Ok(RestoredFilter { shadow, levels })
}

/// A filter during recovery, between the checkpoint's maps and its final state.
struct Recovering {
    config: Config,
    chunks: IoChunks,
    maps: RestoredFilter,
}

impl Recovery<BloomSlicetables> for Recovering {
    fn finish(self) -> Result<(BloomSlicetables, Levels<BloomSlicetables>)> {
        let Self { config, chunks, maps } = self;
        let layout = BloomSlicetables {
            slices: config.slice_layout(),
            shadow: maps.shadow.finish(),
            chunks,
            maps: Mutex::default(),
            captured: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            config,
        };
        Ok((layout, maps.levels.into_iter().map(|level| (level, ())).collect()))
    }
}
