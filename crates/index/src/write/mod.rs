//! The write path: the steps between an update and a structure's layout on flash, common to all structures.
//!
//! Keys are spread over partitions by their hash. Each partition collects updates in a write buffer in RAM and in the
//! write-ahead log. A full buffer is frozen and handed to the structure's [`Layout`], which puts it on flash in its own
//! way. Everything before that, including crash safety, is the same for all structures.
//!
//! ```text
//!   updates                  partition 0             partition 1
//!        |                 +-------------+         +-------------+
//!        +--> log -------> | active      |         | active      |      snapshots: buffers saved
//!                          +-------------+         +-------------+      before they are full
//!                          | frozen, ... |         |             |
//!                          +------|------+         +------|------+
//!   . . . . . . . . . . . . . . . | . . . . . . . . . . . | . . . . . . . . . the layout begins
//!                          L::flush: an incarnation, a slicetable, a run, ...
//! ```
//!
//! Two parts vary. A [`WriteBuffer`] collects updates: entries that replace one another, or counts that add up. A
//! [`Layout`] writes a full buffer to flash.
//!
//! Invariants
//! 1. A key's newest version is in the active buffer of its partition, else in the newest frozen buffer that has it,
//!    else below, where the layout finds it. If updates add up, the sum over all of these counts.
//! 2. A frozen buffer leaves RAM at the moment, under the partition's lock, at which the layout's level has its entries
//!    on flash.
//! 3. Every logged update is in the layout's pages, in a snapshot, or at or after the log tail that the next checkpoint
//!    will have. If updates add up it is in exactly one of them: the log has a boundary at the end of each buffer and
//!    at each snapshot, and the checkpoint names the last one whose updates it covers.
//! 4. What a partition has on flash changes only under its maintenance lock.
//! 5. Locks are taken in this order: a maintenance lock, the lock that guards the layout's maps together, a partition's
//!    state, or those of several by ascending numbers, then single maps, the log or a pool. No thread waits for a
//!    checkpoint or a free buffer while holding one.
//!
//! | act | flash reads | flash writes |
//! |---|---|---|
//! | an update | 0 | its share of the log: 1 + key + value bytes for an entry |
//! | snapshot of a buffer | 0 | the buffer's content |
//! | open | snapshots, and the log's tail | 0 |

mod absent;
pub(crate) mod absorb;
mod add_absent;
mod background;
mod boundary;
mod buffer;
mod buffer_ram;
mod carry_over;
pub(crate) mod check;
mod core;
mod drafts;
pub(crate) mod format;
mod handle;
mod layout;
mod limit;
mod moves;
pub(crate) mod new_keys;
mod pace;
mod page_snapshots;
mod partition;
pub(crate) mod pool;
mod recover;
mod replay;
mod retired;
mod snapshot;
mod spanning;
pub(crate) mod stats;
mod table;
#[cfg(test)]
pub(crate) mod telling;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use self::core::{Core, Options, Stagger, WriteShape};
pub(crate) use add_absent::AddsAbsent;
pub(crate) use boundary::{BOUNDARY_BYTES, Boundary, BoundaryRecord};
pub(crate) use buffer::{LogCodec, WriteBuffer};
pub(crate) use buffer_ram::BufferRam;
pub use handle::Handle;
pub(crate) use layout::{
    CapturedMaps, Checkpoints, Layout, Space, TableLayout, Usage, WritePolicy,
};
pub(crate) use limit::MergeLimit;
pub(crate) use moves::apply_moves;
pub(crate) use new_keys::MergedKeys;
pub(crate) use page_snapshots::{PageSnapshots, SnapshotPlaces, snapshot_pages};
pub(crate) use partition::{Frozen, Partition, PartitionState};
pub(crate) use recover::{
    Levels, Opening, Recovery, StateOf, check_log, check_log_covers, check_log_of_sums, into_store,
    logged_bytes, may_cover, open,
};
pub(crate) use retired::{OnFlash, Retired};
pub(crate) use snapshot::{LostPage, Snapshot, SnapshotRef, SnapshotStore};
pub(crate) use table::{EntryUpdate, TableOpening, TableShape, copy_entries, leave};
#[cfg(test)]
pub(crate) use tests::capture_holds;
pub(crate) use update::{AllFrozen, BATCH, LOCKED_MAX, Locked, by_partition};
