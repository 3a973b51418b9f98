//! Recovery of the levels of each part; the write path restores snapshots and the log.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::fingerprint::Universe;
use nandex_store::run::Run;
use nandex_store::space::Extent;
use nandex_store::{IoChunks, Structure, StructureId, Volume};

use super::format::{FingerprintCodec, Head};
use super::levels::Levels;
use super::runs::Runs;
use super::snapshot::RunSnapshots;
use super::{Cascade, CascadeLayout, Config, Inner, stats};
use crate::options::MERGE_THREADS;
use crate::write::{
    self, BufferRam, CapturedMaps, Opening, Options, Recovery, Retired, Stagger, WriteShape,
};
use crate::{OpenOptions, Result};

/// Returns the configuration of a filter in a volume.
pub(super) fn config_of(structure: &Structure) -> Result<Config> {
    Config::decode(&mut Reader::new(&structure.config, "cascade configuration", PageId(0)))
}

/// Opens a filter: a list of steps.
pub(super) fn open(
    volume: &Volume,
    structure: &Structure,
    options: OpenOptions,
) -> Result<Cascade> {
    let config = config_of(structure)?;
    let mut reader = Reader::new(&structure.state, "cascade state", PageId(0));
    let (head, levels) = restore(structure, &config, &mut reader)?;
    let flush_threads = options.flush_threads.unwrap_or(MERGE_THREADS);
    let io_chunk_pages = options.io_chunk_pages.map_or_else(|| config.io_chunk_pages(), Ok)?;
    let chunks = IoChunks { chunk_pages: io_chunk_pages as usize, ..IoChunks::default() };
    let (structure_id, universe) = (structure.id, config.part_universe()?);
    let runs = Runs { volume: volume.clone(), structure: structure_id, universe, chunks };
    let opening = Opening {
        shape: WriteShape {
            partitions: config.parts,
            // One more is full while others are merged.
            spare_buffers: flush_threads.max(1) as u32 + 1,
            buffer_entries_max: u64::MAX,
            stagger: Stagger::Between { least: 0, most: config.part_entries() },
        },
        options: Options { flush_threads },
        reads: options.reads(volume, volume.device()),
        codec: FingerprintCodec::new(config.universe()?, config.split()?),
        snapshots: RunSnapshots(runs.clone()),
    };
    let recovery =
        Recovering { layout: assemble(config, runs, head, structure.extents.clone())?, levels };
    let handle = write::open(volume, structure, &mut reader, opening, recovery, |_| Ok(()))?;
    Ok(handle)
}

/// Restores the head and the levels of each part from the checkpoint.
pub(super) fn restore(
    structure: &Structure,
    config: &Config,
    reader: &mut Reader<'_>,
) -> Result<(Head, Vec<Levels>)> {
    let parts = config.split()?.quotients();
    if structure.state.is_empty() {
        return Ok((Head::default(), (0..parts).map(|_| Levels::default()).collect()));
    }
    let head = Head::decode(reader)?;
    let universe = config.part_universe()?;
    let mut restored = Vec::new();
    for _ in 0..parts {
        let levels = decode_levels(structure.id, universe, reader)?;
        let lost = levels.extents().find(|it| !structure.extents.contains(it));
        if let Some(lost) = lost {
            let expected = "runs on extents of the filter's own";
            return Err(reader.refuse(expected, format!("{lost:?}")).into());
        }
        restored.push(levels);
    }
    Ok((head, restored))
}

fn encode_levels(levels: &Levels, out: &mut Vec<u8>) {
    let count = u32::try_from(levels.runs.len()).expect("there are a few dozen levels at most");
    out.extend_from_slice(&count.to_le_bytes());
    for run in &levels.runs {
        out.push(u8::from(run.is_some()));
        run.iter().for_each(|run| run.encode(out));
    }
}

fn decode_levels(id: StructureId, universe: Universe, reader: &mut Reader<'_>) -> Result<Levels> {
    let count = reader.count(1)?;
    let mut run = || -> Result<Option<Arc<Run>>> {
        match reader.u8()? {
            0 => Ok(None),
            1 => Ok(Some(Arc::new(Run::decode(id, universe, reader)?))),
            other => Err(reader.refuse("0 or 1 run", other).into()),
        }
    };
    let runs = (0..count).map(|_| run()).collect::<Result<_>>()?;
    Ok(Levels { runs, deletes: 0 })
}

fn assemble(config: Config, runs: Runs, head: Head, named: Vec<Extent>) -> Result<CascadeLayout> {
    let counters = stats::CascadeCounters::default();
    counters.unmatched.store(head.unmatched, Relaxed);
    Ok(CascadeLayout {
        universe: config.universe()?,
        split: config.split()?,
        buffer_ram: Arc::new(BufferRam::new(config.buffer_shape()?, config.buffer_bytes_max()?)),
        runs,
        maps: Mutex::default(),
        retired: Retired::new(named),
        counters,
        config,
    })
}

/// A filter during recovery, between the checkpoint's levels and its final state.
struct Recovering {
    layout: CascadeLayout,
    levels: Vec<Levels>,
}

impl Recovery<CascadeLayout> for Recovering {
    fn finish(self) -> Result<(CascadeLayout, write::Levels<CascadeLayout>)> {
        let Self { layout, levels } = self;
        let entries = levels.iter().map(Levels::entries).sum();
        layout.counters.level_entries.store(entries, Relaxed);
        let level =
            |(part, levels): (usize, Levels)| (Arc::new(levels), layout.fingerprints(part).start);
        let levels = levels.into_iter().enumerate().map(level).collect();
        Ok((layout, levels))
    }
}

impl Inner {
    pub(super) fn capture_levels(&self) -> CapturedMaps {
        let mut bytes = Vec::new();
        Head { unmatched: self.layout.counters.unmatched.load(Relaxed) }.encode(&mut bytes);
        let mut extents = Vec::new();
        for part in &self.partitions {
            let state = part.read();
            encode_levels(&state.level, &mut bytes);
            extents.extend(state.extents());
        }
        CapturedMaps { bytes, extents: Some(self.layout.retired.extents(&self.volume, extents)) }
    }
}
