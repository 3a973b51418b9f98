//! Limits partitions that evict nothing, in structures that merge full buffers into the data on flash.
//!
//! Only a merge determines how many entries of a buffer are new keys: the others are updates and removals, which take
//! no space. So a partition may exceed its share somewhat, and while the merge of a buffer may reach the limit, the
//! next buffer waits.

use super::{Layout, PartitionState, Space, WriteBuffer};

/// The limit of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeLimit {
    /// The partition's share of the table's entries on flash.
    pub(crate) entries_max: u64,
    /// The entries of a full buffer, including its stash.
    pub(crate) buffer_entries_max: u64,
}

impl MergeLimit {
    /// The number up to which removals, or refused entries, count as few: a sixteenth of a buffer.
    fn few(self) -> u64 {
        (self.buffer_entries_max / 16).max(1)
    }

    /// Returns how many of a buffer's `entries` its merge may put back, if the last merge has left `refused` in RAM.
    /// Once slices refuse entries this is all of them, and updates wait for the merge. Before that, the active buffer
    /// takes them in addition to its own; merging entries that were put back does not increase the number.
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

    /// Returns whether the active buffer may be merged into `entries` on flash, if the last merge has left `refused` in
    /// RAM; `None` if the partition is full. More than a few removals make space in any case.
    pub(crate) fn admit<L: Layout>(
        self,
        state: &PartitionState<L>,
        entries: u64,
        refused: u64,
    ) -> Option<Space<()>> {
        if state.forced >= self.few() {
            return Some(Space::Reserved(()));
        }
        // Keys are not spread evenly, and removed entries may still be on flash: a partition of a table that holds no
        // more than it was made for can have somewhat more than its share. Four standard deviations are enough.
        let more = self.buffer_entries_max + 4 * self.entries_max.isqrt();
        if !self.has_space(refused) || entries >= self.entries_max + more {
            return None;
        }
        let waiting: u64 = state.frozen.iter().map(|frozen| frozen.buffer.entries()).sum();
        let is_certain = waiting == 0 || entries + waiting < self.entries_max;
        Some(if is_certain { Space::Reserved(()) } else { Space::Pending })
    }
}
