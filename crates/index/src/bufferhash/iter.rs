//! Iteration: super table by super table, newest version first, each key once.

use std::collections::HashSet;
use std::collections::VecDeque;

use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;

use super::Inner;
use super::table::Incarnation;
use crate::api::Value;
use crate::{Error, Result};

/// An entry of the iteration: key and value.
pub type Pair = (Vec<u8>, Value);

/// Iterates over all entries of a table; see [`super::BufferHash::iter`].
#[derive(Debug)]
pub struct Iter<'t> {
    inner: &'t Inner,
    table: usize,
    /// Entries found and not returned yet.
    ready: VecDeque<Pair>,
    /// Keys in the super table's buffers, so that older versions are skipped.
    buffered: HashSet<Vec<u8>>,
    /// Columns and incarnations of the super table, newest first, and how many have been read.
    incarnations: Vec<Incarnation>,
    read: usize,
    /// Hashes of all keys in those that have been read: filters tell nothing of incarnations that are evicted since.
    read_keys: Vec<KeyHash>,
    failed: bool,
}

impl<'t> Iter<'t> {
    pub(super) fn new(inner: &'t Inner) -> Self {
        Self {
            inner,
            table: 0,
            ready: VecDeque::new(),
            buffered: HashSet::new(),
            incarnations: Vec::new(),
            read: 0,
            read_keys: Vec::new(),
            failed: false,
        }
    }

    /// Finds more entries; false when there are none.
    fn advance(&mut self) -> Result<bool> {
        if self.read < self.incarnations.len() {
            self.read_incarnation()?;
            return Ok(true);
        }
        if self.table >= self.inner.partitions.len() {
            return Ok(false);
        }
        self.inner.load_filters(self.table)?;
        self.take_buffers()?;
        self.table += 1;
        Ok(true)
    }

    /// Takes what the buffers of the next super table hold, and notes its incarnations.
    fn take_buffers(&mut self) -> Result<()> {
        self.buffered.clear();
        self.read_keys.clear();
        self.read = 0;
        let state = self.inner.partitions[self.table].read();
        for buffer in state.buffers()? {
            let entries = buffer.page_entries().map(|(_, _, entry)| entry);
            for entry in entries.chain(buffer.stash_entries()) {
                if self.buffered.insert(entry.key.to_vec()) && entry.state == SlotState::Live {
                    self.ready.push_back((entry.key.to_vec(), Value::new(entry.value)));
                }
            }
        }
        self.incarnations = state.level.incarnations_newest_first();
        Ok(())
    }

    fn read_incarnation(&mut self) -> Result<()> {
        let (index, (newer, rest)) = (self.table - 1, self.incarnations.split_at(self.read));
        let incarnation = rest[0];
        let pages = match self.inner.read_incarnation(index, incarnation.id) {
            Err(_) if !self.inner.partitions[index].read().level.holds(incarnation.id) => {
                self.read += 1;
                return Ok(());
            }
            pages => pages?,
        };
        let layout = self.inner.entry_layout();
        let all: Vec<(KeyHash, Entry<'_>)> = (0..pages.pages())
            .flat_map(|page| layout.entries(pages.page(page)))
            .map(|(_, entry)| (self.inner.hasher.hash(entry.key), entry))
            .collect();
        let is_next = |entry: &Entry<'_>| {
            entry.state == SlotState::Live && !self.buffered.contains(entry.key)
        };
        let entries: Vec<_> = all.iter().filter(|(_, entry)| is_next(entry)).collect();
        let keys: Vec<_> = entries.iter().map(|(hash, entry)| (*hash, entry.key)).collect();
        let superseded = self.inner.superseded(index, &keys, newer)?;
        let evicted = self.keys_of_evicted(index, newer);
        let newest = entries.into_iter().zip(superseded).filter(|((hash, _), superseded)| {
            !superseded && !evicted.contains(&(hash.place, hash.filter))
        });
        let pair = |entry: &Entry<'_>| (entry.key.to_vec(), Value::new(entry.value));
        self.ready.extend(newest.map(|((_, entry), _)| pair(entry)));
        self.read_keys.extend(all.iter().map(|(hash, _)| *hash));
        self.read += 1;
        Ok(())
    }

    /// The hashes of all keys that were read, if some of these incarnations have been evicted: their filters are gone,
    /// and so are their entries, or they are in a buffer again.
    fn keys_of_evicted(&self, index: usize, read: &[Incarnation]) -> HashSet<(u64, u64)> {
        let state = self.inner.partitions[index].read();
        if read.iter().all(|incarnation| state.level.holds(incarnation.id)) {
            return HashSet::new();
        }
        self.read_keys.iter().map(|hash| (hash.place, hash.filter)).collect()
    }
}

impl Iterator for Iter<'_> {
    type Item = std::result::Result<Pair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.ready.pop_front() {
                return Some(Ok(pair));
            }
            match self.advance() {
                _ if self.failed => return None,
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
