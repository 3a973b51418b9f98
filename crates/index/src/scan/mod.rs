//! One pass over a table, the basis of its other traversals: iteration, iteration past damage, and the versions that
//! merges read.
//!
//! A pass goes through the table by portions. A portion has all versions of some keys: those in the buffers, then those
//! in pages, the newest first. A structure defines how its portions are listed, and passes what it finds to a
//! [`Visitor`], which also receives the damage. The visitor decides what to do with both: [`Found`] keeps the newest
//! version of each key and continues past damage, [`EachVersion`] takes all versions and stops at damage.

mod entries;
mod read;

use nandex_store::entries::Entry;

use crate::write::absorb::Visit;
use crate::write::{PartitionState, TableLayout};
use crate::{Damage, Result};

pub use entries::{Entries, EntriesPastDamage};
pub(crate) use entries::{Found, Scan};
pub(crate) use read::{Reads, read};

/// Receives what a pass finds.
pub(crate) trait Visitor {
    /// Receives a version of a key. Of each key the newest version comes first.
    ///
    /// # Errors
    /// The visitor's own errors, which end the pass.
    fn entry(&mut self, entry: Entry<'_>) -> Result<()>;

    /// Receives a version of a key after which no older one comes.
    ///
    /// # Errors
    /// As [`entry`](Self::entry).
    fn oldest(&mut self, entry: Entry<'_>) -> Result<()> {
        self.entry(entry)
    }

    /// Receives a page that cannot be read or verified.
    ///
    /// # Errors
    /// The damage, if it ends the pass.
    fn damage(&mut self, damage: Damage) -> Result<()>;

    /// Returns the way in which pages are read.
    fn reads(&self) -> Reads;
}

/// Passes all versions to a merge. Damage ends the pass.
pub(crate) struct EachVersion<'v, 'f>(pub &'v mut Visit<'f>);

impl Visitor for EachVersion<'_, '_> {
    fn entry(&mut self, entry: Entry<'_>) -> Result<()> {
        (self.0)(entry)
    }

    fn damage(&mut self, damage: Damage) -> Result<()> {
        Err(damage.error)
    }

    fn reads(&self) -> Reads {
        Reads::Ahead
    }
}

/// Passes on the entries in a partition's buffers whose keys `is_wanted` accepts, and the damaged pages that the
/// buffers would have been loaded from. Those pages have `slots` slots.
///
/// # Errors
/// Those of the visitor.
pub(crate) fn visit_buffers<L: TableLayout>(
    state: &PartitionState<L>,
    slots: usize,
    visitor: &mut dyn Visitor,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<()> {
    let (buffers, lost) = state.buffers_past_damage();
    lost.iter().try_for_each(|lost| visitor.damage(lost.as_damage(slots)))?;
    let mut entries = buffers.flat_map(|buffer| {
        let in_pages = buffer.page_entries().map(|(_, _, entry)| entry);
        in_pages.chain(buffer.stash_entries())
    });
    entries.try_for_each(|entry| if is_wanted(entry.key) { visitor.entry(entry) } else { Ok(()) })
}
