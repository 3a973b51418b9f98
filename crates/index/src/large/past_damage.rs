//! Iteration past damage: the entries of the table that damage has spared, and the record of each that can be read.

use std::collections::{BTreeMap, HashSet};

use nandex_device::PageId;
use nandex_store::values::ValueRef;

use super::format::Fingerprint;
use super::iter::{BATCH, Owned};
use super::{Inner, LargeTable};
use crate::any::{AnyEntriesPastDamage, AnyTable};
use crate::damage::page_of;
use crate::{Damage, Error, Result};

/// A pair, or a damaged page that is left out.
type Item = std::result::Result<Owned, Damage>;

impl LargeTable<AnyTable> {
    /// Like [`iter`](Self::iter), but a page that cannot be read or verified does not end the iteration: it is reported
    /// as an item, and all other pairs follow. A page of records is reported after all pairs, with the number of
    /// records lost with it.
    ///
    /// A key whose newest version was on a damaged page may appear with an older value, or although it was removed.
    ///
    /// # Errors
    /// A failed write of unpublished updates.
    pub fn iter_past_damage(&self) -> Result<impl Iterator<Item = Item> + '_> {
        self.inner.publish_all()?;
        let entries = self.inner.table.iter_past_damage();
        let mut left =
            Left { inner: &self.inner, entries, told: HashSet::new(), lost: BTreeMap::new() };
        let batches = std::iter::from_fn(move || left.next());
        Ok(batches.flatten())
    }
}

struct Left<'a> {
    inner: &'a Inner<AnyTable>,
    entries: AnyEntriesPastDamage<'a>,
    /// The damaged pages of the table that were reported.
    told: HashSet<PageId>,
    /// The pages whose records cannot be read.
    lost: BTreeMap<PageId, Damage>,
}

impl Left<'_> {
    /// Returns the next items; at the end the damaged pages of records, and then `None`.
    fn next(&mut self) -> Option<Vec<Item>> {
        let (mut places, mut items) = (Vec::new(), Vec::new());
        for entry in self.entries.by_ref().take(BATCH) {
            match entry {
                Ok((key, value)) => places.push((key, value)),
                Err(damage) => {
                    self.told.insert(damage.page);
                    items.push(Err(damage));
                }
            }
        }
        if places.is_empty() && items.is_empty() {
            let lost = std::mem::take(&mut self.lost);
            return (!lost.is_empty()).then(|| lost.into_values().map(Err).collect());
        }
        let places = places.into_iter().map(|(key, value)| self.inner.decode_entry(&key, &value));
        let places: Vec<_> = places.filter_map(|place| self.keep(place, None)).collect();
        items.extend(self.pairs(&places).into_iter().map(Ok));
        Some(items)
    }

    /// Returns the pairs of these records that can be read.
    fn pairs(&mut self, places: &[(Fingerprint, ValueRef)]) -> Vec<Owned> {
        let references: Vec<_> = places.iter().map(|(_, reference)| *reference).collect();
        let records = self.inner.values.read_many(&references);
        let mut pairs = Vec::new();
        for (index, place) in places.iter().enumerate() {
            let record = match &records {
                Ok(records) => Ok(records[index].clone()),
                Err(_) => self.inner.values.read(place.1).map_err(Error::from),
            };
            let found = record.and_then(|record| self.inner.pairs_of(*place, record));
            pairs.extend(self.keep(found, Some(place.1)).into_iter().flatten());
        }
        pairs
    }

    /// Returns the result of a read; after a failure, counts the record as lost with its page.
    fn keep<T>(&mut self, found: Result<T>, reference: Option<ValueRef>) -> Option<T> {
        let place = reference.map(|reference| self.inner.values.page_of(reference));
        let lose = |error: Error| {
            let page = page_of(&error).or(place).unwrap_or(PageId(0));
            if self.told.contains(&page) {
                // An older version is gone, and the page of a newer one was reported.
                return;
            }
            let damage = self.lost.entry(page).or_insert_with(|| Damage::new(page, 0, error));
            damage.entries_max += 1;
        };
        found.map_err(lose).ok()
    }
}
