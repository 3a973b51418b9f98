//! Rewriting the tables of a partition: updates are applied, crowded tables split, sparse neighbours join. No I/O.
//!
//! Tables come in the order of their hashes, with the updates of each. A table that is nearly full becomes two, each
//! with half of its range, and again if one half is still too full: no entry is ever dropped. Two halves of one range
//! that have become sparse are joined, one level at a time.

use nandex_store::entries::SlotState;
use nandex_store::hash::KeyHasher;
use nandex_store::page::PAGE_BODY_BYTES;
use nandex_store::records::RecordLayout;

use super::directory::{DEPTH_MAX, HashRange};
use crate::groups::Incoming;
use crate::{Error, Result};

/// A table in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Table {
    pub range: HashRange,
    pub body: Box<[u8]>,
}

/// The maximum number of bodies of tables in memory: the right half of each split in progress, one being split, one
/// that the next may join and the result of both, and an empty one to begin with.
const BODIES_MAX: u64 = DEPTH_MAX as u64 + 4;

/// Bodies of tables for reuse that are not in use now.
#[derive(Debug, Default)]
pub struct Bodies(Vec<Box<[u8]>>);

impl Bodies {
    /// The most RAM of all of them, in bytes.
    pub const RAM_BYTES: u64 = BODIES_MAX * PAGE_BODY_BYTES as u64;

    /// Returns the body of a table without entries.
    pub fn take(&mut self) -> Box<[u8]> {
        match self.0.pop() {
            Some(mut body) => {
                body.fill(0);
                body
            }
            None => vec![0; PAGE_BODY_BYTES].into(),
        }
    }

    pub fn give(&mut self, body: Box<[u8]>) {
        self.0.push(body);
    }
}

/// Receives the tables of a rewrite, in the order of their hashes.
pub(super) trait Sink {
    /// # Errors
    /// A failed write, no space.
    fn push(&mut self, range: HashRange, body: &[u8]) -> Result<()>;
}

/// The thresholds at which tables split and join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Occupancy {
    /// The maximum number of entries that a table keeps.
    pub split_above: usize,
    /// The maximum number of entries of two tables that are joined.
    pub join_below: usize,
}

/// The changes that a rewrite has made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Changes {
    pub splits: u64,
    pub joins: u64,
}

/// A rewrite in progress.
pub(super) struct Rewrite<'b, S> {
    layout: RecordLayout,
    hasher: KeyHasher,
    occupancy: Occupancy,
    bodies: &'b mut Bodies,
    /// The last table, which the next one may join.
    pending: Option<Table>,
    changes: Changes,
    sink: S,
}

impl<'b, S: Sink> Rewrite<'b, S> {
    pub fn new(
        layout: RecordLayout,
        hasher: KeyHasher,
        occupancy: Occupancy,
        bodies: &'b mut Bodies,
        sink: S,
    ) -> Self {
        let changes = Changes::default();
        Self { layout, hasher, occupancy, bodies, pending: None, changes, sink }
    }

    /// Applies the updates of a partition without tables, in the order of their hashes.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn first_table(&mut self, updates: &[Incoming<'_>]) -> Result<()> {
        let mut body = self.bodies.take();
        self.table(HashRange::ALL, &mut body, updates)?;
        self.bodies.give(body);
        Ok(())
    }

    /// Applies updates to the next table, each of a different key, in the order of their hashes. The body must not be
    /// used afterwards.
    ///
    /// # Errors
    /// Those of the sink; more keys with one hash than a table takes.
    pub fn table(
        &mut self,
        range: HashRange,
        body: &mut [u8],
        updates: &[Incoming<'_>],
    ) -> Result<()> {
        let rest = &updates[self.apply(body, updates)..];
        let is_deepest = range.depth == DEPTH_MAX;
        let is_full = self.layout.count(body) > self.occupancy.split_above;
        if rest.is_empty() && (is_deepest || !is_full) {
            return self.emit(range, body);
        }
        if is_deepest {
            let entries = (self.layout.count(body) + rest.len()) as u64;
            let reason = format!(
                "{entries} of them have hashes that begin with the same {DEPTH_MAX} bits; choose another hash function \
                 for the volume"
            );
            return Err(Error::GrowthStopped { entries, reason });
        }
        self.split(range, body, rest)
    }

    /// Passes the last table, and returns the sink.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn finish(mut self) -> Result<(S, Changes)> {
        if let Some(Table { range, body }) = self.pending.take() {
            let is_all = range == HashRange::ALL && self.layout.count(&body) == 0;
            if !is_all {
                self.sink.push(range, &body)?;
            }
            self.bodies.give(body);
        }
        Ok((self.sink, self.changes))
    }

    /// Applies updates up to the first that the table has no slot for; returns how many.
    fn apply(&self, body: &mut [u8], updates: &[Incoming<'_>]) -> usize {
        let full = updates.iter().position(|Incoming { hash, entry }| match entry.state {
            SlotState::Tombstone => {
                self.layout.remove(body, *hash, entry.key);
                false
            }
            SlotState::Live => {
                let entry = (*hash, entry.key, entry.value);
                self.layout.insert(body, &self.hasher, entry).is_err()
            }
        });
        full.unwrap_or(updates.len())
    }

    /// Splits a table in two, which take the remaining updates.
    fn split(&mut self, range: HashRange, body: &mut [u8], rest: &[Incoming<'_>]) -> Result<()> {
        self.changes.splits += 1;
        let [left, right] = range.halves();
        let mut right_body = self.half(body, right);
        let left_body = self.half(body, left);
        body.copy_from_slice(&left_body);
        self.bodies.give(left_body);
        let (of_left, of_right) =
            rest.split_at(rest.partition_point(|update| left.ends_after(update.hash)));
        self.table(left, body, of_left)?;
        self.table(right, &mut right_body, of_right)?;
        self.bodies.give(right_body);
        Ok(())
    }

    /// Returns the entries of a table that are in this range.
    fn half(&mut self, body: &[u8], range: HashRange) -> Box<[u8]> {
        let mut half = self.bodies.take();
        let is_in = |hash| range.has(hash);
        if self.layout.gather(&[body], &self.hasher, is_in, &mut half).is_err() {
            // All slots are in use, by entries of this half. Each fits where it is.
            half.copy_from_slice(body);
        }
        half
    }

    /// Passes on a table whose entries are complete, joined with the one before if both are sparse.
    fn emit(&mut self, range: HashRange, body: &[u8]) -> Result<()> {
        if let Some(before) = self.pending.take() {
            let joined = self.join(&before, range, body);
            if joined.is_none() {
                self.sink.push(before.range, &before.body)?;
            }
            self.bodies.give(before.body);
            if joined.is_some() {
                self.changes.joins += 1;
                self.pending = joined;
                return Ok(());
            }
        }
        if self.layout.count(body) > self.occupancy.join_below {
            return self.sink.push(range, body);
        }
        let mut pending = self.bodies.take();
        pending.copy_from_slice(body);
        self.pending = Some(Table { range, body: pending });
        Ok(())
    }

    fn join(&mut self, before: &Table, range: HashRange, body: &[u8]) -> Option<Table> {
        let range = before.range.joined(range)?;
        let entries = self.layout.count(&before.body) + self.layout.count(body);
        if entries > self.occupancy.join_below {
            return None;
        }
        let mut joined = self.bodies.take();
        let tables = [&*before.body, body];
        match self.layout.gather(&tables, &self.hasher, |_| true, &mut joined) {
            Ok(()) => Some(Table { range, body: joined }),
            Err(_) => {
                self.bodies.give(joined);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nandex_store::entries::Entry;
    use nandex_store::hash::HashKind;
    use proptest::prelude::*;

    use super::*;

    impl Sink for Vec<Table> {
        fn push(&mut self, range: HashRange, body: &[u8]) -> Result<()> {
            Self::push(self, Table { range, body: body.into() });
            Ok(())
        }
    }

    /// The tables of a partition in plain memory, rewritten again and again.
    struct Layer {
        layout: RecordLayout,
        hasher: KeyHasher,
        occupancy: Occupancy,
        bodies: Bodies,
        tables: Vec<Table>,
        changes: Changes,
    }

    type Update = (Vec<u8>, Option<u64>);

    impl Layer {
        fn new(layout: RecordLayout, hasher: KeyHasher) -> Self {
            let split_above = layout.slots() * 9 / 10;
            let occupancy = Occupancy { split_above, join_below: split_above / 2 };
            let (bodies, changes) = (Bodies::default(), Changes::default());
            Self { layout, hasher, occupancy, bodies, tables: Vec::new(), changes }
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
            let bodies = &mut self.bodies;
            let mut rewrite =
                Rewrite::new(self.layout, self.hasher, self.occupancy, bodies, Vec::new());
            if self.tables.is_empty() {
                rewrite.first_table(&incoming)?;
            }
            for Table { range, mut body } in self.tables.clone() {
                let those: Vec<_> =
                    incoming.iter().filter(|it| range.has(it.hash)).copied().collect();
                rewrite.table(range, &mut body, &those)?;
            }
            let (tables, changes) = rewrite.finish()?;
            (self.tables, self.changes) = (tables, changes);
            assert!(self.bodies.0.len() as u64 <= BODIES_MAX);
            Ok(())
        }

        /// Returns all entries, after checking that each is in the table of its hash, where a lookup finds it.
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

        /// Returns whether the tables cover all hashes, in order.
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
        // Each entry may only be in its home slot: a second one there crowds it.
        let mut layer = Layer::new(RecordLayout::new(8, 8, 1), HASHER);
        layer.rewrite(&puts(0..100, Some(7))).unwrap();
        assert!(layer.tables.len() > 4, "{}", layer.tables.len());
        assert_eq!(layer.read(), (0..100).map(|number| (key(number), 7)).collect());
    }

    #[test]
    fn a_half_that_has_all_slots_in_use_splits_again_and_loses_nothing() {
        let layout = RecordLayout::new(32, 8, 64);
        let mut layer = Layer::new(layout, HASHER);
        let wide = |number: u64| [key(number), key(number), key(1), key(2)].concat();
        let is_left = |key: &Vec<u8>| HASHER.hash(key).filter >> 63 == 0;
        let keys: Vec<_> = (0..).map(wide).filter(is_left).take(layout.slots() + 20).collect();
        let mut body = layer.bodies.take();
        let fits = |key: &&Vec<u8>| {
            layout.insert(&mut body, &HASHER, (HASHER.hash(key), key, &[3; 8])).is_ok()
        };
        let mut by_hash: Vec<_> = keys.iter().collect();
        by_hash.sort_by_key(|key| HASHER.hash(key).filter);
        assert_eq!(by_hash.into_iter().take_while(fits).count(), layout.slots());
        layer.rewrite(&keys.iter().map(|key| (key.clone(), Some(3))).collect()).unwrap();
        assert!(layer.tables.len() >= 3 && layer.covers_all());
        assert_eq!(layer.read(), keys.into_iter().map(|key| (key, 3)).collect());
    }

    #[test]
    fn more_keys_of_one_hash_than_a_table_has_slots_for_are_refused_and_named() {
        // These hashes cover the first 16 bytes, which are equal.
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
