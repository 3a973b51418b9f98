//! The RAM of tables of groups, computed from the configuration.

use nandex_store::buffer::STASH_LEN_MAX;
use nandex_store::records::RecordLayout;

use super::{
    CHECKPOINT_COPIES, GROUP_CHECKPOINT_RAM_BYTES, GROUP_RAM_BYTES, GROUPS_IN_RAM, GroupParameters,
    Incoming,
};
use crate::Result;
use crate::model::{PAGE_BYTES, too_little_ram};
use crate::write::snapshot_pages;

/// RAM that does not depend on the configuration: the log's blocks, pages of lookups in progress.
const FIXED_RAM_BYTES: u64 = 9 << 17;

/// RAM of a partition without its buffer, in bytes.
const PARTITION_BYTES: u64 = 2304;

/// The largest share of the groups that were replaced since the last checkpoint.
const REPLACED: f64 = 0.25;

/// RAM of an entry in a buffer's stash, in addition to its bytes.
const STASHED_BYTES: u64 = 32;

/// The RAM of a table of groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupRam {
    /// The parameters that all of them have.
    pub common: GroupParameters,
    /// The layout of record tables.
    pub records: RecordLayout,
    /// RAM of the map for each table, in bytes, without its group's.
    pub name_bytes: u64,
    /// The groups of each partition that have fewer tables than others.
    pub short_groups: u64,
    /// RAM that does not depend on the size of the table, in bytes.
    pub fixed_bytes: u64,
    /// RAM of a rewrite's own, in bytes.
    pub rewrite_bytes: u64,
    /// The number of buffers whose entries a rewrite sorts.
    pub sorted_buffers: usize,
}

impl GroupRam {
    /// Creates the RAM of a structure without RAM of its own.
    #[must_use]
    pub const fn new(common: GroupParameters, records: RecordLayout) -> Self {
        Self {
            common,
            records,
            name_bytes: 0,
            short_groups: 1,
            fixed_bytes: 0,
            rewrite_bytes: 0,
            sorted_buffers: 1,
        }
    }

    /// RAM of all buffers with their stashes, in bytes.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        let it = &self.common;
        let buffers = u64::from(it.partitions) + u64::from(it.spare_buffers);
        let stashed = STASHED_BYTES + (it.key_bytes + it.value_bytes) as u64;
        buffers * (u64::from(it.buffer_pages) * (PAGE_BYTES + 8) + STASH_LEN_MAX as u64 * stashed)
    }

    /// Returns the RAM that each thread takes to flush buffers, in bytes: groups, the structure's own memory, and the
    /// entries of buffers in hash order.
    #[must_use]
    pub fn flush_bytes(&self) -> u64 {
        let entries = self.common.shape().map_or(0, |shape| shape.buffer_limit());
        let sorted = (self.sorted_buffers * entries * size_of::<Incoming<'_>>()) as u64;
        let groups = GROUPS_IN_RAM * u64::from(self.common.group_pages) * PAGE_BYTES;
        groups + self.rewrite_bytes + sorted
    }

    /// Returns the RAM that it shares with other structures of the volume, in bytes, if one thread flushes.
    #[must_use]
    pub fn shared_bytes(&self) -> u64 {
        FIXED_RAM_BYTES + self.flush_bytes()
    }

    /// RAM of the copy of a buffer that a checkpoint saves, in bytes.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        let places = 2 * u64::from(self.common.partitions);
        self.common.shape().map_or(0, |shape| snapshot_pages(&shape) / places * PAGE_BYTES)
    }

    /// Returns the RAM without the maps, in bytes, with buffers of all pages and `flush_threads` threads that flush; 0
    /// counts as one, the updating thread.
    #[must_use]
    pub fn empty_bytes(&self, flush_threads: usize) -> u64 {
        let groups = self.short_groups * (GROUP_RAM_BYTES + GROUP_CHECKPOINT_RAM_BYTES);
        FIXED_RAM_BYTES
            + self.fixed_bytes
            + self.buffer_bytes()
            + u64::from(self.common.partitions) * (PARTITION_BYTES + groups)
            + self.snapshot_bytes()
            + self.flush_bytes() * flush_threads.max(1) as u64
    }

    /// Returns the most RAM of the maps for each entry, in bytes, including that of checkpoints: tables are on average
    /// at least two fifths full, when many have just split, or a level was just begun and all its groups exist.
    #[must_use]
    pub fn map_bytes_per_entry(&self, flush_threads: usize) -> f64 {
        let per_table = |bytes: u64| bytes as f64 / f64::from(self.common.group_pages);
        let group = 1.0 + per_table(GROUP_RAM_BYTES);
        // Each thread builds the next map of one partition.
        let next = flush_threads.max(1) as f64 / f64::from(self.common.partitions);
        let checkpoint = CHECKPOINT_COPIES as f64 + per_table(GROUP_CHECKPOINT_RAM_BYTES);
        let names = self.name_bytes as f64;
        let table = (names + group) * (1.0 + next) + group * REPLACED + checkpoint;
        table / (0.4 * self.records.slots() as f64)
    }

    /// Returns the entries that the table is guaranteed to hold within its RAM.
    #[must_use]
    pub fn entries_max(&self, flush_threads: usize) -> u64 {
        self.common.ram_bytes_max.map_or(u64::MAX, |most| {
            let left = most.saturating_sub(self.empty_bytes(flush_threads));
            (left as f64 / self.map_bytes_per_entry(flush_threads)) as u64
        })
    }

    /// Fails for less RAM than the table takes without entries.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), with the least RAM.
    pub fn check(&self, flush_threads: usize) -> Result<()> {
        let least = self.empty_bytes(flush_threads);
        match self.common.ram_bytes_max.filter(|most| *most < least) {
            Some(most) => Err(too_little_ram(most, least)),
            None => Ok(()),
        }
    }
}
