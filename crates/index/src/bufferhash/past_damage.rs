//! Iteration past damage: a few pages of a super table at a time, in its buffers and in every incarnation.
//!
//! A key has its page at the same index in every incarnation of its super table. So a group of indices has all versions
//! of its keys, and the newest of each that is left is found without the filters, which may be damaged too.

use std::collections::HashSet;
use std::ops::Range;

use nandex_store::buffer::page_of;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::page::PageKind;
use nandex_store::proven::{FailedRead, read_each};
use nandex_store::ring::SegmentId;

use super::iter::Pair;
use super::{Inner, table::State};
use crate::Damage;
use crate::api::Value;

/// Pages of each incarnation that are read together; the keys of all are in memory.
const GROUP_PAGES: usize = 16;

/// An entry, or a page that is left out.
type Item = Result<Pair, Damage>;

/// All entries of a table, or of a growing table's generations with the newest first, but those of damaged pages.
pub(crate) fn past_damage<'t>(newest_first: Vec<&'t Inner>) -> impl Iterator<Item = Item> + 't {
    let finest = newest_first.iter().max_by_key(|core| core.partitions.len());
    let groups = finest.map(|finest| Group::all_of(finest)).into_iter().flatten();
    groups.flat_map(move |mut group| {
        newest_first.iter().for_each(|core| group.read(core));
        group.items
    })
}

/// The keys of a super table whose pages have these indices.
struct Group<'t> {
    /// The generation with the most super tables: an older one's has the keys of several of them.
    finest: &'t Inner,
    table: usize,
    pages: Range<usize>,
    /// Keys whose newest version was found, including removed ones.
    seen: HashSet<Vec<u8>>,
    items: Vec<Item>,
}

impl<'t> Group<'t> {
    fn all_of(finest: &'t Inner) -> impl Iterator<Item = Self> + 't {
        let count = finest.layout.config.buffer_pages as usize;
        let of_table = move |table| {
            let group = move |first: usize| {
                let pages = first..count.min(first + GROUP_PAGES);
                Self { finest, table, pages, seen: HashSet::new(), items: Vec::new() }
            };
            (0..count).step_by(GROUP_PAGES).map(group)
        };
        (0..finest.partitions.len()).flat_map(of_table)
    }

    /// Adds the entries of a generation, which is older than those added before.
    fn read(&mut self, core: &Inner) {
        let index = self.table / self.tables_per_table(core);
        let incarnations = {
            let state = core.partitions[index].read();
            self.add_buffers(core, &state);
            state.level.newest_first()
        };
        for (_, incarnation) in incarnations {
            self.add_incarnation(core, index, incarnation.id);
        }
    }

    /// How many of the finest generation's super tables share one of this generation's.
    fn tables_per_table(&self, core: &Inner) -> usize {
        self.finest.partitions.len() / core.partitions.len()
    }

    /// Adds what the buffers have, and the damage of pages that they would have been loaded from.
    fn add_buffers(&mut self, core: &Inner, state: &State) {
        let (buffers, lost) = state.buffers_past_damage();
        for buffer in buffers {
            let in_pages = buffer.page_entries().map(|(_, _, entry)| entry);
            in_pages.chain(buffer.stash_entries()).for_each(|entry| self.add(entry));
        }
        if self.tells(core) {
            let slots = core.entry_layout().slots();
            let damage = lost.iter().filter_map(|lost| lost.damage(&self.pages, slots));
            self.items.extend(damage.map(Err));
        }
    }

    /// Several groups read a page that they share; the first of them tells of it.
    fn tells(&self, core: &Inner) -> bool {
        self.table.is_multiple_of(self.tables_per_table(core))
    }

    fn add_incarnation(&mut self, core: &Inner, index: usize, id: SegmentId) {
        let ring = core.layout.rings.of(index);
        let label = |page: usize| ring.label(id, page as u64, PageKind::Data);
        let labels: Vec<_> = self.pages.clone().map(label).collect();
        let layout = core.entry_layout();
        let tells = self.tells(core);
        let device = &**core.layout.rings.device();
        read_each(device, &labels, FailedRead::Splits, &mut |at, page| match page {
            Ok(page) => layout.entries(page.bytes()).for_each(|(_, entry)| self.add(entry)),
            Err(error) if tells && core.partitions[index].read().level.holds(id) => {
                self.items.push(Err(Damage::new(labels[at].page, layout.slots(), error)));
            }
            // It was told, or the incarnation was evicted meanwhile.
            Err(_) => {}
        });
    }

    /// Adds an entry of the group, unless a newer version of its key was added before.
    fn add(&mut self, entry: Entry<'_>) {
        if self.holds(entry.key)
            && self.seen.insert(entry.key.to_vec())
            && entry.state == SlotState::Live
        {
            self.items.push(Ok((entry.key.to_vec(), Value::new(entry.value))));
        }
    }

    fn holds(&self, key: &[u8]) -> bool {
        let hash = self.finest.hasher.hash(key);
        let pages = self.finest.layout.config.buffer_pages as usize;
        self.pages.contains(&page_of(hash, pages)) && self.finest.partition_of(hash) == self.table
    }
}
