//! Whether a partition that evicts nothing takes another buffer, where a full buffer is merged into what is on flash.
//!
//! Only a merge tells how many entries of a buffer are new keys: the others are updates and removals, which take no
//! space. So a partition may go somewhat over its share, and while a buffer is being merged that may take it there,
//! the next one waits.

use super::{Layout, PartitionState, Space, WriteBuffer};

/// The limit of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeLimit {
    /// Entries on flash that are its share of the table.
    pub(crate) entries_max: u64,
    /// Entries of a full buffer, its stash included.
    pub(crate) buffer_entries_max: u64,
}

impl MergeLimit {
    /// Removals, or refused entries, that are few: a sixteenth of a buffer.
    fn few(self) -> u64 {
        (self.buffer_entries_max / 16).max(1)
    }

    /// Entries of a buffer of that many which its merge may put back, when the last merge has left `refused` in RAM.
    /// Once slices refuse entries these are all of it, and updates wait for the merge. Before, the active buffer takes
    /// them in addition to its own; what was put back and is merged again does not make that more.
    pub(crate) fn carry_over_kept(self, refused: u64, entries: u64) -> u64 {
        if self.has_space(refused) {
            entries.saturating_sub(self.buffer_entries_max)
        } else {
            entries
        }
    }

    fn has_space(self, refused: u64) -> bool {
        refused <= self.few()
    }

    /// Whether the active buffer may be merged into `entries` on flash, when the last merge has left `refused` in RAM;
    /// `None` if the partition is full. More than a few removals make space in any case.
    pub(crate) fn admit<L: Layout>(
        self,
        state: &PartitionState<L>,
        entries: u64,
        refused: u64,
    ) -> Option<Space<()>> {
        if state.forced >= self.few() {
            return Some(Space::Reserved(()));
        }
        // Keys are not spread evenly, and what was removed may still be on flash: a partition of a table that holds
        // no more than it was made for can have somewhat more than its share. Four deviations are enough.
        let more = self.buffer_entries_max + 4 * self.entries_max.isqrt();
        if !self.has_space(refused) || entries >= self.entries_max + more {
            return None;
        }
        let waiting: u64 = state.frozen.iter().map(|frozen| frozen.buffer.entries()).sum();
        let is_certain = waiting == 0 || entries + waiting < self.entries_max;
        Some(if is_certain { Space::Reserved(()) } else { Space::Pending })
    }
}
