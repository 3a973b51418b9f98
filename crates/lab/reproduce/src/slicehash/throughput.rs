//! Tapes of SliceHash and BufferHash under the paper's workloads, and their rates on a drive.

use nandex::raw::store::schedule::Channels;
use nandex::{BufferHash, Table};

use super::lab::{Mix, Setup, aged, chunks_only, tape_of};
use super::workers::{Span, Worked, WorkerModel};
use crate::bufferhash::lab::{Filters, Setup as BufferSetup};
use crate::tape::{Act, Tape};
use crate::{Drive, Result, Scale, Taped};

/// A table's tape and its counts.
pub struct Part {
    /// The reads of lookups, and I/O chunks.
    pub tape: Tape,
    /// The pages read for each lookup.
    pub reads: f64,
    /// The maximum pages that one lookup has read.
    pub reads_max: usize,
    /// The number of inserts for each buffer that went to flash.
    pub inserts_per_flush: f64,
    /// The growth of the table's RAM in bytes.
    pub ram_growth_bytes: f64,
    /// The share of all reads on the busiest drive.
    pub share_most: f64,
    drives: u32,
}

/// The number of lookups that are measured.
pub const LOOKUPS: u64 = 20_000;
/// The number of buffers' keys in a table before the measurement: one on flash, one in RAM.
const BUFFERS: u64 = 2;

/// The first of the keys that are not in any table.
pub const NEW_KEYS: u64 = 1 << 40;

impl Part {
    /// Returns the counts of a tape of any structure on `drives` drives.
    pub fn new(tape: &Tape, ram_growth_bytes: f64, drives: u32) -> Self {
        let reads = || {
            let lookups = tape.operations().filter(|(act, _)| *act == Act::Lookup);
            lookups.map(|(_, steps)| steps.len())
        };
        let (sum, count) = (reads().sum::<usize>(), reads().count());
        let chunks = chunks_only(tape);
        let inserts = || chunks.operations().filter(|(act, _)| *act == Act::Insert);
        let flushes = inserts().filter(|(_, steps)| !steps.is_empty()).count();
        let mut by_drive = vec![0u32; drives as usize];
        let lookups = chunks.operations().filter(|(act, _)| *act == Act::Lookup);
        lookups.flat_map(|(_, steps)| steps).for_each(|step| by_drive[step.place().0] += 1);
        let most = by_drive.iter().copied().max().unwrap_or(0);
        Self {
            share_most: f64::from(most) / sum.max(1) as f64,
            inserts_per_flush: inserts().count() as f64 / flushes.max(1) as f64,
            tape: chunks,
            reads: sum as f64 / count.max(1) as f64,
            reads_max: reads().max().unwrap_or(0),
            ram_growth_bytes,
            drives,
        }
    }

    /// Runs SliceHash with the paper's measures, or others, under one workload after another.
    pub fn of<const N: usize>(setup: Setup, mixes: [Mix; N]) -> Result<[Self; N]> {
        let taped = setup.filled(BUFFERS)?;
        let operations = |mix| match mix {
            Mix::Lookups => LOOKUPS * u64::from(setup.drives),
            Mix::Inserts => setup.keys(setup.rounds()),
            Mix::Both => 2 * setup.keys(setup.rounds()),
        };
        let mixes = mixes.map(|mix| (mix, operations(mix)));
        // Keys of the first half of the first buffer are on flash, wherever buffers were flushed early.
        Self::measure(taped, mixes, setup.keys(1) / 2, setup.seed, setup.drives)
    }

    /// Runs BufferHash with the paper's measures, full, under one workload after another.
    pub fn of_buffer_hash<const N: usize>(
        filters: Filters,
        mixes: [Mix; N],
        scale: Scale,
    ) -> Result<[Self; N]> {
        let setup = BufferSetup { filters, ..BufferSetup::paper(scale) };
        let taped = setup.open()?;
        for key in 1..=setup.capacity() {
            taped.table.insert(&key.to_le_bytes(), &key.to_le_bytes())?;
        }
        taped.forget();
        let operations = |mix| if mix == Mix::Lookups { LOOKUPS } else { setup.capacity() / 4 };
        let mixes = mixes.map(|mix| (mix, operations(mix)));
        Self::measure::<BufferHash, N>(taped, mixes, setup.capacity(), scale.seed(), 1)
    }

    fn measure<T: Table, const N: usize>(
        mut taped: Taped<T>,
        mixes: [(Mix, u64); N],
        last: u64,
        seed: u64,
        drives: u32,
    ) -> Result<[Self; N]> {
        let mut new = NEW_KEYS;
        let mut parts = Vec::new();
        for (mix, operations) in mixes {
            let before = taped.table.stats().ram_bytes as f64;
            let tape = tape_of(&mut taped, mix, operations, (last, new), seed)?;
            let growth_bytes = taped.table.stats().ram_bytes as f64 - before;
            parts.push(Self::new(&tape, growth_bytes, drives));
            new += operations;
        }
        Ok(parts.try_into().unwrap_or_else(|_| unreachable!("as many parts as mixes")))
    }

    /// Returns the workers' rates on drives that the table has aged.
    pub fn work(&self, model: WorkerModel, drive: Drive, scale: Scale) -> Result<Worked> {
        // Buffers that are written unchanged take negligible time, whenever they come.
        let merges = self.inserts_per_flush > 0.0 && model.spare_buffers.is_some();
        let span = if merges { Span::Whole } else { Span::Middle };
        Ok(WorkerModel { span, ..model }
            .work(&self.tape, &mut aged(drive, scale, &self.tape, self.drives)?))
    }

    /// Returns the rates on the Crucial M4, with knowledge of its channels.
    pub fn work_aware(&self, scale: Scale) -> Result<Worked> {
        let channels = Channels::of(&Drive::CRUCIAL.geometry()?);
        self.work(WorkerModel::channel_aware(channels, self.drives), Drive::CRUCIAL, scale)
    }
}
