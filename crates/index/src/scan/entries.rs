//! The entries of a table, each key once with its newest value, either up to the first damaged page or past damage.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use nandex_device::PageId;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::proven::FailedRead;

use super::{Reads, Visitor};
use crate::any::AnyPair;
use crate::api::Value;
use crate::damage::page_of;
use crate::{Damage, Result};

/// A pair, or a damaged page that is left out.
type Item = std::result::Result<AnyPair, Damage>;

/// A pass that lists a table's entries, portion by portion.
pub(crate) trait Scan: Send {
    /// Adds more entries; returns false if there are no more. A portion begins with [`Found::begin`].
    ///
    /// # Errors
    /// Those of `found`.
    fn advance(&mut self, found: &mut Found) -> Result<bool>;
}

/// The newest versions of the keys of a portion.
#[derive(Debug)]
pub(crate) struct Found {
    on_failure: FailedRead,
    /// Keys whose newest version was found, including removed ones, if an older version may follow.
    seen: HashSet<Vec<u8>>,
    /// Items that were not returned yet.
    items: VecDeque<Item>,
    is_whole: bool,
}

impl Found {
    fn new(on_failure: FailedRead) -> Self {
        Self { on_failure, seen: HashSet::new(), items: VecDeque::new(), is_whole: true }
    }

    /// Begins a portion, or begins it again. Its keys differ from those of earlier portions.
    pub(crate) fn begin(&mut self) {
        self.seen.clear();
        self.items.clear();
        self.is_whole = true;
    }

    /// Returns whether no page of the portion is damaged.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn push(&mut self, entry: Entry<'_>) {
        if entry.state == SlotState::Live {
            self.items.push_back(Ok((entry.key.to_vec(), Value::new(entry.value))));
        }
    }
}

impl Visitor for Found {
    fn entry(&mut self, entry: Entry<'_>) -> Result<()> {
        if self.seen.insert(entry.key.to_vec()) {
            self.push(entry);
        }
        Ok(())
    }

    fn oldest(&mut self, entry: Entry<'_>) -> Result<()> {
        if !self.seen.contains(entry.key) {
            self.push(entry);
        }
        Ok(())
    }

    fn damage(&mut self, damage: Damage) -> Result<()> {
        self.is_whole = false;
        self.items.push_back(Err(damage));
        Ok(())
    }

    fn reads(&self) -> Reads {
        Reads::Each(self.on_failure)
    }
}

/// All entries of a table that damage has spared, and the damaged pages, each once.
pub struct EntriesPastDamage<'t> {
    scan: Box<dyn Scan + 't>,
    found: Found,
    /// Pages that were reported: several portions may have read one.
    told: HashSet<PageId>,
}

impl<'t> EntriesPastDamage<'t> {
    pub(crate) fn new(scan: impl Scan + 't) -> Self {
        Self::with(scan, FailedRead::Splits)
    }

    fn with(scan: impl Scan + 't, on_failure: FailedRead) -> Self {
        Self { scan: Box::new(scan), found: Found::new(on_failure), told: HashSet::new() }
    }
}

impl Iterator for EntriesPastDamage<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            match self.found.items.pop_front() {
                Some(Err(damage)) if !self.told.insert(damage.page) => {}
                Some(item) => return Some(item),
                None => match self.scan.advance(&mut self.found) {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => {
                        let page = page_of(&error).unwrap_or(PageId(0));
                        return Some(Err(Damage::new(page, 0, error)));
                    }
                },
            }
        }
    }
}

/// All entries of a table, up to its first page that cannot be read or verified.
#[derive(Debug)]
pub struct Entries<'t> {
    pass: EntriesPastDamage<'t>,
    has_ended: bool,
}

impl<'t> Entries<'t> {
    pub(crate) fn new(scan: impl Scan + 't) -> Self {
        Self { pass: EntriesPastDamage::with(scan, FailedRead::Ends), has_ended: false }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<AnyPair>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let item = self.pass.next();
        self.has_ended = !matches!(item, Some(Ok(_)));
        item.map(|item| item.map_err(|damage| damage.error))
    }
}

impl fmt::Debug for EntriesPastDamage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntriesPastDamage").field("found", &self.found).finish_non_exhaustive()
    }
}
