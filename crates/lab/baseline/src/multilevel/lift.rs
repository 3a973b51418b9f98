//! Keys that move up, in a table that has shrunk.
//!
//! A key goes to the first of its pages with space, and stays there. After many removals the late levels would keep
//! keys that the earlier ones have space for, and each lookup would read a page of every level. So once all entries
//! would fill half of the levels before the last one, a flush takes the entries of a group of the last level along, as
//! if they were updates, and drops the group: one flush after the other, until the level is empty.
//!
//! ```text
//!   level 0   [ . | . ]          <---- the updates of the buffer, and
//!   level 1   [ : | . | . | . ]        the entries of this group
//!   level 2   [ . | . | - | . ][ . | - | - | . ]
//!                              ^^^^^^^^^^^^^^^^^
//! ```

use std::sync::Arc;

use nandex::Result;
use nandex::raw::{Group, GroupMap, GroupReader, Incoming};
use nandex_device::PageBuf;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::page::PAGE_HEADER_BYTES;
use nandex_store::records::RecordLayout;

use super::levels::{LevelMap, LevelPlan};

/// A group of the last level whose entries a flush takes along.
pub(super) struct LiftedGroup {
    pub level: usize,
    pub number: usize,
    pub group: Arc<Group>,
}

impl LiftedGroup {
    /// Returns the last group of a map that has shrunk, of those with at most `entries_max` entries.
    pub fn of(
        map: &LevelMap,
        plan: LevelPlan,
        (page_slots, entries_max): (u64, u64),
    ) -> Option<Self> {
        let level = map.len().checked_sub(1).filter(|level| *level > 0)?;
        let slots = (0..level).map(|before| page_slots << plan.bits(before)).sum::<u64>();
        if map.entries() * 2 > slots {
            return None;
        }
        (0..plan.groups(level)).rev().find_map(|number| {
            let group = map.group(level, number).filter(|it| it.entries <= entries_max)?;
            Some(Self { level, number, group: Arc::clone(group) })
        })
    }

    /// Reads its pages, and checks them.
    pub fn read(&self, reader: &mut GroupReader) -> Result<PageBuf> {
        let groups = [Arc::clone(&self.group)];
        reader.begin(&groups)?;
        let pages = reader.next(&groups, 0)?;
        (0..pages.pages()).try_for_each(|it| self.group.prove(it, pages.page(it)))?;
        Ok(pages)
    }

    /// Returns the map without it.
    pub fn removed_from(&self, map: &LevelMap) -> LevelMap {
        let mut without = map.clone();
        without.set(self.level, self.number, None);
        without
    }
}

/// Adds the entries of these pages to the updates of a buffer, keeping the order of hashes. An entry whose
/// key has an update is superseded.
pub(super) fn add_lifted<'e>(
    updates: &mut Vec<Incoming<'e>>,
    pages: &'e PageBuf,
    (records, hasher): (RecordLayout, &nandex_store::hash::KeyHasher),
) {
    let count = updates.len();
    for body in (0..pages.pages()).map(|it| &pages.page(it)[PAGE_HEADER_BYTES..]) {
        for slot in records.used(body) {
            let (key, value) = (records.key(body, slot), records.value(body, slot));
            let hash = hasher.hash(key);
            let from = updates[..count].partition_point(|it| it.hash.filter < hash.filter);
            let mut alike =
                updates[from..count].iter().take_while(|it| it.hash.filter == hash.filter);
            if !alike.any(|it| it.entry.key == key) {
                updates
                    .push(Incoming { hash, entry: Entry { state: SlotState::Live, key, value } });
            }
        }
    }
    updates.sort_unstable_by_key(|update| update.hash.filter);
}
