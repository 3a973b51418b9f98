//! Iteration: generation by generation, without what a newer one knows.

use std::collections::VecDeque;

use super::Generations;
use crate::bufferhash::Iter as GenerationIter;
use crate::grow::Owner;
use crate::{Result, bufferhash};

/// Entries whose newer versions are looked for together.
const BATCH: usize = 1024;

/// Iterates over all entries of a growing table; see [`super::Growing::iter`].
#[derive(Debug)]
pub struct Iter<'t> {
    inner: &'t Owner<Generations>,
    /// The generation that is read, and its entries.
    generation: usize,
    entries: GenerationIter<'t>,
    /// Entries that no newer generation replaces, not returned yet.
    ready: VecDeque<bufferhash::Pair>,
    has_failed: bool,
}

impl<'t> Iter<'t> {
    pub(super) fn new(inner: &'t Owner<Generations>) -> Self {
        let entries = GenerationIter::new(inner.parts.core(0));
        Self { inner, generation: 0, entries, ready: VecDeque::new(), has_failed: false }
    }

    /// Reads more entries; false when there are none.
    fn advance(&mut self) -> Result<bool> {
        let batch: Vec<_> = self.entries.by_ref().take(BATCH).collect::<Result<_>>()?;
        if batch.is_empty() {
            if self.generation + 1 >= self.inner.parts.len() {
                return Ok(false);
            }
            self.generation += 1;
            self.entries = GenerationIter::new(self.inner.parts.core(self.generation));
            return Ok(true);
        }
        let keys: Vec<_> = batch.iter().map(|(key, _)| &key[..]).collect();
        let newer = self.generation + 1..self.inner.parts.len();
        let superseded = self.inner.superseded(&keys, newer)?;
        let newest = batch.into_iter().zip(superseded).filter(|(_, superseded)| !superseded);
        self.ready.extend(newest.map(|(pair, _)| pair));
        Ok(true)
    }
}

impl Iterator for Iter<'_> {
    type Item = Result<bufferhash::Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.ready.pop_front() {
                return Some(Ok(pair));
            }
            if self.has_failed {
                return None;
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.has_failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
