//! A pass over partitions: their RAM, runs, and then the slicetable. Partitions that one of an older table was split
//! into are read together, so that its remaining entries for them are read once.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::hash::KeyHasher;
use nandex_store::page::{Page, PageKind, PageLabel};
use nandex_store::ring::SegmentId;

use super::older::SlicetablePlace;
use super::{Inner, State};
use crate::scan::{EachVersion, Found, Scan, Visitor, read, visit_buffers};
use crate::write::absorb::{Share, VersionSource, Visit};
use crate::{Damage, Result};

/// The places of partitions' entries on flash at one moment, each with its partition.
#[derive(Default)]
struct Places {
    /// The runs, newest first for each partition.
    runs: Vec<(usize, SegmentId)>,
    slicetables: Vec<(usize, SlicetablePlace)>,
    /// The slicetable of the older table, for all partitions that still need it.
    older: Option<SlicetablePlace>,
    waiting: HashSet<usize>,
}

/// Passes on a partition's entries in RAM whose keys `is_wanted` accepts, newest versions first.
fn visit_ram(
    state: &State,
    slots: usize,
    visitor: &mut dyn Visitor,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<()> {
    visit_buffers(state, slots, visitor, is_wanted)?;
    let mut wanted = state.level.overflow.entries().filter(|entry| is_wanted(entry.key));
    wanted.try_for_each(|entry| visitor.entry(entry))
}

impl Inner {
    /// Passes on all versions of several partitions. Returns the places of those on flash.
    fn visit(&self, indexes: Range<usize>, visitor: &mut dyn Visitor) -> Result<Places> {
        let places = self.visit_all_ram(indexes, visitor)?;
        let mut labels: Vec<PageLabel> = Vec::new();
        places.runs.iter().for_each(|(_, id)| labels.extend(self.run_labels(*id)));
        places.slicetables.iter().for_each(|(_, place)| labels.extend(self.slice_labels(place)));
        let own = labels.len();
        places.older.iter().for_each(|place| labels.extend(self.slice_labels(place)));
        let layout = self.entry_layout();
        let device = &**self.volume.device();
        read(device, &labels, visitor.reads(), &mut |at, page| match page {
            Ok(page) if labels[at].kind == PageKind::Slice => {
                let is_wanted =
                    |key: &[u8]| at < own || places.waiting.contains(&self.index_of(key));
                self.visit_slices(page, labels[at], visitor, &is_wanted)
            }
            Ok(page) => {
                layout.entries(page.bytes()).try_for_each(|(_, entry)| visitor.entry(entry))
            }
            Err(error) => visitor.damage(self.damage(labels[at], error)),
        })?;
        Ok(places)
    }

    /// Passes on the entries in RAM of several partitions at one moment, including those that an older table has for
    /// them.
    fn visit_all_ram(&self, indexes: Range<usize>, visitor: &mut dyn Visitor) -> Result<Places> {
        let (mut places, mut older) = (Places::default(), None);
        let slots = self.entry_layout().slots();
        let states: Vec<_> = indexes.clone().map(|index| self.partitions[index].read()).collect();
        for (index, state) in indexes.zip(&states) {
            visit_ram(state, slots, visitor, &|_| true)?;
            places.runs.extend(state.level.runs.iter().rev().map(|run| (index, run.id)));
            if let Some(found) = self.older_of(index) {
                older = Some((self.index_in(&found, index), found));
                places.waiting.insert(index);
            } else if let Some(block) = self.layout.shadow.block(index as u32) {
                places.slicetables.push((index, SlicetablePlace { block, older: None }));
            }
        }
        if let Some((from, older)) = older {
            let state = older.partitions[from].read();
            let is_waiting = |key: &[u8]| places.waiting.contains(&self.index_of(key));
            visit_ram(&state, slots, visitor, &is_waiting)?;
            let block = older.layout.shadow.block(from as u32);
            drop(state);
            places.older = block.map(|block| SlicetablePlace { block, older: Some(older) });
        }
        Ok(places)
    }

    fn index_of(&self, key: &[u8]) -> usize {
        self.partition_of(self.hasher.hash(key))
    }

    /// Returns the labels that the pages of a slicetable must have.
    fn slice_labels(&self, place: &SlicetablePlace) -> Vec<PageLabel> {
        let layout = &place.older.as_deref().unwrap_or(self).layout;
        let pages = 0..u64::from(layout.config.block_pages());
        pages.map(|page| layout.shadow.label(place.block, page, PageKind::Slice)).collect()
    }

    /// Passes on the entries of a page of a slicetable, whose slices have each key once.
    fn visit_slices(
        &self,
        page: Page<'_>,
        label: PageLabel,
        visitor: &mut dyn Visitor,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let (slices, body) = (self.layout.slices, page.body());
        let Some(count) = slices.count(body) else {
            let most = format!("at most {} entries", slices.capacity());
            let error = nandex_store::Error::corrupt("slice", label.page, most, "more");
            return visitor.damage(self.damage(label, error));
        };
        (0..count).filter(|at| is_wanted(slices.key(body, *at))).try_for_each(|at| {
            let (key, value) = (slices.key(body, at), slices.value(body, at));
            visitor.oldest(Entry { state: SlotState::Live, key, value })
        })
    }

    fn damage(&self, label: PageLabel, error: nandex_store::Error) -> Damage {
        let entries_max = match label.kind {
            PageKind::Slice => self.layout.slices.capacity(),
            _ => self.entry_layout().slots(),
        };
        Damage::new(label.page, entries_max, error)
    }

    /// Returns whether nothing was merged and overwritten meanwhile.
    fn are_current(&self, places: &Places) -> bool {
        let older =
            || places.older.iter().flat_map(|it| places.waiting.iter().map(move |at| (*at, it)));
        let own = places.slicetables.iter().map(|(index, place)| (*index, place));
        places.runs.iter().all(|(index, id)| self.has_run(*index, *id))
            && own.chain(older()).all(|(index, place)| self.is_current(index, place))
    }

    /// Returns the partitions from this one on that one of an older table was split into, or this one alone.
    fn split_from(&self, index: usize) -> Range<usize> {
        let each = self.partitions.len() / VersionSource::partitions(self);
        index..index - index % each + each
    }
}

impl VersionSource for Inner {
    fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    fn layout(&self) -> EntryLayout {
        self.entry_layout()
    }

    /// An older table's partition is one of them for as long as its slicetable may be read.
    fn partitions(&self) -> usize {
        self.older().map_or(self.partitions.len(), |older| older.partitions.len())
    }

    fn versions_max(&self) -> u64 {
        self.versions_held()
    }

    fn each_version_in(
        &self,
        share: Share,
        (_part, of): (usize, usize),
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        assert_eq!(of, 1, "its pages cannot be divided");
        let all = share.partitions_of(self.partitions.len());
        let mut next = all.start;
        while next < all.end {
            let indexes = next..self.split_from(next).end.min(all.end);
            next = indexes.end;
            let locks = indexes.clone().map(|index| self.partitions[index].maintain());
            let _locks: Vec<_> = locks.collect();
            let older = indexes.clone().find_map(|index| Some((index, self.older_of(index)?)));
            let _held = older.as_ref().map(|(index, older)| self.hold_older(older, *index));
            self.visit(indexes, &mut EachVersion(visit))?;
        }
        Ok(())
    }
}

/// Lists a table, or the current newest part of a growing table. A portion is a partition, or those that come from one
/// of an older table.
pub(super) struct Partitions<F> {
    newest: F,
    /// The number of partitions that were read, and the total. A newer table has a multiple of them, in the same order.
    read: usize,
    count: usize,
}

impl<F: Fn() -> Arc<Inner>> Partitions<F> {
    pub(super) fn new(newest: F) -> Self {
        let count = newest().partitions.len();
        Self { newest, read: 0, count }
    }
}

impl<F: Fn() -> Arc<Inner> + Send> Scan for Partitions<F> {
    /// If a place is merged and overwritten while it is read, this starts over; so it does if the table is no longer
    /// the newest, since its pages may have been reused.
    fn advance(&mut self, found: &mut Found) -> Result<bool> {
        loop {
            let core = (self.newest)();
            self.read *= core.partitions.len() / self.count;
            self.count = core.partitions.len();
            if self.read == self.count {
                return Ok(false);
            }
            found.begin();
            let indexes = core.split_from(self.read);
            let places = core.visit(indexes.clone(), found)?;
            let is_current = || core.are_current(&places) && Arc::ptr_eq(&core, &(self.newest)());
            if found.is_whole() || is_current() {
                self.read = indexes.end;
                return Ok(true);
            }
        }
    }
}
