//! Recovery of the segments of each partition; the write path restores snapshots and the log.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::{IoChunks, Structure, Volume};

use super::buffer::BufferShape;
use super::entries::{Entries, Source};
use super::format::{ChangeCodec, decode_head, encode_head};
use super::keys::KeyPlacing;
use super::segment::{Segment, SegmentFilter, Segments};
use super::segments::PartitionSegments;
use super::snapshot::SegmentSnapshots;
use super::stats::CountingCounters;
use super::{Config, Counting, CountingLayout, Inner};
use crate::options::MERGE_THREADS;
use crate::write::{
    self, BufferRam, CapturedMaps, Opening, Options, Recovery, Retired, Stagger, WriteShape,
};
use crate::{OpenOptions, Result};

/// Returns the configuration of a table in a volume.
pub(super) fn config_of(structure: &Structure) -> Result<Config> {
    Config::decode(&mut Reader::new(&structure.config, "counting configuration", PageId(0)))
}

/// Opens a table: a list of steps. Reads the staged segments once, to build their filters.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: OpenOptions,
) -> Result<Counting> {
    let config = config_of(structure)?;
    let mut reader = Reader::new(&structure.state, "counting state", PageId(0));
    let mut levels = restore(structure, &config, &mut reader)?;
    let placing =
        KeyPlacing { keys: config.keys, hasher: volume.hasher(), partitions: config.partitions() };
    let flush_threads = options.flush_threads.unwrap_or(MERGE_THREADS);
    let io_chunk_pages = options.io_chunk_pages.unwrap_or_else(|| config.io_chunk_pages());
    let chunks = IoChunks { chunk_pages: io_chunk_pages as usize, ..IoChunks::default() };
    let segments = Segments {
        volume: volume.clone(),
        structure: structure.id,
        placing,
        chunks,
        block_pages: config.block_pages,
    };
    for level in &mut levels {
        for staged in &mut level.staged {
            match with_filter(&segments, staged) {
                Ok(filtered) => *staged = Arc::new(filtered),
                // A segment without a filter is read by each lookup, which then meets the damage itself.
                Err(_) if volume.is_read_only() => {}
                Err(error) => return Err(error),
            }
        }
    }
    let opening = Opening {
        shape: WriteShape {
            partitions: u32::try_from(config.partitions()).expect("at most 16,384"),
            // One more is full while others are merged.
            spare_buffers: flush_threads.max(1) as u32 + 1,
            buffer_entries_max: u64::MAX,
            stagger: Stagger::Between { least: 0, most: config.partition_entries() },
        },
        options: Options { flush_threads },
        reads: options.reads(volume, volume.device()),
        codec: ChangeCodec::new(placing),
        snapshots: SegmentSnapshots(segments.clone()),
    };
    let shape = BufferShape { placing, entries_max: config.partition_entries() };
    let layout = CountingLayout {
        buffer_ram: Arc::new(BufferRam::new(shape, shape.bytes_max())),
        segments,
        maps: Mutex::default(),
        retired: Retired::new(structure.extents.clone()),
        counters: CountingCounters::default(),
        config,
    };
    let recovery = Recovering { layout, levels };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, |_| Ok(()))?;
    Ok(handle)
}

/// Returns the same segment with a filter of its entries.
fn with_filter(segments: &Segments, segment: &Arc<Segment>) -> Result<Segment> {
    let mut filter = SegmentFilter::new(segment.content.entries);
    let mut batch = Entries::new(segments.placing.width());
    let mut reader = segments.reader(segment)?;
    while reader.next_batch(&mut batch)? {
        batch.places.iter().for_each(|place| filter.insert(*place));
        batch.clear();
    }
    let Segment { place, shape, content, .. } = **segment;
    Ok(Segment { place, shape, content, filter: Some(filter) })
}

/// Restores the segments of each partition from the checkpoint.
pub(super) fn restore(
    structure: &Structure,
    config: &Config,
    reader: &mut Reader<'_>,
) -> Result<Vec<PartitionSegments>> {
    if structure.state.is_empty() {
        return Ok((0..config.partitions()).map(|_| PartitionSegments::default()).collect());
    }
    decode_head(reader)?;
    let mut restored = Vec::new();
    for _ in 0..config.partitions() {
        let segments = PartitionSegments::decode(structure.id, reader)?;
        let lost = segments.extents().find(|it| !structure.extents.contains(it));
        if let Some(lost) = lost {
            let expected = "segments on extents of the table's own";
            return Err(reader.refuse(expected, format!("{lost:?}")).into());
        }
        restored.push(segments);
    }
    Ok(restored)
}

/// A table during recovery, between the checkpoint's segments and its final state.
struct Recovering {
    layout: CountingLayout,
    levels: Vec<PartitionSegments>,
}

impl Recovery<CountingLayout> for Recovering {
    fn finish(self) -> Result<(CountingLayout, write::Levels<CountingLayout>)> {
        let Self { layout, levels } = self;
        let pages = |of: fn(&PartitionSegments) -> u64| levels.iter().map(of).sum::<u64>();
        layout.counters.staged_pages.store(pages(PartitionSegments::staged_pages), Relaxed);
        layout.counters.data_pages.store(pages(PartitionSegments::data_pages), Relaxed);
        let levels = levels.into_iter().map(|segments| (Arc::new(segments), ())).collect();
        Ok((layout, levels))
    }
}

impl Inner {
    pub(super) fn capture_segments(&self) -> CapturedMaps {
        let mut bytes = Vec::new();
        encode_head(&mut bytes);
        let mut extents = Vec::new();
        for partition in &self.partitions {
            let state = partition.read();
            state.level.encode(&mut bytes);
            extents.extend(state.extents());
        }
        let extents = self.layout.retired.extents(&self.volume, extents);
        CapturedMaps { bytes, extents: Some(extents) }
    }
}
