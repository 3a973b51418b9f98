//! Where chosen entries go: into an absorbing table, partition by partition.

use std::sync::atomic::Ordering::Relaxed;

use nandex_store::entries::Entry;

use super::batch::Rule;
use super::union::{RamLimit, Union};
use super::{AbsorbOptions, Absorbed, Chosen, Placed, VersionSource, Versions, Watch};
use crate::write::{Core, EntryUpdate, LOCKED_MAX, TableLayout};
use crate::{Error, Result};

/// What a table that absorbs others adds.
pub(crate) trait BulkLayout: TableLayout {
    /// RAM that [`put_chosen`](Self::put_chosen) takes for each entry meanwhile, in bytes.
    const PUT_BYTES: u64 = 0;

    /// Puts chosen entries of one partition in place of what it has of their keys. Nobody else updates the table
    /// meanwhile. They are durable once [`Core::flush_all`] has returned.
    ///
    /// Puts them into buffers, unless the structure has a shorter way.
    ///
    /// # Errors
    /// A full table that may not evict, a failed read or write, damage.
    fn put_chosen(
        core: &Core<Self>,
        index: usize,
        chosen: &Chosen<'_>,
        _scratch: &mut Option<Self::Scratch>,
    ) -> Result<()> {
        core.put_each(index, chosen.entries())
    }
}

impl<L: TableLayout> Core<L> {
    /// The entries of one partition whose keys buffers have, which would hide them below, and the others.
    pub(crate) fn split_buffered(
        &self,
        index: usize,
        chosen: &Chosen<'_>,
    ) -> (Vec<Placed>, Vec<Placed>) {
        let state = self.partitions[index].read();
        let has_some = state.entries_buffered() > 0;
        chosen.split(|entry| {
            has_some && state.buffered(self.hasher.hash(entry.key), entry.key).is_some()
        })
    }

    /// Puts entries of one partition into its buffers, in order, and logs them.
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

/// Puts all that other tables hold into one, by the rule of the options, and makes it durable. The caller lends the
/// table exclusively.
///
/// # Errors
/// A volume that is only read; tables of other widths; too little RAM; a full table that may not evict, a failed read
/// or write, damage; [`Error::Stopped`]. What was put before stays.
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
    let own: &dyn VersionSource = core;
    let tables = std::iter::once(own).chain(others.iter().map(|other| other.0)).collect();
    let AbsorbOptions { prefer, ram_bytes, resumes } = *options;
    let rule = Rule { prefer, into_first: true, resumes };
    let ram = RamLimit { ram_bytes, put_bytes: L::PUT_BYTES };
    let union = Union::new(tables, core.hasher, (rule, ram), watch)?;
    let evicted_before = core.counters.evicted.load(Relaxed);
    let (mut absorbed, mut scratch) = (union.counts(), core.scratches.take());
    let reads_ahead = core.options.flush_threads > 0;
    let ran = union.run(reads_ahead, &mut absorbed, &mut |batch| {
        let mut parts = batch.chosen().parts(|place| core.codec.shape.partition_of_place(place));
        parts.try_for_each(|(index, chosen)| L::put_chosen(core, index, &chosen, &mut scratch))
    });
    scratch.into_iter().for_each(|scratch| core.scratches.give(scratch));
    ran.and_then(|()| core.flush_all()).map_err(|error| core.counted(error))?;
    absorbed.evicted = core.counters.evicted.load(Relaxed) - evicted_before;
    Ok(absorbed)
}
