//! A pass over super tables, or over those of a growing table's generations: some pages at a time, in the buffers and
//! in every incarnation.
//!
//! A key has its page at the same index in every incarnation of its super table. So the pages with some indices have
//! all versions of their keys, and the newest of each is found without the filters, which may be damaged too.

use std::ops::Range;

use nandex_store::buffer::page_of;
use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::hash::KeyHasher;
use nandex_store::page::PageKind;

use super::Inner;
use crate::scan::{EachVersion, Found, Reads, Scan, Visitor, read, visit_buffers};
use crate::write::absorb::{Share, VersionSource, Visit};
use crate::{Damage, Result};

/// Pages of all incarnations that an iteration has in memory at a time, about: 4 MiB.
const PAGES_IN_RAM: usize = 1024;

/// Pages of each incarnation that are read together, at least.
const PAGES_MIN: usize = 16;

/// The same where versions are read by parts of the pages.
const PART_PAGES_MIN: usize = 4;

impl Inner {
    /// Passes all versions in some pages of a super table: what its buffers hold of their keys, and then the
    /// incarnations, the newest first. An incarnation that is evicted meanwhile is left out.
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

    /// As [`visit_pages`](Self::visit_pages), for the keys that are in some pages of a buffer of `of`.
    pub(super) fn visit_keys_of(
        &self,
        index: usize,
        (pages, of): (&Range<usize>, usize),
        visitor: &mut dyn Visitor,
    ) -> Result<()> {
        if of == self.buffer_pages() {
            return self.visit_pages(index, pages, visitor);
        }
        let own = pages_with_keys_of(pages, of, self.buffer_pages());
        self.visit_pages(index, &own, &mut Portion { core: self, pages, of, visitor })
    }

    /// Pages of a buffer, and so of an incarnation's entries.
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

    fn each_version(&self, share: Share, visit: &mut Visit<'_>) -> Result<()> {
        self.each_version_in(share, (0, 1), visit)
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
            if of == 1 {
                return self.visit_pages(index, &(0..self.buffer_pages()), &mut EachVersion(visit));
            }
            self.visit_keys_of(index, (&(part..part + 1), of), &mut EachVersion(visit))
        })
    }
}

/// Lists a table, or the generations of one that grows. A portion has the keys of some pages of a super table, of the
/// generation that has the most of them.
pub(crate) struct SuperTables<'t> {
    newest_first: Vec<Generation<'t>>,
    /// The most super tables of a generation, and how many of them share one of the generation with the fewest.
    most: usize,
    shared: usize,
    /// Pages of a portion.
    pages: usize,
    /// The portion that comes next.
    next: usize,
}

impl<'t> SuperTables<'t> {
    /// One or more generations, the newest first.
    pub(crate) fn new(newest_first: Vec<&'t Inner>) -> Self {
        let counts = || newest_first.iter().map(|core| core.partitions.len());
        let most = counts().max().unwrap_or(1);
        let shared = most / counts().min().unwrap_or(1);
        let of = newest_first.first().map_or(1, |core| core.buffer_pages());
        let incarnations = |core: &&Inner| {
            core.layout.config.incarnations_max as usize * core.buffer_pages().div_ceil(of)
        };
        let incarnations: usize = newest_first.iter().map(incarnations).sum();
        let pages = (PAGES_IN_RAM / incarnations.max(1)).max(PAGES_MIN).min(of);
        let generation = |core| Generation { core, ahead: None };
        let newest_first = newest_first.into_iter().map(generation).collect();
        Self { newest_first, most, shared, pages, next: 0 }
    }
}

impl Scan for SuperTables<'_> {
    fn advance(&mut self, found: &mut Found) -> Result<bool> {
        let count = self.newest_first.first().map_or(0, |it| it.core.buffer_pages());
        let groups = count.div_ceil(self.pages);
        // All that share a super table of the oldest generation come one after the other, with the same pages.
        let (group, within) = (self.next / self.shared, self.next % self.shared);
        let table = group / groups.max(1) * self.shared + within;
        if table >= self.most || groups == 0 {
            return Ok(false);
        }
        self.next += 1;
        found.begin();
        let first = group % groups * self.pages;
        let pages = first..count.min(first + self.pages);
        let most = self.most;
        // The places of what was cleaned away may be written again, and what older generations have may be taken over
        // while they are read.
        let mut locks = Vec::new();
        for generation in &mut self.newest_first {
            let core = generation.core;
            let index = table / (most / core.partitions.len());
            let cleans = core.layout.config.cleans();
            locks.extend(cleans.then(|| core.partitions[index].maintain()));
            generation.visit((table, most), (&pages, count), found)?;
            if cleans && core.partitions[index].read().level.is_whole() {
                break;
            }
        }
        Ok(true)
    }
}

/// A generation that is listed.
struct Generation<'t> {
    core: &'t Inner,
    /// The versions in the pages that were read last, for each super table of the finest division that shares that one
    /// of this generation.
    ahead: Option<(Ahead, Vec<Vec<Version>>)>,
}

/// A super table, and the first of its pages that were read.
type Ahead = (usize, usize);

/// A key with its value; `None` if it was removed.
type Version = (Vec<u8>, Option<Vec<u8>>);

impl Generation<'_> {
    /// Passes what it has of the keys in some pages, of a buffer of `of`, of super table `table`, where there are
    /// `most` of them.
    fn visit(
        &mut self,
        (table, most): (usize, usize),
        (pages, of): (&Range<usize>, usize),
        found: &mut Found,
    ) -> Result<()> {
        let (core, shared) = (self.core, most / self.core.partitions.len());
        if shared == 1 {
            return core.visit_keys_of(table, (pages, of), found);
        }
        let ahead = (table / shared, pages.start);
        if self.ahead.as_ref().is_none_or(|(read, _)| *read != ahead) {
            let mut bins = Bins { core, bins: vec![Vec::new(); shared], found };
            core.visit_keys_of(table / shared, (pages, of), &mut bins)?;
            self.ahead = Some((ahead, bins.bins));
        }
        let bins = self.ahead.iter_mut().map(|(_, bins)| &mut bins[table % shared]);
        bins.flat_map(std::mem::take).try_for_each(|(key, value)| {
            let state = if value.is_some() { SlotState::Live } else { SlotState::Tombstone };
            found.entry(Entry { state, key: &key, value: value.as_deref().unwrap_or_default() })
        })
    }
}

/// Passes the entries whose keys are in some pages of a buffer of `of`: pages of another size may have more of them.
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

/// Of a buffer of `to` pages, those with the keys that are in these pages of a buffer of `of`.
fn pages_with_keys_of(pages: &Range<usize>, of: usize, to: usize) -> Range<usize> {
    // Those of all bits that decide the page of a key: page = bits * pages >> 16, whatever the number of pages.
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
