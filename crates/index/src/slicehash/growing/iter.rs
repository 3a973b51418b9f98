//! Iteration: partition by partition, in the order of the hash, whichever table is the newest meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Tables;
use crate::Result;
use crate::slicehash::Pair;

/// Iterates over all entries of a growing table; see [`super::Growing::iter`].
#[derive(Debug)]
pub struct Iter<'t> {
    tables: &'t Tables,
    /// The partitions that were read, of how many. A newer table has a multiple of them, in the same order.
    read: usize,
    partitions: usize,
    /// Entries that were not returned yet.
    ready: VecDeque<Pair>,
    has_failed: bool,
}

impl<'t> Iter<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        let partitions = tables.core().partitions.len();
        Self { tables, read: 0, partitions, ready: VecDeque::new(), has_failed: false }
    }

    /// Reads the next partition; false when there is none.
    fn advance(&mut self) -> Result<bool> {
        loop {
            let core = self.tables.core();
            self.read *= core.partitions.len() / self.partitions;
            self.partitions = core.partitions.len();
            if self.read == self.partitions {
                return Ok(false);
            }
            match core.pairs(self.read) {
                // Its pages may have been given to others.
                Err(_) if !Arc::ptr_eq(&core, &self.tables.core()) => {}
                pairs => {
                    self.ready = pairs?;
                    self.read += 1;
                    return Ok(true);
                }
            }
        }
    }
}

impl Iterator for Iter<'_> {
    type Item = Result<Pair>;

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
