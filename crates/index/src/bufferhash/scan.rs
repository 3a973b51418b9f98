//! A pass over super tables, or over those of a growing table's generations: some pages at a time, in the buffers and
//! in every incarnation.
//!
//! A key has its page at the same index in every incarnation of its super table. So the pages with some indices have
//! all versions of their keys, and the newest of each is found without the filters, which may be damaged too.

use std::ops::Range;

use nandex_store::StructureId;
use nandex_store::buffer::page_of;
use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::hash::KeyHasher;
use nandex_store::page::PageKind;

use super::Inner;
use crate::scan::{EachVersion, Found, Reads, Scan, Visitor, read, visit_buffers};
use crate::write::absorb::{Share, VersionSource, Visit};
use crate::{Damage, Result};

/// The approximate number of pages of all incarnations that an iteration has in memory at a time: 4 MiB.
const PAGES_IN_RAM: usize = 1024;

/// The minimum number of pages of each incarnation that are read together.
const PAGES_MIN: usize = 16;

/// The minimum number of pages read together if versions are read by parts of the pages.
const PART_PAGES_MIN: usize = 4;

impl Inner {
    /// Passes on all versions in some pages of a super table: its buffers' entries with these keys, and then the
    /// incarnations, newest first. An incarnation that is evicted meanwhile is left out.
    pub(super) fn visit_pages(
        &self,
        index: usize,
        pages: &Range<usize>,
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        let (layout, count) = (self.entry_layout(), self.buffer_pages());
        let is_in = |key: &[u8]| {
            pages.len() == count || pages.contains(&page_of(self.hasher.hash(key), count))
        };
        let incarnations = {
            let state = self.partitions[index].read();
            visit_buffers(&state, layout.slots(), visitor, &is_in)?;
            state.level.incarnations_newest_first()
        };
        let (ring, device) = (self.layout.rings.of(index), self.layout.rings.device());
        let label = |id| move |page| ring.label(id, page as u64, PageKind::Data);
        let labels = incarnations.iter().flat_map(|it| pages.clone().map(label(it.id)));
        let labels: Vec<_> = labels.collect();
        read(&**device, &labels, visitor.reads(), &mut |at, page| match page {
            Ok(page) => {
                layout.entries(page.bytes()).try_for_each(|(_, entry)| visitor.entry(entry))
            }
            Err(error) => {
                let id = incarnations[at / pages.len()].id;
                if self.partitions[index].read().level.holds(id) {
                    return visitor.damage(Damage::new(labels[at].page, layout.slots(), error));
                }
                Ok(())
            }
        })
    }

    /// Passes on versions as [`visit_pages`](Self::visit_pages) does, for the keys that are in some pages of a buffer
    /// of `of`.
    pub(super) fn visit_keys_of(
        &self,
        index: usize,
        (pages, of): (&Range<usize>, usize),
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        if of == self.buffer_pages() {
            return self.visit_pages(index, pages, visitor);
        }
        if pages.len() == of {
            return self.visit_pages(index, &(0..self.buffer_pages()), visitor);
        }
        let own = pages_with_keys_of(pages, of, self.buffer_pages());
        self.visit_pages(index, &own, &mut Portion { core: self, pages, of, visitor })
    }

    /// Returns the pages of a buffer, and so of an incarnation's entries.
    pub(super) fn buffer_pages(&self) -> usize {
        self.layout.config.buffer_pages as usize
    }
}

impl VersionSource for Inner {
    fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    fn layout(&self) -> EntryLayout {
        self.entry_layout()
    }

    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn versions_max(&self) -> u64 {
        self.versions_held()
    }

    fn page_parts(&self) -> usize {
        (self.buffer_pages() / PART_PAGES_MIN).max(1)
    }

    fn each_version_in(
        &self,
        share: Share,
        (part, of): (usize, usize),
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        share.partitions_of(self.partitions.len()).try_for_each(|index| {
            let _lock = self.partitions[index].maintain();
            self.visit_keys_of(index, (&(part..part + 1), of), &mut EachVersion(visit))
        })
    }
}

/// Lists a table, or the generations of a growing one. A portion has the keys of some pages of a super table, of the
/// generation that had the most of them when it began. A portion is read completely from the generations at that time:
/// an entry that was live all along is in one of them.
pub(crate) struct SuperTables<L> {
    list: L,
    /// The maximum number of super tables of a generation, and how many of them share one of the generation with the
    /// fewest.
    most: usize,
    shared: usize,
    /// The pages of a buffer, and of a portion.
    count: usize,
    pages: usize,
    /// The next portion.
    next: usize,
    /// Entries read of super tables that several portions share.
    ahead: Vec<Ahead>,
}

impl<'t, H, L: Fn() -> (Vec<&'t Inner>, H)> SuperTables<L> {
    /// Creates a pass over the generations that `list` returns, newest first. While its second value is kept, none is
    /// added or dropped, and no super table becomes whole.
    pub(crate) fn new(list: L) -> Self {
        let (newest_first, _held) = list();
        let counts = || newest_first.iter().map(|core| core.partitions.len());
        let most = counts().max().unwrap_or(1);
        let shared = most / counts().min().unwrap_or(1);
        let count = newest_first.first().map_or(1, |core| core.buffer_pages());
        let incarnations = |core: &&Inner| {
            core.layout.config.incarnations_max as usize * core.buffer_pages().div_ceil(count)
        };
        let incarnations: usize = newest_first.iter().map(incarnations).sum();
        let pages = (PAGES_IN_RAM / incarnations.max(1)).max(PAGES_MIN).min(count);
        drop((newest_first, _held));
        Self { list, most, shared, count, pages, next: 0, ahead: Vec::new() }
    }
}

impl<'t, H, L: Fn() -> (Vec<&'t Inner>, H) + Send> Scan for SuperTables<L> {
    fn advance(&mut self, found: &mut Found) -> Result<bool> {
        let groups = self.count.div_ceil(self.pages);
        // All that share a super table of the oldest generation follow each other, with the same pages.
        let (group, within) = (self.next / self.shared, self.next % self.shared);
        let table = group / groups.max(1) * self.shared + within;
        if table >= self.most || groups == 0 {
            return Ok(false);
        }
        self.next += 1;
        found.begin();
        let first = group % groups * self.pages;
        let pages = first..self.count.min(first + self.pages);
        let (newest_first, _held) = (self.list)();
        self.ahead.retain(|it| newest_first.iter().any(|core| core.id == it.of));
        let mut newer: Vec<&Inner> = Vec::new();
        for core in newest_first {
            let is_whole = |newer: &&Inner| {
                newer.share_of(table, self.most).all(|index| newer.is_whole_at(index))
            };
            if newer.iter().any(is_whole) {
                break;
            }
            let mut visitor = NotTakenOver { core, newer: &newer, found: &mut *found };
            visit(core, (table, self.most), (&pages, self.count), &mut self.ahead, &mut visitor)?;
            if core.layout.config.cleans() {
                newer.push(core);
            }
        }
        Ok(true)
    }
}

/// A key with its value; `None` if it was removed.
type Version = (Vec<u8>, Option<Vec<u8>>);

/// The entries of a super table in some pages, for each super table of a finer division that shares it.
struct Ahead {
    /// The generation, the super table and the first of the pages, and whether it was whole then.
    of: StructureId,
    place: (usize, usize, bool),
    bins: Vec<Vec<Version>>,
}

/// Passes on a generation's entries with the keys in some pages, of a buffer of `of`, of super table `table` out of
/// `most`.
fn visit(
    core: &Inner,
    (table, most): (usize, usize),
    (pages, of): (&Range<usize>, usize),
    ahead: &mut Vec<Ahead>,
    found: &mut NotTakenOver<'_>,
) -> Result<()> {
    // The places of cleaned entries may be written again.
    let lock =
        |index: usize| core.layout.config.cleans().then(|| core.partitions[index].maintain());
    if core.partitions.len() >= most {
        return core.share_of(table, most).try_for_each(|index| {
            let _lock = lock(index);
            core.visit_keys_of(index, (pages, of), found)
        });
    }
    let shared = most / core.partitions.len();
    let index = table / shared;
    let _lock = lock(index);
    // One that became whole meanwhile has the entries that older ones had when the others were listed.
    let place = (index, pages.start, core.is_whole_at(index));
    if !ahead.iter().any(|it| it.of == core.id && it.place == place) {
        let mut bins = Bins { core, bins: vec![Vec::new(); shared], found: &mut *found.found };
        core.visit_keys_of(index, (pages, of), &mut bins)?;
        let bins = bins.bins;
        ahead.retain(|it| it.of != core.id);
        ahead.push(Ahead { of: core.id, place, bins });
    }
    let own = ahead.iter_mut().filter(|it| it.of == core.id);
    let bins = own.map(|it| &mut it.bins[table % shared]);
    bins.flat_map(std::mem::take).try_for_each(|(key, value)| {
        let state = if value.is_some() { SlotState::Live } else { SlotState::Tombstone };
        found.entry(Entry { state, key: &key, value: value.as_deref().unwrap_or_default() })
    })
}

/// A visitor that leaves out entries that a newer generation has taken over.
struct NotTakenOver<'f> {
    core: &'f Inner,
    newer: &'f [&'f Inner],
    found: &'f mut Found,
}

impl Visitor for NotTakenOver<'_> {
    fn entry(&mut self, entry: Entry<'_>) -> Result<()> {
        if self.core.is_taken_over(self.newer, entry.key) {
            return Ok(());
        }
        self.found.entry(entry)
    }

    fn damage(&mut self, damage: Damage) -> Result<()> {
        self.found.damage(damage)
    }

    fn reads(&self) -> Reads {
        self.found.reads()
    }
}

/// A visitor that passes on the entries whose keys are in some pages of a buffer of `of`: pages of another size may
/// have more keys.
struct Portion<'p> {
    core: &'p Inner,
    pages: &'p Range<usize>,
    of: usize,
    visitor: &'p mut dyn Visitor,
}

impl Visitor for Portion<'_> {
    fn entry(&mut self, entry: Entry<'_>) -> Result<()> {
        let page = page_of(self.core.hasher.hash(entry.key), self.of);
        if self.pages.contains(&page) { self.visitor.entry(entry) } else { Ok(()) }
    }

    fn damage(&mut self, damage: Damage) -> Result<()> {
        self.visitor.damage(damage)
    }

    fn reads(&self) -> Reads {
        self.visitor.reads()
    }
}

/// Returns the pages of a buffer of `to` pages with the keys that are in these pages of a buffer of `of`.
fn pages_with_keys_of(pages: &Range<usize>, of: usize, to: usize) -> Range<usize> {
    // Computed from all bits that determine the page of a key: page = bits * pages >> 16, whatever the number of pages.
    let from = |page: usize| (page << 16).div_ceil(of);
    let page_at = |bits: usize| (bits * to) >> 16;
    page_at(from(pages.start))..page_at(from(pages.end).saturating_sub(1)) + 1
}

/// Divides the versions of a super table among those that share it in a newer generation.
struct Bins<'b> {
    core: &'b Inner,
    bins: Vec<Vec<Version>>,
    found: &'b mut Found,
}

impl Visitor for Bins<'_> {
    fn entry(&mut self, entry: Entry<'_>) -> Result<()> {
        let shape = &self.core.codec.shape;
        let hash = self.core.hasher.hash(entry.key);
        // The bits of the place that follow those of the super table.
        let place = hash.place << shape.partitions.trailing_zeros();
        let bin = place >> 1 >> (63 - self.bins.len().trailing_zeros());
        let value = (entry.state == SlotState::Live).then(|| entry.value.to_vec());
        self.bins[bin as usize].push((entry.key.to_vec(), value));
        Ok(())
    }

    fn damage(&mut self, damage: Damage) -> Result<()> {
        self.found.damage(damage)
    }

    fn reads(&self) -> Reads {
        self.found.reads()
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::hash::KeyHash;

    use super::*;

    #[test]
    fn pages_of_another_size_have_all_keys_and_few_others() {
        for (of, to) in [(2, 39), (39, 2), (3, 10), (10, 3), (7, 7), (1, 5), (5, 1)] {
            for first in 0..of {
                for end in first + 1..=of {
                    let theirs = pages_with_keys_of(&(first..end), of, to);
                    let at = |bits: u64| KeyHash { place: bits << 32, filter: 0 };
                    let own = (0..1 << 16).map(at);
                    let own = own.filter(|hash| (first..end).contains(&page_of(*hash, of)));
                    let (mut least, mut most) = (usize::MAX, 0);
                    for page in own.map(|hash| page_of(hash, to)) {
                        (least, most) = (least.min(page), most.max(page));
                    }
                    assert_eq!(theirs, least..most + 1, "{first}..{end} of {of}, to {to}");
                }
            }
        }
    }
}
