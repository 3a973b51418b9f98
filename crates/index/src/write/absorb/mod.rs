//! Absorbing tables: all that others hold goes into one, in the order of the hash (NSDI'10, section 3).
//!
//! All tables divide one range of hashes into partitions. So a share of that range is a few partitions of each table,
//! which are read from front to back: buffers, then pages, in long reads. The share's versions go into bins in RAM,
//! where the newest version of a key in each table shows, and of several tables the one that the rule prefers. What
//! the absorbing table does not have yet goes into it partition by partition. No page is read for a key. Each worker
//! has one share after another, from its first read to its last write.
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
//! A table that hashes keys otherwise has keys of a share in all its partitions. It is read whole for each share;
//! shares are then as large as the RAM allows, since each costs a pass over that table.
//!
//! To absorb the same tables again changes nothing, so whoever was stopped, by a crash too, does just that: all is read
//! again, and what is missing is put.
//!
//! Invariants
//! 1. A partition is read under its maintenance lock, and nothing waits while that is held: what was read is in RAM
//!    before any of it is put anywhere.
//! 2. Nobody else updates the absorbing table meanwhile: its owner lends it exclusively.
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

/// Which entry stays where several tables have one of the same key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Prefer {
    /// That of the first table that has the key. A table that absorbs others comes before them.
    #[default]
    First,
    /// That of the last table that has the key.
    Last,
}

/// How tables are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbsorbOptions {
    /// Which entry stays where several have one of the same key.
    pub prefer: Prefer,
    /// RAM in bytes that versions of entries may take meanwhile, in addition to that of the tables.
    pub ram_bytes: u64,
    /// Does this go on with a merge that was stopped, into a table that was empty when it began? Then what the
    /// absorbing table has is not its own: it is replaced where the others say otherwise, and [`Absorbed`] counts
    /// what is common to the others alone.
    pub resumes: bool,
}

impl Default for AbsorbOptions {
    /// The first table's entry stays; 256 MiB; a merge that begins.
    fn default() -> Self {
        Self { prefer: Prefer::default(), ram_bytes: 256 << 20, resumes: false }
    }
}

/// What a merge has found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Absorbed {
    /// Keys of each table, the absorbing one first if there is one; what a table has removed is not among them.
    pub keys_of: Vec<u64>,
    /// Different keys of all of them.
    pub keys: u64,
    /// Of these, keys that several tables have.
    pub shared: u64,
    /// Of these, keys whose values differ.
    pub differing: u64,
    /// Keys that the absorbing table has and no other.
    pub only_own: u64,
    /// Entries that were put into the absorbing table: those that it did not have, and those that others replace.
    pub put: u64,
    /// Entries that the policy of the absorbing table has dropped meanwhile.
    pub evicted: u64,
    /// How often a page was read, at most. 1 where all tables hash alike, unless a partition of one takes more RAM than
    /// the options allow; a table that hashes otherwise is read once for each share.
    pub passes: u64,
    /// The most RAM that versions and reads ahead took, in bytes.
    pub ram_bytes: u64,
}

impl Absorbed {
    /// Adds what was found of the keys of one share.
    fn add(&mut self, found: &Self) {
        self.keys_of.iter_mut().zip(&found.keys_of).for_each(|(all, keys)| *all += keys);
        self.keys += found.keys;
        self.shared += found.shared;
        self.differing += found.differing;
        self.only_own += found.only_own;
        self.put += found.put;
    }
}

/// Is told the share that is done, from 0 to 1, and may stop the work.
pub type Watch<'w> = dyn Fn(f64) -> ControlFlow<()> + Sync + 'w;

/// For work that nobody watches.
pub(crate) fn unwatched(_share: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
