//! What is read of a table that is merged: all versions of its keys, in the order of the hash.

use std::fmt::Debug;

use nandex_store::entries::{Entry, EntryLayout};
use nandex_store::hash::KeyHasher;

use super::Share;
use crate::Result;
use crate::write::{Core, TableLayout};

/// Takes one version after another.
pub(crate) type Visit<'v> = dyn FnMut(Entry<'_>) -> Result<()> + 'v;

/// While it is kept, work in the background that keeps versions from being read for long does not go on.
pub(crate) trait Pause {}

/// A table whose versions can be read share by share.
pub(crate) trait VersionSource: Debug + Send + Sync {
    /// How it hashes keys.
    fn hasher(&self) -> KeyHasher;

    /// The widths of its entries.
    fn layout(&self) -> EntryLayout;

    /// Its partitions, a power of two; where several parts have different numbers, the least.
    fn partitions(&self) -> usize;

    /// How many versions it has, at most.
    fn versions_max(&self) -> u64;

    /// Passes all versions of the partitions that have keys of a share, removals among them, and of each key the newest
    /// first. Reads them in long runs. Keys of other shares may be among them.
    ///
    /// # Errors
    /// A failed read, damage; those of `visit`.
    fn each_version(&self, share: Share, visit: &mut Visit<'_>) -> Result<()> {
        self.each_version_in(share, (0, 1), visit)
    }

    /// Has the background pause what versions cannot be read during, if there is such work: whoever reads all of them
    /// waits for a part of it once, and not for all of it.
    fn pause(&self) -> Option<Box<dyn Pause + '_>> {
        None
    }

    /// Into how many parts the keys of a partition can be divided by their pages, so that hardly any page is read for
    /// two parts, and none by itself.
    fn page_parts(&self) -> usize {
        1
    }

    /// As [`each_version`](Self::each_version), of the keys in one of such parts: its number, and how many there are.
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

/// A table that others can absorb: its versions of keys, in the order of the hash. Tables of all kinds that can give
/// one do so by `versions`.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'t>(pub(crate) &'t dyn VersionSource);

impl<L: TableLayout> Core<L> {
    /// Versions of keys in all partitions, in buffers and below.
    pub(crate) fn versions_held(&self) -> u64 {
        let held = self.partitions.iter().map(|partition| {
            let state = partition.read();
            state.entries_buffered() + L::entries_below(&state)
        });
        held.sum()
    }
}
