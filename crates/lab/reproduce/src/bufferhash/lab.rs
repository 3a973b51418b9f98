//! A BufferHash with the paper's sizes, on a taped device.

use std::sync::Arc;

use nandex::bufferhash::{Config, Policy};
use nandex::device::Device;
use nandex::raw::bufferhash::Placement;
use nandex::raw::bufferhash::filter::{FilterShape, ShapeParts};
use nandex::{BufferHash, OpenOptions};

use crate::play::Player;
use crate::tape::{Act, Step, Tape, TapedDevice};
use crate::volume::{LOG_BYTES_MIN, volume};
use crate::{Drive, Filled, Result, Scale, Taped};
use nandex_sim::{Model, RequestKind};

/// Super tables of the paper: 2 GB of buffers of 128 KB.
pub const SUPER_TABLES: u64 = 16_384;
/// The paper's k: incarnations of each super table.
pub const INCARNATIONS: u64 = 16;
/// Pages of 4 KiB in a buffer of 128 KiB.
pub const BUFFER_PAGES: u32 = 32;
/// Entries of 16 bytes that fill half of it.
pub const BUFFER_ENTRIES: u32 = 4096;
/// Entries that a buffer takes beyond those that its filter is made for.
const STASH_ENTRIES: u32 = 64;
/// Bits of each entry in a Bloom filter: 2 GB for 2^30 entries.
pub const FILTER_BITS: f64 = 16.0;

/// The divisor of a drive's pages that are written to age it: more than any drive has spare.
const AGED_PART: u64 = 5;

/// The filters of an incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filters {
    /// Bloom filters of [`FILTER_BITS`].
    Bloom,
    /// A filter without information: a Bloom filter of a single bit, which every key sets. The rest of the
    /// table works as usual, and a lookup reads each incarnation until it finds its key.
    Blind,
}

/// The settings of a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setup {
    /// The divisor of the paper's size.
    pub scale: Scale,
    /// Its filters.
    pub filters: Filters,
    /// The eviction policy when flash is full.
    pub policy: Policy,
    /// Super tables.
    pub super_tables: u32,
}

impl Setup {
    /// Returns the paper's table: Bloom filters and FIFO eviction.
    pub const fn paper(scale: Scale) -> Self {
        // The scale is 64 at least.
        let super_tables = scale.of(SUPER_TABLES) as u32;
        Self { scale, filters: Filters::Bloom, policy: Policy::Fifo, super_tables }
    }

    /// Returns the entries of the incarnations of a full table, old versions included.
    pub const fn capacity(&self) -> u64 {
        self.super_tables as u64 * INCARNATIONS * BUFFER_ENTRIES as u64
    }

    /// Returns the number of last inserts that a full FIFO table remembers: its incarnations, and buffers
    /// that are half full.
    pub const fn remembered(&self) -> u64 {
        self.capacity() + self.capacity() / (2 * INCARNATIONS)
    }

    /// Creates an empty table on a taped device. It has no threads, and fixed ids, so that the same keys give
    /// the same tape. The paper's table has no log; this one has it on a device of its own, and writes
    /// nothing to it without a request.
    pub fn open(&self) -> Result<Taped<BufferHash>> {
        let device = TapedDevice::new();
        Ok(Taped::new(self.create(Arc::new(device.clone()))?, device))
    }

    /// Creates an empty table on a device.
    pub fn create(&self, device: Arc<dyn Device>) -> Result<BufferHash> {
        let log_bytes = self.config()?.log_bytes_best().max(LOG_BYTES_MIN);
        let volume = volume(device, self.scale.seed(), log_bytes)?;
        let options = OpenOptions::default().inline();
        Ok(BufferHash::create_with(&volume, "paper", self.config()?, options)?)
    }

    fn config(&self) -> Result<Config> {
        let super_tables = self.super_tables;
        let reserve_segments = u64::from(super_tables / 4).max(2);
        Ok(Config {
            key_bytes: 8,
            value_bytes: 8,
            super_tables,
            buffer_pages: BUFFER_PAGES,
            segments: u64::from(super_tables) * INCARNATIONS + reserve_segments,
            incarnations_max: 48,
            filter: self.filter()?,
            policy: self.policy,
            cascade_limit: 16,
            reserve_segments,
            spare_buffers: 4,
            stagger: true,
            placement: Placement::Shared,
            entries_max: 0,
            keeps_versions: false,
        })
    }

    fn filter(&self) -> Result<FilterShape> {
        // The stash counts separately, so that a full buffer has the paper's 4096 entries and its filter 8
        // KiB.
        let entries = BUFFER_ENTRIES - STASH_ENTRIES;
        let bits = FILTER_BITS * f64::from(BUFFER_ENTRIES) / f64::from(entries);
        let bloom = FilterShape::bloom(entries, bits, 1)?;
        Ok(match self.filters {
            Filters::Bloom => bloom,
            Filters::Blind => {
                FilterShape::from_parts(ShapeParts { slots: 1, hashes: 1, ..bloom.parts() })?
            }
        })
    }
}

/// Returns the tape without the writes that the paper's table does not have: superblocks, checkpoints and
/// syncs. The rest is pages that lookups read, and whole incarnations.
pub fn incarnations_only(tape: &Tape) -> Tape {
    tape.only(|_, step| step.kind == RequestKind::Read || is_incarnation(step))
}

/// Returns a drive in the state after long use by this tape's table: written once in order, and then
/// repeatedly where the table is, until no block is fresh and writes wait for erases.
pub fn aged(drive: Drive, scale: Scale, tape: &Tape) -> Result<Box<dyn Model>> {
    let mut model = drive.model(scale, Filled::Once, tape.page_count())?;
    let writes = tape.only(|_, step| is_incarnation(step));
    let pages: u64 =
        writes.operations().flat_map(|(_, steps)| steps).map(|it| u64::from(it.pages)).sum();
    let wanted = model.page_count() / AGED_PART;
    for _ in 0..wanted.div_ceil(pages.max(1)) {
        let _ = Player::single(0).play(&writes, &mut *model);
    }
    Ok(model)
}

/// Returns whether this is the write of an incarnation, with its filter after it.
pub fn is_incarnation(step: &Step) -> bool {
    step.kind == RequestKind::Write && step.pages >= BUFFER_PAGES
}

/// Returns whether this is the read of a whole incarnation by a partial discard.
pub fn is_discard_read(step: &Step) -> bool {
    step.kind == RequestKind::Read && step.pages >= BUFFER_PAGES
}

/// Returns the pages that each lookup of the tape has read, from operation `from` on.
pub fn lookup_reads(tape: &Tape, from: usize) -> impl Iterator<Item = usize> {
    let operations = tape.operations().skip(from);
    operations.filter(|(act, _)| *act == Act::Lookup).map(|(_, steps)| steps.len())
}
