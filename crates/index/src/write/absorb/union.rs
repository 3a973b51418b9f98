//! The union of several tables, share by share: what is common to a merge and to a count of what tables share.

use std::sync::mpsc::sync_channel;
use std::thread;

use nandex_store::ReadAhead;
use nandex_store::entries::EntryLayout;
use nandex_store::hash::KeyHasher;

use super::batch::{Batch, Rule};
use super::{AbsorbOptions, Absorbed, Share, VersionSource, Versions, Watch, unwatched};
use crate::model::text;
use crate::{Error, Result};

/// Batches in RAM: one is read while the other is put.
const BATCHES: u64 = 2;
/// Bits of a share, at most.
const SHARE_BITS_MAX: u32 = 16;
/// Versions that a batch takes at least: with fewer, shares of a hash's range would differ too much.
const VERSIONS_MIN: u64 = 1024;

/// Tables that are read together.
pub(super) struct Union<'t> {
    tables: Vec<&'t dyn VersionSource>,
    hasher: KeyHasher,
    layout: EntryLayout,
    plan: Plan,
    rule: Rule,
    ram: RamLimit,
    watch: &'t Watch<'t>,
}

/// The RAM of a union.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RamLimit {
    /// All of it, in bytes.
    pub ram_bytes: u64,
    /// What putting takes for each chosen entry of a share, in bytes.
    pub put_bytes: u64,
}

/// How the range of hashes is divided, and what a share takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Plan {
    share_bits: u32,
    /// Versions of a share, about, and at most.
    versions: u64,
    versions_max: u64,
    /// How often a page is read, at most.
    passes: u64,
}

/// Are keys in the same order by both?
fn hash_alike(one: KeyHasher, other: KeyHasher) -> bool {
    one.kind() == other.kind() && one.key() == other.key()
}

/// Counts what tables have in common, by their keys, and puts nothing anywhere. Shares are those of the hash of the
/// table with the most entries. Reads all tables once, or as often as [`Absorbed::passes`] says.
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
    let mut counts = union.counts();
    union.run(true, &mut counts, &mut |_| Ok(()))?;
    Ok(counts)
}

/// How often [`count_shared`] would read a page, at most, and about how often a table would that absorbs these and
/// hashes keys as the one with the most entries does: see [`Absorbed::passes`]. Reads nothing.
///
/// # Errors
/// Tables of different widths; too little RAM.
pub fn expected_passes(tables: &[Versions<'_>], options: &AbsorbOptions) -> Result<u64> {
    let union = union_of(tables, options, &unwatched)?;
    Ok(union.map_or(1, |union| union.plan.passes))
}

/// The union of tables that go into none of them; `None` without any.
fn union_of<'t>(
    tables: &[Versions<'t>],
    options: &AbsorbOptions,
    watch: &'t Watch<'t>,
) -> Result<Option<Union<'t>>> {
    let tables: Vec<_> = tables.iter().map(|table| table.0).collect();
    let largest = tables.iter().max_by_key(|table| table.versions_max());
    let Some(hasher) = largest.map(|table| table.hasher()) else { return Ok(None) };
    let rule = Rule { prefer: options.prefer, into_first: false, resumes: false };
    let ram = RamLimit { ram_bytes: options.ram_bytes, put_bytes: 0 };
    Union::new(tables, hasher, (rule, ram), watch).map(Some)
}

impl<'t> Union<'t> {
    /// Plans to read these tables by this hash within so much RAM.
    ///
    /// # Errors
    /// Tables of different widths; too little RAM.
    pub(super) fn new(
        tables: Vec<&'t dyn VersionSource>,
        hasher: KeyHasher,
        (rule, ram): (Rule, RamLimit),
        watch: &'t Watch<'t>,
    ) -> Result<Self> {
        let layout = tables[0].layout();
        tables.iter().try_for_each(|table| check_widths(layout, table.layout()))?;
        let plan = Plan::new(&tables, hasher, ram)?;
        Ok(Self { tables, hasher, layout, plan, rule, ram, watch })
    }

    /// No counts yet.
    pub(super) fn counts(&self) -> Absorbed {
        let (keys_of, passes) = (vec![0; self.tables.len()], self.plan.passes);
        Absorbed { keys_of, passes, ..Absorbed::default() }
    }

    /// Reads and counts all shares, and passes each with what was chosen to `put`. With a thread of its own the next
    /// share is read, sorted and chosen from meanwhile.
    ///
    /// # Errors
    /// A failed read, damage; those of `put`; [`Error::Stopped`].
    pub(super) fn run(
        &self,
        reads_ahead: bool,
        counts: &mut Absorbed,
        put: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let mut take = |batch: &mut Batch| {
            counts.add(batch.counts());
            let batches = if reads_ahead { BATCHES } else { 1 };
            let put_bytes = self.ram.put_bytes * batch.chosen().len() as u64;
            let taken = batches * batch.ram_bytes() + put_bytes + read_ahead_bytes();
            counts.ram_bytes = counts.ram_bytes.max(taken);
            put(batch)
        };
        if reads_ahead {
            self.run_ahead(&mut take)?;
        } else {
            let mut batch = self.new_batch();
            for share in self.shares() {
                self.read(share, &mut batch)?;
                take(&mut batch)?;
            }
        }
        self.at(1.0)
    }

    fn run_ahead(&self, take: &mut dyn FnMut(&mut Batch) -> Result<()>) -> Result<()> {
        let (full_to, full) = sync_channel::<Batch>(1);
        let (empty_to, empty) = sync_channel::<Batch>(BATCHES as usize);
        for _ in 0..BATCHES {
            empty_to.send(self.new_batch()).expect("the channel has space for all batches");
        }
        thread::scope(|scope| {
            let reader = scope.spawn(move || -> Result<()> {
                for share in self.shares() {
                    // Without a receiver the other side has failed.
                    let Ok(mut batch) = empty.recv() else { return Ok(()) };
                    self.read(share, &mut batch)?;
                    if full_to.send(batch).is_err() {
                        return Ok(());
                    }
                }
                Ok(())
            });
            let mut taken = Ok(());
            while taken.is_ok()
                && let Ok(mut batch) = full.recv()
            {
                taken = take(&mut batch);
                // The reader has ended once it needs no more.
                let _ = empty_to.send(batch);
            }
            drop((full, empty_to));
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            taken.and(read)
        })
    }

    fn shares(&self) -> impl Iterator<Item = Share> + use<> {
        Share::all(self.plan.share_bits)
    }

    fn new_batch(&self) -> Batch {
        let fits = |versions: u64| usize::try_from(versions).unwrap_or(usize::MAX);
        Batch::new(self.layout, fits(self.plan.versions), fits(self.plan.versions_max))
    }

    /// Reads a share of all tables, sorts it, and chooses what is put.
    fn read(&self, share: Share, batch: &mut Batch) -> Result<()> {
        batch.clear();
        let shares = (1u64 << self.plan.share_bits) as f64;
        for (number, table) in self.tables.iter().enumerate() {
            let of_tables = number as f64 / self.tables.len() as f64;
            self.at((share.number() as f64 + of_tables) / shares)?;
            batch.begin_table();
            let is_alike = hash_alike(table.hasher(), self.hasher);
            let part = if is_alike { share } else { Share::WHOLE };
            table.each_version(part, &mut |entry| {
                let place = self.hasher.hash(entry.key).place;
                if share.holds(place) { batch.push(place, entry) } else { Ok(()) }
            })?;
        }
        batch.sort(share);
        batch.choose(self.rule);
        Ok(())
    }

    fn at(&self, done: f64) -> Result<()> {
        if (self.watch)(done).is_break() { Err(Error::Stopped) } else { Ok(()) }
    }
}

fn read_ahead_bytes() -> u64 {
    let ReadAhead { run_pages, depth } = ReadAhead::default();
    run_pages * depth as u64 * nandex_device::PAGE_BYTES as u64
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
    fn new(tables: &[&dyn VersionSource], hasher: KeyHasher, ram: RamLimit) -> Result<Self> {
        let RamLimit { ram_bytes, put_bytes } = ram;
        let is_alike = |table: &&&dyn VersionSource| hash_alike(table.hasher(), hasher);
        let versions: u64 = tables.iter().map(|table| table.versions_max()).sum();
        let version_bytes = Batch::version_bytes(tables[0].layout()) as u64;
        let all_bytes = BATCHES * version_bytes + put_bytes;
        let for_versions = ram_bytes.saturating_sub(read_ahead_bytes());
        let versions_max = (for_versions / all_bytes).min(u64::from(u32::MAX));
        let needed = (0..=SHARE_BITS_MAX).find(|bits| expected(versions, *bits) <= versions_max);
        let Some(needed) = needed.filter(|_| versions_max >= VERSIONS_MIN) else {
            let least = expected(versions, SHARE_BITS_MAX).max(VERSIONS_MIN) * all_bytes;
            let least = text::bytes(least + read_ahead_bytes());
            let stated = text::bytes(ram_bytes);
            let reason = format!("{stated} for {versions} entries; at least {least} are needed");
            return Err(Error::Config { field: "ram_bytes", reason });
        };
        let coarsest = tables.iter().filter(is_alike).map(|table| table.partitions()).min();
        let natural = coarsest.map_or(0, |partitions| partitions.ilog2()).min(SHARE_BITS_MAX);
        // Another pass over a table that hashes otherwise costs more than a large batch.
        let is_all_alike = tables.iter().all(|table| is_alike(&table));
        let share_bits = if is_all_alike { needed.max(natural) } else { needed };
        // A partition is read for each share that has keys of it.
        let read_at_once = if is_all_alike { natural } else { 0 };
        let passes = 1 << share_bits.saturating_sub(read_at_once);
        let versions = expected(versions, share_bits).min(versions_max);
        Ok(Self { share_bits, versions, versions_max, passes })
    }
}

/// Versions of a share of that many bits: the mean, and an eighth for what differs from share to share.
fn expected(versions: u64, bits: u32) -> u64 {
    let mean = versions.div_ceil(1 << bits);
    mean + mean / 8 + VERSIONS_MIN / 8
}
