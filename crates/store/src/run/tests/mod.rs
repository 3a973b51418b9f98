//! The run against a sorted list: whatever is written is read, looked up and merged identically.

mod damage;
mod format;
mod life;
mod merging;
mod sizes;

use crate::IoChunks;
use std::collections::BTreeMap;
use std::sync::Arc;

use nandex_device::{Device, MemoryDevice, PageBuf, PageId};

use super::*;
use crate::Poison;
use crate::reads::LookupStep;

/// Tiny chunks, so that even small runs take several.
pub(super) const CHUNKS: IoChunks = IoChunks { chunk_pages: 3, chunks: 2 };

pub(super) const STRUCTURE: StructureId = StructureId(7);

/// A generator of pseudo-random numbers.
pub(super) struct Rng(pub u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

pub(super) fn universe(size: u64) -> Universe {
    Universe::new(size).unwrap()
}

/// Returns about `count` fingerprints, spread evenly, each once.
pub(super) fn spread(universe: Universe, count: u64, seed: u64) -> Vec<Entry> {
    let mut rng = Rng(seed);
    let mut all: Vec<_> = (0..count).map(|_| rng.below(universe.size())).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|fingerprint| Entry { fingerprint, count: 1 }).collect()
}

/// Returns an extent behind all others of a device.
pub(super) fn extent(device: &dyn Device, pages: u64) -> Extent {
    let start = PageId(device.page_count() + 1);
    device.grow(start.0 + pages).unwrap();
    Extent { start, pages }
}

pub(super) fn place(device: &dyn Device, pages: u64) -> RunPlace {
    RunPlace { structure: STRUCTURE, extent: extent(device, pages), generation: 5 }
}

/// Writes a run in pushes of uneven length.
pub(super) fn write(device: &dyn Device, shape: RunShape, entries: &[Entry]) -> Result<Run> {
    let place = place(device, shape.pages());
    let mut writer = RunWriter::new(device, Arc::new(Poison::default()), place, shape, CHUNKS)?;
    let mut rng = Rng(entries.len() as u64);
    let mut rest = entries;
    while !rest.is_empty() {
        let take = rng.below(5000).min(rest.len() as u64) as usize;
        writer.push(&rest[..take])?;
        rest = &rest[take..];
    }
    writer.finish()
}

pub(super) fn shape_of(universe: Universe, entries: &[Entry]) -> RunShape {
    let bytes = entries.iter().map(|entry| count_bytes(entry.count)).sum();
    RunShape::for_entries(universe, entries.len() as u64, bytes)
}

/// Writes a run in a shape that holds it however its fingerprints are spread.
pub(super) fn written(device: &dyn Device, universe: Universe, entries: &[Entry]) -> Run {
    let mut shape = shape_of(universe, entries);
    loop {
        match write(device, shape, entries) {
            Ok(run) => return run,
            Err(Error::RunFull { pages }) => assert_eq!(pages, shape.pages()),
            Err(error) => panic!("{error}"),
        }
        shape = shape.widened();
    }
}

pub(super) fn collect(source: &mut dyn Source) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    while source.next_batch(&mut all)? {}
    Ok(all)
}

pub(super) fn read(device: &dyn Device, run: &Run) -> Result<Vec<Entry>> {
    collect(&mut RunReader::new(device, run, CHUNKS)?)
}

/// Returns what a lookup finds, and the number of pages it read.
pub(super) fn lookup(device: &dyn Device, run: &Run, fingerprint: u64) -> Result<(i64, u64)> {
    let mut page = run.page_of(fingerprint);
    for reads in 1.. {
        let bytes = device.read(page, PageBuf::zeroed(1))?;
        match run.look(page, &bytes, fingerprint)? {
            LookupStep::Answer(count) => return Ok((count, reads)),
            LookupStep::Read(next) => page = next,
        }
    }
    unreachable!("a run has an end")
}

pub(super) fn oracle(entries: &[Entry]) -> BTreeMap<u64, i64> {
    entries.iter().map(|entry| (entry.fingerprint, entry.count)).collect()
}

/// Writes a run, reads it and looks up some hundred entries, their neighbours, and the ends of the universe.
pub(super) fn check(universe: Universe, entries: &[Entry]) -> Run {
    let device = MemoryDevice::new();
    let run = written(&device, universe, entries);
    assert_eq!(read(&device, &run).unwrap(), entries);
    let oracle = oracle(entries);
    let near = |at: &u64| [at.saturating_sub(1), *at, at + 1];
    let step = oracle.len() / 300 + 1;
    let asked = oracle.keys().step_by(step).flat_map(near).chain([0, universe.size() - 1]);
    for fingerprint in asked.filter(|it| *it < universe.size()) {
        let expected = oracle.get(&fingerprint).copied().unwrap_or(0);
        let (found, _) = lookup(&device, &run, fingerprint).unwrap();
        assert_eq!(found, expected, "{fingerprint} of {universe:?}");
    }
    assert_eq!(run.entries(), entries.len() as u64);
    assert_eq!(run.sum(), entries.iter().map(|entry| i128::from(entry.count)).sum());
    let tombstones = entries.iter().filter(|entry| entry.count < 0).count();
    assert_eq!(run.tombstones(), tombstones as u64);
    run
}
