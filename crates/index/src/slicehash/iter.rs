//! Iteration: partition by partition, each key once.

use std::collections::{HashSet, VecDeque};

use nandex_device::PageBuf;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::page::PageKind;
use nandex_store::ring::SegmentId;
use nandex_store::shadow::Block;

use super::Inner;
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
}

impl<'t> Iter<'t> {
    pub(super) fn new(inner: &'t Inner) -> Self {
        Self { inner, partition: 0, ready: VecDeque::new(), failed: false }
    }

    /// Reads the next partition; false when there is none. If a place is merged and overwritten while it is
    /// read, this starts over.
    fn advance(&mut self) -> Result<bool> {
        if self.partition >= self.inner.partitions.len() {
            return Ok(false);
        }
        self.ready = loop {
            let (snapshot, runs, block) = self.buffers();
            match self.read(snapshot, &runs, block) {
                Ok(pairs) => break pairs,
                Err(_) if !self.is_current(&runs, block) => {}
                Err(error) => return Err(error),
            }
        };
        self.partition += 1;
        Ok(true)
    }

    /// The content of the buffers, and the places of the rest: runs, the newest first, and the slicetable.
    fn buffers(&self) -> (Snapshot, Vec<SegmentId>, Option<Block>) {
        let mut snapshot = Snapshot::default();
        let state = self.inner.partitions[self.partition].read();
        let frozen = state.frozen.iter().rev().map(|frozen| &*frozen.buffer);
        for buffer in std::iter::once(&state.active).chain(frozen) {
            let entries = buffer.page_entries().map(|(_, _, entry)| entry);
            entries.chain(buffer.stash_entries()).for_each(|entry| snapshot.add(entry));
        }
        let runs = state.level.runs.iter().rev().map(|run| run.id).collect();
        (snapshot, runs, self.inner.layout.shadow.block(self.partition as u32))
    }

    fn read(
        &self,
        mut snapshot: Snapshot,
        runs: &[SegmentId],
        block: Option<Block>,
    ) -> Result<VecDeque<Pair>> {
        for id in runs {
            let pages: PageBuf = self.inner.read_run(*id)?;
            self.inner.run_entries(&pages).for_each(|entry| snapshot.add(entry));
        }
        let layout = self.inner.layout.slices;
        let Some(block) = block else { return Ok(snapshot.pairs) };
        self.inner.each_page(block, PageKind::Slice, &mut |_, body| {
            for at in 0..layout.count(body).unwrap_or(0) {
                let key = layout.key(body, at);
                if !snapshot.seen.contains(key) {
                    let value = Value::new(layout.value(body, at));
                    snapshot.pairs.push_back((key.to_vec(), value));
                }
            }
            Ok(())
        })?;
        Ok(snapshot.pairs)
    }

    fn is_current(&self, runs: &[SegmentId], block: Option<Block>) -> bool {
        let index = self.partition;
        let is_current = |block| self.inner.layout.shadow.is_current(index as u32, block);
        runs.iter().all(|id| self.inner.has_run(index, *id)) && block.is_none_or(is_current)
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
