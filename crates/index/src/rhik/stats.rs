//! Statistics of directories and tables, counted where events happen.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::Directories;
use super::directory::Directory;
use super::rewrite::Changes;
use crate::groups::GroupMap;

/// RHIK's counters in addition to the write path's.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    splits: AtomicU64,
    joins: AtomicU64,
    doublings: AtomicU64,
    halvings: AtomicU64,
}

/// Statistics of the directory and the tables of a [`Rhik`](super::Rhik) now, and of the changes since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RhikStats {
    /// Entries of all directories: the paper's D.
    pub directory_entries: u64,
    /// RAM of all directories, in bytes.
    pub directory_bytes: u64,
    /// Record tables, a page each.
    pub tables: u64,
    /// Groups of tables, each written at once.
    pub groups: u64,
    /// Slots of all tables.
    pub slots: u64,
    /// Entries in tables, without those in buffers.
    pub entries: u64,
    /// Tables that were split in two.
    pub splits: u64,
    /// Pairs of tables that were joined.
    pub joins: u64,
    /// The number of times that the directory of a partition has doubled.
    pub doublings: u64,
    /// The number of times that the directory of a partition was halved.
    pub halvings: u64,
}

impl RhikStats {
    /// The share of slots in use; 0 without tables.
    #[must_use]
    pub fn occupancy(&self) -> f64 {
        crate::api::ratio(self.entries, self.slots)
    }
}

impl Counters {
    /// Notes that the directory of a partition was replaced.
    pub fn note(&self, before: &Directory, after: &Directory, changes: Changes) {
        self.splits.fetch_add(changes.splits, Relaxed);
        self.joins.fetch_add(changes.joins, Relaxed);
        let steps = |to: usize, from: usize| (to.max(1) / from.max(1)).max(1).ilog2().into();
        self.doublings.fetch_add(steps(after.len(), before.len()), Relaxed);
        self.halvings.fetch_add(steps(before.len(), after.len()), Relaxed);
    }
}

impl Directories {
    pub(super) fn stats_of(&self, directories: &[Arc<Directory>]) -> RhikStats {
        let counters = &self.counters;
        let mut stats = RhikStats {
            splits: counters.splits.load(Relaxed),
            joins: counters.joins.load(Relaxed),
            doublings: counters.doublings.load(Relaxed),
            halvings: counters.halvings.load(Relaxed),
            ..RhikStats::default()
        };
        for directory in directories {
            stats.directory_entries += directory.len() as u64;
            stats.directory_bytes += directory.ram_bytes();
            stats.tables += directory.pages();
            stats.groups += directory.group_list().len() as u64;
            stats.entries += directory.entries();
        }
        stats.slots = stats.tables * self.slots;
        stats
    }
}
