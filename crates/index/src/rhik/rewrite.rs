//! Rewriting the tables of a partition: updates go in, crowded tables split, sparse neighbours join. No I/O.
//!
//! Tables come in the order of their hashes, with the updates of each. A table that is nearly full becomes two of
//! twice the depth's ranges, and again if one half is still too full: nothing is ever dropped. Two halves of one range
//! that have become sparse are joined, one level at a time.

use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::page::PAGE_BODY_BYTES;

use super::directory::{DEPTH_MAX, HashRange};
use super::page::RecordLayout;
use crate::{Error, Result};

/// An update of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'e> {
    pub hash: KeyHash,
    pub entry: Entry<'e>,
}

/// A table in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Table {
    pub range: HashRange,
    pub body: Box<[u8]>,
}

impl Table {
    pub fn empty(range: HashRange) -> Self {
        Self { range, body: vec![0; PAGE_BODY_BYTES].into() }
    }
}

/// Takes the tables that a rewrite makes, in the order of their hashes.
pub(super) trait Sink {
    /// # Errors
    /// A failed write, no space.
    fn push(&mut self, table: &Table) -> Result<()>;
}

/// When tables split and join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Occupancy {
    /// The most entries that a table keeps.
    pub split_above: usize,
    /// The most entries of two tables that are joined.
    pub join_below: usize,
}

/// What a rewrite has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Changes {
    pub splits: u64,
    pub joins: u64,
}

/// A rewrite in progress.
pub(super) struct Rewrite<S> {
    layout: RecordLayout,
    hasher: KeyHasher,
    occupancy: Occupancy,
    /// The last table, which the next one may join.
    pending: Option<Table>,
    changes: Changes,
    sink: S,
}

impl<S: Sink> Rewrite<S> {
    pub fn new(layout: RecordLayout, hasher: KeyHasher, occupancy: Occupancy, sink: S) -> Self {
        Self { layout, hasher, occupancy, pending: None, changes: Changes::default(), sink }
    }

    /// Takes the next table and its updates, each of another key.
    ///
    /// # Errors
    /// Those of the sink; more keys of one hash than a table takes.
    pub fn table(&mut self, mut table: Table, updates: &[Incoming<'_>]) -> Result<()> {
        let crowded = self.apply(&mut table, updates.iter().copied());
        self.settle(table, &crowded)
    }

    /// Passes the last table, and returns the sink.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn finish(mut self) -> Result<(S, Changes)> {
        if let Some(last) = self.pending.take() {
            let is_all = last.range == HashRange::ALL && self.layout.count(&last.body) == 0;
            if !is_all {
                self.sink.push(&last)?;
            }
        }
        Ok((self.sink, self.changes))
    }

    /// Applies updates to a table, and returns those that it has no slot for.
    fn apply<'e>(
        &self,
        table: &mut Table,
        updates: impl Iterator<Item = Incoming<'e>>,
    ) -> Vec<Incoming<'e>> {
        let mut crowded = Vec::new();
        for update in updates {
            let Incoming { hash, entry: Entry { state, key, value } } = update;
            match state {
                SlotState::Tombstone => self.layout.remove(&mut table.body, hash, key),
                SlotState::Live => {
                    let put = self.layout.insert(&mut table.body, &self.hasher, (hash, key, value));
                    crowded.extend(put.err().map(|_| update));
                }
            }
        }
        crowded
    }

    /// Passes on a table, or splits it if it is too full or there are entries that it has no slot for.
    fn settle(&mut self, table: Table, crowded: &[Incoming<'_>]) -> Result<()> {
        let is_deepest = table.range.depth == DEPTH_MAX;
        let is_full = self.layout.count(&table.body) > self.occupancy.split_above;
        if crowded.is_empty() && (is_deepest || !is_full) {
            return self.emit(table);
        }
        if is_deepest {
            let entries = (self.layout.count(&table.body) + crowded.len()) as u64;
            let reason = format!(
                "{entries} of them have hashes that begin with the same {DEPTH_MAX} bits; choose another hash function \
                 for the volume"
            );
            return Err(Error::GrowthStopped { entries, reason });
        }
        self.split(&table, crowded)
    }

    fn split(&mut self, table: &Table, crowded: &[Incoming<'_>]) -> Result<()> {
        self.changes.splits += 1;
        let mut halves = [Vec::new(), Vec::new()];
        for slot in self.layout.used(&table.body) {
            let (key, value) =
                (self.layout.key(&table.body, slot), self.layout.value(&table.body, slot));
            let hash = self.hasher.hash(key);
            let entry = Entry { state: SlotState::Live, key, value };
            halves[table.range.half_of(hash)].push(Incoming { hash, entry });
        }
        for update in crowded {
            halves[table.range.half_of(update.hash)].push(*update);
        }
        for (range, entries) in table.range.halves().into_iter().zip(halves) {
            self.table(Table::empty(range), &entries)?;
        }
        Ok(())
    }

    /// Passes on a table whose entries are complete: joined with the one before if both are sparse.
    fn emit(&mut self, table: Table) -> Result<()> {
        let Some(before) = self.pending.take() else {
            self.pending = Some(table);
            return Ok(());
        };
        if let Some(joined) = self.join(&before, &table) {
            self.changes.joins += 1;
            self.pending = Some(joined);
            return Ok(());
        }
        self.sink.push(&before)?;
        self.pending = Some(table);
        Ok(())
    }

    fn join(&self, before: &Table, table: &Table) -> Option<Table> {
        let range = before.range.joined(table.range)?;
        let entries = self.layout.count(&before.body) + self.layout.count(&table.body);
        if entries > self.occupancy.join_below {
            return None;
        }
        let mut joined = Table { range, body: before.body.clone() };
        for slot in self.layout.used(&table.body) {
            let (key, value) =
                (self.layout.key(&table.body, slot), self.layout.value(&table.body, slot));
            let entry = (self.hasher.hash(key), key, value);
            self.layout.insert(&mut joined.body, &self.hasher, entry).ok()?;
        }
        Some(joined)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandex_store::hash::HashKind;
    use proptest::prelude::*;

    use super::*;

    impl Sink for Vec<Table> {
        fn push(&mut self, table: &Table) -> Result<()> {
            Self::push(self, table.clone());
            Ok(())
        }
    }

    /// The tables of a partition in plain memory, rewritten again and again.
    struct Layer {
        layout: RecordLayout,
        hasher: KeyHasher,
        occupancy: Occupancy,
        tables: Vec<Table>,
        changes: Changes,
    }

    type Update = (Vec<u8>, Option<u64>);

    impl Layer {
        fn new(layout: RecordLayout, hasher: KeyHasher) -> Self {
            let split_above = layout.slots() * 9 / 10;
            let occupancy = Occupancy { split_above, join_below: split_above / 2 };
            Self { layout, hasher, occupancy, tables: Vec::new(), changes: Changes::default() }
        }

        fn rewrite(&mut self, updates: &BTreeMap<Vec<u8>, Option<u64>>) -> Result<()> {
            let updates: Vec<Update> = updates.iter().map(|(key, it)| (key.clone(), *it)).collect();
            let values: Vec<_> = updates.iter().map(|it| it.1.unwrap_or(0).to_le_bytes()).collect();
            let mut incoming: Vec<_> = updates
                .iter()
                .zip(&values)
                .map(|((key, put), value)| {
                    let state = if put.is_some() { SlotState::Live } else { SlotState::Tombstone };
                    Incoming { hash: self.hasher.hash(key), entry: Entry { state, key, value } }
                })
                .collect();
            incoming.sort_by_key(|it| it.hash.filter);
            let mut rewrite = Rewrite::new(self.layout, self.hasher, self.occupancy, Vec::new());
            let before = match self.tables.is_empty() {
                true => vec![Table::empty(HashRange::ALL)],
                false => self.tables.clone(),
            };
            for table in before {
                let those: Vec<_> =
                    incoming.iter().filter(|it| table.range.has(it.hash)).copied().collect();
                rewrite.table(table, &those)?;
            }
            let (tables, changes) = rewrite.finish()?;
            (self.tables, self.changes) = (tables, changes);
            Ok(())
        }

        /// All entries; each is in the table of its hash, where a lookup finds it.
        fn read(&self) -> BTreeMap<Vec<u8>, u64> {
            let mut found = BTreeMap::new();
            for Table { range, body } in &self.tables {
                for slot in self.layout.used(body) {
                    let key = self.layout.key(body, slot);
                    let hash = self.hasher.hash(key);
                    assert!(range.has(hash) && self.layout.flaw(body, hash, slot).is_none());
                    let value = self.layout.value(body, slot).try_into().unwrap();
                    assert_eq!(found.insert(key.to_vec(), u64::from_le_bytes(value)), None);
                }
            }
            found
        }

        /// Have the tables all hashes, in order?
        fn covers_all(&self) -> bool {
            let depths = self.tables.iter().map(|table| table.range.depth);
            let ranges = depths.scan(None, |before, depth| {
                *before = Some(HashRange::behind(*before, depth));
                *before
            });
            self.tables.iter().map(|table| table.range).eq(ranges)
        }
    }

    fn key(number: u64) -> Vec<u8> {
        number.to_le_bytes().to_vec()
    }

    const HASHER: KeyHasher = KeyHasher::new(HashKind::Xxh3, 3);

    proptest! {
        #[test]
        fn rewrites_agree_with_a_map(
            neighbourhood in prop::sample::select(vec![1usize, 3, 32]),
            rounds in prop::collection::vec((0u64..6, 1usize..400, any::<u64>()), 1..12),
        ) {
            let mut layer = Layer::new(RecordLayout::new(8, 8, neighbourhood), HASHER);
            let mut oracle = BTreeMap::new();
            for (kind, count, seed) in rounds {
                let number = |nth: usize| nandex_store::hash::mix(seed ^ nth as u64) % 3000;
                let put = |nth: usize| {
                    let is_put = kind > 1 || nth.is_multiple_of(8);
                    is_put.then_some(seed >> 8 | nth as u64)
                };
                let updates: BTreeMap<_, _> =
                    (0..count).map(|nth| (key(number(nth)), put(nth))).collect();
                for (key, value) in &updates {
                    match value {
                        Some(value) => drop(oracle.insert(key.clone(), *value)),
                        None => drop(oracle.remove(key)),
                    }
                }
                layer.rewrite(&updates).unwrap();
                prop_assert_eq!(layer.read(), oracle.clone());
                prop_assert!(layer.covers_all());
            }
        }
    }

    fn puts(keys: std::ops::Range<u64>, value: Option<u64>) -> BTreeMap<Vec<u8>, Option<u64>> {
        keys.map(|number| (key(number), value)).collect()
    }

    #[test]
    fn tables_split_as_they_fill_and_join_as_they_empty() {
        let mut layer = Layer::new(RecordLayout::new(8, 8, 32), HASHER);
        let mut pages = Vec::new();
        for first in (0..10_000).step_by(500) {
            layer.rewrite(&puts(first..first + 500, Some(1))).unwrap();
            let most = layer.tables.iter().map(|it| layer.layout.count(&it.body)).max().unwrap();
            assert!(most <= layer.occupancy.split_above);
            pages.push(layer.tables.len());
        }
        assert!(pages.is_sorted() && pages[0] <= 4);
        assert!((47..=80).contains(&pages[19]), "{pages:?}");
        layer.rewrite(&puts(0..9_900, None)).unwrap();
        assert!(layer.changes.joins > 0);
        while layer.changes.joins > 0 {
            layer.rewrite(&BTreeMap::new()).unwrap();
        }
        assert_eq!(layer.tables.len(), 1);
        layer.rewrite(&puts(9_900..10_000, None)).unwrap();
        assert_eq!(layer.tables, []);
    }

    #[test]
    fn a_crowded_table_splits_early_and_loses_nothing() {
        // Each entry only in its home slot: the second one there crowds it.
        let mut layer = Layer::new(RecordLayout::new(8, 8, 1), HASHER);
        layer.rewrite(&puts(0..100, Some(7))).unwrap();
        assert!(layer.tables.len() > 4, "{}", layer.tables.len());
        assert_eq!(layer.read(), (0..100).map(|number| (key(number), 7)).collect());
    }

    #[test]
    fn more_keys_of_one_hash_than_a_table_has_slots_for_are_refused_and_named() {
        // These hashes are of the first 16 bytes, which are equal.
        let layout = RecordLayout::new(24, 8, 32);
        let mut layer = Layer::new(layout, KeyHasher::new(HashKind::Identity, 0));
        let alike = |number: u64| [key(1), key(2), key(number)].concat();
        let updates = (0..33).map(|number| (alike(number), Some(number))).collect();
        let error = layer.rewrite(&updates).unwrap_err();
        assert!(matches!(error, Error::GrowthStopped { .. }), "{error}");
        assert!(error.to_string().contains("the same 24 bits"), "{error}");
        let updates = (0..32).map(|number| (alike(number), Some(number))).collect();
        layer.rewrite(&updates).unwrap();
        assert_eq!(layer.read().len(), 32);
    }
}
