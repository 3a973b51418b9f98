//! One pass over a table, of which its other walks are faces: iteration, iteration past damage, and the versions that
//! merges read.
//!
//! A pass goes through the table by portions. A portion has all versions of some keys: what the buffers hold of them,
//! then pages, the newest first. A structure says how its portions are listed, and passes what it finds to a
//! [`Visitor`], which also takes the damage. What becomes of the two is the visitor's: [`Found`] keeps the newest
//! version of each key and goes on, [`EachVersion`] takes all versions and ends.

mod entries;
mod read;

use nandex_store::entries::Entry;

use crate::write::absorb::Visit;
use crate::write::{PartitionState, TableLayout};
use crate::{Damage, Result};

pub use entries::{Entries, EntriesPastDamage};
pub(crate) use entries::{Found, Scan};
pub(crate) use read::{Reads, read};

/// Takes what a pass finds.
pub(crate) trait Visitor {
    /// Takes a version of a key. Of each key the newest version comes first.
    ///
    /// # Errors
    /// The visitor's own, which end the pass.
    fn entry(&mut self, entry: Entry<'_>) -> Result<()>;

    /// Takes a version of a key after which no older one comes.
    ///
    /// # Errors
    /// As [`entry`](Self::entry).
    fn oldest(&mut self, entry: Entry<'_>) -> Result<()> {
        self.entry(entry)
    }

    /// Takes a page that cannot be read or proven.
    ///
    /// # Errors
    /// The damage, if it ends the pass.
    fn damage(&mut self, damage: Damage) -> Result<()>;

    /// How pages are read.
    fn reads(&self) -> Reads;
}

/// Passes all versions to a merge. Damage ends it.
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

/// Passes what the buffers of a partition hold of the keys that `is_wanted` accepts, and the damage of pages of `slots`
/// slots that they would have been loaded from.
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
