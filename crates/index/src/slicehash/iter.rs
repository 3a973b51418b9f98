//! Iteration: partition by partition, each key once.

use std::collections::{HashSet, VecDeque};

use nandex_device::PageBuf;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::page::PageKind;
use nandex_store::ring::SegmentId;

use super::older::SlicetablePlace;
use super::{Inner, State};
use crate::api::Value;
use crate::{Error, Result};

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

/// The state of a partition at one moment.
#[derive(Default)]
struct Snapshot {
    /// Keys whose newest version was found, including removed ones.
    seen: HashSet<Vec<u8>>,
    pairs: VecDeque<Pair>,
}

impl Snapshot {
    /// Adds an entry, unless a newer version of its key was added before.
    fn add(&mut self, entry: Entry<'_>) {
        if self.seen.insert(entry.key.to_vec()) && entry.state == SlotState::Live {
            self.pairs.push_back((entry.key.to_vec(), Value::new(entry.value)));
        }
    }

    /// Adds the entries in RAM whose keys `is_own` accepts.
    fn add_ram(&mut self, state: &State, is_own: impl Fn(&[u8]) -> bool) {
        let buffered = state.buffers().flat_map(|buffer| {
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
        self.ready = self.inner.pairs(self.partition)?;
        self.partition += 1;
        Ok(true)
    }
}

impl Inner {
    /// All entries of a partition, each key once with its newest value. If a place is merged and overwritten while it
    /// is read, this starts over.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub(super) fn pairs(&self, index: usize) -> Result<VecDeque<Pair>> {
        loop {
            let (snapshot, runs, slicetable) = self.snapshot(index);
            match self.read_pairs(index, snapshot, &runs, slicetable.as_ref()) {
                Ok(pairs) => return Ok(pairs),
                Err(_) if !self.are_current(index, &runs, slicetable.as_ref()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The content of a partition's buffers, and the places of the rest: runs, the newest first, and the slicetable.
    fn snapshot(&self, index: usize) -> (Snapshot, Vec<SegmentId>, Option<SlicetablePlace>) {
        let mut snapshot = Snapshot::default();
        let state = self.partitions[index].read();
        snapshot.add_ram(&state, |_| true);
        let runs = state.level.runs.iter().rev().map(|run| run.id).collect();
        let Some(older) = self.older_of(index) else {
            let own = self.layout.shadow.block(index as u32);
            return (snapshot, runs, own.map(|block| SlicetablePlace { block, older: None }));
        };
        let from = self.index_in(&older, index);
        let state = older.partitions[from].read();
        snapshot.add_ram(&state, |key| self.is_own(index, key));
        let block = older.layout.shadow.block(from as u32);
        drop(state);
        (snapshot, runs, block.map(|block| SlicetablePlace { block, older: Some(older) }))
    }

    fn read_pairs(
        &self,
        index: usize,
        mut snapshot: Snapshot,
        runs: &[SegmentId],
        slicetable: Option<&SlicetablePlace>,
    ) -> Result<VecDeque<Pair>> {
        for id in runs {
            let pages: PageBuf = self.read_run(*id)?;
            self.run_entries(&pages).for_each(|entry| snapshot.add(entry));
        }
        let layout = self.layout.slices;
        let Some(SlicetablePlace { block, older }) = slicetable else { return Ok(snapshot.pairs) };
        let owner = older.as_deref().unwrap_or(self);
        owner.each_page(*block, PageKind::Slice, &mut |_, body| {
            for at in 0..layout.count(body).unwrap_or(0) {
                let key = layout.key(body, at);
                if !snapshot.seen.contains(key) && (older.is_none() || self.is_own(index, key)) {
                    let value = Value::new(layout.value(body, at));
                    snapshot.pairs.push_back((key.to_vec(), value));
                }
            }
            Ok(())
        })?;
        Ok(snapshot.pairs)
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
