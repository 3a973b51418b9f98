//! The versions that a merge reads of a table: all versions of its keys, in hash order.

use std::fmt::Debug;

use nandex_store::entries::{Entry, EntryLayout};
use nandex_store::hash::KeyHasher;

use super::Share;
use crate::Result;
use crate::write::{Core, TableLayout};

/// A callback that takes one version after another.
pub(crate) type Visit<'v> = dyn FnMut(Entry<'_>) -> Result<()> + 'v;

/// A guard: while it exists, background work that would block reading versions for long is paused.
pub(crate) trait Pause {}

/// A table whose versions can be read share by share.
pub(crate) trait VersionSource: Debug + Send + Sync {
    /// The hash function of its keys.
    fn hasher(&self) -> KeyHasher;

    /// The widths of its entries.
    fn layout(&self) -> EntryLayout;

    /// The number of its partitions, a power of two; the least number, if its parts differ.
    fn partitions(&self) -> usize;

    /// The maximum number of versions that it may have.
    fn versions_max(&self) -> u64;

    /// Passes on all versions of the partitions that have keys of a share, including removals, and of each key the
    /// newest first. Reads them in long runs. Keys of other shares may be included.
    ///
    /// # Errors
    /// A failed read, damage; those of `visit`.
    fn each_version(&self, share: Share, visit: &mut Visit<'_>) -> Result<()> {
        self.each_version_in(share, (0, 1), visit)
    }

    /// Pauses background work during which versions cannot be read, if there is any. A caller that reads all versions
    /// then waits once for part of that work, not for all of it.
    fn pause(&self) -> Option<Box<dyn Pause + '_>> {
        None
    }

    /// Returns the number of parts that the keys of a partition can be divided into by their pages, so that few pages
    /// are read for two parts, and no page is read alone.
    fn page_parts(&self) -> usize {
        1
    }

    /// Like [`each_version`](Self::each_version), for the keys in one of these parts: its number, and the number of
    /// parts.
    ///
    /// # Errors
    /// As [`each_version`](Self::each_version).
    fn each_version_in(
        &self,
        share: Share,
        part: (usize, usize),
        visit: &mut Visit<'_>,
    ) -> Result<()>;
}

/// A table that others can absorb: its versions of keys, in hash order. Tables of every kind that can provide one do so
/// with `versions`.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'t>(pub(crate) &'t dyn VersionSource);

impl<L: TableLayout> Core<L> {
    /// The number of versions of keys in all partitions, in buffers and below.
    pub(crate) fn versions_held(&self) -> u64 {
        let held = self.partitions.iter().map(|partition| {
            let state = partition.read();
            state.entries_buffered() + L::entries_below(&state)
        });
        held.sum()
    }
}
