//! Iteration: partition by partition, each key once.

use std::collections::{HashSet, VecDeque};

use nandex_store::entries::{Entry, SlotState};
use nandex_store::page::PageKind;
use nandex_store::proven::{FailedRead, read_each};
use nandex_store::ring::SegmentId;

use super::older::SlicetablePlace;
use super::{Inner, Slicetables, State};
use crate::api::Value;
use crate::{Damage, Error, Result};

/// An entry of the iteration: key and value.
pub type Pair = (Vec<u8>, Value);

/// Iterates over all entries of a table; see [`super::SliceHash::iter`].
#[derive(Debug)]
pub struct Iter<'t> {
    inner: &'t Inner,
    partition: usize,
    /// Entries of the partition that were not returned yet.
    ready: VecDeque<Pair>,
    failed: bool,
}

/// What a partition holds at one moment.
#[derive(Default)]
pub(super) struct Contents {
    /// Keys whose newest version was found, including removed ones.
    seen: HashSet<Vec<u8>>,
    pairs: VecDeque<Pair>,
    /// Pages that cannot be read or proven.
    damage: Vec<Damage>,
}

impl Contents {
    /// Adds an entry, unless a newer version of its key was added before.
    fn add(&mut self, entry: Entry<'_>) {
        if self.seen.insert(entry.key.to_vec()) && entry.state == SlotState::Live {
            self.pairs.push_back((entry.key.to_vec(), Value::new(entry.value)));
        }
    }

    /// Adds the entries in RAM whose keys `is_own` accepts, and the damage of pages of `slots` slots that the
    /// buffers would have been loaded from.
    fn add_ram(&mut self, state: &State, slots: usize, is_own: impl Fn(&[u8]) -> bool) {
        let (buffers, lost) = state.buffers_past_damage();
        self.damage.extend(lost.iter().map(|lost| lost.as_damage(slots)));
        let buffered = buffers.flat_map(|buffer| {
            let in_pages = buffer.page_entries().map(|(_, _, entry)| entry);
            in_pages.chain(buffer.stash_entries())
        });
        let all = buffered.chain(state.level.overflow.entries());
        all.filter(|entry| is_own(entry.key)).for_each(|entry| self.add(entry));
    }
}

impl<'t> Iter<'t> {
    pub(super) fn new(inner: &'t Inner) -> Self {
        Self { inner, partition: 0, ready: VecDeque::new(), failed: false }
    }

    /// Reads the next partition; false when there is none.
    fn advance(&mut self) -> Result<bool> {
        if self.partition >= self.inner.partitions.len() {
            return Ok(false);
        }
        self.ready = self.inner.contents(self.partition, FailedRead::Ends).whole()?;
        self.partition += 1;
        Ok(true)
    }
}

impl Contents {
    /// Is all of it there?
    pub(super) fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }

    /// The pairs, unless a page is damaged.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub(super) fn whole(self) -> Result<VecDeque<Pair>> {
        match self.damage.into_iter().next() {
            Some(damage) => Err(damage.error),
            None => Ok(self.pairs),
        }
    }

    /// The pages that are damaged, and the pairs that are left.
    pub(super) fn into_items(self) -> impl Iterator<Item = std::result::Result<Pair, Damage>> {
        self.damage.into_iter().map(Err).chain(self.pairs.into_iter().map(Ok))
    }
}

impl Inner {
    /// All entries of a partition, each key once with its newest value, and the pages that are damaged. If a place is
    /// merged and overwritten while it is read, this starts over.
    pub(super) fn contents(&self, index: usize, failed: FailedRead) -> Contents {
        loop {
            let (mut contents, runs, slicetable) = self.snapshot(index);
            runs.iter().for_each(|id| self.add_run(*id, failed, &mut contents));
            if let Some(place) = &slicetable {
                self.add_slicetable((index, place), failed, &mut contents);
            }
            if contents.is_whole() || self.are_current(index, &runs, slicetable.as_ref()) {
                return contents;
            }
        }
    }

    /// The content of a partition's buffers, and the places of the rest: runs, the newest first, and the slicetable.
    fn snapshot(&self, index: usize) -> (Contents, Vec<SegmentId>, Option<SlicetablePlace>) {
        let mut contents = Contents::default();
        let state = self.partitions[index].read();
        let slots = self.entry_layout().slots();
        contents.add_ram(&state, slots, |_| true);
        let runs = state.level.runs.iter().rev().map(|run| run.id).collect();
        let Some(older) = self.older_of(index) else {
            let own = self.layout.shadow.block(index as u32);
            return (contents, runs, own.map(|block| SlicetablePlace { block, older: None }));
        };
        let from = self.index_in(&older, index);
        let state = older.partitions[from].read();
        contents.add_ram(&state, slots, |key| self.is_own(index, key));
        let block = older.layout.shadow.block(from as u32);
        drop(state);
        (contents, runs, block.map(|block| SlicetablePlace { block, older: Some(older) }))
    }

    /// Adds the entries of a run.
    fn add_run(&self, id: SegmentId, failed: FailedRead, contents: &mut Contents) {
        let (labels, layout) = (self.run_labels(id), self.entry_layout());
        read_each(&**self.volume.device(), &labels, failed, &mut |at, page| match page {
            Ok(page) => layout.entries(page.bytes()).for_each(|(_, entry)| contents.add(entry)),
            Err(error) => {
                contents.damage.push(Damage::new(labels[at].page, layout.slots(), error));
            }
        });
    }

    /// Adds the entries of a slicetable that belong to the partition.
    fn add_slicetable(
        &self,
        (index, place): (usize, &SlicetablePlace),
        failed: FailedRead,
        contents: &mut Contents,
    ) {
        let SlicetablePlace { block, older } = place;
        let Slicetables { config, shadow, io_chunk_pages, slices, .. } =
            &older.as_deref().unwrap_or(self).layout;
        let pages = u64::from(config.block_pages());
        let labels: Vec<_> =
            (0..pages).map(|page| shadow.label(*block, page, PageKind::Slice)).collect();
        for labels in labels.chunks(*io_chunk_pages as usize) {
            read_each(&**self.volume.device(), labels, failed, &mut |at, page| match page {
                Ok(page) => self.add_slices(index, place, page.body(), contents),
                Err(error) => {
                    contents.damage.push(Damage::new(labels[at].page, slices.capacity(), error));
                }
            });
        }
    }

    fn add_slices(
        &self,
        index: usize,
        place: &SlicetablePlace,
        body: &[u8],
        contents: &mut Contents,
    ) {
        let layout = self.layout.slices;
        for at in 0..layout.count(body).unwrap_or(0) {
            let key = layout.key(body, at);
            let is_own = place.older.is_none() || self.is_own(index, key);
            if is_own && !contents.seen.contains(key) {
                contents.pairs.push_back((key.to_vec(), Value::new(layout.value(body, at))));
            }
        }
    }

    fn are_current(
        &self,
        index: usize,
        runs: &[SegmentId],
        slicetable: Option<&SlicetablePlace>,
    ) -> bool {
        runs.iter().all(|id| self.has_run(index, *id))
            && slicetable.is_none_or(|place| self.is_current(index, place))
    }
}

impl Iterator for Iter<'_> {
    type Item = std::result::Result<Pair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.ready.pop_front() {
                return Some(Ok(pair));
            }
            if self.failed {
                return None;
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
