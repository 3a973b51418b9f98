//! The union of several tables, share by share: the common part of a merge and of counting shared keys.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use nandex_store::ReadAhead;
use nandex_store::entries::EntryLayout;
use nandex_store::hash::{KeyHash, KeyHasher};

use super::batch::{Batch, Rule};
use super::{AbsorbOptions, Absorbed, Share, VersionSource, Versions, Watch, unwatched};
use crate::model::text;
use crate::{Error, Result};

/// The maximum number of workers: each has a batch, so with more workers batches are smaller.
const WORKERS_MAX: usize = 8;
/// The maximum number of tables.
const TABLES_MAX: usize = 1 << 16;
/// The maximum number of bits of a share.
const SHARE_BITS_MAX: u32 = 16;
/// The minimum number of versions of a batch: with fewer, shares of the hash range would differ too much.
const VERSIONS_MIN: u64 = 1024;

/// Tables that are read together.
pub(super) struct Union<'t> {
    tables: Vec<&'t dyn VersionSource>,
    target: Target,
    layout: EntryLayout,
    plan: Plan,
    rule: Rule,
    ram: RamLimit,
    watch: &'t Watch<'t>,
}

/// The placement of keys in the absorbing table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub hasher: KeyHasher,
    /// The number of bits of a partition's number.
    pub partition_bits: u32,
    /// Returns the position of a key in its partition's pages, from 0 to 2^32.
    pub row: fn(KeyHash) -> u32,
}

/// The RAM of a union.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RamLimit {
    /// The total, in bytes.
    pub ram_bytes: u64,
    /// The bytes that inserting takes for each chosen entry of a share.
    pub put_bytes: u64,
    /// The bytes that each worker takes to insert entries.
    pub worker_bytes: u64,
    /// The maximum number of workers.
    pub workers_max: usize,
}

impl RamLimit {
    /// Returns the RAM of a worker that does not depend on the number of versions.
    fn fixed_bytes(self) -> u64 {
        self.worker_bytes + Batch::fixed_bytes() as u64 + read_ahead_bytes()
    }
}

/// The division of the range of hashes, and the size of a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Plan {
    workers: usize,
    share_bits: u32,
    /// The versions of a share: the approximate number, and the most.
    versions: u64,
    versions_max: u64,
    /// The number of times that a page is read, at most.
    passes: u64,
}

/// Returns whether both put keys in the same order.
fn hash_alike(one: KeyHasher, other: KeyHasher) -> bool {
    one.kind() == other.kind() && one.key() == other.key()
}

/// Counts the keys that tables have in common without inserting anything. Shares follow the hash of the table with the
/// most entries. Reads all tables once, or as often as [`Absorbed::passes`] says.
///
/// # Errors
/// Tables of different widths; too little RAM; a failed read, damage; [`Error::Stopped`].
pub fn count_shared(
    tables: &[Versions<'_>],
    options: &AbsorbOptions,
    watch: &Watch<'_>,
) -> Result<Absorbed> {
    let Some(union) = union_of(tables, options, watch)? else {
        return Ok(Absorbed { passes: 1, ..Absorbed::default() });
    };
    union.run(&|| (), &|_, ()| Ok(()))
}

/// Returns the number of times that [`count_shared`] would read a page, at most. A table that absorbs these and hashes
/// keys like the largest of them would take about as many passes: see [`Absorbed::passes`]. Reads nothing.
///
/// # Errors
/// Tables of different widths; too little RAM.
pub fn expected_passes(tables: &[Versions<'_>], options: &AbsorbOptions) -> Result<u64> {
    let union = union_of(tables, options, &unwatched)?;
    Ok(union.map_or(1, |union| union.plan.passes))
}

/// Returns the union of tables when none of them absorbs the others; `None` without any tables.
fn union_of<'t>(
    tables: &[Versions<'t>],
    options: &AbsorbOptions,
    watch: &'t Watch<'t>,
) -> Result<Option<Union<'t>>> {
    let tables: Vec<_> = tables.iter().map(|table| table.0).collect();
    let largest = tables.iter().max_by_key(|table| table.versions_max());
    let Some(hasher) = largest.map(|table| table.hasher()) else { return Ok(None) };
    let rule = Rule { prefer: options.prefer, into_first: false, resumes: false };
    let target = Target { hasher, partition_bits: 0, row: |hash| (hash.filter >> 32) as u32 };
    let ram = RamLimit {
        ram_bytes: options.ram_bytes,
        put_bytes: 0,
        worker_bytes: 0,
        workers_max: workers_max(),
    };
    Union::new(tables, target, (rule, ram), watch).map(Some)
}

/// Returns the number of workers: one for each core of the processor.
pub(super) fn workers_max() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).min(WORKERS_MAX)
}

impl<'t> Union<'t> {
    /// Plans to read these tables by the target's hash within the given RAM.
    ///
    /// # Errors
    /// Tables of different widths, or too many; too little RAM.
    pub(super) fn new(
        tables: Vec<&'t dyn VersionSource>,
        target: Target,
        (rule, ram): (Rule, RamLimit),
        watch: &'t Watch<'t>,
    ) -> Result<Self> {
        let layout = tables[0].layout();
        tables.iter().try_for_each(|table| check_widths(layout, table.layout()))?;
        if tables.len() > TABLES_MAX {
            let reason =
                format!("{} are merged at once, at most {TABLES_MAX} can be", tables.len());
            return Err(Error::Config { field: "tables", reason });
        }
        let plan = Plan::new(&tables, target.hasher, ram)?;
        Ok(Self { tables, target, layout, plan, rule, ram, watch })
    }

    /// Reads and counts all shares, and passes the chosen entries of each to `put`, together with what `begin` has made
    /// for the worker. Workers take one share after another: while one waits for the device, others continue.
    ///
    /// # Errors
    /// A failed read, damage; those of `put`; [`Error::Stopped`].
    pub(super) fn run<W>(
        &self,
        begin: &(dyn Fn() -> W + Sync),
        put: &(dyn Fn(&Batch, &mut W) -> Result<()> + Sync),
    ) -> Result<Absorbed> {
        let progress = Progress::default();
        let work = || {
            let done = self.work(&progress, &mut begin(), put);
            done.inspect_err(|_| progress.next_share.store(usize::MAX / 2, Relaxed))
        };
        let mut counts = Absorbed { passes: self.plan.passes, ..self.counts() };
        thread::scope(|scope| -> Result<()> {
            let others: Vec<_> = (1..self.plan.workers).map(|_| scope.spawn(work)).collect();
            let mut of_workers = vec![work()];
            let joined = others.into_iter().map(|worker| worker.join());
            of_workers.extend(joined.map(|it| it.unwrap_or_else(|panic| resume_unwind(panic))));
            for of_worker in of_workers {
                let of_worker = of_worker?;
                counts.add(&of_worker);
                counts.ram_bytes += of_worker.ram_bytes;
            }
            Ok(())
        })?;
        self.at(1.0)?;
        Ok(counts)
    }

    fn counts(&self) -> Absorbed {
        Absorbed { keys_of: vec![0; self.tables.len()], ..Absorbed::default() }
    }

    /// Runs one worker: takes the next share until there is none.
    fn work<W>(
        &self,
        progress: &Progress,
        worker: &mut W,
        put: &(dyn Fn(&Batch, &mut W) -> Result<()> + Sync),
    ) -> Result<Absorbed> {
        let mut counts = self.counts();
        let fits = |versions: u64| usize::try_from(versions).unwrap_or(usize::MAX);
        let versions = (fits(self.plan.versions), fits(self.plan.versions_max));
        let bits = (self.plan.share_bits, self.target.partition_bits);
        let mut batch = Batch::new(self.layout, versions, bits);
        loop {
            let number = progress.next_share.fetch_add(1, Relaxed);
            let Some(share) = Share::nth(number, self.plan.share_bits) else { return Ok(counts) };
            self.read(share, &mut batch, progress)?;
            counts.add(batch.counts());
            let put_bytes = self.ram.put_bytes * batch.chosen().len() as u64;
            let taken = batch.ram_bytes() + put_bytes + self.ram.worker_bytes + read_ahead_bytes();
            counts.ram_bytes = counts.ram_bytes.max(taken);
            put(&batch, worker)?;
        }
    }

    /// Reads a share of all tables, and chooses the entries to insert.
    fn read(&self, share: Share, batch: &mut Batch, progress: &Progress) -> Result<()> {
        batch.begin(share);
        let Target { hasher, row, .. } = self.target;
        let all = ((1u64 << self.plan.share_bits) * self.tables.len() as u64) as f64;
        for table in &self.tables {
            self.at(progress.tables_read.fetch_add(1, Relaxed) as f64 / all)?;
            batch.begin_table();
            let is_alike = hash_alike(table.hasher(), hasher);
            let part = if is_alike { share } else { Share::WHOLE };
            table.each_version(part, &mut |entry| {
                let hash = hasher.hash(entry.key);
                if share.holds(hash.place) { batch.push(hash, row(hash), entry) } else { Ok(()) }
            })?;
        }
        batch.choose(self.rule);
        Ok(())
    }

    fn at(&self, done: f64) -> Result<()> {
        if (self.watch)(done).is_break() { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// The combined progress of the workers.
#[derive(Debug, Default)]
struct Progress {
    next_share: AtomicUsize,
    /// The tables read so far, counted for each share.
    tables_read: AtomicUsize,
}

fn read_ahead_bytes() -> u64 {
    ReadAhead::default().pages * nandex_device::PAGE_BYTES as u64
}

fn check_widths(ours: EntryLayout, theirs: EntryLayout) -> Result<()> {
    let widths = |layout: EntryLayout| (layout.key_bytes(), layout.value_bytes());
    if widths(ours) == widths(theirs) {
        return Ok(());
    }
    let ((key, value), (their_key, their_value)) = (widths(ours), widths(theirs));
    let reason = format!(
        "keys of {their_key} bytes and values of {their_value} there, {key} and {value} here; only tables of the same widths merge"
    );
    Err(Error::Config { field: "widths", reason })
}

impl Plan {
    /// Plans for the most workers with which pages are read no more often than with one.
    fn new(tables: &[&dyn VersionSource], hasher: KeyHasher, ram: RamLimit) -> Result<Self> {
        let least = Self::of_workers(1, tables, hasher, ram)?;
        let more = (2..=ram.workers_max).rev();
        let mut plans = more.filter_map(|it| Self::of_workers(it, tables, hasher, ram).ok());
        Ok(plans.find(|plan| plan.passes == least.passes).unwrap_or(least))
    }

    fn of_workers(
        workers: usize,
        tables: &[&dyn VersionSource],
        hasher: KeyHasher,
        ram: RamLimit,
    ) -> Result<Self> {
        let is_alike = |table: &&&dyn VersionSource| hash_alike(table.hasher(), hasher);
        let versions: u64 = tables.iter().map(|table| table.versions_max()).sum();
        let each_bytes = Batch::version_bytes(tables[0].layout()) as u64 + ram.put_bytes;
        let of_worker = (ram.ram_bytes / workers as u64).saturating_sub(ram.fixed_bytes());
        let versions_max = (of_worker / each_bytes).min(u64::from(u32::MAX) - 1);
        let needed = (0..=SHARE_BITS_MAX).find(|bits| expected(versions, *bits) <= versions_max);
        let Some(needed) = needed.filter(|_| versions_max >= VERSIONS_MIN) else {
            let least = expected(versions, SHARE_BITS_MAX).max(VERSIONS_MIN) * each_bytes;
            let (least, stated) =
                (text::bytes(least + ram.fixed_bytes()), text::bytes(ram.ram_bytes));
            let reason = format!("{stated} for {versions} entries; at least {least} are needed");
            return Err(Error::TooLittleRam { field: "ram_bytes", reason });
        };
        let coarsest = tables.iter().filter(is_alike).map(|table| table.partitions()).min();
        let natural = coarsest.map_or(0, |partitions| partitions.ilog2()).min(SHARE_BITS_MAX);
        // Another pass over a table with another hash function costs more than a large batch.
        let is_all_alike = tables.iter().all(|table| is_alike(&table));
        let share_bits = if is_all_alike { needed.max(natural) } else { needed };
        // A partition is read once for each share that has keys of it.
        let read_at_once = if is_all_alike { natural } else { 0 };
        let passes = 1 << share_bits.saturating_sub(read_at_once);
        let versions = expected(versions, share_bits).min(versions_max);
        Ok(Self { workers, share_bits, versions, versions_max, passes })
    }
}

/// Returns the expected versions of a share with `bits` bits: the mean, plus the variation between shares. For large
/// shares that is eight standard deviations with 16 versions for each key, for small ones an eighth.
fn expected(versions: u64, bits: u32) -> u64 {
    let mean = versions.div_ceil(1 << bits);
    mean + (mean / 8).min(32 * mean.isqrt()) + VERSIONS_MIN / 8
}
