//! Absorbing tables: all entries of other tables go into one, in hash order (NSDI'10, section 3).
//!
//! All tables divide one range of hashes into partitions. So a share of that range is a few partitions of each table,
//! which are read from front to back: buffers, then pages, in long reads. The share's versions go into bins in RAM.
//! There the newest version of a key in each table is found, and among several tables the one that the rule prefers.
//! Entries that the absorbing table lacks are inserted partition by partition. No page is read for a single key. Each
//! worker takes one share after another, from its first read to its last write.
//!
//! ```text
//!   others      | 0 | 1 | 2 | 3 |       | 0       | 1       |       partitions, in the order of the hash
//!                     |                      |
//!                     +------- share 1 ------+                      long reads
//!                                |
//!                     newest version of each key,                   RAM: the versions of one share for each worker
//!                     first or last table that has it
//!                                |
//!   absorbing   | 0 | 1 | 2 | 3  v  | 4 | 5 | 6 | 7 |               `BulkLayout`: incarnations, or a slicetable, whole
//! ```
//!
//! A table with another hash function has keys of a share in all its partitions. It is read in full for each share;
//! shares are then as large as the RAM allows, since each costs a pass over that table.
//!
//! Absorbing the same tables again changes nothing. So after an interruption, including a crash, the caller absorbs
//! them again: everything is read once more, and the missing entries are inserted.
//!
//! Invariants
//! 1. A partition is read under its maintenance lock, and nothing waits while that is held: what was read is in RAM
//!    before any of it is put anywhere.
//! 2. No other thread updates the absorbing table meanwhile: its owner lends it exclusively.
//! 3. An entry is put where buffers and pages of the absorbing table cannot hide it.

mod batch;
mod bulk;
mod matcher;
mod share;
#[cfg(test)]
mod tests;
mod union;
mod versions;

use std::ops::ControlFlow;

pub(crate) use batch::{Batch, Chosen, Placed, Rule};
pub(crate) use bulk::{BulkLayout, Worker, absorb};
pub(crate) use share::Share;
pub use union::{count_shared, expected_passes};
pub use versions::Versions;
pub(crate) use versions::{Pause, VersionSource, Visit};

/// The preference for one entry on duplicate keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Prefer {
    /// The entry of the first table that has the key. A table that absorbs others comes before them.
    #[default]
    First,
    /// The entry of the last table that has the key.
    Last,
}

/// Options of a merge of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbsorbOptions {
    /// The entry that wins on duplicate keys.
    pub prefer: Prefer,
    /// The RAM in bytes that versions of entries may take meanwhile, in addition to the tables' RAM.
    pub ram_bytes: u64,
    /// Whether this resumes an interrupted merge into a table that was empty when it began. Then the absorbing table's
    /// entries come from the others: they are replaced where the others differ, and [`Absorbed`] counts only what the
    /// others have in common.
    pub resumes: bool,
}

impl Default for AbsorbOptions {
    /// Returns the defaults: the first table's entry wins, 256 MiB of RAM, a new merge.
    fn default() -> Self {
        Self { prefer: Prefer::default(), ram_bytes: 256 << 20, resumes: false }
    }
}

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Absorbed {
    /// The keys of each table, the absorbing one first if there is one, without removed keys.
    pub keys_of: Vec<u64>,
    /// The different keys of all tables together.
    pub keys: u64,
    /// The keys among these that several tables have.
    pub shared: u64,
    /// The keys among these whose values differ.
    pub differing: u64,
    /// The keys that only the absorbing table has.
    pub only_own: u64,
    /// The entries that were inserted into the absorbing table: new ones, and ones that replace others.
    pub put: u64,
    /// The entries that the policy of the absorbing table has dropped meanwhile.
    pub evicted: u64,
    /// The number of times that a page was read, at most. It is 1 if all tables hash alike, unless a partition of one
    /// takes more RAM than the options allow; a table with another hash function is read once for each share.
    pub passes: u64,
    /// The most RAM that versions and read-ahead took, in bytes.
    pub ram_bytes: u64,
}

impl Absorbed {
    /// Adds the counts of one share.
    fn add(&mut self, found: &Self) {
        self.keys_of.iter_mut().zip(&found.keys_of).for_each(|(all, keys)| *all += keys);
        self.keys += found.keys;
        self.shared += found.shared;
        self.differing += found.differing;
        self.only_own += found.only_own;
        self.put += found.put;
    }
}

/// A callback that receives the share that is done, from 0 to 1, and may cancel the work.
pub type Watch<'w> = dyn Fn(f64) -> ControlFlow<()> + Sync + 'w;

/// A callback that never cancels.
pub(crate) fn unwatched(_share: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
