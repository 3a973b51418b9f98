//! Inserts and removals of documents: each is one entry in the log, and goes to the buffers of all its partitions,
//! which are locked together.

use std::ops::Range;

use super::buffer::{PairUpdate, Taken};
use super::format::{DocumentUpdate, update_bytes};
use super::keys::Pair;
use super::read::Flash;
use super::stats::{DocumentCounters, count};
use super::{Inner, SlicetableGroups, State};
use crate::write::Locked;
use crate::{Error, Result};

/// The maximum number of documents that share one reservation in the log.
const RESERVED_MAX: usize = 64;

/// Documents of a batch whose reads are in flight together.
const LOOKED_UP_MAX: usize = 256;

/// The operation of a batch on its documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Insert,
    Remove,
}

/// An update of one document, split by partition.
struct Document {
    removes: bool,
    /// Its pairs with their partitions, in ascending order.
    updates: Vec<(usize, PairUpdate)>,
    /// Its entry in the log.
    entry: Vec<u8>,
}

/// The partitions of a document, locked, each with its range of the document's updates.
struct Spanned<'c> {
    indices: Vec<usize>,
    states: Vec<Locked<'c, SlicetableGroups>>,
    ranges: Vec<Range<usize>>,
}

impl Spanned<'_> {
    fn state_of(&self, index: usize) -> &State {
        let at = self.indices.binary_search(&index);
        &self.states[at.expect("all partitions of the document are locked")]
    }
}

impl Document {
    const fn new() -> Self {
        Self { removes: false, updates: Vec::new(), entry: Vec::new() }
    }

    /// Splits an update of a document; the memory of the previous one is reused.
    fn set(&mut self, core: &Inner, id: u64, keys: &[u64], removes: bool) {
        self.removes = removes;
        DocumentUpdate::encode(&mut self.entry, id, keys, removes);
        let placing = &core.layout.placing;
        self.updates.clear();
        self.updates.extend((0u8..).zip(keys).map(|(table, &key)| {
            let hash = placing.hash(key);
            let update = PairUpdate { pair: Pair { table, key, id }, hash, removes };
            (placing.partition_of(hash), update)
        }));
        self.updates.sort_by_key(|(partition, _)| *partition);
    }

    /// Returns each of its partitions, and the range of its updates for it.
    fn partitions(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let mut start = 0;
        let groups = self.updates.chunk_by(|one, next| one.0 == next.0);
        groups.map(move |group| {
            let range = start..start + group.len();
            start = range.end;
            (group[0].0, range)
        })
    }
}

impl Inner {
    /// Inserts each document, in order, and acknowledges.
    pub(super) fn insert_documents(&self, ids: &[u64], keys: &[u64]) -> Result<()> {
        self.update_documents((ids, keys), Change::Insert)
    }

    /// Removes each document, in order, and acknowledges.
    pub(super) fn remove_documents(&self, ids: &[u64], keys: &[u64]) -> Result<()> {
        self.update_documents((ids, keys), Change::Remove)
    }

    fn update_documents(&self, (ids, keys): (&[u64], &[u64]), change: Change) -> Result<()> {
        self.check_keys(ids.len(), keys)?;
        let tables = self.layout.config.tables as usize;
        let mut document = Document::new();
        let most = self.reserved_max();
        for (ids, keys) in ids.chunks(most).zip(keys.chunks(most * tables)) {
            let _reservation = self.reserve_log(ids.len())?;
            for (&id, keys) in ids.iter().zip(keys.chunks(tables)) {
                document.set(self, id, keys, change == Change::Remove);
                self.apply_document(&document)?;
            }
        }
        self.acknowledge()
    }

    /// Returns the candidates of each document before it is inserted, in order; and acknowledges.
    pub(super) fn candidates_then_insert(
        &self,
        ids: &[u64],
        keys: &[u64],
    ) -> Result<Vec<Vec<u64>>> {
        self.check_keys(ids.len(), keys)?;
        // Nothing is read for updates that will fail.
        self.volume.poison().check()?;
        let tables = self.layout.config.tables as usize;
        let mut all = Vec::with_capacity(ids.len());
        let mut document = Document::new();
        for (ids, keys) in ids.chunks(LOOKED_UP_MAX).zip(keys.chunks(LOOKED_UP_MAX * tables)) {
            let rows: Vec<_> = keys.chunks(tables).collect();
            let looked_up = self.look_up(&rows)?;
            for ((&id, row), flash) in ids.iter().zip(rows).zip(looked_up) {
                let _reservation = self.reserve_log(1)?;
                document.set(self, id, row, false);
                all.push(self.candidates_then_apply(&document, row, flash)?);
            }
        }
        self.acknowledge()?;
        Ok(all)
    }

    /// Inserts a document once its candidates are certain: no buffer of its partitions has left for flash since it was
    /// looked up.
    fn candidates_then_apply(
        &self,
        document: &Document,
        row: &[u64],
        mut flash: Flash,
    ) -> Result<Vec<u64>> {
        loop {
            let Some(mut spanned) = self.lock_document(document)? else { continue };
            let state_of = |index: usize| spanned.state_of(index);
            if let Some(candidates) = self.merge_candidates(&flash, state_of)? {
                self.count_lookup(&candidates, flash.reads);
                self.apply_locked_document(document, &mut spanned)?;
                return Ok(candidates);
            }
            drop(spanned);
            flash = self.look_up(&[row])?.remove(0);
        }
    }

    fn apply_document(&self, document: &Document) -> Result<()> {
        loop {
            if let Some(mut spanned) = self.lock_document(document)? {
                return self.apply_locked_document(document, &mut spanned);
            }
        }
    }

    /// Locks the partitions of a document, if all have space for it; otherwise replaces the full buffer and returns
    /// `None`, and the caller tries again. A removal needs no space in a full index.
    fn lock_document(&self, document: &Document) -> Result<Option<Spanned<'_>>> {
        self.wait_for_pace(document.updates.len());
        let (indices, ranges): (Vec<_>, Vec<_>) = document.partitions().unzip();
        let mut states = self.lock_all(indices.iter().copied());
        for (state, range) in states.iter().zip(&ranges) {
            for (_, it) in &document.updates[range.clone()] {
                state.prefetch_active(|buffer| buffer.prefetch(it.pair.table, it.hash));
            }
        }
        let mut each = states.iter_mut().zip(&ranges);
        let full = each.position(|(state, range)| !state.active_mut().has_space(range.len()));
        let Some(full) = full else { return Ok(Some(Spanned { indices, states, ranges })) };
        // A thread must not wait for a buffer while holding the lock of another partition.
        let state = states.swap_remove(full);
        drop(states);
        match self.rotate(indices[full], state) {
            Err(Error::Full { .. }) if document.removes => {
                let states = self.lock_all(indices.iter().copied());
                Ok(Some(Spanned { indices, states, ranges }))
            }
            Err(error) => Err(self.counted_full(error)),
            Ok(_) => Ok(None),
        }
    }

    /// Adds a document to the buffers of its partitions, and to the log.
    fn apply_locked_document(&self, document: &Document, spanned: &mut Spanned<'_>) -> Result<()> {
        let (mut dropped, mut is_changed) = (0, false);
        for (state, range) in spanned.states.iter_mut().zip(&spanned.ranges) {
            let is_full = !state.active_mut().has_space(range.len());
            let mut changed = 0;
            for (_, update) in &document.updates[range.clone()] {
                match state.active_mut().put_forced(*update) {
                    Taken::Dropped => dropped += 1,
                    Taken::Changed => changed += 1,
                    Taken::Unchanged | Taken::Full => {}
                }
            }
            if changed > 0 {
                self.note_updates(state, changed);
                self.note_place(state);
                state.forced += if is_full { changed as u64 } else { 0 };
                is_changed = true;
            }
        }
        self.count_dropped(dropped);
        let DocumentCounters { inserts, removes, .. } = &self.layout.counters;
        count(if document.removes { removes } else { inserts });
        if is_changed { self.log_spanning(&document.entry) } else { Ok(()) }
    }

    fn update_bytes(&self) -> u64 {
        update_bytes(self.layout.config.tables) as u64
    }

    /// Returns the number of documents that share a reservation: together a sixteenth of the log, so that those of
    /// several threads fit.
    fn reserved_max(&self) -> usize {
        let documents = self.volume.log().capacity_bytes() / 16 / self.update_bytes();
        usize::try_from(documents).unwrap_or(RESERVED_MAX).clamp(1, RESERVED_MAX)
    }

    /// Waits for space in the log for updates of `documents` documents.
    fn reserve_log(&self, documents: usize) -> Result<Option<nandex_store::log::Reservation<'_>>> {
        self.wait_for_log(self.reserved_bytes(documents as u64 * self.update_bytes()))
    }

    /// Returns the error of a full index, including its entries in RAM.
    #[cold]
    fn counted_full(&self, error: Error) -> Error {
        match error {
            Error::Full { flash_bytes, .. } => {
                Error::Full { entries: self.stats().entries, flash_bytes }
            }
            error => error,
        }
    }
}
