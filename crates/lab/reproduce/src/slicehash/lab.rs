//! A SliceHash with the paper's sizes (section 7.1) on taped devices: one, or an array of several.

use std::sync::Arc;

use nandex::device::Device;
use nandex::raw::device::{ArrayDevice, Striping};
use nandex::slicehash::Config;
use nandex::{OpenOptions, SliceHash, Table, Volume, WhenFull};
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Model, RequestKind};

use super::workers::WorkerModel;
use crate::tape::{Act, Step, Tape, TapedDevice};
use crate::volume::{LOG_BYTES_MIN, volume, volume_with_log};
use crate::{Drive, Filled, Result, Scale, Taped};

/// Partitions of the paper: 4 GB of buffers of 128 KB.
pub const PARTITIONS: u64 = 32_768;
/// The paper's k: incarnations in a slicetable.
pub const INCARNATIONS: u32 = 32;
/// Pages of 4 KiB in a buffer of 128 KiB.
pub const BUFFER_PAGES: u32 = 32;
/// Entries in a bucket.
const BUCKET_SLOTS: u32 = 3;
/// The number of channels times the pages of a chunk, at multiples of which slicetables begin.
pub const ROUND_PAGES: u32 = 64;
/// Pages of an I/O chunk in which slicetables are read and written.
pub const CHUNK_PAGES: u32 = 128;
/// The minimum number of merges that are measured.
pub const MERGES_MIN: u64 = 24;
/// The clock's tick while drives are aged without a measurement.
const AGING_TICK_NS: u64 = 50_000;
/// The divisor of a drive's pages that are written to age it: more than it has spare.
const AGED_PART: u64 = 5;

/// The use of several drives (section 5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Design {
    /// Each slicetable on one drive: more partitions.
    Throughput,
    /// Each slice on all drives, a page on each: more incarnations.
    Memory,
}

/// The settings of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Partitions.
    pub partitions: u32,
    /// Buffers of 128 KiB in a slicetable, on each drive.
    pub incarnations: u32,
    /// Drives.
    pub drives: u32,
    /// The use of several drives.
    pub design: Design,
    /// The seed of the keys, and the number of this table among several.
    pub seed: u64,
}

impl Setup {
    /// Returns the paper's table on one drive, at a scale.
    pub fn paper(scale: Scale) -> Self {
        Self {
            partitions: u32::try_from(scale.of(PARTITIONS)).unwrap_or(1 << 16),
            incarnations: INCARNATIONS,
            drives: 1,
            design: Design::Throughput,
            seed: scale.seed(),
        }
    }

    /// Returns the entries that its slicetables take.
    pub fn capacity(&self) -> u64 {
        let config = self.config();
        u64::from(config.partitions) * u64::from(config.slices) * u64::from(config.slice_entries())
    }

    /// Creates an empty table on taped devices. It has no threads, and fixed ids, so that the same keys give
    /// the same tape. The paper's table has no log; this one has it on a device of its own.
    pub fn open(&self) -> Result<Taped<SliceHash>> {
        let taped = TapedDevice::new();
        Ok(Taped::new(self.create(self.device(&taped)?)?, taped))
    }

    /// Creates an empty table on a device.
    pub fn create(&self, device: Arc<dyn Device>) -> Result<SliceHash> {
        self.create_in(&volume(device, self.seed, self.log_bytes())?)
    }

    /// Creates an empty table on a taped device that has the log too.
    pub fn open_with_log(&self) -> Result<Taped<SliceHash>> {
        let taped = TapedDevice::new();
        let volume = volume_with_log(self.device(&taped)?, self.seed, self.log_bytes())?;
        Ok(Taped::new(self.create_in(&volume)?, taped))
    }

    fn log_bytes(&self) -> u64 {
        self.config().log_bytes_best().max(LOG_BYTES_MIN)
    }

    fn create_in(&self, volume: &Volume) -> Result<SliceHash> {
        let options = OpenOptions {
            flush_threads: Some(0),
            io_chunk_pages: Some(CHUNK_PAGES),
            ..OpenOptions::default()
        };
        Ok(SliceHash::create_with(volume, "paper", self.config(), options)?)
    }

    /// Creates a table with the keys from 1 on: those of `buffers` buffers for each partition. The keys of
    /// all buffers except the last one are on flash. Lookups read and merges rewrite the same for any number
    /// above one.
    pub fn filled(&self, buffers: u64) -> Result<Taped<SliceHash>> {
        let taped = self.open()?;
        for key in 1..=self.keys(buffers) {
            taped.table.insert(&key.to_le_bytes(), &key.to_le_bytes())?;
        }
        taped.forget();
        Ok(taped)
    }

    /// Returns the keys of a full buffer: approximately the paper's 7 K.
    pub fn buffer_keys(&self) -> u64 {
        let config = self.config();
        let incarnations = config.incarnations().expect("the paper's table is a table");
        (f64::from(config.entries_max) / incarnations).round() as u64
    }

    /// Returns the last key of `buffers` buffers.
    pub fn keys(&self, buffers: u64) -> u64 {
        buffers * u64::from(self.partitions) * self.buffer_keys()
    }

    /// Returns the number of times that every buffer is filled while inserts are measured: enough merges that
    /// a few unfinished ones do not count.
    pub fn rounds(&self) -> u64 {
        (MERGES_MIN / u64::from(self.partitions)).max(2)
    }

    fn device(&self, taped: &TapedDevice) -> Result<Arc<dyn Device>> {
        if self.drives == 1 {
            return Ok(Arc::new(taped.clone()));
        }
        let member = |number: u32| Arc::new(taped.member(number.into())) as Arc<dyn Device>;
        let pages = match self.design {
            Design::Throughput => u64::from(self.config().block_pages()),
            Design::Memory => u64::from(CHUNK_PAGES),
        };
        let members = (0..self.drives).map(member).collect();
        Ok(Arc::new(ArrayDevice::new(members, Striping::Extent { pages })?))
    }

    fn config(&self) -> Config {
        let slices = self.incarnations * BUFFER_PAGES;
        let one = Config {
            key_bytes: 8,
            value_bytes: 8,
            partitions: self.partitions,
            buffer_pages: BUFFER_PAGES,
            bucket_slots: BUCKET_SLOTS,
            slices,
            slice_parts: 1,
            group_slices: 1,
            devices: 1,
            align_pages: ROUND_PAGES,
            spare_blocks: 6 * self.drives,
            spare_buffers: 4,
            policy: WhenFull::EvictOldest,
            entries_max: slices * 200,
            stagger: true,
            front_runs: 0,
        };
        match self.design {
            Design::Throughput if self.drives > 1 => {
                Config { devices: self.drives, align_pages: slices, ..one }
            }
            Design::Memory if self.drives > 1 => Config {
                slice_parts: self.drives,
                group_slices: CHUNK_PAGES,
                align_pages: self.drives * CHUNK_PAGES,
                ..one
            },
            _ => one,
        }
    }
}

/// The operations on a filled table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// Lookups of present keys.
    Lookups,
    /// Inserts of new keys.
    Inserts,
    /// Both in turn.
    Both,
}

/// Performs `operations`: lookups of keys from 1 to `last`, and inserts of keys from `new` on.
pub fn tape_of<T: Table>(
    taped: &mut Taped<T>,
    mix: Mix,
    operations: u64,
    (last, new): (u64, u64),
    seed: u64,
) -> Result<Tape> {
    mix.each(operations, (last, new), seed, |act, key| match act {
        Act::Lookup => taped.lookup(key).map(drop),
        Act::Insert => taped.insert(key, key),
    })?;
    Ok(taped.take_tape())
}

impl Mix {
    /// Calls `operate` for each of `operations` operations: with keys from 1 to `last` for lookups, and from
    /// `new` on for inserts.
    pub fn each(
        self,
        operations: u64,
        (last, new): (u64, u64),
        seed: u64,
        mut operate: impl FnMut(Act, u64) -> Result<()>,
    ) -> Result<()> {
        let mut rng = SplitMix64::stream(seed, 3);
        for number in 0..operations {
            if self == Self::Inserts || (self == Self::Both && number % 2 == 1) {
                operate(Act::Insert, new + number)?;
            } else {
                operate(Act::Lookup, 1 + rng.below(last))?;
            }
        }
        Ok(())
    }
}

/// Returns the tape without the requests that the paper's prototype does not make: superblocks, checkpoints
/// and syncs. Reads of lookups, and whole I/O chunks remain.
pub fn chunks_only(tape: &Tape) -> Tape {
    let is_chunk = |step: &Step| step.pages >= BUFFER_PAGES;
    tape.only(|act, step| match step.kind {
        RequestKind::Read => act == Act::Lookup || is_chunk(step),
        RequestKind::Write => is_chunk(step),
        _ => false,
    })
}

/// Returns drives in the state after long use by the tape's table: written once in order, and then again
/// where the table is, until no block is fresh and writes wait for erases.
pub fn aged(drive: Drive, scale: Scale, tape: &Tape, count: u32) -> Result<Vec<Box<dyn Model>>> {
    let new = || drive.model(scale, Filled::Once, tape.page_count());
    let mut drives: Vec<Box<dyn Model>> = (0..count).map(|_| new()).collect::<Result<_>>()?;
    let wanted = u64::from(count) * drives[0].page_count() / AGED_PART;
    write(tape, wanted, &mut drives);
    Ok(drives)
}

fn written_pages(tape: &Tape) -> u64 {
    let steps = tape.operations().filter(|(act, _)| *act == Act::Insert).flat_map(|it| it.1);
    steps.filter(|step| step.kind == RequestKind::Write).map(|step| u64::from(step.pages)).sum()
}

/// Repeats the merges of a tape, until `pages` are written.
fn write(tape: &Tape, pages: u64, drives: &mut [Box<dyn Model>]) {
    let mut merges = Tape::default();
    for (act, steps) in tape.operations() {
        if act == Act::Insert && !steps.is_empty() {
            merges.push(act, steps);
        }
    }
    let model = WorkerModel { tick_ns: AGING_TICK_NS, ..WorkerModel::buffer_hash() };
    if !merges.is_empty() {
        for _ in 0..pages.div_ceil(written_pages(&merges)) {
            let _ = model.work(&merges, drives);
        }
    }
}

/// Returns the RAM of each entry of a full table, in bytes: a partition's RAM, over the entries of its
/// slicetable. A full table in FIFO order stays full, to the last slice; shared RAM is negligible among
/// 32,768 partitions.
pub fn ram_bytes_per_entry(setup: Setup) -> Result<f64> {
    let ram_bytes = |partitions| {
        let table = Setup { partitions, ..setup }.open()?.table;
        Ok::<_, crate::Error>(table.stats().ram_bytes as f64)
    };
    let few = 4;
    let each = (ram_bytes(2 * few)? - ram_bytes(few)?) / f64::from(few);
    let entries = Setup { partitions: 1, ..setup }.capacity() + setup.buffer_keys() / 2;
    Ok(each / entries as f64)
}
