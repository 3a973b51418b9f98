//! Recovery of the map from the checkpoint and the moves in the log; the write path restores its own state.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::hash::KeyHasher;
use nandex_store::shadow::{MAP_UPDATE_BYTES, ShadowRecovery};
use nandex_store::space::Extent;
use nandex_store::{Lsn, Structure, StructureId, Volume};

use super::buffer::BucketBuffer;
use super::filter::BucketFilter;
use super::format::DocumentCodec;
use super::keys::BucketPlacing;
use super::saved_filter::SavedFilter;
use super::snapshot::{BucketSnapshots, places};
use super::stats::DocumentCounters;
use super::{Config, GroupLevel, Inner, SliceLsh, SlicetableGroups, config};
use crate::model::text::bytes;
use crate::options::{FLUSH_THREADS, IO_CHUNK_PAGES};
use crate::write::{
    self, CapturedMaps, Checkpoints, Levels, Opening, Options, Recovery, Stagger, StateOf,
    WriteShape, apply_moves,
};
use crate::{OpenOptions, Result};

/// Fails for an index whose buffers the volume's log cannot cover.
pub(super) fn check_log(volume: &Volume, config: &Config) -> Result<()> {
    let logged = config.logged_bytes();
    write::check_log_covers(
        volume,
        logged,
        &bytes(logged),
        "the index with fewer or smaller buffers",
    )
}

/// Returns the placement of the buckets of an index.
pub(super) const fn placing(config: &Config, hasher: KeyHasher) -> BucketPlacing {
    let Config { tables, partitions, slices, .. } = *config;
    BucketPlacing { hasher, tables, partitions, slices }
}

/// Opens an index: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: OpenOptions,
) -> Result<SliceLsh> {
    let place = structure.extent()?.start;
    let mut reader = Reader::new(&structure.config, "slicelsh configuration", place);
    let config = Config::decode(&mut reader)?;
    if let Some(family) = &options.family {
        config.check_family(family)?;
    }
    let mut reader = Reader::new(&structure.state, "slicelsh state", place);
    let from =
        MapSource { id: structure.id, place, epoch: volume.epoch(), state: &structure.state };
    let map = from.map(&config, &mut reader)?;
    let opening = opening(volume, structure, &config, &options)?;
    let hasher = volume.hasher();
    let saved_filter = SavedFilter::new(&structure.extents);
    let recovery = RecoveringGroups { map, config, options, hasher, saved_filter, place };
    let count = |inner: &Inner| {
        let entries = inner.partitions.iter().map(|partition| partition.read().level.entries);
        inner.counters.flushed_entries.store(entries.sum(), Relaxed);
        inner.load_filter()
    };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, count)?;
    Ok(handle)
}

fn opening(
    volume: &Volume,
    structure: &Structure,
    config: &Config,
    options: &OpenOptions,
) -> Result<Opening<BucketBuffer>> {
    let most = u64::from(config.buffer_entries);
    let half = Stagger::Between { least: most / 2, most };
    let snapshots_at = structure.extent()?.start.plus(config.slicetable_pages());
    let places = places(structure.id, config, snapshots_at);
    let placing = placing(config, volume.hasher());
    Ok(Opening {
        shape: WriteShape {
            partitions: config.partitions,
            spare_buffers: config.spare_buffers,
            buffer_entries_max: most,
            stagger: if config.stagger { half } else { Stagger::Off },
        },
        options: Options { flush_threads: options.flush_threads.unwrap_or(FLUSH_THREADS) },
        reads: options.reads(volume, volume.device()),
        codec: DocumentCodec { placing },
        snapshots: BucketSnapshots::new(volume, placing, places),
    })
}

/// The source of the map of an index.
pub(super) struct MapSource<'s> {
    pub id: StructureId,
    /// The first page of the index.
    pub place: PageId,
    /// The volume's epoch, which is unique to this session.
    pub epoch: u64,
    /// The state that the reader reads; empty for an index just created.
    pub state: &'s [u8],
}

impl MapSource<'_> {
    /// Returns the map of the checkpoint.
    ///
    /// # Errors
    /// Bytes that contradict the configuration.
    pub fn map(&self, config: &Config, reader: &mut Reader<'_>) -> Result<ShadowRecovery> {
        let (shape, pages) = (config.shadow_shape(), config.slicetable_pages());
        let extent = Extent { start: self.place, pages };
        if self.state.is_empty() {
            return Ok(ShadowRecovery::blank(self.id, extent, shape, self.epoch));
        }
        Ok(ShadowRecovery::start(self.id, extent, shape, self.epoch, reader)?)
    }
}

/// Applies a move's bytes to the map, in the log's order; returns whether it came after the checkpoint.
///
/// # Errors
/// Bytes that contradict the configuration.
pub(super) fn moved(
    map: &mut ShadowRecovery,
    partition: u32,
    bytes: &[u8],
    place: PageId,
) -> Result<bool> {
    let before = map.block(partition);
    let mut reader = Reader::new(bytes, "move of slicetables", place);
    let update = map.replay(&mut reader)?;
    if update.logical != partition || bytes.len() != MAP_UPDATE_BYTES {
        let expected = format!("a move of partition {partition}");
        let found = format!("{} bytes, of partition {}", bytes.len(), update.logical);
        return Err(reader.refuse(expected, found).into());
    }
    Ok(map.block(partition) != before)
}

/// An index during recovery, between the checkpoint's map and its final state.
struct RecoveringGroups {
    map: ShadowRecovery,
    config: Config,
    options: OpenOptions,
    hasher: KeyHasher,
    saved_filter: SavedFilter,
    place: PageId,
}

impl Recovery<SlicetableGroups> for RecoveringGroups {
    fn apply_moves(
        &mut self,
        volume: &Volume,
        structure: &Structure,
        state: &mut StateOf<SlicetableGroups>,
    ) -> Result<()> {
        let Self { map, place, .. } = self;
        apply_moves(volume, structure, state, |partition, own| moved(map, partition, own, *place))
    }

    fn finish(self) -> Result<(SlicetableGroups, Levels<SlicetableGroups>)> {
        let Self { map, config, options, hasher, saved_filter, .. } = self;
        let shadow = map.finish();
        let level = |partition| {
            let entries = shadow.block(partition).map_or(0, |block| block.entries.into());
            (GroupLevel { entries, refused: 0 }, ())
        };
        let levels = (0..config.partitions).map(level).collect();
        let layout = SlicetableGroups {
            placing: placing(&config, hasher),
            placement: config.placement(),
            slices: Config::slice_layout(),
            captured: AtomicU64::new(0),
            counters: DocumentCounters::default(),
            filter: BucketFilter::new(
                &config,
                config::filter_bytes(&options, &config),
                |partition| shadow.block(partition).is_none(),
            ),
            saved_filter,
            config,
            io_chunk_pages: options.io_chunk_pages.unwrap_or(IO_CHUNK_PAGES),
            shadow,
        };
        Ok((layout, levels))
    }
}

impl Checkpoints for SlicetableGroups {
    fn capture(core: &Inner, log_now: Lsn) -> CapturedMaps {
        let capture = core.layout.shadow.capture(log_now);
        core.layout.captured.store(capture.mark, Release);
        CapturedMaps { bytes: capture.bytes, extents: Some(core.layout.saved_filter.extents()) }
    }

    fn committed(core: &Inner) {
        core.layout.shadow.committed(core.layout.captured.load(Acquire));
    }

    fn closing(core: &Inner) -> Result<()> {
        core.save_filter()
    }
}
