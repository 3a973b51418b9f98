//! Inserting chosen entries into an absorbing table, partition by partition.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::entries::Entry;
use nandex_store::hash::KeyHash;

use super::batch::Rule;
use super::union::{RamLimit, Target, Union, workers_max};
use super::{AbsorbOptions, Absorbed, Chosen, Placed, VersionSource, Versions, Watch};
use crate::write::pool::LentScratch;
use crate::write::{Core, EntryUpdate, LOCKED_MAX, TableLayout, WriteBuffer};
use crate::{Error, Result};

/// The operations that an absorbing table adds.
pub(crate) trait BulkLayout: TableLayout {
    /// The bytes of RAM that [`put_chosen`](Self::put_chosen) temporarily takes for each entry.
    const PUT_BYTES: u64 = 0;

    /// Memory that a worker keeps from one partition to the next.
    type Bulk: Default;

    /// The most RAM of that memory, in bytes.
    fn bulk_bytes(core: &Core<Self>) -> u64;

    /// Returns the position of a key in the pages of its partition: 0 at their beginning, 2^32 at their end.
    fn row(hash: KeyHash) -> u32;

    /// Inserts chosen entries of one partition, replacing what the table has of their keys. Only other workers update
    /// the table meanwhile. The entries are durable once [`Core::flush_all`] has returned.
    ///
    /// # Errors
    /// A full table that may not evict, a failed read or write, damage.
    fn put_chosen(index: usize, chosen: &Chosen<'_>, worker: &mut Worker<'_, Self>) -> Result<()>;
}

/// A worker that inserts entries.
pub(crate) struct Worker<'c, L: BulkLayout> {
    pub(crate) core: &'c Core<L>,
    scratch: LentScratch<'c, L::Scratch>,
    bulk: L::Bulk,
}

impl<'c, L: BulkLayout> Worker<'c, L> {
    fn new(core: &'c Core<L>) -> Self {
        Self { core, scratch: core.scratches.lend(), bulk: L::Bulk::default() }
    }

    /// Returns its memory: what flushes use, and what only inserting uses.
    ///
    /// # Errors
    /// A queue that the device refuses.
    pub(crate) fn memory(&mut self) -> Result<(&mut L::Scratch, &mut L::Bulk)> {
        let Self { core, scratch, bulk } = self;
        let scratch = match &mut scratch.scratch {
            Some(scratch) => scratch,
            place => place.insert(L::new_scratch(core)?),
        };
        Ok((scratch, bulk))
    }
}

impl<L: TableLayout> Core<L> {
    /// Splits entries of one partition into those whose keys are in buffers, which would shadow them below, and the
    /// others.
    ///
    /// # Errors
    /// A page of the buffers is lost.
    pub(crate) fn split_buffered<'b>(
        &self,
        index: usize,
        chosen: &Chosen<'b>,
    ) -> Result<(Vec<Placed>, Cow<'b, [Placed]>)> {
        let state = self.partitions[index].read();
        if state.buffers()?.all(|buffer| buffer.entries() == 0) {
            return Ok((Vec::new(), Cow::Borrowed(chosen.placed())));
        }
        let buffered = |entry: Entry<'_>| state.buffered(self.hasher.hash(entry.key), entry.key);
        let is_buffered = |entry: Entry<'_>| buffered(entry).is_ok_and(|it| it.is_known());
        let (hidden, direct) = chosen.split(is_buffered);
        Ok((hidden, Cow::Owned(direct)))
    }

    /// Inserts entries of one partition into its buffers, in order, and logs them.
    ///
    /// # Errors
    /// As [`BulkLayout::put_chosen`].
    pub(crate) fn put_each<'e>(
        &self,
        index: usize,
        mut entries: impl Iterator<Item = Entry<'e>>,
    ) -> Result<()> {
        let (mut updates, mut records) = (Vec::with_capacity(LOCKED_MAX), Vec::new());
        loop {
            let some = entries.by_ref().take(LOCKED_MAX);
            updates
                .extend(some.map(|entry| EntryUpdate { hash: self.hasher.hash(entry.key), entry }));
            if updates.is_empty() {
                return Ok(());
            }
            self.reserve_and_apply(index, &updates, &mut records)?;
            updates.clear();
        }
    }
}

/// Inserts all entries of other tables into one, as the options say, and makes them durable. The caller has exclusive
/// use of the table.
///
/// # Errors
/// A volume opened read-only; tables of other widths; too little RAM; a full table that may not evict, a failed read or
/// write, damage; [`Error::Stopped`]. What was inserted before stays.
pub(crate) fn absorb<L: BulkLayout>(
    core: &Core<L>,
    others: &[Versions<'_>],
    options: &AbsorbOptions,
    watch: &Watch<'_>,
) -> Result<Absorbed>
where
    Core<L>: VersionSource,
{
    if core.volume.is_read_only() {
        let reason = "the volume was opened to be read; open it to be written".into();
        return Err(Error::Config { field: "table", reason });
    }
    core.volume.poison().check()?;
    let own: &dyn VersionSource = core;
    let tables = std::iter::once(own).chain(others.iter().map(|other| other.0)).collect();
    let AbsorbOptions { prefer, ram_bytes, resumes } = *options;
    let rule = Rule { prefer, into_first: true, resumes };
    let shape = &core.codec.shape;
    let (partition_bits, row) = (shape.partitions.trailing_zeros(), L::row);
    let target = Target { hasher: core.hasher, partition_bits, row };
    // A table without threads gives the same result each time.
    let workers_max = if core.options.flush_threads > 0 { workers_max() } else { 1 };
    let (put_bytes, worker_bytes) = (L::PUT_BYTES, L::bulk_bytes(core));
    let ram = RamLimit { ram_bytes, put_bytes, worker_bytes, workers_max };
    let union = Union::new(tables, target, (rule, ram), watch)?;
    let evicted_before = core.counters.evicted.load(Relaxed);
    let ran = union.run(&|| Worker::new(core), &|batch, worker| {
        let mut parts = batch.chosen().parts(|place| shape.partition_of_place(place));
        parts.try_for_each(|(index, chosen)| L::put_chosen(index, &chosen, worker))
    });
    let absorbed = ran.and_then(|absorbed| core.flush_all().map(|()| absorbed));
    let mut absorbed = absorbed.map_err(|error| core.counted(error))?;
    absorbed.evicted = core.counters.evicted.load(Relaxed) - evicted_before;
    Ok(absorbed)
}
