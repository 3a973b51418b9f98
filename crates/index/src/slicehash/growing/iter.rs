//! Iteration: partition by partition, in the order of the hash, whichever table is the newest meanwhile.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use nandex_store::proven::FailedRead;

use super::Tables;
use crate::slicehash::Pair;
use crate::slicehash::iter::Contents;
use crate::{Damage, Result};

/// An entry, or a page that is left out.
type PastDamage = std::result::Result<Pair, Damage>;

/// Iterates over all entries of a growing table; see [`super::Growing::iter`].
#[derive(Debug)]
pub struct Iter<'t> {
    partitions: Partitions<'t>,
    /// Entries that were not returned yet.
    ready: VecDeque<Pair>,
    has_failed: bool,
}

/// Reads one partition after the other.
#[derive(Debug)]
struct Partitions<'t> {
    tables: &'t Tables,
    failed: FailedRead,
    /// The partitions that were read, of how many. A newer table has a multiple of them, in the same order.
    read: usize,
    count: usize,
}

/// All entries but those of damaged pages. Two partitions that come from one of an older table read the same pages;
/// each page is told once.
pub(super) fn past_damage(tables: &Tables) -> impl Iterator<Item = PastDamage> + '_ {
    let mut told = HashSet::new();
    let items = Partitions::new(tables, FailedRead::Splits).flat_map(Contents::into_items);
    items.filter(move |item| item.as_ref().err().is_none_or(|damage| told.insert(damage.page)))
}

impl<'t> Partitions<'t> {
    fn new(tables: &'t Tables, failed: FailedRead) -> Self {
        Self { tables, failed, read: 0, count: tables.core().partitions.len() }
    }
}

impl Iterator for Partitions<'_> {
    type Item = Contents;

    fn next(&mut self) -> Option<Contents> {
        loop {
            let core = self.tables.core();
            self.read *= core.partitions.len() / self.count;
            self.count = core.partitions.len();
            if self.read == self.count {
                return None;
            }
            let contents = core.contents(self.read, self.failed);
            // The pages of a table that is no longer the newest may have been given to others.
            if contents.is_whole() || Arc::ptr_eq(&core, &self.tables.core()) {
                self.read += 1;
                return Some(contents);
            }
        }
    }
}

impl<'t> Iter<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        let partitions = Partitions::new(tables, FailedRead::Ends);
        Self { partitions, ready: VecDeque::new(), has_failed: false }
    }

    /// Reads the next partition; false when there is none.
    fn advance(&mut self) -> Result<bool> {
        let Some(contents) = self.partitions.next() else { return Ok(false) };
        self.ready = contents.whole()?;
        Ok(true)
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
